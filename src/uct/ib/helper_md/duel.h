/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_DUEL_H_
#define UCT_HELPER_DUEL_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file duel.h
 *
 * Which of two rules evicts? Whenever they differ, what either would evict is
 * noted; the rule whose buffer is used first was wrong. The one that has been
 * wrong more often of late loses its say, and keeps being asked. Not
 * thread-safe, without allocation.
 */

BEGIN_C_DECLS

/** Undecided pairs that are remembered; the oldest gives way. */
#define UCT_HELPER_DUEL_PAIRS 32

/** The score, of the first rule, and where the say changes hands. */
#define UCT_HELPER_DUEL_MAX    16
#define UCT_HELPER_DUEL_CHANGE 4

/** All zero: no pair, the first rule has the say. */
typedef struct uct_helper_duel {
    uintptr_t pairs[UCT_HELPER_DUEL_PAIRS][2]; /* {0, 0}: none */
    unsigned  next;                            /* pair to be overwritten */
    unsigned  open;                            /* undecided pairs */
    int       score;
    int       second;                          /* nonzero: it has the say */
} uct_helper_duel_t;

/** The first rule would evict the buffer at @a first, the second the one at
 *  @a second; neither is 0. */
void uct_helper_duel_differ(uct_helper_duel_t *duel, uintptr_t first,
                            uintptr_t second);

/** The buffer at this address is used. */
void uct_helper_duel_use(uct_helper_duel_t *duel, uintptr_t address);

END_C_DECLS

#endif
