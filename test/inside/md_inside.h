/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef MD_INSIDE_H_
#define MD_INSIDE_H_

#include <ucs/node/node.h>
#include <ucs/regcache/regcache.h>

#include <uct/api/uct.h>

/**
 * @file md_inside.h
 *
 * What tests look at in a domain whose topmost decorator is the helper. From any
 * thread.
 */

BEGIN_C_DECLS

/** @return The domain's cache; NULL in a forked child. */
ucs_regcache_h uct_helper_md_cache(uct_md_h md);

/** @return The process's node; NULL: it has no ledger. */
ucs_node_h uct_helper_md_node(uct_md_h md);

/** @return Nonzero if the helper thread runs. */
int uct_helper_md_has_thread(uct_md_h md);

END_C_DECLS

#endif
