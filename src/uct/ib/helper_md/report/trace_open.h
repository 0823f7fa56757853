/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_TRACE_OPEN_H_
#define UCT_HELPER_TRACE_OPEN_H_

#include <ucs/trace/trace.h>
#include <uct/api/uct.h>

/*
 * Uses under way, by handle, first in first out: a release is recorded as a
 * handle only, and the trace needs its range. One thread at a time.
 */

BEGIN_C_DECLS

/** Most uses that are kept. A program that holds more never releases them. */
#define UCT_HELPER_TRACE_OPEN_MAX 65536u

typedef struct uct_helper_trace_open *uct_helper_trace_open_h;

/** Make it, without a use. @return UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t uct_helper_trace_open_create(uct_helper_trace_open_h *open_p);

/** Release it; uses that are open are forgotten. */
void uct_helper_trace_open_destroy(uct_helper_trace_open_h open);

/** A use begins. @return Zero if there is no room for it. */
int uct_helper_trace_open_add(uct_helper_trace_open_h open, uct_mem_h memh,
                              const ucs_trace_event_t *use);

/** The oldest use with @a memh ends. @return Zero if there is none. */
int uct_helper_trace_open_take(uct_helper_trace_open_h open, uct_mem_h memh,
                               ucs_trace_event_t *use);

/** Any use ends. @return Zero if there is none. */
int uct_helper_trace_open_take_any(uct_helper_trace_open_h open,
                                   ucs_trace_event_t *use);

END_C_DECLS

#endif
