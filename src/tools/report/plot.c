/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <tools/options.h>
#include <tools/replay/replay.h>
#include <tools/tool.h>
#include <tools/units.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLOT_BINS       300
#define PLOT_MIB        (1024.0 * 1024.0)
#define PLOT_CURVES_MAX (UCS_REGCACHE_POLICY_LAST + 2)

typedef struct plot_command {
    replay_options_t options;
    const char       *out;
    double           from;  /* seconds from the trace's start */
    double           to;    /* below 0: the end */
} plot_command_t;

/* One line of the picture */
typedef struct plot_line {
    char           *title;
    replay_curve_t curve;
    const char     *style;
} plot_line_t;

typedef struct plot {
    const plot_command_t *command;
    replay_trace_t       trace;
    plot_line_t          lines[PLOT_CURVES_MAX];
    size_t               count;
    uint64_t             leave_peak;    /* bytes that leave pinned holds at
                                           most */
    double               leave_byte_ns; /* those, all of the time */
} plot_t;


static void plot_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s plot [option]... TRACE -o FILE.svg|FILE.png\n\n"
            "Draw registered memory over time for each policy, beside the "
            "limit and leave\npinned, with gnuplot. Each point is the average "
            "over 1/%d of the time shown.\n\n"
            "Options:\n"
            "  -o FILE    the picture, .svg or .png\n"
            "  --from S   begin so many seconds after the trace's start [0]\n"
            "  --to S     end there [the end]\n",
            TOOL_NAME, PLOT_BINS);
    tool_options_help(replay_options, stream);
    fprintf(stream, "  --help    show this text\n");
}

/*
 * Lines
 */

static plot_line_t *plot_add_line(plot_t *plot, const char *style, char *title)
{
    plot_line_t *line = &plot->lines[plot->count++];

    line->style = style;
    line->title = title;
    return line;
}

/* Most people that do not see all colours tell these apart */
static const char *const plot_styles[] = {
    "steps lw 2 lc rgb '#0072b2'", "steps lw 2 lc rgb '#d55e00'",
    "steps lw 2 lc rgb '#009e73'", "steps lw 2 lc rgb '#cc79a7'",
    "steps lw 2 lc rgb '#e69f00'", "steps lw 2 lc rgb '#000000'"
};
#define PLOT_STYLES (sizeof(plot_styles) / sizeof(plot_styles[0]))

/* Time lost and memory held, in byte-nanoseconds of which leave pinned's most,
 * all of the time, is the whole */
static double plot_price(const plot_t *plot, const ucs_regcache_stats_t *stats,
                         const replay_spent_t *spent)
{
    return spent->lost_ns * (double)plot->leave_peak +
           plot->command->options.params.max_slowdown * stats->pinned_byte_ns;
}

static int plot_add_policy(plot_t *plot, ucs_regcache_policy_t policy)
{
    replay_params_t params = plot->command->options.params;
    replay_curve_t curve   = {};
    const char *name       = ucs_regcache_policy_names[policy];
    char share[TOOL_UNITS_MAX], bytes[TOOL_UNITS_MAX], price[TOOL_UNITS_MAX];
    ucs_regcache_stats_t stats;
    replay_spent_t spent;
    ucs_status_t status;

    params.policy     = policy;
    params.max_pinned = replay_ceiling_bytes(&plot->command->options,
                                             &plot->trace);
    status = replay_world_run(&plot->trace, &params, &stats, &curve,
                              &spent);
    if (status != UCS_OK) {
        tool_message("%s: the engine cannot be created for policy %s (%d)",
                     plot->trace.name, name, status);
        return -1;
    }
    tool_units_print_share(stats.on_time, stats.uses - stats.cold, share);
    tool_units_print_bytes(stats.pinned_peak_bytes, bytes);
    tool_units_print_fine_share(plot_price(plot, &stats, &spent),
                                plot->leave_byte_ns, price);
    plot_add_line(plot, plot_styles[policy % PLOT_STYLES],
                  tool_format("%s: %s on time, peak %s, J %s", name, share,
                              bytes, price))->curve = curve;
    return 0;
}

/* The limit is a surface, so that what lies above it shows as what is spent */
static void plot_add_yardsticks(plot_t *plot)
{
    replay_curve_t leave = {};
    replay_curve_t limit = {};
    char bytes[TOOL_UNITS_MAX];
    replay_figures_t figures;

    replay_model_limit(&plot->trace, &figures, &limit);
    tool_units_print_bytes(figures.pinned_peak_bytes, bytes);
    plot_add_line(plot, "fillsteps fs solid 1 noborder fc rgb '#c8c8c8'",
                  tool_format("limit, while in use: peak %s", bytes))->curve =
            limit;
    replay_model_leave(&plot->trace, &figures, &leave);
    plot->leave_peak    = figures.pinned_peak_bytes;
    plot->leave_byte_ns = (double)plot->leave_peak *
                          (plot->trace.end_ns - plot->trace.start_ns);
    tool_units_print_bytes(figures.pinned_peak_bytes, bytes);
    plot_add_line(plot, "steps lw 4 lc rgb '#a0a0a0'",
                  tool_format("leave pinned: peak %s", bytes))->curve = leave;
}

static int plot_add_lines(plot_t *plot)
{
    const replay_options_t *options = &plot->command->options;
    size_t i;

    plot_add_yardsticks(plot);
    for (i = 0; i < options->policy_count; ++i) {
        if (plot_add_policy(plot, options->policies[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

/*
 * Script
 */

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

/* Average of the curve in [from, to), from sample *next_p on */
static double plot_average(const replay_curve_t *curve, uint64_t from,
                           uint64_t to, size_t *next_p)
{
    double sum    = 0;
    uint64_t time = from;
    uint64_t end;
    size_t i;

    for (i = *next_p; (i + 1 < curve->count) &&
                      (curve->samples[i + 1].time_ns <= from); ++i) {
    }
    *next_p = i;
    for (; (i < curve->count) && (time < to); ++i) {
        end  = ((i + 1 < curve->count) &&
                (curve->samples[i + 1].time_ns < to)) ?
                       curve->samples[i + 1].time_ns :
                       to;
        sum += (double)curve->samples[i].bytes * (end - time);
        time = end;
    }
    return (to > from) ? sum / (to - from) : 0;
}

static void plot_write_data(const plot_t *plot, size_t index, FILE *stream)
{
    const replay_trace_t *trace = &plot->trace;
    double end                  = (trace->end_ns - trace->start_ns) * 1e-9;
    double from                 = plot->command->from;
    double to                   = (plot->command->to < 0) ?
                                          end :
                                          plot->command->to;
    size_t next                 = 0;
    double begin, width;
    size_t i;

    width = (to - from) / PLOT_BINS;
    fprintf(stream, "$line%zu << END\n", index);
    for (i = 0; i < PLOT_BINS; ++i) {
        begin = from + i * width;
        fprintf(stream, "%.9g %.6g\n", begin,
                plot_average(&plot->lines[index].curve,
                             trace->start_ns + (uint64_t)(begin * 1e9),
                             trace->start_ns +
                                     (uint64_t)((begin + width) * 1e9),
                             &next) / PLOT_MIB);
    }
    fprintf(stream, "END\n");
}

static void plot_write_script(const plot_t *plot, FILE *stream)
{
    const char *out = plot->command->out;
    int is_svg      = !strcmp(strrchr(out, '.'), ".svg");
    size_t i;

    for (i = 0; i < plot->count; ++i) {
        plot_write_data(plot, i, stream);
    }
    fprintf(stream, "set terminal %s size 1000,480 background 'white'\n"
            "set output ", is_svg ? "svg" : "pngcairo");
    plot_write_quoted(stream, out);
    fprintf(stream, "\nset title ");
    plot_write_quoted(stream, plot->trace.name);
    fprintf(stream, " noenhanced\nset xlabel 'seconds'\n"
            "set ylabel 'registered memory, MiB'\nset yrange [0:*]\n"
            "set grid ytics lc rgb '#dddddd'\nset border 3\n"
            "set tics nomirror out\n"
            "set key outside bottom center horizontal maxcols 2 "
            "noenhanced\nplot");
    for (i = 0; i < plot->count; ++i) {
        fprintf(stream, "%s $line%zu using 1:2 with %s title ",
                (i > 0) ? "," : "", i, plot->lines[i].style);
        plot_write_quoted(stream, plot->lines[i].title);
    }
    fputc('\n', stream);
}

static int plot_run_gnuplot(const plot_t *plot)
{
    const char *out = plot->command->out;
    struct stat st;
    FILE *stream;
    int status;

    /* If there is no gnuplot the pipe breaks */
    signal(SIGPIPE, SIG_IGN);
    if ((lstat(out, &st) == 0) && !S_ISREG(st.st_mode)) {
        tool_message("%s: is there already and is no regular file", out);
        return -1;
    }
    unlink(out);
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
    if ((status != 0) || (stat(out, &st) != 0) || (st.st_size == 0)) {
        tool_message("%s: gnuplot has not drawn it", out);
        return -1;
    }
    return 0;
}

/*
 * Command
 */

static int plot_file(const char *file, const plot_command_t *command)
{
    plot_t plot = {.command = command};
    size_t i;
    int ret;

    if (replay_options_load(&command->options, file, &plot.trace) != 0) {
        return -1;
    }
    ret = plot_add_lines(&plot);
    if (ret == 0) {
        ret = plot_run_gnuplot(&plot);
    }
    for (i = 0; i < plot.count; ++i) {
        free(plot.lines[i].title);
        free(plot.lines[i].curve.samples);
    }
    replay_trace_cleanup(&plot.trace);
    return ret;
}

static int plot_parse_seconds(void *field, const char *value)
{
    return tool_units_parse_time(value, field);
}

static const tool_option_t plot_options[] = {
    {"o", tool_option_text, offsetof(plot_command_t, out), NULL, NULL},
    {"from", plot_parse_seconds, offsetof(plot_command_t, from),
     "a time such as 1.5s", NULL},
    {"to", plot_parse_seconds, offsetof(plot_command_t, to),
     "a time such as 1.5s", NULL},
    {}
};

/* @return Nonzero after a message */
static int plot_check(int count, const plot_command_t *command)
{
    const char *suffix = (command->out != NULL) ? strrchr(command->out, '.') :
                                                  NULL;

    if ((count != 1) || (command->out == NULL)) {
        tool_message("plot needs one TRACE and -o FILE (see %s plot --help)",
                     TOOL_NAME);
        return -1;
    }
    if ((suffix == NULL) || (strcmp(suffix, ".svg") &&
                             strcmp(suffix, ".png"))) {
        tool_message("-o: '%s' is not valid, allowed: FILE.svg or FILE.png",
                     command->out);
        return -1;
    }
    if ((command->to >= 0) && (command->to <= command->from)) {
        tool_message("--to: must come after --from");
        return -1;
    }
    return 0;
}

int tool_plot_main(int argc, char **argv)
{
    plot_command_t command = {.to = -1};
    int status;

    replay_options_init(&command.options);
    status = tool_options_parse(argc, argv, (const tool_options_t[]){
            {plot_options, &command}, {replay_options, &command.options}, {}},
            plot_usage);
    if (status >= 0) {
        return status;
    }
    if (plot_check(argc - optind, &command) != 0) {
        return TOOL_EXIT_USAGE;
    }
    return (plot_file(argv[optind], &command) == 0) ? TOOL_EXIT_OK :
                                                      TOOL_EXIT_FAILED;
}
