/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define UNW_LOCAL_ONLY
#include "site.h"
#include "text_ranges.h"

#include <ucs/predict/signature.h>
#include <ucs/sys/atomic.h>
#include <ucs/sys/hash.h>

#include <libunwind.h>
#include <pthread.h>
#include <stdlib.h>

#define UCT_HELPER_SITE_TABLE_BITS 12
#define UCT_HELPER_SITE_TABLE_SIZE (1u << UCT_HELPER_SITE_TABLE_BITS)

/* UCX's own part of a stack is below 20 frames deep */
#define UCT_HELPER_SITE_WALK_DEPTH (UCT_HELPER_SITE_MAX_FRAMES + 24)

/*
 * The two halves need no lock and no order: an entry of which one half is old
 * and the other new fits no key.
 *
 * Invariant: check == key ^ path, or the entry is being written.
 */
typedef struct uct_helper_site_memo {
    _Atomic(uint64_t) check;
    _Atomic(uint64_t) path;
} uct_helper_site_memo_t;

struct uct_helper_site {
    uct_helper_site_memo_t   memos[UCT_HELPER_SITE_TABLE_SIZE];
    _Atomic(uint64_t)         walks;
    _Atomic(uint64_t)         confirmed;
    _Atomic(uint64_t)         corrected;
    /* This lock protects ranges; it is held over dl_iterate_phdr() and nothing
     * else, and nothing is held when it is taken. */
    pthread_mutex_t          lock;
    uct_helper_text_ranges_t ranges;
};


ucs_status_t uct_helper_site_create(uct_helper_site_h *site_p)
{
    uct_helper_site_h site;

    site = calloc(1, sizeof(*site));
    if (site == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    pthread_mutex_init(&site->lock, NULL);
    uct_helper_text_ranges_update(&site->ranges);
    *site_p = site;
    return UCS_OK;
}

void uct_helper_site_destroy(uct_helper_site_h site)
{
    pthread_mutex_destroy(&site->lock);
    free(site);
}

/* The key is splitmix64's finalizer over a sum with odd factors; it is never 0,
 * so that an empty entry fits no key. */
static uint64_t uct_helper_site_key(uintptr_t sp, uintptr_t address,
                                    size_t length)
{
    uint64_t key = (sp * UCS_HASH_FACTOR) ^
                   (address * UCS_HASH_FACTOR_2) ^
                   (length * UCS_HASH_FACTOR_3);

    key = (key ^ (key >> 30)) * UCS_HASH_ROUND_1;
    return (key ^ (key >> 27)) | 1;
}

static UCS_F_NOINLINE uint64_t uct_helper_site_frames(uct_helper_site_h site)
{
    void *stack[UCT_HELPER_SITE_WALK_DEPTH];
    const void *frames[UCT_HELPER_SITE_MAX_FRAMES];
    unsigned count = 0;
    int depth, i;

    ucs_add_relaxed(&site->walks, 1);
    depth = unw_backtrace(stack, UCT_HELPER_SITE_WALK_DEPTH);

    pthread_mutex_lock(&site->lock);
    uct_helper_text_ranges_update(&site->ranges);
    for (i = 0; (i < depth) && (count < UCT_HELPER_SITE_MAX_FRAMES); ++i) {
        if (!uct_helper_text_ranges_have(&site->ranges,
                                         (uintptr_t)stack[i])) {
            frames[count++] = stack[i];
        }
    }
    pthread_mutex_unlock(&site->lock);

    return ucs_predict_path(frames, count);
}

static uct_helper_site_memo_t *
uct_helper_site_memo(uct_helper_site_h site, uint64_t key)
{
    return &site->memos[key >> (64 - UCT_HELPER_SITE_TABLE_BITS)];
}

static uint64_t uct_helper_site_remembered(uct_helper_site_memo_t *memo,
                                           uint64_t key)
{
    uint64_t path = ucs_load_relaxed(&memo->path);

    return ((ucs_load_relaxed(&memo->check) ^ path) == key) ? path : 0;
}

uint64_t uct_helper_site_walk(uct_helper_site_h site, uintptr_t sp,
                              uintptr_t address, size_t length)
{
    /* The walk comes first, so that there is one call and one return
     * address of it, also where the helper's own frames cannot be told from
     * the program's. */
    uint64_t walked              = uct_helper_site_frames(site);
    uint64_t key                 = uct_helper_site_key(sp, address, length);
    uct_helper_site_memo_t *memo = uct_helper_site_memo(site, key);
    uint64_t remembered          = uct_helper_site_remembered(memo, key);

    if (walked == remembered) {
        ucs_add_relaxed(&site->confirmed, 1);
        return walked;
    }

    if (remembered != 0) {
        ucs_add_relaxed(&site->corrected, 1);
    }
    ucs_store_relaxed(&memo->check, key ^ walked);
    ucs_store_relaxed(&memo->path, walked);
    return walked;
}

uint64_t uct_helper_site_recall(uct_helper_site_h site, uintptr_t sp,
                                uintptr_t address, size_t length)
{
    uint64_t key = uct_helper_site_key(sp, address, length);

    return uct_helper_site_remembered(uct_helper_site_memo(site, key), key);
}

void uct_helper_site_stats(uct_helper_site_h site,
                           uct_helper_site_stats_t *stats)
{
    stats->walks     = ucs_load_relaxed(&site->walks);
    stats->confirmed = ucs_load_relaxed(&site->confirmed);
    stats->corrected = ucs_load_relaxed(&site->corrected);
}
