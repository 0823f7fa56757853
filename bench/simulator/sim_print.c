/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim.h"

#include <tools/tool.h>

#include <string.h>

#define SIM_NSEC 1e9
#define SIM_MIB  1048576.0

const char *const sim_helper_names[] = {
    [SIM_HELPER_THREAD] = "thread",
    [SIM_HELPER_IDLE]   = "idle"
};

static const char *sim_row_name(const sim_row_t *row)
{
    return (row->policy == SIM_NO_POLICY) ?
                   "(free)" :
                   ucs_regcache_policy_names[row->policy];
}

static double sim_row_slow_down(const sim_row_t *row)
{
    return (double)row->result.time_ns / row->leave_ns;
}

/* Mean over the ranks of what one holds on average over time */
static double sim_row_average(const sim_row_t *row)
{
    return row->result.stats.pinned_byte_ns / row->result.time_ns;
}

/* That, as a share of what leave pinned holds at most */
static double sim_row_held(const sim_row_t *row)
{
    uint64_t leave = row->result.stats.leave_pinned_peak_bytes;

    return (leave > 0) ? sim_row_average(row) / leave : 0;
}

/* Time lost and memory held, that for the registrations included, at what memory
 * is worth: a share of the run */
static double sim_row_price(const sim_options_t *options, const sim_row_t *row)
{
    const replay_params_t *params     = &options->params.process;
    const ucs_regcache_stats_t *stats = &row->result.stats;
    double leave = replay_held(stats->leave_pinned_peak_bytes,
                               stats->leave_pinned_regions_peak, params);
    double held  = replay_held(stats->pinned_byte_ns, stats->region_ns, params) /
                   row->result.time_ns;

    return sim_row_slow_down(row) - 1 +
           ((leave > 0) ? params->max_slowdown * held / leave : 0);
}

void sim_print_params(const sim_options_t *options, FILE *stream)
{
    const sim_params_t *p = &options->params;

    fprintf(stream,
            "All of it is modelled: L %lu ns, o %lu ns, g %lu ns, G %.3f "
            "ns/byte, rendezvous from %lu bytes;\n"
            "registration %.0f ns + %.0f ns a page, deregistration %.0f ns + "
            "%.0f ns a page, helper late by %.0f ns (median);\n"
            "%.3g flop/s a rank, noise %.1f %%, seed %lu. "
            "Class %c, %s, helper: %s.\n",
            p->network.latency_ns, p->network.overhead_ns, p->network.gap_ns,
            p->network.byte_ns, p->network.eager_bytes,
            p->process.register_cost.base_ns, p->process.register_cost.page_ns,
            p->process.deregister_cost.base_ns,
            p->process.deregister_cost.page_ns, p->process.lateness_ns,
            p->flops, 100 * p->noise, p->process.seed, options->letter,
            options->is_weak ? "weak scaling" : "strong scaling",
            (p->helper == SIM_HELPER_IDLE) ? "ranks that wait" : "a thread");
}

static void sim_print_head(const sim_shape_t *shape, const sim_row_t *rows,
                           size_t count, FILE *stream)
{
    const sim_result_t *last = &rows[count - 1].result;

    fprintf(stream, "\n%s, %u ranks", shape->pattern->name, shape->ranks);
    if ((count > 1) && (last->engines < last->ranks)) {
        fprintf(stream, ", %u of them with an engine, the others take the "
                "delays of one of those", last->engines);
    } else if (count > 1) {
        fprintf(stream, ", each with an engine");
    }
    fprintf(stream, "\n%-13s %12s %8s %8s %11s %11s %8s %11s %11s %8s %8s %8s %8s "
            "%8s\n",
            "policy", "seconds", "slower", "J", "peak MiB", "max", "of leave",
            "avg MiB", "max", "held", "on time", "late", "missed", "cold");
}

static void sim_print_memory(const sim_row_t *row, FILE *stream)
{
    const ucs_regcache_stats_t *s = &row->result.stats;
    char share[TOOL_UNITS_MAX], on_time[TOOL_UNITS_MAX];

    tool_units_print_share(s->pinned_peak_bytes, s->leave_pinned_peak_bytes,
                           share);
    tool_units_print_share(s->on_time, s->uses - s->cold, on_time);
    fprintf(stream,
            " %11.2f %11.2f %8s %11.3f %11.3f %7.1f%% %8s %8lu %8lu %8lu",
            s->pinned_peak_bytes / SIM_MIB, row->result.peak_max_bytes / SIM_MIB,
            share, sim_row_average(row) / SIM_MIB,
            row->result.byte_ns_max / row->result.time_ns / SIM_MIB,
            100 * sim_row_held(row), on_time,
            s->late, s->missed, s->cold);
}

void sim_print_table(const sim_options_t *options, const sim_shape_t *shape,
                     const sim_row_t *rows, size_t count, FILE *stream)
{
    size_t i;

    sim_print_head(shape, rows, count, stream);
    for (i = 0; i < count; ++i) {
        fprintf(stream, "%-13s %12.6f", sim_row_name(&rows[i]),
                rows[i].result.time_ns / SIM_NSEC);
        if (rows[i].policy != SIM_NO_POLICY) {
            fprintf(stream, " %7.2f%% %7.3f%%",
                    100 * (sim_row_slow_down(&rows[i]) - 1),
                    100 * sim_row_price(options, &rows[i]));
            sim_print_memory(&rows[i], stream);
        }
        fprintf(stream, "\n");
    }
}

static void sim_json_ceiling(uint64_t max_pinned, FILE *stream)
{
    if (max_pinned == UINT64_MAX) {
        fprintf(stream, "null");
    } else {
        fprintf(stream, "%lu", max_pinned);
    }
}

static void sim_json_model(const sim_options_t *options, FILE *stream)
{
    const sim_params_t *p = &options->params;

    fprintf(stream,
            "\"modelled\": true, \"latency_ns\": %lu, \"overhead_ns\": %lu, "
            "\"gap_ns\": %lu, \"byte_ns\": %g, \"rendezvous_bytes\": %lu, "
            "\"register_ns\": [%g, %g], \"deregister_ns\": [%g, %g], "
            "\"lateness_ns\": %g, \"flops\": %g, \"noise\": %g, "
            "\"straggler\": %g, \"late_by_chance\": %g, \"seed\": %lu, "
            "\"helper\": \"%s\"",
            p->network.latency_ns, p->network.overhead_ns, p->network.gap_ns,
            p->network.byte_ns, p->network.eager_bytes,
            p->process.register_cost.base_ns, p->process.register_cost.page_ns,
            p->process.deregister_cost.base_ns,
            p->process.deregister_cost.page_ns, p->process.lateness_ns,
            p->flops, p->noise, p->straggler, p->late, p->process.seed,
            sim_helper_names[p->helper]);
}

static void sim_json_row(const sim_row_t *row, FILE *stream)
{
    const sim_result_t *r         = &row->result;
    const ucs_regcache_stats_t *s = &r->stats;
    int i;

    fprintf(stream,
            "\"seconds\": %.9f, \"compute_seconds\": %.9f, \"slow_down\": "
            "%.9f, \"messages\": %lu, \"message_bytes\": %lu, "
            "\"rendezvous\": %lu, \"engines\": %u, \"borrowed\": %lu, "
            "\"guessed\": %lu, \"pinned_peak_bytes\": %lu, "
            "\"pinned_peak_max_bytes\": %lu, \"leave_pinned_peak_bytes\": %lu, "
            "\"pinned_byte_seconds\": %.3f, \"pinned_max_byte_seconds\": %.3f, "
            "\"leave_pinned_byte_seconds\": %.3f, "
            "\"in_use_peak_bytes\": %lu, "
            "\"registrations\": %lu, \"regions_peak\": %lu, "
            "\"region_seconds\": %.6f, \"leave_pinned_regions_peak\": %lu, ",
            r->time_ns / SIM_NSEC, r->compute_ns / SIM_NSEC,
            sim_row_slow_down(row), r->sends, r->sent_bytes, r->rendezvous,
            r->engines, r->borrowed, r->guessed, s->pinned_peak_bytes,
            r->peak_max_bytes, s->leave_pinned_peak_bytes,
            s->pinned_byte_ns / SIM_NSEC, r->byte_ns_max / SIM_NSEC,
            s->leave_pinned_byte_ns / SIM_NSEC, s->in_use_peak_bytes,
            s->registrations, s->regions_peak, s->region_ns / SIM_NSEC,
            s->leave_pinned_regions_peak);
    fprintf(stream,
            "\"uses\": %lu, \"on_time\": %lu, \"late\": %lu, \"missed\": %lu, "
            "\"cold\": %lu, \"wasted\": %lu, \"evicted\": %lu, "
            "\"lost_seconds\": %.9f, \"over_ceiling\": %lu, \"idle_steps\": %lu, "
            "\"announced\": %lu, \"announced_on_time\": %lu, "
            "\"late_by_chance_seconds\": %.9f, \"max_pinned\": ",
            s->uses, s->on_time, s->late, s->missed, s->cold, s->wasted,
            s->evicted, s->lost_ns / SIM_NSEC, s->over_ceiling, r->idle_steps,
            s->announced, s->announced_on_time, r->late_ns / SIM_NSEC);
    sim_json_ceiling(row->max_pinned, stream);
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        fprintf(stream, ", \"%s\": %.9f", ucs_regcache_lost_names[i].key,
                s->why.lost_ns[i] / SIM_NSEC);
    }
    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        fprintf(stream, ", \"%s\": %.3f", ucs_regcache_held_names[i].key,
                s->why.held_byte_ns[i] / SIM_NSEC);
    }
}

void sim_print_json(const sim_options_t *options, const sim_shape_t *shape,
                    const sim_row_t *rows, size_t count, FILE *stream)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        fprintf(stream,
                "{\"pattern\": \"%s\", \"ranks\": %u, \"class\": \"%c\", "
                "\"scaling\": \"%s\", \"iterations\": %u, \"policy\": \"%s\", ",
                shape->pattern->name, shape->ranks, options->letter,
                options->is_weak ? "weak" : "strong",
                options->params.iterations, sim_row_name(&rows[i]));
        sim_json_row(&rows[i], stream);
        fprintf(stream, ", \"held\": %.9f, \"max_slowdown\": %g, "
                "\"region_bytes\": %lu, \"price_j\": %.9f, ",
                sim_row_held(&rows[i]), options->params.process.max_slowdown,
                options->params.process.region_bytes,
                sim_row_price(options, &rows[i]));
        sim_json_model(options, stream);
        fprintf(stream, "}\n");
    }
}
