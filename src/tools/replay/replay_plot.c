/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay.h"

#include <ucs/sys/math.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct plot {
    replay_options_t options;
    const char       *out;
    double           from; /* seconds from the trace's start */
    double           to;
    replay_curve_t   curves[REPLAY_CURVES];
    replay_outcome_t outcome;
} plot_t;

static const tool_usage_t plot_usage = {
    "TRACE",
    "Draw registered memory over time for each policy, below what would be left "
    "pinned, with gnuplot. Each point is the average over 1/300 of the time shown."
};

/* Between single quotes gnuplot knows no escape but '' */
static void plot_write_quoted(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text != '\0'; ++text) {
        fputs((*text == '\'') ? "'" : "", stream);
        fputc(((unsigned char)*text < ' ') ? '?' : *text, stream);
    }
    fputc('\'', stream);
}

/* A block for gnuplot's index */
static void plot_write_data(const plot_t *plot, const replay_curve_t *curve,
                            FILE *stream)
{
    size_t i;

    for (i = 0; i < REPLAY_CURVE_BINS; ++i) {
        fprintf(stream, "%.9g %.6g\n",
                plot->from + i * curve->width_ns * 1e-9,
                curve->byte_ns[i] / curve->width_ns / UCS_MBYTE);
    }
    fputs("\n\n", stream);
}

static void plot_write_line(const plot_t *plot, size_t index, FILE *stream)
{
    const replay_row_t *row           = &plot->outcome.rows[index];
    const ucs_regcache_stats_t *stats = &row->all;
    int color = index + 1 + (index >= 4); /* the fifth, yellow, is hardly seen */
    char buf[3][TOOL_UNITS_MAX];

    fprintf(stream,
            ", $data index %zu with steps lw 2 lt %d "
            "title '%s: %s on time, peak %s, J %s'",
            index + REPLAY_CURVE_POLICIES, color, row->name,
            tool_units_print_share(stats->on_time, stats->uses - stats->cold,
                                   buf[0]),
            tool_units_print_bytes(stats->pinned_peak_bytes, buf[1]),
            tool_units_print_fine_share(replay_price(&plot->outcome, stats,
                                                     &plot->options),
                                        1, buf[2]));
}

static void plot_write(const plot_t *plot, const char *trace, FILE *stream)
{
    size_t i;

    fprintf(stream, "$data << END\n");
    for (i = 0; i < plot->outcome.row_count + REPLAY_CURVE_POLICIES; ++i) {
        plot_write_data(plot, &plot->curves[i], stream);
    }
    fprintf(stream,
            "END\n"
            "set terminal %s size 1000,560 background 'white' noenhanced\n"
            "set colorsequence podo\n"
            "set xlabel 'seconds'\n"
            "set ylabel 'registered memory, MiB'\n"
            "set autoscale xfix\n"
            "set yrange [0:*]\n"
            "set border 3\n"
            "set tics nomirror out\n"
            "set grid ytics\n"
            "set key below maxcols 1 Left reverse invert samplen 2\n"
            "set title ",
            !strcmp(strrchr(plot->out, '.'), ".svg") ? "svg" : "pngcairo");
    plot_write_quoted(stream, trace);
    fprintf(stream, "\nset output ");
    plot_write_quoted(stream, plot->out);
    fprintf(stream, "\nplot $data index %d with steps lw 5 lc rgb '#c0c0c0' "
            "title 'left pinned'", REPLAY_CURVE_LEAVE);
    for (i = plot->outcome.row_count; i > 0; --i) { /* predict is on top */
        plot_write_line(plot, i - 1, stream);
    }
    fputc('\n', stream);
}

static int plot_draw(const plot_t *plot, const char *trace)
{
    int status = -1;
    void (*pipe_action)(int);
    struct stat st;
    FILE *stream;

    if ((stat(plot->out, &st) == 0) && !S_ISREG(st.st_mode)) {
        tool_message("%s: is there already and is no regular file", plot->out);
        return -1;
    }
    pipe_action = signal(SIGPIPE, SIG_IGN); /* gnuplot may not be there */
    stream      = popen("gnuplot", "we");
    if (stream != NULL) {
        plot_write(plot, trace, stream);
        status = pclose(stream);
    }
    signal(SIGPIPE, pipe_action);
    if (status != 0) {
        tool_message("%s: is not drawn, as gnuplot is not installed or failed",
                     plot->out);
    }
    return status;
}

static int plot_replay(plot_t *plot, const replay_trace_t *trace)
{
    double end     = (trace->end_ns - trace->start_ns) * 1e-9;
    double seconds = ucs_min(plot->to, end) - plot->from;
    int ret;
    size_t i;

    if ((seconds <= 0) && (end > 0)) {
        tool_message("--from: %g s is not valid, allowed: before --to and the "
                     "end of %s at %g s", plot->from, trace->name, end);
        return -1;
    }
    for (i = 0; i < REPLAY_CURVES; ++i) {
        plot->curves[i] = (replay_curve_t){
            .from_ns  = trace->start_ns + (uint64_t)(plot->from * 1e9),
            .width_ns = ucs_max(seconds * 1e9 / REPLAY_CURVE_BINS, 1)
        };
    }
    ret = replay_run(trace, &plot->options, plot->curves, &plot->outcome);
    for (i = 0; i < REPLAY_CURVES; ++i) {
        replay_curve_add(&plot->curves[i], trace->end_ns, 0);
    }
    return ret;
}

static int plot_file(plot_t *plot, const char *file)
{
    replay_trace_t trace;
    int ret;

    if (replay_load(file, &plot->options, &trace) != 0) {
        return -1;
    }
    ret = plot_replay(plot, &trace);
    if (ret == 0) {
        ret = plot_draw(plot, file);
    }
    replay_trace_cleanup(&trace);
    return ret;
}

int replay_parse_picture(void *field, const char *value)
{
    const char *suffix = strrchr(value, '.');

    return ((suffix != NULL) && (!strcmp(suffix, ".svg") ||
                                 !strcmp(suffix, ".png"))) ?
                   tool_option_text(field, value) : -1;
}

static const tool_option_t plot_options[] = {
    {"o", replay_parse_picture, offsetof(plot_t, out), REPLAY_PICTURE_ALLOWED,
     "FILE the picture, .svg or .png", NULL},
    {"from", tool_option_time, offsetof(plot_t, from), "a time such as 1.5s",
     "TIME begin so long after the trace's start [0]", NULL},
    {"to", tool_option_time, offsetof(plot_t, to), "a time such as 1.5s",
     "TIME end there [the end]", NULL},
    {}
};

int replay_plot(const replay_options_t *options, const char *trace,
                const char *out)
{
    plot_t plot = {.options = *options, .out = out, .to = HUGE_VAL};

    return plot_file(&plot, trace);
}

int tool_plot_main(int argc, char **argv)
{
    plot_t plot = {.to = HUGE_VAL};
    int first;

    replay_options_init(&plot.options);
    first = tool_options_parse(argc, argv, 0, (const tool_options_t[]){
            {plot_options, &plot}, {replay_options, &plot.options}, {}},
            &plot_usage);
    if ((first != argc - 1) || (plot.out == NULL)) {
        tool_message("plot needs one TRACE and -o FILE (see %s plot --help)",
                     TOOL_NAME);
        return TOOL_EXIT_USAGE;
    }
    return (plot_file(&plot, argv[first]) == 0) ? TOOL_EXIT_OK :
                                                  TOOL_EXIT_FAILED;
}
