/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_DETECT_H_
#define UCT_HELPER_DETECT_H_

#include <uct/api/uct.h>

/**
 * @file detect.h
 *
 * Is this memory a device's? UCX's cache of memory types knows, or else the
 * domains that detect types do, which UCP asks too. The helper opens its own
 * ones, for UCP's may be closed at any time.
 */

BEGIN_C_DECLS

/** Open the domains that detect types of memory, if they are not open yet.
 *  Each call needs a @ref uct_helper_detect_close. Not from an event. */
void uct_helper_detect_open(void);


/** The counterpart; the last one closes the domains. */
void uct_helper_detect_close(void);


/**
 * @param [in] type  From a function of UCX, or from the caller of a domain.
 *
 * @return Nonzero if the running UCX has no such type but "unknown".
 */
int uct_helper_detect_is_unknown(ucs_memory_type_t type);


/**
 * From any thread between the two calls above.
 *
 * @param [in] address  First of @a length bytes.
 *
 * @return Nonzero if the memory is a device's, also of an unknown kind.
 */
int uct_helper_detect_is_device(const void *address, size_t length);

END_C_DECLS

#endif
