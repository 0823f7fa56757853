/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay.h"

#include <ucs/sys/math.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLOT_MIB (1024.0 * 1024.0)

typedef struct plot {
    replay_options_t options;
    const char       *out;
    double           from;  /* seconds from the trace's start */
    double           to;    /* below 0: the end */
    replay_trace_t   trace;
    replay_outcome_t outcome;
    replay_curve_t   curves[REPLAY_ROWS_MAX];
} plot_t;

static const tool_usage_t plot_usage = {
    "[option]... TRACE -o FILE.svg|FILE.png",
    "Draw registered memory over time for each policy, beside the limit and leave\n"
    "pinned, with gnuplot. Each point is the average over 1/300 of the time shown.\n",
    NULL
};

/* Inside double quotes gnuplot knows escapes, inside single ones only '' */
static void plot_write_quoted(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text != '\0'; ++text) {
        if (*text == '\'') {
            fputc('\'', stream);
        }
        fputc(((unsigned char)*text < ' ') ? '?' : *text, stream);
    }
    fputc('\'', stream);
}

static void plot_write_data(const plot_t *plot, size_t row, FILE *stream)
{
    const replay_curve_t *curve = &plot->curves[row];
    size_t i;

    fprintf(stream, "$line%zu << END\n", row);
    for (i = 0; i < REPLAY_CURVE_BINS; ++i) {
        fprintf(stream, "%.9g %.6g\n",
                (curve->from_ns - plot->trace.start_ns +
                 i * curve->width_ns) * 1e-9,
                curve->byte_ns[i] / curve->width_ns / PLOT_MIB);
    }
    fprintf(stream, "END\n");
}

/* The limit is a surface, so that what lies above it shows as what is spent.
 * Most people that do not see all colours tell these apart. */
static const char *const plot_styles[] = {
    [REPLAY_ROW_LIMIT]    = "fillsteps fs solid 1 noborder fc rgb '#c8c8c8'",
    [REPLAY_ROW_LEAVE]    = "steps lw 4 lc rgb '#a0a0a0'",
    [REPLAY_ROW_POLICIES] = "steps lw 2 lc rgb '#0072b2'",
    "steps lw 2 lc rgb '#d55e00'", "steps lw 2 lc rgb '#009e73'",
    "steps lw 2 lc rgb '#cc79a7'", "steps lw 2 lc rgb '#e69f00'",
    "steps lw 2 lc rgb '#000000'", "steps lw 2 lc rgb '#56b4e9'"
};
_Static_assert(sizeof(plot_styles) / sizeof(plot_styles[0]) == REPLAY_ROWS_MAX,
               "a style for each row");

static void plot_write_line(const plot_t *plot, size_t index, FILE *stream)
{
    const replay_row_t *row           = &plot->outcome.rows[index];
    const ucs_regcache_stats_t *stats = &row->figures.stats;
    char share[TOOL_UNITS_MAX], bytes[TOOL_UNITS_MAX], price[TOOL_UNITS_MAX];
    char *title;

    title = tool_format(
            "%s: %s on time, peak %s, J %s", row->name,
            tool_units_print_share(stats->on_time, stats->uses - stats->cold,
                                   share),
            tool_units_print_bytes(stats->pinned_peak_bytes, bytes),
            tool_units_print_fine_share(replay_price(&plot->outcome,
                                                     &row->figures,
                                                     &plot->options),
                                        1, price));
    fprintf(stream, "%s $line%zu using 1:2 with %s title ",
            (index > 0) ? "," : "", index, plot_styles[index]);
    plot_write_quoted(stream, title);
    free(title);
}

static void plot_write_script(const plot_t *plot, FILE *stream)
{
    int is_svg = !strcmp(strrchr(plot->out, '.'), ".svg");
    size_t i;

    for (i = 0; i < plot->outcome.row_count; ++i) {
        plot_write_data(plot, i, stream);
    }
    fprintf(stream, "set terminal %s size 1000,480 background 'white'\n"
            "set output ", is_svg ? "svg" : "pngcairo");
    plot_write_quoted(stream, plot->out);
    fprintf(stream, "\nset title ");
    plot_write_quoted(stream, plot->trace.name);
    fprintf(stream, " noenhanced\nset xlabel 'seconds'\n"
            "set ylabel 'registered memory, MiB'\nset yrange [0:*]\n"
            "set grid ytics lc rgb '#dddddd'\nset border 3\n"
            "set tics nomirror out\n"
            "set key outside bottom center horizontal maxcols 2 "
            "noenhanced\nplot");
    for (i = 0; i < plot->outcome.row_count; ++i) {
        if (plot->curves[i].is_drawn) {
            plot_write_line(plot, i, stream);
        }
    }
    fputc('\n', stream);
}

static int plot_run_gnuplot(const plot_t *plot)
{
    struct stat st;
    FILE *stream;
    int status;

    /* If there is no gnuplot the pipe breaks */
    signal(SIGPIPE, SIG_IGN);
    if ((lstat(plot->out, &st) == 0) && !S_ISREG(st.st_mode)) {
        tool_message("%s: is there already and is no regular file", plot->out);
        return -1;
    }
    unlink(plot->out);
    stream = popen("gnuplot", "we");
    if (stream == NULL) {
        tool_message("gnuplot cannot be started: %m");
        return -1;
    }
    plot_write_script(plot, stream);
    status = pclose(stream);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 127)) {
        tool_message("gnuplot is not installed, and it draws the picture");
        return -1;
    }
    if ((status != 0) || (stat(plot->out, &st) != 0) || (st.st_size == 0)) {
        tool_message("%s: gnuplot has not drawn it", plot->out);
        return -1;
    }
    return 0;
}

static int plot_draw(plot_t *plot, uint64_t from, uint64_t to)
{
    size_t i;
    int ret;

    for (i = 0; i < REPLAY_ROWS_MAX; ++i) {
        plot->curves[i].from_ns  = from;
        plot->curves[i].width_ns = (to - from) / REPLAY_CURVE_BINS;
    }
    ret = replay_run(&plot->trace, &plot->options, plot->curves,
                     &plot->outcome);
    for (i = 0; i < REPLAY_ROWS_MAX; ++i) {
        if (plot->curves[i].is_drawn) {
            replay_curve_add(&plot->curves[i], to, 0);
        }
    }
    return (ret == 0) ? plot_run_gnuplot(plot) : ret;
}

static int plot_file(plot_t *plot, const char *file)
{
    const replay_trace_t *trace = &plot->trace;
    int ret                     = -1;
    uint64_t from, to;

    if (replay_options_load(&plot->options, file, &plot->trace) != 0) {
        return -1;
    }
    from = trace->start_ns + (uint64_t)(plot->from * 1e9);
    to   = (plot->to < 0) ? trace->end_ns :
                            trace->start_ns + (uint64_t)(plot->to * 1e9);
    if ((plot->from > 0) && (from >= trace->end_ns)) {
        tool_message("--from: %g s is not valid, allowed: before the end of %s "
                     "at %g s", plot->from, file,
                     (trace->end_ns - trace->start_ns) * 1e-9);
    } else {
        /* A bin has a nanosecond */
        ret = plot_draw(plot, from, ucs_max(to, from + REPLAY_CURVE_BINS));
    }
    replay_trace_cleanup(&plot->trace);
    return ret;
}

int replay_option_picture(void *field, const char *value)
{
    const char *suffix = strrchr(value, '.');

    return ((suffix != NULL) && (!strcmp(suffix, ".svg") ||
                                 !strcmp(suffix, ".png"))) ?
                   tool_option_text(field, value) : -1;
}

static const tool_option_t plot_options[] = {
    {"o", replay_option_picture, offsetof(plot_t, out),
     REPLAY_PICTURE_ALLOWED, "FILE the picture, .svg or .png", NULL},
    {"from", tool_option_time, offsetof(plot_t, from), "a time such as 1.5s",
     "TIME begin so long after the trace's start [0]", NULL},
    {"to", tool_option_time, offsetof(plot_t, to), "a time such as 1.5s",
     "TIME end there [the end]", NULL},
    {}
};

/* @return Nonzero after a message */
static int plot_check(int count, const plot_t *plot)
{
    if ((count != 1) || (plot->out == NULL)) {
        tool_message("plot needs one TRACE and -o FILE (see %s plot --help)",
                     TOOL_NAME);
        return -1;
    }
    if ((plot->to >= 0) && (plot->to <= plot->from)) {
        tool_message("--to: %g s is not valid, allowed: after --from, %g s",
                     plot->to, plot->from);
        return -1;
    }
    return 0;
}

int replay_plot(const replay_options_t *options, const char *trace,
                const char *out)
{
    plot_t plot = {.options = *options, .out = out, .to = -1};

    return plot_file(&plot, trace);
}

int tool_plot_main(int argc, char **argv)
{
    plot_t plot = {.to = -1};
    int status;

    replay_options_init(&plot.options);
    status = tool_options_parse(argc, argv, "", (const tool_options_t[]){
            {plot_options, &plot}, {replay_options, &plot.options}, {}},
            &plot_usage);
    if (status >= 0) {
        return status;
    }
    if (plot_check(argc - optind, &plot) != 0) {
        return TOOL_EXIT_USAGE;
    }
    return (plot_file(&plot, argv[optind]) == 0) ? TOOL_EXIT_OK :
                                                   TOOL_EXIT_FAILED;
}
