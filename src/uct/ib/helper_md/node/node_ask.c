/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_int.h"
#include "share.h"

#include <ucs/sys/math.h>

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* An answer is looked for again after this long, whatever the word says; and
 * every so many times, whether there is still somebody to give it */
#define UCT_HELPER_NODE_NAP_NS 1000000
#define UCT_HELPER_NODE_NAPS   4

/* The dead that still have a process are looked for this often, and rather soon
 * before a budget is passed */
#define UCT_HELPER_NODE_BURY_SHARE_NS UINT64_C(100000000)
#define UCT_HELPER_NODE_BURY_ALL_NS   UINT64_C(1000000)


static void uct_helper_node_futex(_Atomic(uint32_t) *word, int op,
                                  uint32_t value,
                                  const struct timespec *timeout)
{
    (void)syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/*
 * Members
 */

ucs_status_t uct_helper_node_join(uct_helper_node_h node,
                                  uct_helper_release_func_t release, void *arg)
{
    ucs_status_t status = UCS_ERR_EXCEEDS_LIMIT;

    pthread_mutex_lock(&node->members_lock);
    if (node->num_members < UCT_HELPER_NODE_MEMBERS) {
        node->members[node->num_members].release = release;
        node->members[node->num_members].arg     = arg;
        ++node->num_members;
        status = UCS_OK;
    }
    pthread_mutex_unlock(&node->members_lock);
    return status;
}

void uct_helper_node_part(uct_helper_node_h node, void *arg)
{
    unsigned i;

    pthread_mutex_lock(&node->members_lock);
    for (i = 0; i < node->num_members; ++i) {
        if (node->members[i].arg == arg) {
            node->members[i] = node->members[--node->num_members];
            break;
        }
    }
    pthread_mutex_unlock(&node->members_lock);
}

static uint64_t uct_helper_node_release(uct_helper_node_h node, uint64_t length)
{
    uint64_t released = 0;
    unsigned i;

    pthread_mutex_lock(&node->members_lock);
    for (i = 0; (i < node->num_members) && (released < length); ++i) {
        released += node->members[i].release(node->members[i].arg,
                                             length - released);
    }
    node->given += released;
    pthread_mutex_unlock(&node->members_lock);
    return released;
}

/*
 * Answering
 */

uint32_t *uct_helper_node_bell(uct_helper_node_h node)
{
    return (uint32_t*)&node->ledger->slots[node->slot].bell;
}

void uct_helper_node_listen(uct_helper_node_h node, int listens)
{
    uct_helper_ledger_slot_t *slot = &node->ledger->slots[node->slot];

    /* One word for the helpers of all domains */
    if (listens) {
        ucs_add_relaxed(&node->listeners, 1);
        (void)ucs_or_acq_rel(&slot->state, UCT_HELPER_LEDGER_LISTENS |
                                                   UCT_HELPER_LEDGER_RUNS);
    } else if (ucs_sub_relaxed(&node->listeners, 1) == 1) {
        (void)ucs_and_acq_rel(&slot->state,
                              ~(uint32_t)(UCT_HELPER_LEDGER_LISTENS |
                                          UCT_HELPER_LEDGER_RUNS));
    }
}

/* Whoever finds another helper of the process serving may leave: a bell that
 * came after that one looked keeps it from going to sleep */
void uct_helper_node_serve(uct_helper_node_h node)
{
    uct_helper_ledger_slot_t *slot = &node->ledger->slots[node->slot];
    /* acquire [N-BELL]: pairs with the addition in uct_helper_node_ring(); what
     * was wanted before is seen */
    uint32_t bell                  = ucs_load_acquire(&slot->bell);
    uint64_t want;

    if ((bell == ucs_load_relaxed(&slot->answer)) ||
        (pthread_mutex_trylock(&node->serve_lock) != 0)) {
        return;
    }

    want = ucs_swap_acq_rel(&slot->want, 0);
    if (want > 0) {
        (void)uct_helper_node_release(node, want);
    }
    /* release [N-ANSWER]: pairs with the acquire in uct_helper_node_answered():
     * what was given back is not counted any more */
    ucs_store_release(&slot->answer, bell);
    pthread_mutex_unlock(&node->serve_lock);
    uct_helper_node_futex(&slot->answer, FUTEX_WAKE, INT_MAX, NULL);
}

/*
 * Asking
 */

/* With what this rank has reserved */
static uint64_t uct_helper_node_missing(uct_helper_node_h node)
{
    uct_helper_node_sum_t others;
    uint64_t missing;

    uct_helper_lock(&node->lock);
    missing = uct_helper_node_excess(node, 0, &others);
    uct_helper_unlock(&node->lock);
    return missing;
}

static uint32_t uct_helper_node_ring(uct_helper_ledger_slot_t *slot,
                                     uint64_t want)
{
    uint32_t bell;

    ucs_add_relaxed(&slot->want, want);
    bell = ucs_add_acq_rel(&slot->bell, 1) + 1; /* [N-BELL] */
    uct_helper_node_futex(&slot->bell, FUTEX_WAKE, INT_MAX, NULL);
    return bell;
}

static int uct_helper_node_listens(uct_helper_node_h node, unsigned i)
{
    return (ucs_load_relaxed(&node->ledger->owner[i]) != 0) &&
           (ucs_load_relaxed(&node->ledger->slots[i].state) &
            UCT_HELPER_LEDGER_LISTENS);
}

static int uct_helper_node_answered(uct_helper_ledger_slot_t *slot,
                                    uint32_t bell, uint32_t *answer_p)
{
    *answer_p = ucs_load_acquire(&slot->answer); /* [N-ANSWER] */
    return (int32_t)(*answer_p - bell) >= 0;
}

/* Until there is an answer, room or nobody there, or patience is at its end:
 * then the rank is not asked again before it has answered. */
static void uct_helper_node_await(uct_helper_node_h node, unsigned i,
                                  uint32_t bell)
{
    uct_helper_ledger_slot_t *slot = &node->ledger->slots[i];
    const struct timespec nap      = {.tv_nsec = UCT_HELPER_NODE_NAP_NS};
    uint64_t until                 = node->now() + node->patience_ns;
    unsigned naps                  = 0;
    uint32_t answer;

    while (!uct_helper_node_answered(slot, bell, &answer) &&
           (uct_helper_node_missing(node) > 0)) {
        if (node->now() >= until) {
            node->deaf[i]          = answer;
            node->is_deaf[i / 64] |= UINT64_C(1) << (i % 64);
            return;
        }
        uct_helper_node_futex(&slot->answer, FUTEX_WAIT, answer, &nap);
        if ((++naps % UCT_HELPER_NODE_NAPS == 0) &&
            (uct_helper_ledger_reap_slot(node->ledger, i) ||
             !uct_helper_node_listens(node, i))) {
            return;
        }
    }
}

/* A new owner of the slot has answered whatever was asked of the old one */
static int uct_helper_node_is_deaf(uct_helper_node_h node, unsigned i)
{
    uint64_t bit = UINT64_C(1) << (i % 64);

    if ((node->is_deaf[i / 64] & bit) &&
        (ucs_load_relaxed(&node->ledger->slots[i].answer) != node->deaf[i])) {
        node->is_deaf[i / 64] &= ~bit;
    }
    return !!(node->is_deaf[i / 64] & bit);
}

/* The rank that holds most beyond @a level, among those that can answer and
 * have not been asked. @return Its slot, or -1. */
static int uct_helper_node_choose(uct_helper_node_h node, uint64_t level,
                                  const uint64_t *asked)
{
    uct_helper_ledger_t *ledger = node->ledger;
    uint64_t most               = level;
    int chosen                  = -1;
    uint64_t pinned;
    unsigned i;

    for (i = 0; i < UCT_HELPER_LEDGER_SLOTS; ++i) {
        if ((i == (unsigned)node->slot) ||
            ((asked[i / 64] >> (i % 64)) & 1) ||
            !uct_helper_node_listens(node, i)) {
            continue;
        }
        pinned = uct_helper_ledger_pinned(ledger, i, node->ram);
        if ((pinned > most) && !uct_helper_node_is_deaf(node, i)) {
            most   = pinned;
            chosen = i;
        }
    }
    return chosen;
}

/* One after the other, for one is enough most of the time */
static void uct_helper_node_ask_others(uct_helper_node_h node, uint64_t level)
{
    uint64_t asked[UCT_HELPER_LEDGER_SLOTS / 64] = {0};
    uint64_t missing, pinned;
    uint32_t bell;
    int i;

    while (((missing = uct_helper_node_missing(node)) > 0) &&
           ((i = uct_helper_node_choose(node, level, asked)) >= 0)) {
        asked[i / 64] |= UINT64_C(1) << (i % 64);
        pinned         = uct_helper_ledger_pinned(node->ledger, i, node->ram);
        if (pinned <= level) {
            continue;
        }
        bell = uct_helper_node_ring(&node->ledger->slots[i],
                                    ucs_min(missing, pinned - level));
        uct_helper_node_await(node, i, bell);
    }
}

/* To read of each rank takes longer than a registration */
static void uct_helper_node_bury(uct_helper_node_h node, uct_helper_ask_t whom)
{
    uint64_t now = node->now();

    if (now - node->buried < ((whom == UCT_HELPER_ASK_ALL) ?
                                      UCT_HELPER_NODE_BURY_ALL_NS :
                                      UCT_HELPER_NODE_BURY_SHARE_NS)) {
        uct_helper_ledger_reap_gone(node->ledger);
        return;
    }
    node->buried = now;
    (void)uct_helper_ledger_reap(node->ledger);
}

/* Reserve, so that nobody takes what is given back before it is all there */
static int uct_helper_node_begin_ask(uct_helper_node_h node, uint64_t length,
                                     uct_helper_ask_t whom, uint64_t *level_p)
{
    uint64_t mine;
    int is_due;

    uct_helper_lock(&node->lock);
    mine = node->pinned + length;
    uct_helper_node_note_demand(node, mine);
    *level_p = (whom == UCT_HELPER_ASK_SHARE) ?
                       uct_helper_node_level(node, mine) :
                       0;
    is_due   = (whom == UCT_HELPER_ASK_ALL) || (mine <= *level_p);
    if (is_due) {
        uct_helper_node_reserve(node, length);
    }
    uct_helper_unlock(&node->lock);
    return is_due;
}

static uint64_t uct_helper_node_rises(uct_helper_node_h node)
{
    uint64_t rises = 0;
    unsigned i;

    for (i = 0; i < UCT_HELPER_LEDGER_SLOTS; ++i) {
        rises += uct_helper_ledger_rises(node->ledger, i);
    }
    return rises;
}

/* Whoever was asked before another came for room was asked for too little, and
 * may have something idle again: only a round in which none came says that
 * there is no room. In such a round nobody can claim, so what is in use can but
 * become less.
 *
 * @return Nonzero if it is decided. */
static int uct_helper_node_ask_round(uct_helper_node_h node, uint64_t length,
                                     uct_helper_ask_t whom, uint64_t level,
                                     int *is_granted_p)
{
    uint64_t rises = uct_helper_node_rises(node);

    if (uct_helper_node_missing(node) > 0) {
        uct_helper_node_bury(node, whom);
        if (whom == UCT_HELPER_ASK_ALL) {
            (void)uct_helper_node_release(node, uct_helper_node_missing(node));
        }
        uct_helper_node_ask_others(node, level);
    }

    uct_helper_lock(&node->lock);
    *is_granted_p = uct_helper_node_pin_reserved(node, length);
    uct_helper_unlock(&node->lock);
    return *is_granted_p || (uct_helper_node_rises(node) == rises);
}

static void uct_helper_node_end_ask(uct_helper_node_h node, uint64_t length)
{
    uct_helper_lock(&node->lock);
    uct_helper_node_reserve(node, -(int64_t)length);
    uct_helper_unlock(&node->lock);
}

int uct_helper_node_ask(uct_helper_node_h node, uint64_t length,
                        uct_helper_ask_t whom)
{
    int is_decided, is_granted;
    uint64_t level, until;

    if (!uct_helper_node_has_budget(node) ||
        !uct_helper_node_begin_ask(node, length, whom, &level)) {
        return 0;
    }

    pthread_mutex_lock(&node->ask_lock);
    until = node->now() + node->patience_ns;
    do {
        is_decided = uct_helper_node_ask_round(node, length, whom, level,
                                               &is_granted);
    } while (!is_decided && (node->now() < until));
    if (!is_granted) {
        uct_helper_node_end_ask(node, length);
    }
    pthread_mutex_unlock(&node->ask_lock);
    return is_granted;
}
