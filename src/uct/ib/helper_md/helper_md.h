/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_MD_H_
#define UCT_HELPER_MD_H_

#include <ucs/regcache/regcache.h>
#include "config/helper_config.h"

#include <uct/api/uct.h>

/**
 * @file helper_md.h
 *
 * The decorator: replaces the operation table of an open memory domain by a
 * private copy whose registrations go through a cache. The domain below
 * keeps its handles, so the transports do not notice.
 */

BEGIN_C_DECLS

/**
 * See whether memory events arrive as config->monitor asks for, before anything
 * is changed for a helper. If less can be had than was asked for, or nothing,
 * that has been logged when this returns.
 *
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED: @ref uct_helper_md_attach would fail.
 */
ucs_status_t uct_helper_md_check(const uct_helper_config_t *config);


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
 * End of a use, before the reference is given back: a testing aid's chance to
 * look at the registration.
 *
 * @param [in] memh  What was registered, also if it went straight to the
 *                   domain below.
 */
typedef void (*uct_helper_verify_func_t)(uct_md_h md, uct_mem_h memh);


/**
 * Have @a verify called at the end of each use. A domain for which this was
 * never called pays nothing for it.
 *
 * @param [in] md  Decorated domain that no other thread uses yet.
 */
void uct_helper_md_set_verify(uct_md_h md, uct_helper_verify_func_t verify);


/**
 * @param [in] memh  As given to @ref uct_helper_verify_func_t, by its caller.
 *
 * @return Nonzero if memory events or an invalidation have taken the
 *         registration's mapping away while it was in use, so that it may
 *         differ from what is there.
 */
int uct_helper_md_is_gone(uct_md_h md, uct_mem_h memh);


/** @return The cache of a decorated domain, NULL if @a md is not one whose
 *          topmost decorator is the helper, or in a forked child. */
ucs_regcache_h uct_helper_md_cache(uct_md_h md);


/** @return Nonzero if the helper thread of a decorated domain runs. */
int uct_helper_md_has_thread(uct_md_h md);


END_C_DECLS

#endif
