/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "try.h"

#include <tools/tool.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sync/atomic.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Status of timeout(1) when the time was over; 137 if the job did not end then */
#define TOOL_TRY_TIMEOUT 124
#define TOOL_TRY_KILLED  137

/* A job that does not end when it is asked to is killed after so long */
#define TOOL_TRY_GRACE "10"

#define tool_try_say(_try, _fmt, ...) \
    tool_message("[%4.0f s] " _fmt, \
                 (ucs_clock_now() - (_try)->start_ns) * 1e-9, ##__VA_ARGS__)

/* --- Beside the first run ------------------------------------------------- */

/* The latest so many sleeps count. Halved: less exact; doubled: a job that changes is
 * seen less well. */
#define TOOL_TRY_SLEEPS 1024

/* Of each, nanoseconds. Halved: twice the processor time, now a thousandth of a core;
 * doubled: a job of a second has 50 */
#define TOOL_TRY_SLEEP_NS 10000000

/* As a helper and what wakes it (ucs/sys/proc/scout.h): one of the class that runs where
 * a core is idle sleeps, and wakes the other */
static struct {
    pthread_t    helper;
    sem_t        begin, end;   /* of the helper's turn */
    uint64_t     due_ns;
    _Atomic(int) is_over;
    double       late_ns[TOOL_TRY_SLEEPS];
    size_t       count;
} tool_try_sleeper;

static void *tool_try_help(void *arg)
{
    uint64_t now;

    while ((sem_wait(&tool_try_sleeper.begin) == 0) &&
           !ucs_load_relaxed(&tool_try_sleeper.is_over)) {
        now = ucs_clock_now();
        tool_try_sleeper.late_ns[tool_try_sleeper.count++ % TOOL_TRY_SLEEPS] =
                (now > tool_try_sleeper.due_ns) ?
                        now - tool_try_sleeper.due_ns : 0;
        sem_post(&tool_try_sleeper.end);
    }
    return NULL;
}

static void *tool_try_sleep(void *arg)
{
    const struct timespec nap      = {.tv_nsec = TOOL_TRY_SLEEP_NS};
    const struct sched_param param = {};

    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
    (void)sched_setscheduler(0, SCHED_IDLE, &param);
    do {
        tool_try_sleeper.due_ns = ucs_clock_now() + TOOL_TRY_SLEEP_NS;
        nanosleep(&nap, NULL);
        sem_post(&tool_try_sleeper.begin);
        sem_wait(&tool_try_sleeper.end);
    } while (!ucs_load_relaxed(&tool_try_sleeper.is_over));
    return NULL;
}

static int tool_try_sleeper_start(void)
{
    sigset_t all, old;
    pthread_t thread;
    int ret;

    sem_init(&tool_try_sleeper.begin, 0, 0);
    sem_init(&tool_try_sleeper.end, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&tool_try_sleeper.helper, NULL, tool_try_help, NULL);
    if (ret == 0) {
        ret = pthread_create(&thread, NULL, tool_try_sleep, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ret == 0;
}

/* Receives how late it was each time, and the median */
static void tool_try_sleeper_end(replay_params_t *params)
{
    size_t count;

    /* The other one is not waited for: on a busy machine it would not run for long */
    ucs_store_relaxed(&tool_try_sleeper.is_over, 1);
    sem_post(&tool_try_sleeper.begin);
    pthread_join(tool_try_sleeper.helper, NULL);
    count = ucs_min(tool_try_sleeper.count, TOOL_TRY_SLEEPS);
    params->lateness_ns = tool_median(tool_try_sleeper.late_ns, count);
    params->late_ns     = (count > 0) ? tool_try_sleeper.late_ns : NULL;
    params->late_count  = count;
}

/* Put tee(1) before stdin, if that can be read but once; at the end its file is stdin.
 * @return -1: there is none */
static pid_t tool_try_tee(const char *file)
{
    char *const argv[] = {"tee", (char*)file, NULL};
    struct stat st;
    int fds[2];
    pid_t pid;

    if ((fstat(STDIN_FILENO, &st) != 0) ||
        !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) ||
        (pipe2(fds, O_CLOEXEC) != 0)) {
        return -1;
    }
    pid = tool_job_fork(SIGKILL);
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        execvp(argv[0], argv);
        _exit(TOOL_EXIT_CANNOT_EXEC);
    }
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static void tool_try_tee_end(pid_t pid, const char *file)
{
    int fd;

    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            dup2(fd, STDIN_FILENO);
            close(fd);
        }
    }
}

/* --- Runs ----------------------------------------------------------------- */

/* In a process of its own. The job's output goes to stderr: the table is alone on
 * stdout. */
static int tool_try_exec(void *arg)
{
    tool_try_t *try     = arg;
    tool_list_t command = TOOL_LIST_INITIALIZER;
    tool_list_t limited = TOOL_LIST_INITIALIZER;
    size_t i;

    setenv(TOOL_ENV_POLICY,
           ucs_regcache_policy_names[try->runs[try->run_count].policy], 1);
    tool_run_prepare(&try->run, &command);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if ((try->run.trace == NULL) || (try->limit == 0)) {
        return tool_job_exec(command.items);
    }
    tool_list_addf(&limited, "timeout");
    tool_list_addf(&limited, "--foreground"); /* keys of the terminal reach the job */
    tool_list_addf(&limited, "--kill-after=" TOOL_TRY_GRACE);
    tool_list_addf(&limited, "%.3f", try->limit);
    for (i = 0; i < command.count; ++i) {
        tool_list_add(&limited, command.items[i]);
    }
    return tool_job_exec(limited.items);
}

/* The first run, beside which it is seen how late threads are woken. Of what it reads
 * from a pipe the others get the same. */
static int tool_try_run_first(tool_try_t *try)
{
    char *input    = tool_format("%s/input", try->dir);
    pid_t tee      = tool_try_tee(input);
    uint64_t since = ucs_clock_now();
    int is_seen    = tool_try_sleeper_start();
    int status     = tool_job_call(tool_try_exec, NULL, try);

    if (is_seen) {
        tool_try_sleeper_end(&try->options.params);
    }
    if (tee > 0) {
        tool_try_tee_end(tee, input);
        try->input = 0;
    }
    try->is_cut = (try->limit > 0) &&
                  ((status == TOOL_TRY_TIMEOUT) || (status == TOOL_TRY_KILLED)) &&
                  ((ucs_clock_now() - since) * 1e-9 >= try->limit);
    free(input);
    return try->is_cut ? 0 : status;
}

/* @return Its exit status, or TOOL_EXIT_FAILED if it wrote no report */
static int tool_try_run(tool_try_t *try, ucs_regcache_policy_t policy)
{
    tool_try_run_t *run = &try->runs[try->run_count];
    int status;

    tool_try_say(try, "run %zu: %s%s", try->run_count + 1,
                 ucs_regcache_policy_names[policy],
                 (try->run_count == 0) ? ", recorded" : "");
    run->policy         = policy;
    try->run.report_dir = tool_format("%s/%zu", try->dir, try->run_count);
    try->run.trace      = (try->run_count == 0) ? try->traces : NULL;
    if (try->input >= 0) {
        lseek(STDIN_FILENO, try->input, SEEK_SET);
    }
    if (mkdir(try->run.report_dir, 0700) != 0) {
        tool_message("'%s' cannot be made: %m", try->run.report_dir);
        return TOOL_EXIT_FAILED;
    }
    status = (try->run_count == 0) ? tool_try_run_first(try) :
                                     tool_job_call(tool_try_exec, NULL, try);
    if (status != 0) {
        tool_message("the job ended with status %d: there is nothing to compare",
                     status);
        return status;
    }
    if (try->is_cut) {
        tool_try_say(try, "the job was ended: what follows is by the %.0f s that "
                     "were seen", try->limit);
        free(try->run.report_dir);
        return 0;
    }
    tool_report_collect(try->run.report_dir, &run->merge);
    if (run->merge.total == NULL) {
        tool_message("with ranks on other hosts, set TMPDIR to a folder that all "
                     "share");
        tool_doctor_short(&try->run);
        return TOOL_EXIT_FAILED;
    }
    ++try->run_count;
    free(try->run.report_dir);
    return 0;
}

/* --- Forecast ------------------------------------------------------------- */

/* The ranks' options; of a job that was cut without those of a ucx.conf */
static void tool_try_set_options(tool_try_t *try)
{
    const json_t *total     = try->runs[0].merge.total;
    replay_params_t *params = &try->options.params;
    const char *ceiling     = getenv(TOOL_ENV_MAX_PINNED);
    const char *slowdown    = getenv(TOOL_ENV_MAX_SLOWDOWN);
    const char *least       = getenv("UCX_MD_HELPER_MIN_SIZE");
    const char *region      = getenv("UCX_MD_HELPER_REGION_BYTES");

    if (ceiling != NULL) {
        tool_option_size(&try->options.ceiling.bytes, ceiling);
    }
    if (least != NULL) {
        tool_option_size(&try->options.min_size, least);
    }
    if (total != NULL) {
        params->max_slowdown = tool_report_number(total, "max_slowdown");
        params->region_bytes = tool_report_number(total, "region_bytes");
        return;
    }
    if (slowdown != NULL) {
        (void)tool_option_share(&params->max_slowdown, slowdown);
    }
    if (region != NULL) {
        tool_option_size(&params->region_bytes, region);
    }
}

/* What things take here */
static void tool_try_set_costs(tool_try_t *try)
{
    const json_t *total     = try->runs[0].merge.total;
    replay_params_t *params = &try->options.params;
    tool_doctor_t doctor    = {.run = &try->run};
    tool_doctor_cost_t cost;

    try->is_measured = tool_doctor_measure(
            &doctor, (total != NULL) ? tool_report_text(total, "lower_domain") :
                                       NULL, &cost) == 0;
    tool_doctor_cleanup(&doctor);
    if (try->is_measured) {
        params->register_cost   = (replay_cost_t){cost.reg_ns,
                                                  cost.reg_page_ns};
        params->deregister_cost = (replay_cost_t){cost.dereg_ns,
                                                  cost.dereg_page_ns};
    }
}

const ucs_regcache_stats_t *tool_try_stats(const tool_try_forecast_t *forecast,
                                           ucs_regcache_policy_t policy)
{
    return &forecast->sum.rows[policy].all;
}

double tool_try_price(const tool_try_t *try, const tool_try_forecast_t *forecast,
                      ucs_regcache_policy_t policy)
{
    const ucs_regcache_stats_t *stats = tool_try_stats(forecast, policy);

    return replay_price(&forecast->sum, stats, &try->options) -
           stats->why.lost_ns[UCS_REGCACHE_LOST_FIRST] / forecast->sum.total_ns;
}

/* The cheapest policies, if they are cheaper than leaving all pinned */
static void tool_try_choose(tool_try_t *try)
{
    const tool_try_forecast_t *forecast =
            (try->longer.replayed > 0) ? &try->longer : &try->forecast;
    double leave                        =
            tool_try_price(try, forecast, UCS_REGCACHE_POLICY_LEAVE_PINNED);
    ucs_regcache_policy_t policy;
    double price;
    size_t i;

    if (tool_try_stats(&try->forecast, UCS_REGCACHE_POLICY_LEAVE_PINNED)
                ->pinned_byte_ns <
        TOOL_TRY_OWN_BYTES * try->forecast.sum.total_ns) {
        return;
    }
    for (policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        price = tool_try_price(try, forecast, policy);
        if (!(price < TOOL_TRY_GAIN * leave)) {
            continue;
        }
        for (i = try->best_count; (i > 0) &&
             (price < tool_try_price(try, forecast, try->best[i - 1])); --i) {
            if (i < TOOL_TRY_CANDIDATES) {
                try->best[i] = try->best[i - 1];
            }
        }
        if (i < TOOL_TRY_CANDIDATES) {
            try->best[i]     = policy;
            try->best_count += try->best_count < TOOL_TRY_CANDIDATES;
        }
    }
    /* The default comes first: another has to be clearly better */
    if ((try->best_count > 1) &&
        (try->best[1] == UCS_REGCACHE_POLICY_PREDICT)) {
        try->best[1] = try->best[0];
        try->best[0] = UCS_REGCACHE_POLICY_PREDICT;
    }
}

/* What goes on stands for the run if it lasted for a good part of it: many uses may come
 * in a moment */
static int tool_try_is_whole(const tool_try_t *try, const replay_outcome_t *outcome)
{
    double run_ns = try->forecast.sum.elapsed_ns;

    return (outcome->repeated.times <= 1) ||
           (outcome->elapsed_ns - run_ns >
            run_ns / TOOL_TRY_STEADY * (outcome->repeated.times - 1));
}

/* Recordings are replayed for as long as the job took: there may be many */
static void tool_try_replay(const tool_try_t *try, const tool_list_t *traces,
                            tool_try_forecast_t *forecast)
{
    replay_outcome_t *outcomes = tool_calloc(traces->count, sizeof(*outcomes));
    uint64_t since             = ucs_clock_now();
    uint64_t took_ns           = 0;
    replay_outcome_t *one;
    size_t i;

    for (i = 0; (i < traces->count) &&
                ((i == 0) || (ucs_clock_now() - since < took_ns)); ++i) {
        one = &outcomes[forecast->replayed];
        if (replay_file(traces->items[i], &try->options, one) != 0) {
            continue;
        }
        if (!tool_try_is_whole(try, one)) {
            break; /* nor are the others' */
        }
        took_ns = one->elapsed_ns - one->then_ns;
        ++forecast->replayed;
    }
    if (forecast->replayed > 0) {
        replay_outcome_sum(outcomes, forecast->replayed, &forecast->sum);
    }
    free(outcomes);
}

/* The steady part goes on, for as long as one recording can be replayed in the job's
 * time */
static void tool_try_prolong(tool_try_t *try, const tool_list_t *traces,
                             uint64_t replay_ns)
{
    uint64_t uses = tool_try_stats(&try->forecast, 0)->uses;
    double run_ns = try->forecast.sum.elapsed_ns;
    double all_ns = ucs_min(TOOL_TRY_LONG * 1e9,
                            run_ns * run_ns * try->forecast.replayed /
                                    ucs_max(replay_ns, 1));

    if ((all_ns > 2 * run_ns) &&
        (uses >= TOOL_TRY_USES * try->forecast.replayed)) {
        try->options.repeat.ns = (uint64_t)all_ns;
        tool_try_replay(try, traces, &try->longer);
        try->options.repeat.ns = 0;
    }
}

static int tool_try_foretell(tool_try_t *try)
{
    tool_list_t traces = TOOL_LIST_INITIALIZER;
    char buf[3][TOOL_UNITS_MAX];
    uint64_t since;
    int has_forecast;

    tool_try_say(try, "measuring what a registration takes");
    tool_try_set_options(try);
    tool_try_set_costs(try);
    tool_report_list_dir(try->traces, ".trace", &traces);
    try->recordings = traces.count;
    tool_try_say(try, "replaying %zu recordings at %s + %s a page%s, wake-ups "
                 "late by %s", traces.count,
                 tool_units_print_seconds(
                         try->options.params.register_cost.base_ns * 1e-9,
                         buf[0]),
                 tool_units_print_seconds(
                         try->options.params.register_cost.page_ns * 1e-9,
                         buf[1]),
                 try->is_measured ? "" : " (not measured)",
                 tool_units_print_seconds(
                         try->options.params.lateness_ns * 1e-9, buf[2]));
    since = ucs_clock_now();
    tool_try_replay(try, &traces, &try->forecast);
    has_forecast = (try->forecast.replayed > 0);
    if (has_forecast) {
        tool_try_prolong(try, &traces, ucs_clock_now() - since);
        tool_try_choose(try);
    }
    if (has_forecast && (try->plot != NULL)) {
        try->lacks_plot = replay_plot(&try->options, traces.items[0],
                                      try->plot) != 0;
    }
    tool_list_cleanup(&traces);
    return has_forecast ? 0 : -1;
}

/* --- The command ---------------------------------------------------------- */

/* In a process of its own, so that whatever ends it leaves nothing behind */
static int tool_try_go(void *arg)
{
    tool_try_t *try = arg;
    int status;
    size_t i;

    status = tool_try_run(try, UCS_REGCACHE_POLICY_LEAVE_PINNED);
    if (status != 0) {
        return status;
    }
    if (tool_try_foretell(try) != 0) {
        return TOOL_EXIT_FAILED;
    }
    try->best[try->best_count] = UCS_REGCACHE_POLICY_LEAVE_PINNED;
    for (i = 0; !try->is_once && !try->is_cut && (try->best_count > 0) &&
                (i <= try->best_count); ++i) {
        status = tool_try_run(try, try->best[i]);
        if (status != 0) {
            return status;
        }
    }
    status = tool_try_print(try);
    return try->lacks_plot ? TOOL_EXIT_FAILED : status;
}

static void tool_try_done(void *arg, int status)
{
    tool_report_remove_dir(((tool_try_t*)arg)->dir);
}

static const tool_usage_t tool_try_usage = {
    "[--] COMMAND [argument]...",
    "Run a job with everything left pinned and replay what each policy would have "
    "held; then run the two best and leave pinned in turn, four runs at most. Prints "
    "one table and one advice. The job's output goes to stderr."
};

static int tool_try_parse_limit(void *field, const char *value)
{
    return ((tool_option_time(field, value) == 0) && (*(double*)field >= 1)) ?
                   0 : -1;
}

#define TOOL_TRY_OPTION(_field) offsetof(tool_try_t, _field)

static const tool_option_t tool_try_options[] = {
    {"once", NULL, TOOL_TRY_OPTION(is_once), NULL,
     " only the first run, and the forecast", NULL},
    {"limit", tool_try_parse_limit, TOOL_TRY_OPTION(limit),
     "a time such as 90s or 5m, at least 1s",
     "TIME end the first run after that: only a forecast then", NULL},
    {"json", NULL, TOOL_TRY_OPTION(is_json), NULL,
     " print one JSON object", NULL},
    {"plot", replay_parse_picture, TOOL_TRY_OPTION(plot),
     REPLAY_PICTURE_ALLOWED,
     "FILE draw what each policy holds, .svg or .png", NULL},
    {}
};

int tool_try_main(int argc, char **argv)
{
    static tool_try_t try; /* large */
    int status;

    replay_options_init(&try.options);
    status = tool_run_parse(&try.run, argc, argv, (tool_options_t){
            tool_try_options, &try}, &tool_try_usage);
    if (status != 0) {
        return status;
    }
    try.dir = tool_run_make_dir();
    status  = TOOL_EXIT_FAILED;
    if (try.dir != NULL) {
        unsetenv(TOOL_ENV_TRACE);
        try.traces   = tool_format("%s/traces", try.dir);
        try.start_ns = ucs_clock_now();
        try.input    = lseek(STDIN_FILENO, 0, SEEK_CUR);
        status       = tool_job_call(tool_try_go, tool_try_done, &try);
    }
    free(try.traces);
    free(try.dir);
    free(try.run.library);
    return status;
}
