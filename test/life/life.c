/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "life.h"
#include "../own_ledger.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char       *name;
    life_part_func_t run;
    unsigned long    count;
    const char       *what;
} life_parts[] = {
    {"init", life_init, 10000,
     "open, use, and end in six ways with the helper live"},
    {"fork", life_fork, 10000,
     "fork, vfork and exec, posix_spawn, clone beside a busy helper"},
    {"patch", life_patch, 1000,
     "the first domain, attached while threads map and allocate"},
    {"signals", life_signals, 100000,
     "signals at 5 kHz whose handler unmaps and frees"},
    {"cancel", life_cancel, 10000, "threads cancelled while they register"},
    {"unmaps", life_unmaps, 1000000,
     "what the process holds stays the same over so many unmaps"},
    {"changes", life_changes, 100,
     "rights, files and system calls given up in the middle of a job"},
    {"uses", life_uses, 1000000000,
     "likewise over so many uses of buffers that stay"}
};

#define LIFE_NUM_PARTS (sizeof(life_parts) / sizeof(life_parts[0]))


static void usage(void)
{
    size_t i;

    fprintf(stderr, "usage: life --what PART [--count N] [--stub LIBRARY]\n");
    for (i = 0; i < LIFE_NUM_PARTS; ++i) {
        fprintf(stderr, "  %-8s %s [%lu]\n", life_parts[i].name,
                life_parts[i].what, life_parts[i].count);
    }
    fprintf(stderr, "A step that takes more than %d s is a hang. Exit code 0 "
                    "and one line of counts if all is well.\n",
            LIFE_STEP_SECONDS);
    exit(2);
}

static unsigned long parse_count(const char *text)
{
    char *end;
    unsigned long count = strtoul(text, &end, 0);

    if ((*end != '\0') || (count == 0)) {
        usage();
    }
    return count;
}

static int run_part(const char *name, life_options_t *options)
{
    int status;
    size_t i;

    for (i = 0; i < LIFE_NUM_PARTS; ++i) {
        if (!strcmp(life_parts[i].name, name)) {
            if (options->count == 0) {
                options->count = life_parts[i].count;
            }
            own_ledger_take("life");
            status = life_watch(life_parts[i].run, options);
            own_ledger_remove();
            return status;
        }
    }
    usage();
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"what", required_argument, NULL, 'w'},
        {"count", required_argument, NULL, 'c'},
        {"stub", required_argument, NULL, 's'},
        {"inside", required_argument, NULL, 'i'},
        {NULL, 0, NULL, 0}
    };
    life_options_t options = {0};
    const char *what       = NULL;
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'w':
            what = optarg;
            break;
        case 'c':
            options.count = parse_count(optarg);
            break;
        case 's':
            options.stub = optarg;
            break;
        case 'i':
            return life_inside(optarg);
        default:
            usage();
        }
    }

    if ((what == NULL) || (optind != argc)) {
        usage();
    }
    return run_part(what, &options);
}
