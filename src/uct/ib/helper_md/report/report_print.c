/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "report.h"
#include "report_path.h"
#include <ucs/sys/io/json.h>
#include <ucs/sys/io/own_fd.h>

#include <math.h>
#include <unistd.h>

#define UCT_HELPER_NS         1e-9
#define UCT_HELPER_MIB        (1024.0 * 1024.0)
#define UCT_HELPER_COMMAND_MAX 4096

/* The command line, with blanks between its arguments */
static void uct_helper_report_read_command(char *command, size_t max)
{
    ssize_t length, i;

    length = ucs_own_fd_read_text("/proc/thread-self/cmdline", command, max);
    length = (length > 0) ? length : 0;
    while ((length > 0) && (command[length - 1] == '\0')) {
        --length;
    }
    for (i = 0; i < length; ++i) {
        if (command[i] == '\0') {
            command[i] = ' ';
        }
    }
    command[length] = '\0';
}

static void uct_helper_report_json_identity(ucs_json_t *json,
                                            const uct_helper_figures_t *figures)
{
    char command[UCT_HELPER_COMMAND_MAX];
    char host[HOST_NAME_MAX + 1] = "";

    gethostname(host, sizeof(host) - 1);
    uct_helper_report_read_command(command, sizeof(command));

    ucs_json_print(json, "version", "%d", UCT_HELPER_REPORT_VERSION);
    ucs_json_string(json, "host", host);
    ucs_json_print(json, "pid", "%d", getpid());
    ucs_json_print(json, "rank", "%d", uct_helper_report_rank());
    ucs_json_string(json, "command", command);
    ucs_json_string(json, "policy", figures->policy);
    ucs_json_string(json, "ucx_version", figures->ucx_version);
    ucs_json_string(json, "lower_domain", figures->lower_domain);

    if (!figures->modelled) {
        ucs_json_print(json, "modelled_cost", "null");
        return;
    }

    ucs_json_begin(json, "modelled_cost");
    ucs_json_number(json, "base_seconds",
                    figures->modelled_base_ns * UCT_HELPER_NS);
    ucs_json_number(json, "per_page_seconds",
                    figures->modelled_per_page_ns * UCT_HELPER_NS);
    ucs_json_end(json);
}

static void uct_helper_report_json_figures(ucs_json_t *json,
                                           const uct_helper_figures_t *figures)
{
    const ucs_regcache_stats_t *stats = &figures->stats;
    const ucs_regcache_why_t *why     = &stats->why;
    int i;

    ucs_json_number(json, "elapsed_seconds", figures->elapsed_seconds);
    ucs_json_number(json, "helper_cpu_seconds", figures->helper_cpu_seconds);
    ucs_json_number(json, "max_slowdown", figures->max_slowdown);
    ucs_json_number(json, "price_j", uct_helper_report_price(figures));
    ucs_json_print(json, "region_bytes", "%lu", stats->region_bytes);
    ucs_json_print(json, "heard_lost", "%lu", figures->heard_lost);
    ucs_json_print(json, "registered_ahead", "%lu", why->ahead);
    ucs_json_number(json, "ahead_seconds", why->ahead_ns * UCT_HELPER_NS);
#define UCS_FIGURE(_type, _name, _key, _unit) \
    if ((_unit) == 1) { \
        ucs_json_print(json, _key, "%lu", (uint64_t)stats->_name); \
    } else { \
        ucs_json_number(json, _key, stats->_name * (_unit)); \
    }
#include <ucs/regcache/stats_table.h>
#undef UCS_FIGURE
    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        ucs_json_number(json, ucs_regcache_held_names[i].key,
                        why->held_byte_ns[i] * UCT_HELPER_NS);
    }
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        ucs_json_number(json, ucs_regcache_lost_names[i].key,
                        why->lost_ns[i] * UCT_HELPER_NS);
    }
}

/* Keys without a figure are written as null, so that all are always there */
static void uct_helper_report_json_maybe(ucs_json_t *json, const char *key,
                                         int is_there, uint64_t value)
{
    if (is_there) {
        ucs_json_print(json, key, "%lu", value);
    } else {
        ucs_json_print(json, key, "null");
    }
}

static void uct_helper_report_json_node(ucs_json_t *json,
                                        const uct_helper_figures_t *figures)
{
    const ucs_node_figures_t *node  = &figures->node;
    const ucs_node_figures_t *quota = &figures->quota;
    int has                         = figures->has_node;

    uct_helper_report_json_maybe(json, "node_ranks", has, node->ranks);
    uct_helper_report_json_maybe(json, "node_pinned_peak_bytes", has,
                                 node->peak_bytes);
    uct_helper_report_json_maybe(json, "node_budget_bytes",
                                 has && (node->budget != UINT64_MAX),
                                 node->budget);
    uct_helper_report_json_maybe(json, "node_forced", has, node->forced);
    uct_helper_report_json_maybe(json, "node_given_bytes", has,
                                 node->given_bytes);
    uct_helper_report_json_maybe(json, "idle_cores", has, node->idle_cores);
    ucs_json_number(json, "helper_wanted", has ? node->wanted : INFINITY);
    uct_helper_report_json_maybe(json, "helper_rests", has, node->rests);
    /* a number that is not finite becomes null */
    ucs_json_number(json, "helper_rest_seconds",
                    has ? node->rest_ns * UCT_HELPER_NS : INFINITY);

    has = figures->has_quota;
    uct_helper_report_json_maybe(json, "device_regions_peak", has,
                                 quota->peak_bytes);
    uct_helper_report_json_maybe(json, "device_regions_forced", has,
                                 quota->forced);
    uct_helper_report_json_maybe(json, "device_regions_limit",
                                 has && (quota->budget != UINT64_MAX),
                                 quota->budget);
}

static void uct_helper_report_json_model(ucs_json_t *json, const char *key,
                                         const ucs_regcache_model_t *model)
{
    ucs_json_begin(json, key);
    ucs_json_number(json, "a_seconds_per_page",
                    model->a_ns_per_page * UCT_HELPER_NS);
    ucs_json_number(json, "b_seconds", model->b_ns * UCT_HELPER_NS);
    ucs_json_print(json, "samples", "%lu", model->samples);
    ucs_json_end(json);
}

void uct_helper_report_print_json(FILE *stream,
                                  const uct_helper_figures_t *figures)
{
    const char *notes[UCT_HELPER_REPORT_NOTES_MAX];
    ucs_json_t json;
    unsigned i;

    for (i = 0; i < figures->num_notes; ++i) {
        notes[i] = figures->notes[i];
    }

    json.stream = stream;
    ucs_json_begin(&json, NULL);
    uct_helper_report_json_identity(&json, figures);
    uct_helper_report_json_figures(&json, figures);
    uct_helper_report_json_node(&json, figures);
    uct_helper_report_json_model(&json, "register_model",
                                 &figures->stats.register_model);
    uct_helper_report_json_model(&json, "deregister_model",
                                 &figures->stats.deregister_model);
    ucs_json_strings(&json, "notes", notes, figures->num_notes);
    ucs_json_end(&json);
}

static double uct_helper_report_percent(double part, double whole)
{
    return (whole > 0) ? 100.0 * part / whole : 0.0;
}

static void uct_helper_report_print_memory(FILE *stream,
                                           const uct_helper_figures_t *figures)
{
    const ucs_regcache_stats_t *stats = &figures->stats;
    double elapsed_ns                 = figures->elapsed_seconds / UCT_HELPER_NS;

    fprintf(stream,
            "  pinned at most   %.2f MiB, leave pinned would hold %.2f MiB "
            "(%.1f %%)\n",
            stats->pinned_peak_bytes / UCT_HELPER_MIB,
            stats->leave_pinned_peak_bytes / UCT_HELPER_MIB,
            uct_helper_report_percent(stats->pinned_peak_bytes,
                                      stats->leave_pinned_peak_bytes));
    fprintf(stream,
            "  pinned over time %.3f MiB s, leave pinned %.3f MiB s (%.1f "
            "%%)\n",
            stats->pinned_byte_ns * UCT_HELPER_NS / UCT_HELPER_MIB,
            stats->leave_pinned_byte_ns * UCT_HELPER_NS / UCT_HELPER_MIB,
            uct_helper_report_percent(stats->pinned_byte_ns,
                                      stats->leave_pinned_byte_ns));
    fprintf(stream,
            "  time lost        %.6f s, %.3f %% of the run\n",
            stats->lost_ns * UCT_HELPER_NS,
            uct_helper_report_percent(stats->lost_ns, elapsed_ns));
    fprintf(stream,
            "  price            %.3f %% of the run, time and memory "
            "together, where leaving all pinned costs %.3f %%\n",
            100 * uct_helper_report_price(figures),
            100 * figures->max_slowdown);
    ucs_regcache_why_print(&stats->why, stats->leave_pinned_byte_ns, elapsed_ns,
                           "  ", stream);
}

void uct_helper_report_print_text(FILE *stream,
                                  const uct_helper_figures_t *figures)
{
    const ucs_regcache_stats_t *stats = &figures->stats;
    char host[HOST_NAME_MAX + 1]      = "";
    unsigned i;

    gethostname(host, sizeof(host) - 1);
    fprintf(stream,
            "ucx-helper-md: host %s, pid %d, rank %d, policy %s over %s, "
            "UCX %s\n",
            host, getpid(), uct_helper_report_rank(), figures->policy,
            figures->lower_domain, figures->ucx_version);
    uct_helper_report_print_memory(stream, figures);
    fprintf(stream,
            "  uses             %lu: %lu on time, %lu late, %lu missed, "
            "%lu cold\n",
            stats->uses, stats->on_time, stats->late, stats->missed,
            stats->cold);
    fprintf(stream,
            "  registrations    %lu wasted, %lu evicted, %lu invalidated, "
            "%lu made again\n",
            stats->wasted, stats->evicted, stats->invalidated, stats->repinned);
    if (figures->modelled) {
        fprintf(stream,
                "  MODELLED cost    %.3f us + %.1f ns a page added to each "
                "registration\n",
                figures->modelled_base_ns / 1e3, figures->modelled_per_page_ns);
    }
    for (i = 0; i < figures->num_notes; ++i) {
        fprintf(stream, "  note             %s\n", figures->notes[i]);
    }
}
