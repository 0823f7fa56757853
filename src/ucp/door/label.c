/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "label.h"

#include <ucs/sys/hash.h>

#include <errno.h>


/* Never 0, so that an empty place fits no key */
static uint64_t ucp_door_path_key(const ucp_door_site_t *site)
{
    return ucs_hash_mix((site->caller * UCS_HASH_FACTOR) ^
                        (site->position * UCS_HASH_FACTOR_2)) | 1;
}

/* Where the path of a key is remembered, if it is */
static size_t ucp_door_path_place(uint64_t key)
{
    return key >> (64 - UCP_DOOR_PATH_BITS);
}

static int ucp_door_path_is(const ucp_door_path_t *memo, uint64_t key,
                            uint64_t *path_p)
{
    *path_p = ucs_load_relaxed(&memo->path);
    return (ucs_load_relaxed(&memo->check) ^ *path_p) == key;
}

/* A program of ever new paths is not walked through at each operation */
static int ucp_door_labels_may_walk(ucp_door_labels_t *labels, uint64_t heard)
{
    return ucs_load_relaxed(&labels->walks) <
           (UCP_DOOR_PATHS + (heard / UCP_DOOR_WALK_SHARE));
}

static uint64_t ucp_door_labels_walk(ucp_door_labels_t *labels,
                                     ucp_door_walk_func_t walk,
                                     const ucp_door_site_t *site)
{
    int saved = errno;
    uint64_t path;

    ucs_add_relaxed(&labels->walks, 1);
    path  = walk(site->position, site->caller);
    errno = saved;
    return path;
}

uint64_t ucp_door_labels_path(ucp_door_labels_t *labels,
                              ucp_door_walk_func_t walk,
                              const ucp_door_site_t *site, uint64_t heard)
{
    uint64_t key          = ucp_door_path_key(site);
    ucp_door_path_t *memo = &labels->paths[ucp_door_path_place(key)];
    uint64_t path;

    if (ucp_door_path_is(memo, key, &path)) {
        return path;
    }

    if ((walk == NULL) || !ucp_door_labels_may_walk(labels, heard)) {
        return ucs_hash_mix(site->caller) | 1;
    }

    path = ucp_door_labels_walk(labels, walk, site);
    ucs_store_relaxed(&memo->check, key ^ path);
    ucs_store_relaxed(&memo->path, path);
    return path;
}

int ucp_door_labels_know(const ucp_door_labels_t *labels,
                         const ucp_door_site_t *site)
{
    uint64_t key = ucp_door_path_key(site);
    uint64_t path;

    return ucp_door_path_is(&labels->paths[ucp_door_path_place(key)], key,
                            &path);
}

uint32_t ucp_door_label(uint64_t path, unsigned kind, size_t length)
{
    unsigned size = ucp_door_label_size(length);
    uint32_t label;

    label = (uint32_t)(ucs_hash_mix(path ^ ((kind * 65u + size + 1) *
                                            UCS_HASH_FACTOR_3)) >> 32);
    return (label != 0) ? label : 1;
}
