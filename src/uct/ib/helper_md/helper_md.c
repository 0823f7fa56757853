/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "helper_md.h"
#include "affinity.h"
#include "events.h"
#include "helper_md_int.h"
#include "log.h"
#include "node_process.h"
#include "range.h"
#include "session.h"
#include "trace_record.h"

#include <ucs/datastruct/linear_func.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The component whose domains register with a device's driver */
#define UCT_HELPER_MD_VERBS "ib"

#define UCT_HELPER_MD_NOTE_MAX 128


void uct_helper_md_dereg_unpack(const uct_abi_md_mem_dereg_params_t *params,
                                uct_abi_md_mem_dereg_params_t *full)
{
    uint64_t mask = params->field_mask;

    full->field_mask = mask;
    full->memh  = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_MEMH) ? params->memh :
                                                             NULL;
    full->flags = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS) ? params->flags : 0;
    full->comp  = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION) ?
                  params->comp : NULL;
}

/* The engine's world */

/* What is called here may be a cancellation point: libunwind reads through a
 * pipe, a driver writes, a log line does. A thread that is cancelled there would
 * leave a region that is for ever being registered, and hang whoever waits for
 * it. @return What uct_helper_cancel_restore() takes. */
static int uct_helper_cancel_disable(void)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}

static void uct_helper_cancel_restore(int old)
{
    pthread_setcancelstate(old, NULL);
}

static ucs_status_t uct_helper_env_mem_reg(void *arg, void *address,
                                           size_t length, unsigned flags,
                                           uct_mem_h *memh_p)
{
    uct_helper_md_t *md = arg;
    int cancel          = uct_helper_cancel_disable();
    ucs_status_t status;

    uct_helper_log_hush(flags & UCT_MD_MEM_FLAG_HIDE_ERRORS);
    status = md->lower->mem_reg(md->md, address, length, flags, memh_p);
    uct_helper_log_hush(0);
    uct_helper_cancel_restore(cancel);
    return status;
}

static ucs_status_t uct_helper_env_mem_dereg(void *arg, uct_mem_h memh,
                                             uct_completion_t *comp)
{
    uct_helper_md_t *md = arg;
    uct_abi_md_mem_dereg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH,
        .memh       = memh
    };
    ucs_status_t status;
    int cancel;

    if (comp != NULL) {
        params.field_mask |= UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS |
                             UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION;
        params.flags       = UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE;
        params.comp        = comp;
    }

    cancel = uct_helper_cancel_disable();
    status = md->lower->mem_dereg(md->md, &params);
    uct_helper_cancel_restore(cancel);
    return status;
}

static uint64_t uct_helper_env_now(void *arg)
{
    (void)arg;
    return ucs_clock_now();
}

static void uct_helper_env_wake(void *arg)
{
    uct_helper_md_t *md = arg;

    uct_helper_thread_wake(md->thread);
}

static void uct_helper_env_wait(void *arg, uint32_t *word, uint32_t value)
{
    (void)arg;
    uct_helper_wait(word, value);
}

static void uct_helper_env_wake_waiters(void *arg, uint32_t *word)
{
    (void)arg;
    uct_helper_wake_waiters(word);
}

static uint64_t uct_helper_env_walk(void *arg, uintptr_t sp, uintptr_t address,
                                    size_t length)
{
    uct_helper_md_t *md = arg;
    int cancel          = uct_helper_cancel_disable();
    uint64_t path;

    path = uct_helper_site_walk(md->site, sp, address, length);
    uct_helper_cancel_restore(cancel);
    return path;
}

static uint64_t uct_helper_env_recall(void *arg, uintptr_t sp,
                                      uintptr_t address, size_t length)
{
    uct_helper_md_t *md = arg;

    return uct_helper_site_recall(md->site, sp, address, length);
}

static void uct_helper_md_watch_vmas(uct_helper_md_t *md, uint64_t now)
{
    if (!uct_helper_vmas_watch(&md->vmas, now)) {
        return;
    }

    if (md->vmas.is_near) {
        uct_helper_engine_distrust(md->engine, UCT_HELPER_DISTRUST_VMAS);
        uct_helper_warn("%s: the process nears vm.max_map_count=%ld mappings: "
                        "memory is registered only while it is in use",
                        md->name, uct_helper_vmas_limit());
    } else {
        uct_helper_engine_trust(md->engine, UCT_HELPER_DISTRUST_VMAS);
    }
}

/* A helper's registration asks the kernel anew unless it watches the mapping
 * for us: UCM may have missed what happened to it */
static int uct_helper_md_inspect(uct_helper_md_t *md, unsigned flags,
                                 uintptr_t *start_p, uintptr_t *end_p)
{
    int speculate       = !!(flags & UCT_HELPER_INSPECT_SPECULATE);
    uintptr_t start     = *start_p;
    uintptr_t end       = *end_p;

    if (uct_helper_range_is_own_stack(start, end)) {
        return 0;
    }

    if (!(flags & UCT_HELPER_INSPECT_KNOWN) || (speculate && !md->watches)) {
        if ((uct_helper_range_find(UCT_HELPER_RANGE_WAY_AUTO, start_p, end_p) !=
             UCT_HELPER_RANGE_PRIVATE) ||
            (md->watches && !uct_helper_monitor_watch(*start_p, *end_p))) {
            return 0;
        }
    }

    return !speculate || uct_helper_range_is_resident(start, end);
}

static int uct_helper_env_inspect(void *arg, unsigned flags, uintptr_t *start_p,
                                  uintptr_t *end_p)
{
    int cancel = uct_helper_cancel_disable(); /* the kernel is asked by open() */
    int may_keep;

    may_keep = uct_helper_md_inspect(arg, flags, start_p, end_p);
    uct_helper_cancel_restore(cancel);
    return may_keep;
}

static int uct_helper_env_claim(void *arg, size_t length, unsigned why)
{
    static const uct_helper_claim_t claims[] = {
        [UCT_HELPER_ROOM_HELPER] = UCT_HELPER_CLAIM_HELPER,
        [UCT_HELPER_ROOM_USE]    = UCT_HELPER_CLAIM_USE,
        [UCT_HELPER_ROOM_FORCE]  = UCT_HELPER_CLAIM_FORCE
    };
    uct_helper_md_t *md = arg;

    return uct_helper_node_claim(md->node, length, claims[why]);
}

static void uct_helper_env_unclaim(void *arg, size_t length)
{
    uct_helper_md_t *md = arg;

    uct_helper_node_unclaim(md->node, length);
}

static uct_helper_room_t uct_helper_env_ask(void *arg, size_t length, int all)
{
    uct_helper_md_t *md = arg;
    int cancel          = uct_helper_cancel_disable();
    int is_granted;

    is_granted = uct_helper_node_ask(md->node, length,
                                     all ? UCT_HELPER_ASK_ALL :
                                           UCT_HELPER_ASK_SHARE);
    uct_helper_cancel_restore(cancel);
    return is_granted ? UCT_HELPER_ROOM_GRANTED : UCT_HELPER_ROOM_NONE;
}

static uint64_t uct_helper_md_release_idle(void *arg, uint64_t length)
{
    return uct_helper_engine_release(arg, length);
}

static uint64_t uct_helper_md_step(void *arg, uint64_t now)
{
    uct_helper_md_t *md = arg;
    uint64_t next;

    uct_helper_events_recheck(now);
    uct_helper_md_watch_vmas(md, now);
    next = uct_helper_md_visit_node(md, now);
    if (next == 0) {
        next = uct_helper_engine_step(md->engine, now);
    } else {
        uct_helper_engine_rested(md->engine);
    }
    /* An engine that distrusts memory has nothing to wake up for */
    return md->vmas.is_near ? ucs_min(next, md->vmas.next_ns) : next;
}

/* The operations */

static void uct_helper_md_bind(uct_helper_md_t *md)
{
    ucs_cpu_set_t cpus;

    /* With a ledger the helper looks for its place itself */
    if ((md->node != NULL) && (md->config.cpu_mode == UCT_HELPER_CPU_AUTO)) {
        return;
    }

    if (!uct_helper_affinity_choose(&md->config, &md->local_cpus, &cpus) ||
        (uct_helper_thread_bind(md->thread, &cpus) == UCS_OK)) {
        return;
    }

    if (md->config.cpu_mode == UCT_HELPER_CPU_LIST) {
        uct_helper_warn("UCX_MD_HELPER_CPU: none of the processors can be had; "
                        "the helper thread runs unbound");
    } else {
        uct_helper_debug("the helper thread is not bound");
    }
}

/* Then whatever is registered may have to be given back */
static int uct_helper_md_has_budget(const uct_helper_md_t *md)
{
    return (md->node != NULL) && uct_helper_node_has_budget(md->node);
}

/* More than one thread may come here */
static void uct_helper_md_listen(uct_helper_md_t *md)
{
    if ((md->node != NULL) && !ucs_swap_acq_rel(&md->listens, 1)) {
        uct_helper_node_listen(md->node, 1);
    }
}

/* Small requests do not need the thread, so they do not start it */
static UCS_F_NOINLINE void uct_helper_md_settle(uct_helper_md_t *md,
                                                size_t length)
{
    ucs_status_t status;
    int cancel;

    if ((length < md->config.min_size) && !uct_helper_md_has_budget(md)) {
        return;
    }

    cancel = uct_helper_cancel_disable();
    status = uct_helper_thread_start(md->thread);
    if (status == UCS_OK) {
        uct_helper_md_bind(md);
        uct_helper_md_listen(md);
    } else {
        uct_helper_engine_helper_refused(md->engine);
        uct_helper_session_note("the system refused a helper thread: "
                                "registrations were kept");
    }
    ucs_store_relaxed(&md->settled, 1);
    uct_helper_cancel_restore(cancel);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_helper_md_get(uct_md_h uct_md, void *address, size_t length,
                  unsigned flags, uintptr_t sp, uct_mem_h *memh_p)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status;

    if (ucs_unlikely(!uct_helper_md_is_mine(md))) {
        uct_helper_child_enter(md);
        return md->ops.mem_reg(uct_md, address, length, flags, memh_p);
    }

    /* UCX's own pools live until finalize; they are not ours to manage */
    if (ucs_unlikely((flags & UCT_MD_MEM_FLAG_LOCK) || (length == 0))) {
        return md->lower->mem_reg(uct_md, address, length, flags, memh_p);
    }

    status = uct_helper_engine_get(md->engine, address, length, flags, sp,
                                   memh_p);
    if (ucs_unlikely(status != UCS_OK)) {
        /* Nothing of ours shall be in the way, in any domain; then the domain
         * below is asked as it would be without us, and what it says is
         * final */
        if (uct_helper_status_is_exhausted(status)) {
            uct_helper_session_yield();
        }
        return md->lower->mem_reg(uct_md, address, length, flags, memh_p);
    }

    if (ucs_unlikely(!ucs_load_relaxed(&md->settled))) {
        uct_helper_md_settle(md, length);
    }

    return status;
}

static ucs_status_t uct_helper_md_mem_reg(uct_md_h uct_md, void *address,
                                          size_t length, unsigned flags,
                                          uct_mem_h *memh_p)
{
    return uct_helper_md_get(uct_md, address, length, flags,
                             (uintptr_t)__builtin_frame_address(0), memh_p);
}

static UCS_F_NOINLINE ucs_status_t
uct_helper_md_invalidate(uct_md_h uct_md,
                         const uct_abi_md_mem_dereg_params_t *params,
                         const uct_abi_md_mem_dereg_params_t *full)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status;

    if (!(md->lower_flags & UCT_MD_FLAG_INVALIDATE)) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (full->comp == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    status = uct_helper_engine_put(md->engine, full->memh, full->comp);
    if (status == UCS_ERR_NO_ELEM) {
        return md->lower->mem_dereg(uct_md, params);
    }

    return status;
}

static ucs_status_t
uct_helper_md_mem_dereg(uct_md_h uct_md,
                        const uct_abi_md_mem_dereg_params_t *params)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uct_abi_md_mem_dereg_params_t full;
    ucs_status_t status;

    if (ucs_unlikely(!uct_helper_md_is_mine(md))) {
        uct_helper_child_enter(md);
        return md->ops.mem_dereg(uct_md, params);
    }

    uct_helper_md_dereg_unpack(params, &full);
    if (ucs_unlikely(full.flags & UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE)) {
        return uct_helper_md_invalidate(uct_md, params, &full);
    }

    status = uct_helper_engine_put(md->engine, full.memh, NULL);
    if (ucs_unlikely(status == UCS_ERR_NO_ELEM)) {
        return md->lower->mem_dereg(uct_md, params);
    }

    return status;
}

/* In the table instead of the plain one, so that that one need not ask */
static ucs_status_t
uct_helper_md_verify_mem_dereg(uct_md_h uct_md,
                               const uct_abi_md_mem_dereg_params_t *params)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uct_abi_md_mem_dereg_params_t full;

    uct_helper_md_dereg_unpack(params, &full);
    if (full.memh != NULL) {
        md->verify(uct_md, full.memh);
    }

    return md->verified_dereg(uct_md, params);
}

/* While a trace is recorded these two are in the table instead */

static ucs_status_t
uct_helper_md_mem_reg_traced(uct_md_h uct_md, void *address, size_t length,
                             unsigned flags, uct_mem_h *memh_p)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uintptr_t sp        = (uintptr_t)__builtin_frame_address(0);
    uint64_t now        = ucs_clock_now();
    ucs_status_t status;
    uint64_t signature;

    status = uct_helper_md_get(uct_md, address, length, flags, sp, memh_p);
    if ((status != UCS_OK) || (flags & UCT_MD_MEM_FLAG_LOCK) ||
        (length == 0) || !uct_helper_md_is_mine(md)) {
        return status;
    }

    /* Policies without a helper do not walk */
    signature = uct_helper_site_recall(md->site, sp, (uintptr_t)address,
                                       length);
    if (ucs_unlikely(signature == 0)) {
        signature = uct_helper_site_walk(md->site, sp, (uintptr_t)address,
                                         length);
    }
    uct_helper_trace_use(now, (uintptr_t)address, length,
                         flags & UCT_MD_MEM_ACCESS_ALL, signature, *memh_p);
    return UCS_OK;
}

static ucs_status_t
uct_helper_md_mem_dereg_traced(uct_md_h uct_md,
                               const uct_abi_md_mem_dereg_params_t *params)
{
    uint64_t now = ucs_clock_now();
    uct_abi_md_mem_dereg_params_t full;
    ucs_status_t status;

    /* A handle that is not the engine's was not recorded, and the recorder
     * leaves it out */
    uct_helper_md_dereg_unpack(params, &full);
    status = uct_helper_md_mem_dereg(uct_md, params);
    if ((status == UCS_OK) && uct_helper_md_is_mine(uct_helper_md_of(uct_md))) {
        uct_helper_trace_release(now, full.memh);
    }
    return status;
}

static ucs_status_t uct_helper_md_query(uct_md_h uct_md, uct_md_attr_t *attr)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status;

    status = md->lower->query(uct_md, attr);
    if (status == UCS_OK) {
        attr->reg_cost = ucs_linear_func_make(UCT_HELPER_MD_HIT_COST, 0);
    }

    return status;
}

static void uct_helper_md_unwatch(uct_helper_md_t *md)
{
    if (md->watches) {
        md->watches = 0;
        uct_helper_monitor_stop();
    }
}

static void uct_helper_md_release(uct_helper_md_t *md)
{
    uct_helper_thread_stop(md->thread);
    if (md->node != NULL) {
        uct_helper_node_part(md->node, md->engine);
    }
    uct_helper_engine_destroy(md->engine);
    /* Not before: who asks meanwhile waits until all has gone */
    if (ucs_load_relaxed(&md->listens)) {
        uct_helper_node_listen(md->node, 0);
    }
    uct_helper_site_destroy(md->site);
    uct_helper_thread_destroy(md->thread);
    uct_helper_node_release_process(md->node);
    free(md->topology);
    pthread_mutex_destroy(&md->child_lock);
    free(md);
}

static void uct_helper_md_close(uct_md_h uct_md)
{
    uct_helper_md_t *md           = uct_helper_md_of(uct_md);
    const uct_abi_md_ops_t *lower = md->lower;

    if (!uct_helper_md_is_mine(md)) {
        uct_helper_child_enter(md);
        md->ops.close(uct_md);
        return;
    }

    uct_helper_thread_stop(md->thread);
    uct_helper_session_leave(md);
    uct_helper_events_leave(md->engine);
    uct_helper_md_unwatch(md);
    uct_helper_md_release(md);
    uct_abi_md(uct_md)->ops = lower;
    lower->close(uct_md);
}

/* Attaching */

static ucs_status_t uct_helper_md_create_engine(uct_helper_md_t *md)
{
    const uct_helper_engine_params_t params = {
        .policy      = md->config.policy,
        .miss_target = md->config.miss_target,
        .min_size    = md->config.min_size,
        .max_pinned  = md->config.max_pinned,
        .max_regions = md->config.max_regions
    };
    uct_helper_env_t env = {
        .arg          = md,
        .mem_reg      = uct_helper_env_mem_reg,
        .mem_dereg    = uct_helper_env_mem_dereg,
        .now          = uct_helper_env_now,
        .wake         = uct_helper_env_wake,
        .wait         = uct_helper_env_wait,
        .wake_waiters = uct_helper_env_wake_waiters,
        .walk         = uct_helper_env_walk,
        .recall       = uct_helper_env_recall,
        .inspect      = uct_helper_env_inspect
    };

    ucs_status_t status;

    if (md->node != NULL) {
        env.claim   = uct_helper_env_claim;
        env.unclaim = uct_helper_env_unclaim;
        env.ask     = uct_helper_env_ask;
    }

    status = uct_helper_engine_create(&params, &env, &md->engine);
    if ((status == UCS_OK) && (md->node != NULL)) {
        uct_helper_thread_set_bell(md->thread, uct_helper_node_bell(md->node));
        (void)uct_helper_node_join(md->node, uct_helper_md_release_idle,
                                   md->engine);
    }
    return status;
}

static void uct_helper_md_set_ops(uct_helper_md_t *md)
{
    md->ops           = *md->lower;
    md->ops.close     = uct_helper_md_close;
    md->ops.query     = uct_helper_md_query;
    md->ops.mem_reg   = uct_helper_md_mem_reg;
    md->ops.mem_dereg = uct_helper_md_mem_dereg;
}

/* Does the domain below leave marks on the pages that it registers? rdma-core
 * does once it was asked for fork support (ibv_fork_init(), which the preloaded
 * stub forgoes where the kernel needs no help): with MADV_DONTFORK. The marks stay when the page moves or when another thread's
 * event comes before the deregistration, they make a child fault on what else
 * lies on the page, and each splits a mapping. A registered page in the middle
 * of a mapping shows it. Some kernels never join the parts again, so what is
 * compared with was counted before. */
static int uct_helper_md_is_marking(uct_helper_md_t *md)
{
    size_t page = sysconf(_SC_PAGESIZE);
    long before = 0, after = 0;
    uct_mem_h memh;
    char *pages;

    pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return 0;
    }

    before = uct_helper_vmas_count((uintptr_t)pages,
                                   (uintptr_t)pages + 3 * page);
    if (uct_helper_env_mem_reg(md, pages + page, page,
                               UCT_MD_MEM_ACCESS_ALL |
                               UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh) == UCS_OK) {
        after = uct_helper_vmas_count((uintptr_t)pages,
                                      (uintptr_t)pages + 3 * page);
        uct_helper_env_mem_dereg(md, memh, NULL);
    }
    munmap(pages, 3 * page);
    return after > before;
}

static void uct_helper_md_check_marks(uct_helper_md_t *md)
{
    if (strcmp(uct_abi_md_component_name(md->md), UCT_HELPER_MD_VERBS) ||
        !uct_helper_md_is_marking(md)) {
        return;
    }

    uct_helper_engine_distrust(md->engine, UCT_HELPER_DISTRUST_MARKS);
    uct_helper_warn("%s: registered memory is kept from children "
                    "(MADV_DONTFORK): memory is registered only while it is "
                    "in use", md->name);
    uct_helper_session_note("the domain below keeps registered memory from "
                            "children: it was registered only while in use");
}

static void uct_helper_md_init(uct_helper_md_t *md, uct_md_h uct_md,
                               const char *md_name,
                               const uct_helper_config_t *config,
                               const uct_md_attr_t *attr)
{
    md->process     = uct_helper_session_process();
    md->lower       = uct_abi_md(uct_md)->ops;
    md->lower_flags = attr->cap.flags;
    md->md          = uct_md;
    md->config      = *config;
    md->local_cpus  = attr->local_cpus;
    snprintf(md->name, sizeof(md->name), "%s", md_name);
    pthread_mutex_init(&md->child_lock, NULL);
    ucs_list_head_init(&md->child_memhs);
    uct_helper_md_set_ops(md);

    if (attr->cap.reg_mem_types & ~UCS_BIT(UCS_MEMORY_TYPE_HOST)) {
        /* 1.13 does not tell a registration's memory type */
        uct_helper_session_note("the domain also registers device memory, "
                                "which is not told from host memory");
    }
}

static ucs_status_t uct_helper_md_create(uct_md_h uct_md, const char *md_name,
                                         const uct_helper_config_t *config,
                                         uct_helper_md_t **md_p)
{
    uct_md_attr_t attr;
    uct_helper_md_t *md;
    ucs_status_t status;

    status = uct_abi_md(uct_md)->ops->query(uct_md, &attr);
    if (status != UCS_OK) {
        return status;
    }

    md = calloc(1, sizeof(*md));
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_helper_md_init(md, uct_md, md_name, config, &attr);
    status = uct_helper_thread_create(uct_helper_md_step, md, &md->thread);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_helper_site_create(&md->site);
    if (status != UCS_OK) {
        goto err_destroy_thread;
    }

    md->node = uct_helper_node_acquire(config);
    status   = uct_helper_md_create_engine(md);
    if (status != UCS_OK) {
        goto err_release_node;
    }

    uct_helper_md_check_marks(md);
    ucs_store_relaxed(&md->settled,
                      !uct_helper_engine_needs_helper(md->engine) &&
                      !uct_helper_md_has_budget(md));
    *md_p = md;
    return UCS_OK;

err_release_node:
    uct_helper_node_release_process(md->node);
    uct_helper_site_destroy(md->site);
err_destroy_thread:
    uct_helper_thread_destroy(md->thread);
err_free:
    pthread_mutex_destroy(&md->child_lock);
    free(md);
    return status;
}

/* Who asked for userfaultfd is warned, once a process, that it cannot be had */
static void uct_helper_md_no_userfaultfd(const uct_helper_config_t *config,
                                         const char *reason)
{
    static _Atomic(int) said;
    char note[UCT_HELPER_MD_NOTE_MAX];

    snprintf(note, sizeof(note), "%s: memory is watched by UCX's hooks alone",
             reason);
    if (ucs_swap_acq_rel(&said, 1)) {
        return;
    }
    uct_helper_log((config->monitor == UCT_HELPER_MONITOR_AUTO) ?
                           UCS_LOG_LEVEL_INFO :
                           UCS_LOG_LEVEL_WARN,
                   "UCX_MD_HELPER_MONITOR=%s: %s",
                   uct_helper_monitor_names[config->monitor], note);
    uct_helper_session_note(note);
}

/* Anything that tells of unmapped memory will do; with nothing the helper stays
 * off */
static ucs_status_t
uct_helper_md_choose_monitor(const uct_helper_config_t *config, int *watches_p)
{
    const char *no_kernel = NULL, *no_hooks = NULL;
    ucs_status_t hooks    = UCS_ERR_UNSUPPORTED;

    *watches_p = (config->monitor != UCT_HELPER_MONITOR_UCM) &&
                 (uct_helper_monitor_start(&no_kernel) == UCS_OK);
    if (!*watches_p || (config->monitor != UCT_HELPER_MONITOR_USERFAULTFD)) {
        hooks = uct_helper_events_check(&no_hooks);
    }
    if (!*watches_p && (hooks != UCS_OK)) {
        uct_helper_warn("%s%s%s: nothing tells of unmapped memory, the helper "
                        "stays off", no_hooks,
                        (no_kernel == NULL) ? "" : ", and ",
                        (no_kernel == NULL) ? "" : no_kernel);
        return UCS_ERR_UNSUPPORTED;
    }
    if (no_kernel != NULL) {
        uct_helper_md_no_userfaultfd(config, no_kernel);
    }
    return UCS_OK;
}

ucs_status_t uct_helper_md_check(const uct_helper_config_t *config)
{
    ucs_status_t status;
    int watches;

    status = uct_helper_md_choose_monitor(config, &watches);
    if (watches) {
        uct_helper_monitor_stop();
    }
    return status;
}

ucs_status_t uct_helper_md_attach(uct_md_h uct_md, const char *md_name,
                                  const uct_helper_config_t *config)
{
    uct_helper_md_t *md = NULL;
    ucs_status_t status;
    int watches;

    status = uct_helper_md_choose_monitor(config, &watches);
    if (status != UCS_OK) {
        return status;
    }

    ucs_clock_init();
    uct_helper_log_init();
    status = uct_helper_md_create(uct_md, md_name, config, &md);
    if (status != UCS_OK) {
        goto err_stop_monitor;
    }

    md->watches = watches;

    status = uct_helper_events_join(md->engine);
    if (status != UCS_OK) {
        goto err_release;
    }

    uct_helper_session_enter(md);
    if (ucs_load_relaxed(&uct_helper_trace_is_on)) {
        md->ops.mem_reg   = uct_helper_md_mem_reg_traced;
        md->ops.mem_dereg = uct_helper_md_mem_dereg_traced;
    }
    uct_abi_md(uct_md)->ops = &md->ops;
    uct_helper_debug("%s: helper with policy %s", md_name,
                     uct_helper_policy_names[config->policy]);
    return UCS_OK;

err_release:
    uct_helper_md_release(md);
err_stop_monitor:
    if (watches) {
        uct_helper_monitor_stop();
    }
    uct_helper_warn("%s: %s: the helper stays off", md_name,
                    ucs_status_string(status));
    return status;
}

uct_helper_engine_h uct_helper_md_engine(uct_md_h uct_md)
{
    ucs_status_t (*mem_reg)(uct_md_h, void*, size_t, unsigned, uct_mem_h*) =
            uct_abi_md(uct_md)->ops->mem_reg;

    if (((mem_reg != uct_helper_md_mem_reg) &&
         (mem_reg != uct_helper_md_mem_reg_traced)) ||
        !uct_helper_md_is_mine(uct_helper_md_of(uct_md))) {
        return NULL;
    }

    return uct_helper_md_of(uct_md)->engine;
}

void uct_helper_md_set_verify(uct_md_h uct_md, uct_helper_verify_func_t verify)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);

    md->verify         = verify;
    md->verified_dereg = md->ops.mem_dereg;
    md->ops.mem_dereg  = uct_helper_md_verify_mem_dereg;
}

int uct_helper_md_is_gone(uct_md_h uct_md, uct_mem_h memh)
{
    return uct_helper_engine_is_gone(uct_helper_md_of(uct_md)->engine, memh);
}

int uct_helper_md_has_thread(uct_md_h uct_md)
{
    return (uct_helper_md_engine(uct_md) != NULL) &&
           uct_helper_thread_is_running(uct_helper_md_of(uct_md)->thread);
}
