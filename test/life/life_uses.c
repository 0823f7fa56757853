/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <time.h>

/*
 * A job of many hours in a few minutes: the same buffers used over and over, in
 * rounds and out of turn, with a pause now and then so that the helper
 * deregisters and foresees. What the process holds must not grow with the uses.
 */

#define LIFE_USES_BUFFERS 48
#define LIFE_USES_LENGTH  (64ul << 10)

/* Uses between two pauses, and their length: most uses are hits, and each
 * pause is long enough for a helper to run */
#define LIFE_USES_ROUND   100000
#define LIFE_USES_PAUSE   2000000 /* nanoseconds */

/* Malloc's smallest block, lost at one of a thousand of 10^8 uses, would be
 * 3 MB */
#define LIFE_USES_WARM_UP 5000000

typedef struct life_uses {
    uct_md_h md;
    void     *buffers[LIFE_USES_BUFFERS];
} life_uses_t;

/* Every eighth use is of another buffer than the round has it */
static unsigned life_uses_next(unsigned long i)
{
    unsigned long mixed = i * 0x9e3779b97f4a7c15ul;

    return ((i % 8 == 7) ? mixed >> 40 : i) % LIFE_USES_BUFFERS;
}

static void life_uses_run(void *arg, unsigned long first, unsigned long last)
{
    const struct timespec pause = {0, LIFE_USES_PAUSE};
    life_uses_t *uses           = arg;
    unsigned long i;

    for (i = first; i < last; ++i) {
        if (i % LIFE_USES_ROUND == 0) {
            life_step("use");
            nanosleep(&pause, NULL);
        }
        life_use(uses->md, uses->buffers[life_uses_next(i)], LIFE_USES_LENGTH);
    }
}

void life_uses(const life_options_t *options)
{
    life_uses_t uses = {.md = life_domain_open()};
    int i;

    for (i = 0; i < LIFE_USES_BUFFERS; ++i) {
        uses.buffers[i] = life_map(LIFE_USES_LENGTH);
    }
    /* What is locked goes up and down with what is kept at the moment */
    life_soak("uses", life_uses_run, &uses, LIFE_USES_WARM_UP, options->count,
              0);
    life_domain_close(uses.md);
}
