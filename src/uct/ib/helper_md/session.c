/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "session.h"
#include "hear.h"
#include <uct/ib/helper_md/device/device.h>
#include "helper_md_int.h"
#include <uct/ib/helper_md/watch/events.h>
#include <ucs/sys/io/log.h>
#include <uct/ib/helper_md/watch/monitor.h>
#include <uct/ib/helper_md/watch/range.h>
#include <ucs/sys/proc/process.h>
#include <uct/ib/helper_md/report/report.h>
#include <ucs/sys/proc/spawn.h>
#include <ucs/sys/proc/waited.h>
#include <uct/ib/helper_md/report/trace_record.h>
#include <uct/ib/helper_md/watch/trust.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/sync/exit_mutex.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCT_HELPER_SESSION_ERROR_MAX 512
#define UCT_HELPER_SESSION_NS        1e-9

/*
 * Invariant: elapsed_ns counts the time in which domains was not empty, up to
 * since_ns if it is not empty now.
 */
typedef struct uct_helper_session {
    ucs_list_link_t          domains;
    ucs_node_h               node;    /* the process's slot in the ledger; NULL: none */
    int                      is_refused; /* and said so */
    ucs_thread_h             thread;  /* NULL: no domain has a job */
    unsigned                 jobs;    /* of it, one a domain */
    uint64_t                 cpu_ns;  /* of former threads */
    _Atomic(uint64_t)        leave_bytes;
    int                      begun;   /* a domain has been entered */
    uct_helper_report_dest_t dest;
    uct_helper_figures_t     closed;  /* of domains that are closed */
    double                   elapsed_ns;
    uint64_t                 since_ns;
    int                      written;
    uint64_t                 written_uses; /* uses at the last report */
} uct_helper_session_t;

/* This lock protects the session. It is taken with nothing held; under it the
 * locks of a thread and then those of its cache are taken, and a report is
 * written. Neither a memory event nor a fork takes it. */
static ucs_exit_mutex_t uct_helper_session_lock = UCS_EXIT_MUTEX_INITIALIZER;
static pthread_once_t uct_helper_session_once  = PTHREAD_ONCE_INIT;
static uct_helper_session_t uct_helper_session = {
    .domains = UCS_LIST_INITIALIZER(&uct_helper_session.domains,
                                    &uct_helper_session.domains)
};

/* Runs in a child, in the first thread that gets here, and begins a new
 * session. The parent's domains are not touched; each becomes a child's when it
 * is used. A thread that does not exist here may hold the lock. */
static void uct_helper_session_adopt(void)
{
    uct_helper_session_t *session = &uct_helper_session;
    char version[sizeof(session->closed.ucx_version)];

    uct_helper_hear_forget();
    uct_helper_events_forget();
    uct_helper_device_forget();
    uct_helper_monitor_forget();
    uct_helper_trust_forget();
    ucs_spawn_forget();
    ucs_thread_forget();
    uct_helper_trace_forget();
    ucs_exit_mutex_init(&uct_helper_session_lock);
    strcpy(version, session->closed.ucx_version);
    memset(session, 0, sizeof(*session));
    strcpy(session->closed.ucx_version, version);
    ucs_list_head_init(&session->domains);
}

static void uct_helper_session_add_notes(uct_helper_figures_t *figures)
{
    const ucs_regcache_stats_t *stats = &figures->stats;
    const char *complaint             = uct_helper_events_complaint();

    if (complaint != NULL) {
        uct_helper_report_add_note(
                figures, "%s any more: memory was registered only while in use",
                complaint);
    }
    if (stats->over_ceiling > 0) {
        uct_helper_report_add_note(
                figures, "%lu uses passed a ceiling, for all else was in use",
                stats->over_ceiling);
    }
    if (stats->failed > 0) {
        uct_helper_report_add_note(
                figures, "%lu registrations were refused by the lower domain",
                stats->failed);
    }
}

static void uct_helper_session_collect(const uct_helper_md_t *md, uint64_t now,
                                       uct_helper_figures_t *figures)
{
    ucs_regcache_stats_t stats;
    ucs_node_figures_t quota;

    ucs_regcache_stats(md->cache, now, &stats);
    ucs_regcache_stats_add(&figures->stats, &stats);
    uct_helper_report_add_domain(figures, md->name);
    if (md->quota != NULL) {
        ucs_node_figures(md->quota, &quota);
        uct_helper_report_add_quota(figures, &quota);
    }
    figures->policy       = ucs_regcache_policy_names[md->config.policy];
    figures->max_slowdown = md->config.max_slowdown;
}

/* The lock is held. */
static uint64_t uct_helper_session_cpu_ns(void)
{
    const uct_helper_session_t *session = &uct_helper_session;

    return session->cpu_ns + ((session->thread != NULL) ?
                                      ucs_thread_cpu_ns(session->thread) : 0);
}

/* The lock is held. */
static void uct_helper_session_add_node(uct_helper_figures_t *figures)
{
    if (uct_helper_session.node != NULL) {
        uct_helper_node_add_figures(uct_helper_session.node, &figures->node);
        figures->has_node = 1;
    }
}

/* The lock is held. On a stream a report is repeated only if it has changed; a
 * file is replaced. */
static void uct_helper_session_write(uint64_t now)
{
    uct_helper_session_t *session = &uct_helper_session;
    double elapsed_ns             = session->elapsed_ns;
    uct_helper_figures_t figures;
    uct_helper_md_t *md;

    if (session->dest.kind == UCT_HELPER_REPORT_NONE) {
        return;
    }

    figures            = session->closed;
    figures.heard_lost = uct_helper_hear_lost();
    ucs_list_for_each(md, &session->domains, list) {
        uct_helper_session_collect(md, now, &figures);
    }

    if (!ucs_list_is_empty(&session->domains)) {
        elapsed_ns += now - session->since_ns;
    }

    if ((session->dest.stream > 0) && session->written &&
        (figures.stats.uses == session->written_uses)) {
        return;
    }

    figures.elapsed_seconds    = elapsed_ns * UCT_HELPER_SESSION_NS;
    figures.helper_cpu_seconds = uct_helper_session_cpu_ns() *
                                 UCT_HELPER_SESSION_NS;
    uct_helper_session_add_node(&figures);
    uct_helper_session_add_notes(&figures);
    uct_helper_report_note_node(&figures);
    uct_helper_report_write(&session->dest, &figures);
    session->written      = 1;
    session->written_uses = figures.stats.uses;
}

/* The lock is held. @return Nonzero if no thread of ours uses the domains, and the
 * caller, a signal handler for one, is not inside a cache. */
static int uct_helper_session_end(void)
{
    int is_over = (uct_helper_session_lock.nested == 0);
    uct_helper_md_t *md;

    if (uct_helper_session.thread != NULL) {
        is_over &= ucs_thread_end(uct_helper_session.thread);
    }
    ucs_list_for_each(md, &uct_helper_session.domains, list) {
        is_over &= !ucs_regcache_is_locked_here(md->cache);
    }
    return is_over;
}

/* A program may exit without closing its domains. The helper must not run while
 * the libraries below are unloaded. */
static void uct_helper_session_exit(void)
{
    /* Before the lock: in a child its holder may not exist. */
    ucs_process_id();
    uct_helper_hear_stop();
    if (!ucs_exit_mutex_hold(&uct_helper_session_lock)) {
        return;
    }
    if (uct_helper_session_end() &&
        !ucs_list_is_empty(&uct_helper_session.domains)) {
        uct_helper_session_write(ucs_clock_now());
    }
    uct_helper_trace_stop();
    ucs_exit_mutex_release(&uct_helper_session_lock);
}

/* No thread of ours is to use the domains below at the fork, which the child has as they
 * are then. The caches need no hold: a child never uses them. */
static void uct_helper_session_prepare(void)
{
    (void)ucs_thread_hold();
}

static void uct_helper_session_register(void)
{
    pthread_atfork(uct_helper_session_prepare, ucs_thread_release,
                   ucs_process_forked);
    atexit(uct_helper_session_exit);
}

/* The program may change its working folder later */
static void uct_helper_session_make_absolute(uct_helper_report_dest_t *dest)
{
    char path[PATH_MAX], folder[PATH_MAX];

    if ((dest->kind == UCT_HELPER_REPORT_NONE) || (dest->stream > 0) ||
        (dest->path[0] == '/') || (getcwd(folder, sizeof(folder)) == NULL) ||
        (strchr(folder, '%') != NULL)) {
        return;
    }

    if (snprintf(path, sizeof(path), "%s/%s", folder, dest->path) <
        (int)sizeof(path)) {
        strcpy(dest->path, path);
    }
}

static void uct_helper_session_begin(const uct_helper_md_t *md)
{
    uct_helper_session_t *session = &uct_helper_session;
    char error[UCT_HELPER_SESSION_ERROR_MAX];

    session->begun = 1;
    session->dest  = md->config.report;
    if (md->config.trace[0] != '\0') {
        (void)uct_helper_trace_start(md->config.trace);
    }
    if (uct_helper_report_check(&session->dest, error, sizeof(error)) !=
        UCS_OK) {
        ucs_helper_warn("%s", error);
        session->dest.kind = UCT_HELPER_REPORT_NONE;
        return;
    }

    uct_helper_session_make_absolute(&session->dest);
}

/* The lock is held. */
static void uct_helper_session_note_model(const uct_helper_md_t *md)
{
    uct_helper_figures_t *figures = &uct_helper_session.closed;

    if (strcmp(uct_abi_md_component_name(md->md), "cma") ||
        ((md->config.pin_base_ns == 0) && (md->config.pin_per_page_ns == 0))) {
        return;
    }

    figures->modelled             = 1;
    figures->modelled_base_ns     = md->config.pin_base_ns;
    figures->modelled_per_page_ns = md->config.pin_per_page_ns;
}

void uct_helper_session_set_version(const char *version)
{
    pthread_mutex_lock(&uct_helper_session_lock.mutex);
    snprintf(uct_helper_session.closed.ucx_version,
             sizeof(uct_helper_session.closed.ucx_version), "%s", version);
    pthread_mutex_unlock(&uct_helper_session_lock.mutex);
}

void uct_helper_session_note(const char *note)
{
    pthread_mutex_lock(&uct_helper_session_lock.mutex);
    uct_helper_report_add_note(&uct_helper_session.closed, "%s", note);
    pthread_mutex_unlock(&uct_helper_session_lock.mutex);
}

uint32_t uct_helper_session_process(void)
{
    ucs_process_init(uct_helper_session_adopt);
    return ucs_process_id();
}

_Atomic(uint64_t) *uct_helper_session_leave_bytes(void)
{
    return &uct_helper_session.leave_bytes;
}

/* The lock is held. The thread listens to the bell of the node. */
static ucs_status_t uct_helper_session_make_thread(const uct_helper_md_t *md)
{
    uct_helper_session_t *session = &uct_helper_session;
    ucs_status_t status;

    if (!session->is_refused) {
        session->node       = uct_helper_node_enter(&md->config);
        session->is_refused = (session->node == NULL);
    }
    status = ucs_thread_create(uct_helper_md_is_idle(&md->config),
                               &session->thread);
    if ((status == UCS_OK) && (session->node != NULL)) {
        ucs_thread_set_bell(session->thread, ucs_node_bell(session->node));
    }
    uct_helper_place_begin();
    return status;
}

/* The lock is held, which no step takes. */
static void uct_helper_session_drop_unused(void)
{
    uct_helper_session_t *session = &uct_helper_session;

    if (session->jobs > 0) {
        return;
    }
    if (session->thread != NULL) {
        ucs_thread_stop(session->thread);
        session->cpu_ns = uct_helper_session_cpu_ns();
        ucs_thread_destroy(session->thread);
        session->thread = NULL;
        ucs_waited_end();
    }
    uct_helper_session_add_node(&session->closed);
    ucs_node_close(session->node);
    session->node = NULL;
}

ucs_status_t uct_helper_session_join(uct_helper_md_t *md, ucs_step_func_t step)
{
    uct_helper_session_t *session = &uct_helper_session;
    ucs_status_t status           = UCS_OK;

    pthread_mutex_lock(&uct_helper_session_lock.mutex);
    if (session->thread == NULL) {
        status = uct_helper_session_make_thread(md);
    }
    if (status == UCS_OK) {
        status = ucs_thread_add(session->thread, step, md, &md->job);
    }
    if (status == UCS_OK) {
        md->thread = session->thread;
        md->node   = session->node;
        ++session->jobs;
        uct_helper_place_add(md);
    }
    uct_helper_session_drop_unused();
    pthread_mutex_unlock(&uct_helper_session_lock.mutex);
    return status;
}

void uct_helper_session_part(uct_helper_md_t *md)
{
    pthread_mutex_lock(&uct_helper_session_lock.mutex);
    ucs_job_remove(md->job);
    --uct_helper_session.jobs;
    uct_helper_session_drop_unused();
    pthread_mutex_unlock(&uct_helper_session_lock.mutex);
}

void uct_helper_session_yield(void)
{
    uct_helper_md_t *md;

    pthread_mutex_lock(&uct_helper_session_lock.mutex);
    ucs_list_for_each(md, &uct_helper_session.domains, list) {
        ucs_regcache_yield(md->cache);
    }
    pthread_mutex_unlock(&uct_helper_session_lock.mutex);
}

void uct_helper_session_enter(uct_helper_md_t *md)
{
    uct_helper_session_t *session = &uct_helper_session;

    pthread_once(&uct_helper_session_once, uct_helper_session_register);
    pthread_mutex_lock(&uct_helper_session_lock.mutex);
    if (!session->begun) {
        uct_helper_session_begin(md);
    }

    if (ucs_list_is_empty(&session->domains)) {
        session->since_ns = ucs_clock_now();
        uct_helper_range_keep();
        uct_helper_trust_begin();
    }
    uct_helper_session_note_model(md);
    ucs_list_add_tail(&session->domains, &md->list);
    pthread_mutex_unlock(&uct_helper_session_lock.mutex);
    uct_helper_hear_enter(md);
}

static const char *uct_helper_session_ceiling(const char *option,
                                              const char *otherwise)
{
    const char *value = getenv(option);

    return (value != NULL) ? value : otherwise;
}

/* One warning when the domain closes, not one for each use */
static void uct_helper_session_warn(const uct_helper_md_t *md, uint64_t now)
{
    ucs_regcache_stats_t stats;

    ucs_regcache_stats(md->cache, now, &stats);
    if (stats.over_ceiling > 0) {
        ucs_helper_warn(
                "%s: %lu of %lu uses went over "
                "UCX_MD_HELPER_MAX_PINNED=%s or "
                "UCX_MD_HELPER_NODE_MAX_PINNED=%s or "
                "UCX_MD_HELPER_MAX_REGIONS=%s, because all else was "
                "in use; the least ceiling that can be kept is what is in use "
                "at once, here %lu bytes",
                md->name, stats.over_ceiling, stats.uses,
                uct_helper_session_ceiling("UCX_MD_HELPER_MAX_PINNED", "inf"),
                uct_helper_session_ceiling("UCX_MD_HELPER_NODE_MAX_PINNED",
                                           "inf"),
                uct_helper_session_ceiling("UCX_MD_HELPER_MAX_REGIONS", "auto"),
                stats.in_use_peak_bytes);
    }
}

void uct_helper_session_leave(uct_helper_md_t *md)
{
    uct_helper_session_t *session = &uct_helper_session;
    uint64_t now                  = ucs_clock_now();

    uct_helper_hear_leave(md);
    uct_helper_session_warn(md, now);
    pthread_mutex_lock(&uct_helper_session_lock.mutex);
    uct_helper_session_collect(md, now, &session->closed);
    ucs_list_del(&md->list);
    if (ucs_list_is_empty(&session->domains)) {
        session->elapsed_ns += now - session->since_ns;
        uct_helper_range_let_go();
        uct_helper_session_write(now);
        uct_helper_trace_sync();
    }
    pthread_mutex_unlock(&uct_helper_session_lock.mutex);
}
