/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_program.h"
#include "schedules_world.h"

#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

static void sim_usage(void)
{
    printf("usage: schedules [options]\n"
           "  --count N      schedules to run [100000]\n"
           "  --seed S       of the first; the others follow [1]\n"
           "  --policy P     of the cache; else the seed chooses\n"
           "  --covers       neighbours share registrations\n"
           "  --replay SEED  run this one and print its steps\n"
           "  --fault I      with --replay: let call I fail; up to twice\n");
}

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

static int sim_parse_policy(const char *name)
{
    unsigned i;

    for (i = 0; ucs_regcache_policy_names[i] != NULL; ++i) {
        if (strcmp(name, ucs_regcache_policy_names[i]) == 0) {
            sim_job.policy = (ucs_regcache_policy_t)i;
            return 1;
        }
    }
    fprintf(stderr, "--policy: '%s' is none of:", name);
    for (i = 0; ucs_regcache_policy_names[i] != NULL; ++i) {
        fprintf(stderr, " %s", ucs_regcache_policy_names[i]);
    }
    fprintf(stderr, "\n");
    return 0;
}

static int sim_parse_number(const char *option, const char *text,
                            unsigned long *value)
{
    char *end;

    *value = strtoul(text, &end, 10);
    if ((*text < '0') || (*text > '9') || (*end != '\0')) {
        fprintf(stderr, "--%s: '%s' is not a number\n", option, text);
        return 0;
    }
    return 1;
}

static int sim_parse_fault(const char *text)
{
    unsigned long site;

    if (sim_job.faults.count == SIM_MAX_FAULTS) {
        fprintf(stderr, "--fault: more than %u\n", SIM_MAX_FAULTS);
        return 0;
    }
    if (!sim_parse_number("fault", text, &site)) {
        return 0;
    }
    sim_job.faults.at[sim_job.faults.count++] = site;
    return 1;
}

static int sim_parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"count", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 's'},
        {"policy", required_argument, NULL, 'p'},
        {"covers", no_argument, NULL, 'n'},
        {"replay", required_argument, NULL, 'r'},
        {"fault", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    int is_good = 1;
    int c;

    while (is_good && ((c = getopt_long(argc, argv, "", options, NULL)) != -1)) {
        switch (c) {
        case 'c':
            is_good = sim_parse_number("count", optarg, &sim_job.count);
            break;
        case 's':
            is_good = sim_parse_number("seed", optarg, &sim_job.seed);
            break;
        case 'p':
            is_good = sim_parse_policy(optarg);
            break;
        case 'n':
            sim_has_covers = 1;
            break;
        case 'r':
            sim_job.is_replay = 1;
            is_good = sim_parse_number("replay", optarg, &sim_job.seed);
            break;
        case 'f':
            is_good = sim_parse_fault(optarg);
            break;
        default:
            sim_usage();
            return 0;
        }
    }
    return is_good;
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

    if (!sim_parse(argc, argv)) {
        return 2;
    }
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
