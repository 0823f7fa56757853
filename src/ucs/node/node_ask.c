/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "node_int.h"

#include <ucs/sys/sync/futex.h>
#include <ucs/sys/math.h>

/* Look for an answer again after this long; and every so many times check that
 * the rank still exists */
#define UCS_NODE_NAP_NS 1000000
#define UCS_NODE_NAPS   4

/* Nanoseconds between two looks for dead ranks; the second before a budget is
 * passed */
#define UCS_NODE_BURY_SHARE_NS UINT64_C(100000000)
#define UCS_NODE_BURY_ALL_NS   UINT64_C(1000000)

/* --- Members -------------------------------------------------------------- */

ucs_status_t ucs_node_join(ucs_node_h node, ucs_node_release_func_t release,
                           void *arg)
{
    ucs_status_t status = UCS_ERR_EXCEEDS_LIMIT;

    pthread_mutex_lock(&node->members_lock);
    if (node->num_members < UCS_NODE_MEMBERS) {
        node->members[node->num_members].release = release;
        node->members[node->num_members].arg     = arg;
        ++node->num_members;
        status = UCS_OK;
    }
    pthread_mutex_unlock(&node->members_lock);
    return status;
}

void ucs_node_part(ucs_node_h node, void *arg)
{
    unsigned i;

    if (node == NULL) {
        return;
    }

    pthread_mutex_lock(&node->members_lock);
    for (i = 0; i < node->num_members; ++i) {
        if (node->members[i].arg == arg) {
            node->members[i] = node->members[--node->num_members];
            break;
        }
    }
    pthread_mutex_unlock(&node->members_lock);
}

static uint64_t ucs_node_release(ucs_node_h node, uint64_t length)
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

/* --- Answering ------------------------------------------------------------ */

uint32_t *ucs_node_bell(ucs_node_h node)
{
    return (uint32_t*)&node->ledger->slots[node->slot].bell;
}

void ucs_node_listen(ucs_node_h node, int listens)
{
    if (node == NULL) {
        return;
    }

    /* One word for the helpers of all domains: their number and the word change
     * together */
    ucs_lock(&node->lock);
    node->listeners += listens ? 1 : -1;
    ucs_node_show(node);
    ucs_unlock(&node->lock);
}

/* A helper may leave if another one of the process is serving: a bell that
 * comes after that one looked keeps it awake */
void ucs_node_serve(ucs_node_h node)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[node->slot];
    /* acquire [N-BELL]: pairs with the addition in ucs_node_ring(); what
     * was wanted before is seen, and so the swap below needs no order */
    uint32_t bell           = ucs_load_acquire(&slot->bell);
    uint64_t want;

    if ((bell == ucs_load_relaxed(&slot->answer)) ||
        (pthread_mutex_trylock(&node->serve_lock) != 0)) {
        return;
    }

    want = ucs_swap_relaxed(&slot->want, 0);
    if (want > 0) {
        (void)ucs_node_release(node, want);
    }
    /* release [N-ANSWER]: pairs with the acquire in ucs_node_answered():
     * what was given back is not counted any more */
    ucs_store_release(&slot->answer, bell);
    pthread_mutex_unlock(&node->serve_lock);
    ucs_futex_wake_all(&slot->answer, UCS_FUTEX_SHARED);
}

/* --- Asking --------------------------------------------------------------- */

/* With what this rank has reserved */
static uint64_t ucs_node_missing(ucs_node_h node, uint64_t limit)
{
    ucs_node_sum_t others;
    uint64_t missing;

    ucs_lock(&node->lock);
    missing = ucs_node_excess(node, 0, limit, &others);
    ucs_unlock(&node->lock);
    return missing;
}

/* Wake the helper of a process */
static void ucs_node_wake(ucs_node_h node, pid_t pid)
{
    ucs_ledger_slot_t *slot;
    uint64_t owner;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        owner = ucs_load_relaxed(&node->ledger->owner[i]);
        if ((owner != 0) && (ucs_ledger_pid(owner) == pid)) {
            slot = &node->ledger->slots[i];
            /* relaxed: nothing is wanted by it, what is has a bell of its own */
            ucs_add_relaxed(&slot->bell, 1);
            ucs_futex_wake_all(&slot->bell, UCS_FUTEX_SHARED);
        }
    }
}

static uint32_t ucs_node_ring(ucs_node_h node, unsigned i, uint64_t want)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[i];
    uint32_t bell;

    ucs_add_relaxed(&slot->want, want);
    /* release [N-BELL]: pairs with the acquire in ucs_node_serve() */
    bell = ucs_add_release(&slot->bell, 1) + 1;
    if (node->params.bells != NULL) {
        ucs_node_wake(node->params.bells,
                      ucs_ledger_pid(ucs_load_relaxed(&node->ledger->owner[i])));
    } else {
        ucs_futex_wake_all(&slot->bell, UCS_FUTEX_SHARED);
    }
    return bell;
}

static int ucs_node_listens(ucs_node_h node, unsigned i)
{
    return (ucs_load_relaxed(&node->ledger->owner[i]) != 0) &&
           ucs_load_relaxed(&node->ledger->slots[i].listens);
}

static int ucs_node_answered(ucs_ledger_slot_t *slot, uint32_t bell,
                             uint32_t *answer_p)
{
    /* acquire [N-ANSWER]: pairs with the release in ucs_node_serve() */
    *answer_p = ucs_load_acquire(&slot->answer);
    return (int32_t)(*answer_p - bell) >= 0;
}

/* Wait for an answer, for room, or for the rank's end. If patience ends first,
 * the rank is not asked again before it has answered. */
static void ucs_node_await(ucs_node_h node, uint64_t limit, unsigned i,
                           uint32_t bell)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[i];
    uint64_t until          = node->params.now() + node->params.patience_ns;
    unsigned naps           = 0;
    uint32_t answer;

    while (!ucs_node_answered(slot, bell, &answer) &&
           (ucs_node_missing(node, limit) > 0)) {
        if (node->params.now() >= until) {
            node->deaf[i] = (uint64_t)answer + 1;
            return;
        }
        ucs_futex_wait(&slot->answer, answer, UCS_NODE_NAP_NS,
                       UCS_FUTEX_SHARED);
        if ((++naps % UCS_NODE_NAPS == 0) &&
            (ucs_ledger_reap_slot(node->ledger, i) ||
             !ucs_node_listens(node, i))) {
            return;
        }
    }
}

/* @return The slot of the rank that holds most beyond @a level, of those that
 * can answer and have not been asked; or -1. */
static int ucs_node_choose(ucs_node_h node, uint64_t level,
                           const uint8_t *asked)
{
    ucs_ledger_t *ledger = node->ledger;
    uint64_t most        = level;
    int chosen           = -1;
    uint64_t pinned;
    uint32_t answer;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        if ((i == (unsigned)node->slot) || asked[i] ||
            !ucs_node_listens(node, i)) {
            continue;
        }
        pinned = ucs_ledger_pinned(ledger, i, node->params.ram);
        answer = ucs_load_relaxed(&ledger->slots[i].answer);
        /* A new owner of a deaf one's slot has answered whatever was asked of the
         * old one */
        if ((pinned > most) && (node->deaf[i] != (uint64_t)answer + 1)) {
            most   = pinned;
            chosen = i;
        }
    }
    return chosen;
}

/* One after the other: one is enough most of the time */
static void ucs_node_ask_others(ucs_node_h node, uint64_t limit,
                                uint64_t level)
{
    uint8_t asked[UCS_LEDGER_SLOTS] = {0};
    uint64_t missing, pinned;
    uint32_t bell;
    int i;

    while (((missing = ucs_node_missing(node, limit)) > 0) &&
           ((i = ucs_node_choose(node, level, asked)) >= 0)) {
        asked[i] = 1;
        pinned   = ucs_ledger_pinned(node->ledger, i, node->params.ram);
        if (pinned <= level) {
            continue;
        }
        bell = ucs_node_ring(node, i, ucs_min(missing, pinned - level));
        ucs_node_await(node, limit, i, bell);
    }
}

/* Looking every rank up takes longer than a registration */
static void ucs_node_bury(ucs_node_h node, ucs_ask_t whom)
{
    uint64_t now   = node->params.now();
    uint64_t pause = (whom == UCS_ASK_ALL) ? UCS_NODE_BURY_ALL_NS :
                                                  UCS_NODE_BURY_SHARE_NS;

    if (now - node->buried < pause) {
        ucs_ledger_reap_gone(node->ledger);
        return;
    }
    node->buried = now;
    (void)ucs_ledger_reap(node->ledger);
}

/* Reserve, so that no other rank takes the room before all of it is there */
static int ucs_node_begin_ask(ucs_node_h node, uint64_t length,
                              ucs_ask_t whom, uint64_t *level_p)
{
    uint64_t mine;
    int is_due;

    ucs_lock(&node->lock);
    mine = node->pinned + length;
    ucs_node_note_demand(node, mine);
    *level_p = (whom == UCS_ASK_SHARE) ? ucs_node_level(node, mine) : 0;
    is_due   = ((whom == UCS_ASK_ALL) || (mine <= *level_p)) &&
               (mine <= node->params.most);
    if (is_due) {
        ucs_node_reserve(node, length);
    }
    ucs_unlock(&node->lock);
    return is_due;
}

static uint64_t ucs_node_rises(ucs_node_h node)
{
    uint64_t rises = 0;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        rises += ucs_ledger_rises(node->ledger, i);
    }
    return rises;
}

/* Let idle memory go until there is no more than @a limit, or than is known of one */
static void ucs_node_make_room(ucs_node_h node, uint64_t limit, ucs_ask_t whom,
                               uint64_t level)
{
    if (ucs_node_missing(node, limit) > 0) {
        ucs_node_bury(node, whom);
        if (whom == UCS_ASK_ALL) {
            (void)ucs_node_release(node, ucs_node_missing(node, limit));
        }
        ucs_node_ask_others(node, limit, level);
    }
}

void ucs_node_ask_back(ucs_node_h node, uint64_t limit)
{
    pthread_mutex_lock(&node->ask_lock);
    ucs_node_make_room(node, limit, UCS_ASK_ALL, 0);
    pthread_mutex_unlock(&node->ask_lock);
}

/* If another rank came for room, those asked before it were asked for too
 * little and may hold idle memory again. Only a round in which none came proves
 * that there is no room: no rank can claim in it, so memory in use can only
 * shrink.
 *
 * @return Nonzero if it is decided. */
static int ucs_node_ask_round(ucs_node_h node, uint64_t length, ucs_ask_t whom,
                              uint64_t level, int *is_granted_p)
{
    uint64_t rises = ucs_node_rises(node);

    ucs_node_make_room(node, UINT64_MAX, whom, level);
    ucs_lock(&node->lock);
    *is_granted_p = ucs_node_pin_reserved(node, length);
    ucs_unlock(&node->lock);
    return *is_granted_p || (ucs_node_rises(node) == rises);
}

int ucs_node_ask(ucs_node_h node, uint64_t length, ucs_ask_t whom)
{
    int is_decided, is_granted;
    uint64_t level, until;

    if (!ucs_node_has_budget(node) ||
        !ucs_node_begin_ask(node, length, whom, &level)) {
        return 0;
    }

    pthread_mutex_lock(&node->ask_lock);
    until = node->params.now() + node->params.patience_ns;
    do {
        is_decided = ucs_node_ask_round(node, length, whom, level, &is_granted);
    } while (!is_decided && (node->params.now() < until));
    if (!is_granted) {
        ucs_lock(&node->lock);
        ucs_node_reserve(node, -(int64_t)length);
        ucs_unlock(&node->lock);
    }
    pthread_mutex_unlock(&node->ask_lock);
    return is_granted;
}
