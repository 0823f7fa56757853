/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"
#include "../../bench/bench_options.h"
#include "../own_ledger.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char       *name;
    life_part_func_t run;
    unsigned long    count;
} life_parts[] = {
    {"init", life_init, 10000},
    {"fork", life_fork, 10000},
    {"patch", life_patch, 1000},
    {"signals", life_signals, 100000},
    {"unmaps", life_unmaps, 1000000},
    {"changes", life_changes, 100},
    {"uses", life_uses, 1000000000}
};

#define LIFE_NUM_PARTS (sizeof(life_parts) / sizeof(life_parts[0]))

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
    fprintf(stderr, "--what: '%s' is no part\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    life_options_t options       = {0};
    const char *what = "", *inside = NULL;
    const bench_option_t table[] = {
        {"what", BENCH_TEXT, &what, 0, 0,
         "init, fork, patch, signals, unmaps, changes or uses"},
        {"count", BENCH_SIZE, &options.count, 1, 1e12, "steps [by the part]"},
        {"stub", BENCH_TEXT, &options.stub, 0, 0,
         "the preload library [of the build tree]"},
        {"inside", BENCH_TEXT, &inside, 0, 0, "a program that life starts"},
        {0}
    };

    bench_options_or_exit(
            "life --what PART [options]\nA step that takes more than 10 s is a "
            "hang. Exit code 0 and one line of counts\nif all is well.",
            table, argv, NULL);
    return (inside != NULL) ? life_inside(inside) : run_part(what, &options);
}
