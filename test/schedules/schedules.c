/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_world.h"
#include "../policy_option.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SIM_MAX_VIOLATIONS 10

/* Schedules of one batch: after each the progress is printed */
#define SIM_BATCH 20000

/* A batch takes some seconds of processor time: on a machine that others keep
 * busy they may be minutes */
#define SIM_BATCH_SECONDS 90

static struct {
    unsigned long       count;
    unsigned long       seed;
    int                 is_replay;
    ucs_regcache_policy_t policy;
    sim_faults_t        faults;

    unsigned long       done;
    unsigned long       violations;
    unsigned long       hits;
    uint64_t            running;  /* seed of the present schedule */
    time_t              started;
} sim_job = {.count = 100000, .seed = 1, .policy = UCS_REGCACHE_POLICY_LAST};

static int sim_is_over(void)
{
    return (sim_job.done >= sim_job.count) ||
           (sim_job.violations >= SIM_MAX_VIOLATIONS);
}

static void sim_limit_batch(void)
{
    const struct itimerval limit = {.it_value.tv_sec = SIM_BATCH_SECONDS};

    setitimer(ITIMER_PROF, &limit, NULL);
}

static void sim_progress(void)
{
    printf("%lu schedules, %lu violations, %lu faults, %ld s\n", sim_job.done,
           sim_job.violations, sim_job.hits,
           (long)(time(NULL) - sim_job.started));
    fflush(stdout);
}

/* @return Calls that could have failed */
static unsigned sim_one(uint64_t seed, const sim_faults_t *faults)
{
    sim_job.running = seed;
    if (!sim_program_run(seed, sim_job.policy, faults)) {
        ++sim_job.violations;
    }
    sim_job.hits += sim_fault_hits();
    if ((++sim_job.done % SIM_BATCH) == 0) {
        sim_limit_batch();
        sim_progress();
    }
    return sim_fault_sites();
}

/* Every call of a program fails once, each in a schedule of its own */
static void sim_exhaust(uint64_t seed)
{
    sim_faults_t faults = {0};
    unsigned sites, i;

    sites        = sim_one(seed, &faults);
    faults.count = 1;
    for (i = 0; (i < sites) && !sim_is_over(); ++i) {
        faults.at[0] = i;
        sim_one(seed, &faults);
    }
}

/* The same without faults, then with two at random */
static void sim_pair(uint64_t seed)
{
    sim_faults_t faults = {0};
    sim_rng_t rng;
    unsigned sites;

    sites = sim_one(seed, &faults);
    if (sim_is_over() || (sites == 0)) {
        return;
    }
    sim_rng_init(&rng, seed, 6);
    faults.count = SIM_MAX_FAULTS;
    faults.at[0] = sim_rng_below(&rng, sites);
    faults.at[1] = (sim_rng_below(&rng, 2) == 0) ?
                           faults.at[0] + 1 :
                           sim_rng_below(&rng, sites);
    sim_one(seed, &faults);
}

static void sim_all(void)
{
    unsigned long exhaust = sim_job.count / 3;
    uint64_t seed         = sim_job.seed;

    while (!sim_is_over() && (sim_job.done < exhaust)) {
        sim_exhaust(seed++);
    }
    while (!sim_is_over()) {
        sim_pair(seed++);
    }
}

static void sim_parse(char **argv)
{
    const char *policy = NULL, *faults = NULL;
    size_t replay                = 0;
    const bench_option_t table[] = {
        {"count", BENCH_SIZE, &sim_job.count, 1, 1e18,
         "schedules to run [100000]"},
        {"seed", BENCH_SIZE, &sim_job.seed, 0, 2e19,
         "of the first; the others follow [1]"},
        {"policy", BENCH_TEXT, &policy, 0, 0, "of the cache [by the seed]"},
        {"covers", BENCH_FLAG, &sim_has_covers, 1, 1,
         "neighbours share registrations"},
        {"replay", BENCH_SIZE, &replay, 1, 2e19,
         "run the schedule of this seed and print its steps"},
        {"faults", BENCH_TEXT, &faults, 0, 0,
         "I or I,J: with --replay, these calls fail"},
        {0}
    };
    int count;

    bench_options_or_exit("schedules [options]", table, argv, NULL);
    sim_job.policy = (ucs_regcache_policy_t)policy_option(
            policy, UCS_REGCACHE_POLICY_LAST);
    if (replay > 0) {
        sim_job.is_replay = 1;
        sim_job.seed      = replay;
    }
    if (faults != NULL) {
        count = sscanf(faults, "%u,%u", &sim_job.faults.at[0],
                       &sim_job.faults.at[1]);
        sim_job.faults.count = (count > 0) ? count : 0;
    }
}

/* A crash, or a loop without a scheduling point: the seed must not be lost */
static void sim_died(int signal)
{
    char line[128];
    int length = snprintf(line, sizeof(line),
                          "VIOLATION seed %lu: %s, repeat with --replay\n",
                          (unsigned long)sim_job.running,
                          (signal == SIGPROF) ? "no progress" : "crash");

    if (write(STDOUT_FILENO, line, length) < 0) {
        _exit(3);
    }
    _exit(1);
}

static void sim_catch(void)
{
    static char stack[64 << 10];
    stack_t alternate       = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = sim_died, .sa_flags = SA_ONSTACK};

    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
}

int main(int argc, char **argv)
{
    char options[64] = "";

    sim_parse(argv);
    /* A cache is some 100 KB: keep it out of mmap() */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    if (sim_job.policy != UCS_REGCACHE_POLICY_LAST) {
        snprintf(options, sizeof(options), " --policy %s",
                 ucs_regcache_policy_names[sim_job.policy]);
    }
    if (sim_has_covers) {
        strcat(options, " --covers");
    }
    if (options[0] != '\0') {
        sim_set_options(options);
    }
    sim_catch();
    sim_limit_batch();
    sim_job.started = time(NULL);
    if (sim_job.is_replay) {
        sim_set_tracing(1);
        sim_one(sim_job.seed, &sim_job.faults);
    } else {
        sim_all();
    }
    printf("schedules %lu violations %lu faults %lu\n", sim_job.done,
           sim_job.violations, sim_job.hits);
    return (sim_job.violations > 0) || (sim_job.done == 0);
}
