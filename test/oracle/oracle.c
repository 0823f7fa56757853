/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"
#include "../own_ledger.h"
#include "../policy_option.h"

#include <uct/base/uct_abi.h>
#include <uct/ib/helper_md/watch/calls.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define ORACLE_MAX_THREADS 64

static void oracle_parse(char **argv, oracle_options_t *options)
{
    const char *policy           = NULL;
    const bench_option_t table[] = {
        {"seconds", BENCH_REAL, &options->seconds, 0, 1e9,
         "run so long, 0: no limit [10]"},
        {"seed", BENCH_SIZE, &options->seed, 0, 2e19,
         "replays the same programs [from the clock]"},
        {"cycles", BENCH_SIZE, &options->cycles, 0, 1e18,
         "run so many cycles at most"},
        {"epoch", BENCH_COUNT, &options->epoch, 0, UINT32_MAX,
         "start with this one of the seed's domains [0]"},
        {"threads", BENCH_COUNT, &options->threads, 1, ORACLE_MAX_THREADS,
         "of the application [2]"},
        {"policy", BENCH_TEXT, &policy, 0, 0, "[one after the other]"},
        {"covers", BENCH_FLAG, &options->has_covers, 1, 1,
         "neighbours share registrations"},
        {"hooks-only", BENCH_FLAG, &options->hooks_only, 1, 1,
         "without what UCX's own hooks do not see, and without userfaultfd, "
         "which does"},
        {0}
    };

    bench_options_or_exit(
            "oracle [options]\n"
            "The last line is `cycles N stale N planted N found N`; the exit code is "
            "0 if\nnothing was stale and all that was planted found.",
            table, argv, NULL);
    options->policy = policy_option(policy, -1);
}

/* Without userfaultfd what the hooks miss goes unnoticed, and that is known */
static void oracle_probe_monitor(oracle_options_t *options)
{
    const char *reason;

    if (options->hooks_only) {
        return;
    }
    reason = uct_helper_monitor_start();
    if (reason == NULL) {
        uct_helper_monitor_stop();
        return;
    }
    printf("oracle: %s: --hooks-only\n", reason);
    options->hooks_only = 1;
}

/* The calls that the preloaded stub sees are among the disturbances */
static int oracle_load_stub(char **argv)
{
    if (uct_helper_calls_listen()) {
        unsetenv("LD_PRELOAD");
        return 1;
    }
    if ((getenv("LD_PRELOAD") == NULL) && (access(ORACLE_STUB, R_OK) == 0) &&
        (setenv("LD_PRELOAD", ORACLE_STUB, 1) == 0)) {
        execv("/proc/self/exe", argv);
    }
    return 0;
}

/* Before Linux 6.11 a mapping may lie beside one that is not watched with it */
static int oracle_has_rows(void)
{
    uct_helper_range_t range;

    return uct_helper_range_find(UCT_HELPER_RANGE_WAY_QUERY,
                                 (uintptr_t)&range, (uintptr_t)(&range + 1),
                                 &range) != UCT_HELPER_RANGE_UNKNOWN;
}

/* Up to Linux 6.4 io_uring takes no page of a file but of tmpfs, not even of a
 * segment of System V */
static int oracle_kernel_takes_files(void)
{
    unsigned major = 0, minor = 0;
    struct utsname name;

    return (uname(&name) == 0) &&
           (sscanf(name.release, "%u.%u", &major, &minor) == 2) &&
           ((major > 6) || ((major == 6) && (minor >= 5)));
}

int main(int argc, char **argv)
{
    oracle_options_t options = {
        .seconds = 10,
        .seed    = ucs_clock_monotonic(),
        .threads = 2
    };
    int done;

    oracle_parse(argv, &options);
    options.has_stub    = oracle_load_stub(argv);
    options.takes_files = oracle_kernel_takes_files();
    options.has_rows    = oracle_has_rows();
    /* The domains are the oracle's own, in the first form, whatever UCX runs */
    uct_abi_select(uct_abi_row(0));
    oracle_page      = sysconf(_SC_PAGESIZE);
    oracle_probe_monitor(&options);
    /* Fixed, or the first large free() would move it out of reach */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    own_ledger_take("oracle");
    done = oracle_run(&options);
    if (!own_ledger_is_valid()) {
        oracle_die("the node's ledger is damaged");
    }
    own_ledger_remove();
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
