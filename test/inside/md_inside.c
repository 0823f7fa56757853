/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "md_inside.h"

#include <uct/ib/helper_md/helper_md_int.h>

ucs_regcache_h uct_helper_md_cache(uct_md_h md)
{
    const uct_helper_md_t *helper = uct_helper_md_of(md);

    return uct_helper_md_is_mine(helper) ? helper->cache : NULL;
}

ucs_node_h uct_helper_md_node(uct_md_h md)
{
    return uct_helper_md_of(md)->node;
}

int uct_helper_md_has_thread(uct_md_h md)
{
    return (uct_helper_md_cache(md) != NULL) &&
           ucs_thread_is_running(uct_helper_md_of(md)->thread);
}
