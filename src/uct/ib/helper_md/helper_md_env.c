/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "hear.h"
#include "helper_md_int.h"
#include <ucs/sys/io/log.h>
#include <uct/ib/helper_md/watch/monitor.h>
#include "session.h"
#include <uct/ib/helper_md/watch/trust.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/sync/futex.h>
#include <ucs/sys/mem/maps.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * What a domain's cache calls: the domain below, clock, threads, memory and
 * node.
 */

/* Quietly: the caller has a way left */
static ucs_status_t uct_helper_env_mem_reg(void *arg, void *address,
                                           size_t length, unsigned flags,
                                           ucs_regcache_memh_t *memh_p)
{
    uct_helper_md_t *md = arg;
    uct_mem_h memh;
    ucs_status_t status;
    ucs_cancel_hold();

    ucs_helper_log_hush(1);
    status = uct_abi_mem_reg_flags(md->lower, md->md, address, length,
                                   flags | UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh);
    ucs_helper_log_hush(0);
    if (status == UCS_OK) {
        *memh_p = memh;
    }
    return status;
}

static ucs_status_t uct_helper_env_mem_dereg(void *arg,
                                             ucs_regcache_memh_t memh,
                                             ucs_regcache_comp_t comp)
{
    uct_helper_md_t *md = arg;
    ucs_cancel_hold();

    return uct_abi_mem_dereg(md->lower, md->md, memh, (uct_completion_t*)comp);
}

static void uct_helper_env_complete(void *arg, ucs_regcache_comp_t opaque)
{
    uct_abi_complete((uct_completion_t*)opaque);
}

static uint64_t uct_helper_env_now(void *arg)
{
    return ucs_clock_now();
}

static void uct_helper_env_wake(void *arg)
{
    uct_helper_md_t *md = arg;

    ucs_job_wake(md->job);
}

static void uct_helper_env_wait(void *arg, uint32_t *word, uint32_t value,
                                uint64_t ns)
{
    ucs_thread_h thread   = ((uct_helper_md_t*)arg)->thread;
    _Atomic(uint32_t) *at = (_Atomic(uint32_t)*)word;
    uint64_t first        = (ns == UCS_FUTEX_FOREVER) ? ns : ns / 8;
    int has_borrowed;

    ucs_futex_spin_and_wait(at, value, first);
    if ((first != ns) && (ucs_load_relaxed(at) == value)) {
        /* It is late. What keeps it is likely a busy processor; this one falls idle. */
        has_borrowed = ucs_thread_borrow(thread);
        ucs_futex_wait(at, value, ns - first, UCS_FUTEX_PRIVATE);
        if (has_borrowed) {
            ucs_thread_give_back(thread);
        }
    }
}

static void uct_helper_env_listen(void *arg, int listens)
{
    ucs_operation_listen(uct_helper_hear_wants(), listens);
}

static void uct_helper_env_wake_waiters(void *arg, uint32_t *word)
{
    ucs_futex_wake_all((_Atomic(uint32_t)*)word, UCS_FUTEX_PRIVATE);
}

/* A helper's registration asks the kernel anew unless it watches the mapping
 * for us: UCM may have missed what happened to it. A range that will not be kept
 * is not watched. */
static int uct_helper_env_inspect(void *arg, unsigned flags, uintptr_t *start_p,
                                  uintptr_t *end_p)
{
    uct_helper_md_t *md = arg;
    int speculate       = !!(flags & UCS_REGCACHE_INSPECT_SPECULATE);
    uintptr_t start     = *start_p;
    uintptr_t end       = *end_p;
    uct_helper_range_t range;
    ucs_cancel_hold(); /* the kernel is asked by open() */

    if (uct_helper_range_is_own_stack(start, end)) {
        return 0;
    }

    if (!(flags & UCS_REGCACHE_INSPECT_KNOWN) || (speculate && !md->watches)) {
        if ((uct_helper_range_find(UCT_HELPER_RANGE_WAY_AUTO, start, end,
                                   &range) != UCT_HELPER_RANGE_PRIVATE) ||
            (md->watches && (!uct_helper_trust_watched() ||
                             !uct_helper_monitor_watch(&range)))) {
            return 0;
        }
        *start_p = range.kept;
        *end_p   = range.kept_end;
    }
    return !speculate || uct_helper_range_is_resident(start, end);
}

/* Bytes of the node, and one registration of the device: both or none */
static int uct_helper_env_claim(void *arg, size_t length, ucs_claim_t why)
{
    uct_helper_md_t *md = arg;

    if (!ucs_node_claim(md->node, length, why)) {
        return 0;
    }
    if ((md->quota == NULL) || ucs_node_claim(md->quota, 1, why)) {
        return 1;
    }
    ucs_node_unclaim(md->node, length);
    return 0;
}

static void uct_helper_env_unclaim(void *arg, size_t length)
{
    uct_helper_md_t *md = arg;

    ucs_node_unclaim(md->node, length);
    if (md->quota != NULL) {
        ucs_node_unclaim(md->quota, 1);
    }
}

static int uct_helper_env_ask_for(ucs_node_h node, uint64_t length,
                                  ucs_ask_t whom)
{
    return (node == NULL) || ucs_node_claim(node, length, UCS_CLAIM_USE) ||
           ucs_node_ask(node, length, whom);
}

static ucs_regcache_answer_t uct_helper_env_ask(void *arg, size_t length,
                                                ucs_ask_t whom)
{
    uct_helper_md_t *md = arg;
    ucs_cancel_hold();

    if (!uct_helper_env_ask_for(md->node, length, whom)) {
        return UCS_REGCACHE_ANSWER_NONE;
    }
    if (!uct_helper_env_ask_for(md->quota, 1, whom)) {
        ucs_node_unclaim(md->node, length);
        return UCS_REGCACHE_ANSWER_NONE;
    }
    return UCS_REGCACHE_ANSWER_GRANTED;
}

/* Under a limit of bytes that is known it may have been that, for not all that counts
 * there is in the ledger */
static uint64_t uct_helper_env_refused(void *arg)
{
    uct_helper_md_t *md = arg;

    return ((md->quota != NULL) && !md->has_memlock) ?
                   ucs_node_refused(md->quota, 1) : UINT64_MAX;
}

static void uct_helper_env_ask_back(void *arg, uint64_t limit)
{
    uct_helper_md_t *md = arg;
    ucs_cancel_hold();

    if (md->quota != NULL) {
        ucs_node_ask_back(md->quota, limit);
    }
}

static void uct_helper_env_learn(void *arg, uint64_t limit)
{
    uct_helper_md_t *md = arg;

    if (md->quota != NULL) {
        ucs_node_learn(md->quota, limit);
    }
}

static const ucs_regcache_budget_t uct_helper_env_budget = {
    .claim    = uct_helper_env_claim,
    .unclaim  = uct_helper_env_unclaim,
    .ask      = uct_helper_env_ask,
    .refused  = uct_helper_env_refused,
    .ask_back = uct_helper_env_ask_back,
    .learn    = uct_helper_env_learn
};

static uint64_t uct_helper_md_release_idle(void *arg, uint64_t length)
{
    return ucs_regcache_shrink(arg, length);
}

static uint64_t uct_helper_md_release_regions(void *arg, uint64_t count)
{
    return ucs_regcache_shrink_regions(arg, count);
}

ucs_status_t uct_helper_md_create_cache(uct_helper_md_t *md)
{
    const ucs_regcache_params_t params = {
            .policy       = md->config.policy,
            .max_slowdown = md->config.max_slowdown,
            .region_bytes = md->config.region_bytes,
            .min_size     = md->config.min_size,
            .max_pinned   = md->config.max_pinned,
            .max_regions  = ULONG_MAX,
            .max_length   = md->limits.max_length,
            .access_mask  = UCT_MD_MEM_ACCESS_ALL,
            .cover        = {
                    /* Of a node's budget nothing is taken that nobody asked for */
                    .kind        = (md->config.node_max_pinned == SIZE_MAX) ?
                                           md->config.coalesce :
                                           UCS_REGCACHE_COVER_OFF,
                    .remote_mask = UCT_MD_MEM_ACCESS_REMOTE_PUT |
                                   UCT_MD_MEM_ACCESS_REMOTE_GET |
                                   UCT_MD_MEM_ACCESS_REMOTE_ATOMIC,
                    .own_set     = UCT_MD_MEM_ACCESS_ALL,
                    .own_clear   = UCT_MD_MEM_FLAG_HIDE_ERRORS |
                                   UCT_MD_MEM_FLAG_NONBLOCK}};
    const ucs_regcache_env_t env = {
        .arg          = md,
        .mem_reg      = uct_helper_env_mem_reg,
        .mem_dereg    = uct_helper_env_mem_dereg,
        .complete     = uct_helper_env_complete,
        .now          = uct_helper_env_now,
        .clock        = &ucs_clock_scale,
        .wake         = uct_helper_env_wake,
        .wait         = uct_helper_env_wait,
        .listen       = uct_helper_env_listen,
        .wake_waiters = uct_helper_env_wake_waiters,
        .inspect      = uct_helper_env_inspect,
        .budget       = (md->node != NULL) ? &uct_helper_env_budget : NULL,
        .leave_bytes  = uct_helper_session_leave_bytes()
    };
    ucs_status_t status;

    status = ucs_regcache_create(&params, &env, &md->cache);
    if ((status == UCS_OK) && (md->node != NULL)) {
        (void)ucs_node_join(md->node, uct_helper_md_release_idle, md->cache);
        if (md->quota != NULL) {
            (void)ucs_node_join(md->quota, uct_helper_md_release_regions,
                                md->cache);
        }
    }
    return status;
}

/* --- Marks ---------------------------------------------------------------- */

/* Does the domain below leave marks on the pages that it registers? rdma-core
 * does once it was asked for fork support (ibv_fork_init(), which the preloaded
 * stub forgoes where the kernel needs no help): with MADV_DONTFORK. The marks
 * stay when the page moves or when another thread's event comes before the
 * deregistration, they make a child fault on what else lies on the page, and
 * each splits a mapping. A registered page in the middle of a mapping shows it.
 * Some kernels never join the parts again, so what is compared with was counted
 * before. */
static int uct_helper_md_is_marking(uct_helper_md_t *md)
{
    size_t page = sysconf(_SC_PAGESIZE);
    long before = 0, after = 0;
    ucs_regcache_memh_t memh;
    char *pages;

    pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return 0;
    }

    before = ucs_maps_count((uintptr_t)pages, (uintptr_t)pages + 3 * page);
    if (uct_helper_env_mem_reg(md, pages + page, page, UCT_MD_MEM_ACCESS_ALL,
                               &memh) == UCS_OK) {
        after = ucs_maps_count((uintptr_t)pages, (uintptr_t)pages + 3 * page);
        uct_helper_env_mem_dereg(md, memh, NULL);
    }
    munmap(pages, 3 * page);
    return after > before;
}

void uct_helper_md_check_marks(uct_helper_md_t *md)
{
    if (strcmp(uct_abi_md_component_name(md->md), UCT_HELPER_MD_VERBS) ||
        !uct_helper_md_is_marking(md)) {
        return;
    }

    ucs_regcache_distrust(md->cache, UCS_REGCACHE_DISTRUST_MARKS);
    ucs_helper_warn("%s: registered memory is kept from children "
                    "(MADV_DONTFORK): memory is registered only while it is "
                    "in use",
                    md->name);
    uct_helper_session_note("the domain below keeps registered memory from "
                            "children: it was registered only while in use");
}
