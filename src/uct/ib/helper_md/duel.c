/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "duel.h"

void uct_helper_duel_differ(uct_helper_duel_t *duel, uintptr_t first,
                            uintptr_t second)
{
    uintptr_t *pair = duel->pairs[duel->next];

    duel->open += (pair[0] == 0);
    pair[0]     = first;
    pair[1]     = second;
    duel->next  = (duel->next + 1) % UCT_HELPER_DUEL_PAIRS;
}

/* A lead is lost as soon as it is gained, so that what was right for long does
 * not outlast its time */
static void uct_helper_duel_score(uct_helper_duel_t *duel, int points)
{
    int score = duel->score + points;

    if ((score <= UCT_HELPER_DUEL_MAX) && (score >= -UCT_HELPER_DUEL_MAX)) {
        duel->score = score;
    }
    if (duel->score <= -UCT_HELPER_DUEL_CHANGE) {
        duel->second = 1;
    } else if (duel->score >= UCT_HELPER_DUEL_CHANGE) {
        duel->second = 0;
    }
}

void uct_helper_duel_use(uct_helper_duel_t *duel, uintptr_t address)
{
    uintptr_t *pair;
    unsigned i;

    for (i = 0; (i < UCT_HELPER_DUEL_PAIRS) && (duel->open > 0); ++i) {
        pair = duel->pairs[i];
        if ((pair[0] == 0) || ((pair[0] != address) && (pair[1] != address))) {
            continue;
        }
        uct_helper_duel_score(duel, (pair[1] == address) ? 1 : -1);
        pair[0] = 0;
        pair[1] = 0;
        --duel->open;
    }
}
