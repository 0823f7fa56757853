/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"
#include "../own_ledger.h"

#include <uct/base/uct_abi.h>
#include <uct/ib/helper_md/watch/calls.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#define ORACLE_MAX_THREADS 64


static void oracle_usage(FILE *out)
{
    fprintf(out,
            "usage: oracle [options]\n"
            "  --seconds N      run so long, 0: no limit  [10]\n"
            "  --seed S         replays the same programs [from the clock]\n"
            "  --cycles N       run so many cycles at most\n"
            "  --epoch N        start with this one of the seed's domains [0]\n"
            "  --threads N      threads of the application [2]\n"
            "  --policy NAME    policy of the helper [one after the other]\n"
            "  --covers         neighbours share registrations\n"
            "  --hooks-only     without what UCX's own hooks do not see, and\n"
            "                   without userfaultfd, which does\n"
            "The last line is `cycles N stale N planted N found N`; the exit\n"
            "code is 0 if nothing was stale and all that was planted found.\n");
}

static int oracle_parse_policy(const char *name)
{
    int i;

    for (i = 0; ucs_regcache_policy_names[i] != NULL; ++i) {
        if (!strcasecmp(ucs_regcache_policy_names[i], name)) {
            return i;
        }
    }
    fprintf(stderr, "oracle: --policy: '%s' is no policy\n", name);
    exit(2);
}

static uint64_t oracle_parse_number(const char *option, const char *text,
                                    uint64_t max)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if ((errno != 0) || (*text < '0') || (*text > '9') || (*end != '\0') ||
        (value > max)) {
        fprintf(stderr, "oracle: --%s: '%s' is not a number up to %" PRIu64
                "\n", option, text, max);
        exit(2);
    }
    return value;
}

static void oracle_parse(int argc, char **argv, oracle_options_t *options)
{
    static const struct option names[] = {
        {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'S'},
        {"cycles", required_argument, NULL, 'c'},
        {"epoch", required_argument, NULL, 'e'},
        {"threads", required_argument, NULL, 't'},
        {"policy", required_argument, NULL, 'p'},
        {"covers", no_argument, NULL, 'C'},
        {"hooks-only", no_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {}
    };
    int c, index;

    while ((c = getopt_long(argc, argv, "h", names, &index)) != -1) {
        switch (c) {
        case 's':
            options->seconds = oracle_parse_number("seconds", optarg, 1 << 30);
            break;
        case 'S':
            options->seed = oracle_parse_number("seed", optarg, UINT64_MAX);
            break;
        case 'c':
            options->cycles = oracle_parse_number("cycles", optarg,
                                                  UINT64_MAX / 2);
            break;
        case 'e':
            options->epoch = oracle_parse_number("epoch", optarg, UINT32_MAX);
            break;
        case 't':
            options->threads = oracle_parse_number("threads", optarg,
                                                   ORACLE_MAX_THREADS);
            break;
        case 'p':
            options->policy = oracle_parse_policy(optarg);
            break;
        case 'C':
            options->has_covers = 1;
            break;
        case 'o':
            options->hooks_only = 1;
            break;
        case 'h':
            oracle_usage(stdout);
            exit(0);
        default:
            oracle_usage(stderr);
            exit(2);
        }
    }

    if (options->threads == 0) {
        options->threads = 1;
    }
}

/* Without userfaultfd what the hooks miss goes unnoticed, and that is known */
static void oracle_probe_monitor(oracle_options_t *options)
{
    const char *reason;

    if (options->hooks_only) {
        return;
    }
    if (uct_helper_monitor_start(&reason) == UCS_OK) {
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
        .seed    = oracle_now(),
        .threads = 2,
        .policy  = -1
    };
    int done;

    oracle_parse(argc, argv, &options);
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
