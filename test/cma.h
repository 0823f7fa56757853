/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_CMA_H_
#define TEST_CMA_H_

#include <string.h>
#include <uct/api/uct.h>

/**
 * @file cma.h
 *
 * The domain that the software NIC takes the place of.
 */

/** UCX's cma component. @return NULL: UCX lists none. */
static inline uct_component_h cma_find(void)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    uct_component_h *list, found = NULL;
    unsigned count, i;

    if (uct_query_components(&list, &count) != UCS_OK) {
        return NULL;
    }
    for (i = 0; i < count; ++i) {
        if ((uct_component_query(list[i], &attr) == UCS_OK) &&
            (strcmp(attr.name, "cma") == 0)) {
            found = list[i];
        }
    }
    uct_release_component_list(list);
    return found;
}

/** Its domain, with what is preloaded on it, for uct_md_close(). @return NULL: it
 *  does not open. */
static inline uct_md_h cma_open(void)
{
    uct_component_h component = cma_find();
    uct_md_config_t *config;
    uct_md_h md;

    if ((component == NULL) ||
        (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK)) {
        return NULL;
    }
    if (uct_md_open(component, "memory", config, &md) != UCS_OK) {
        md = NULL;
    }
    uct_config_release(config);
    return md;
}

#endif
