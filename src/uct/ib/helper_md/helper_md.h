/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_MD_H_
#define UCT_HELPER_MD_H_

#include <ucs/regcache/regcache.h>
#include "config/helper_config.h"

#include <uct/api/uct.h>

/*
 * The decorator: replaces the operation table of an open memory domain by a
 * private copy whose registrations go through a cache. The domain below
 * keeps its handles, so the transports do not notice.
 */

BEGIN_C_DECLS

/**
 * Check that memory events arrive, before anything is changed. Logs what is missing.
 *
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED: @ref uct_helper_md_attach would fail.
 */
ucs_status_t uct_helper_md_check(void);

/**
 * Decorate an open domain. Its own registration cache, if it has one, must be
 * off: it would hide the deregistrations from the device.
 *
 * Closing the domain stops the helper, reports, deregisters what is left,
 * and closes the domain below. A forked child keeps the domain without a
 * helper: its registrations go straight to the domain below, and it leaves its
 * parent's alone.
 *
 * @param [in] md       Domain that no other thread uses yet. Stays UCX's.
 * @param [in] md_name  Name for the report, without commas.
 * @param [in] config   Options, copied; config->helper is not looked at.
 *
 * @return UCS_OK
 * @return UCS_ERR_UNSUPPORTED    Memory events do not arrive, see events.h and
 *                                monitor.h, or this UCX is not known.
 * @return UCS_ERR_NO_MEMORY
 * @return UCS_ERR_EXCEEDS_LIMIT  Too many domains.
 *         After any error the domain is as it was, and one line of warning has
 *         been logged.
 */
ucs_status_t uct_helper_md_attach(uct_md_h md, const char *md_name,
                                  const uct_helper_config_t *config);

/**
 * Called at the end of a use, before the reference is dropped: a testing aid
 * looks at the registration here.
 *
 * @param [in] memh  Handle of the use, also one of the domain below.
 */
typedef void (*uct_helper_verify_func_t)(uct_md_h md, uct_mem_h memh);

/**
 * Call @a verify at the end of each use. Without this call a domain pays
 * nothing for it.
 *
 * @param [in] md  Decorated domain that no other thread uses yet.
 */
void uct_helper_md_set_verify(uct_md_h md, uct_helper_verify_func_t verify);

/**
 * @param [in] memh  As given to @ref uct_helper_verify_func_t, by its caller.
 *
 * @return Nonzero if a memory event or an invalidation came while the
 *         registration was in use, so that it may differ from memory.
 */
int uct_helper_md_is_gone(uct_md_h md, uct_mem_h memh);

END_C_DECLS

#endif
