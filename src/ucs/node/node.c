/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "node_int.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define UCS_NODE_SECOND_NS   UINT64_C(1000000000)
#define UCS_NODE_LOOK_NS     UINT64_C(1000000)
#define UCS_NODE_PATIENCE_NS UINT64_C(100000000)

/* What was learned grows by so small a part of it in a second. A try beyond a limit
 * costs a registration that is refused, so with one try more a second, or a 64th,
 * that is nothing; and a limit that was none is doubled in a minute. */
#define UCS_NODE_LEARNED_PART 64

/* --- Invariants ----------------------------------------------------------- */

/* Under the lock */
static int ucs_node_counts_are_valid(ucs_node_h node)
{
    return ((node->params.budget == UINT64_MAX) || (node->params.unseen > 0) ||
            (node->pinned <= node->figures.peak_bytes)) &&
           (node->figures.ranks <= UCS_LEDGER_SLOTS);
}

int ucs_node_is_valid(ucs_node_h node)
{
    int is_valid;

    ucs_lock(&node->lock);
    is_valid = ucs_node_counts_are_valid(node);
    ucs_unlock(&node->lock);

    pthread_mutex_lock(&node->members_lock);
    is_valid = is_valid && (node->num_members <= UCS_NODE_MEMBERS);
    pthread_mutex_unlock(&node->members_lock);
    return is_valid;
}

/* --- Sums ----------------------------------------------------------------- */

/* Stops at UINT64_MAX */
static uint64_t ucs_node_add(uint64_t a, uint64_t b)
{
    return (a > UINT64_MAX - b) ? UINT64_MAX : a + b;
}

/* Sum over the ledger. Under the lock */
static ucs_node_sum_t ucs_node_others(ucs_node_h node)
{
    ucs_ledger_t *ledger  = node->ledger;
    ucs_node_sum_t others = {0, 0};
    unsigned ranks        = 1;
    uint64_t taken;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        /* Before the owner: a rank took its slot before it wrote its claim, and
         * [N-SUM] shows the first with the second. In the other order a slot
         * with a claim could look free. */
        taken = ucs_ledger_taken(ledger, i, node->params.ram);
        if ((i == (unsigned)node->slot) ||
            (ucs_load_relaxed(&ledger->owner[i]) == 0)) {
            continue;
        }
        others.taken = ucs_node_add(others.taken, taken);
        /* Not read at the same moment: bounded by what was taken */
        others.pinned = ucs_node_add(
                others.pinned,
                ucs_min(ucs_ledger_pinned(ledger, i, node->params.ram), taken));
        ++ranks;
    }
    node->figures.ranks = ucs_max(node->figures.ranks, ranks);
    return others;
}

uint64_t ucs_node_sum(ucs_node_h node)
{
    uint64_t sum;

    ucs_ledger_reap(node->ledger);
    ucs_lock(&node->lock);
    sum = ucs_node_add(ucs_node_others(node).pinned, node->pinned);
    ucs_unlock(&node->lock);
    return sum;
}

/* @return Bytes that there are for all: as set, or as learned.
 * relaxed: both words are overwritten now and then, and neither is trusted. A time that
 * is to come is that of another time namespace: what was learned then counts from now on,
 * or it would stand until that time has come. */
static uint64_t ucs_node_limit(ucs_node_h node)
{
    uint64_t learned = ucs_load_relaxed(&node->ledger->learned);
    uint64_t since, now, seconds;

    if (ucs_likely(learned == 0)) {
        return node->params.budget;
    }
    since = ucs_load_relaxed(&node->ledger->learned_at);
    now   = node->params.now();
    if (since > now) {
        ucs_store_relaxed(&node->ledger->learned_at, now);
        since = now;
    }
    seconds = (now - since) / UCS_NODE_SECOND_NS;
    learned = ucs_min(learned, UCS_LEDGER_RISE);
    seconds = ucs_min(seconds, UCS_LEDGER_SLOTS * UCS_NODE_LEARNED_PART);
    learned = learned + seconds * ucs_max(learned / UCS_NODE_LEARNED_PART, 1);
    return ucs_min(learned, node->params.budget);
}

uint64_t ucs_node_excess(ucs_node_h node, uint64_t length, uint64_t limit,
                         ucs_node_sum_t *others)
{
    uint64_t sum = node->pinned + node->reserved + length;

    limit   = ucs_min(limit, ucs_node_limit(node));
    *others = ucs_node_others(node);
    sum     = ucs_node_add(sum, others->taken);
    return (sum > limit) ? sum - limit : 0;
}

/* The max-min fair level: a rank that demands no more than the level may have all
 * of it, the others the level each:
 *
 *     budget / count <= level, sum(min(demand[i], level)) <= budget
 *
 * UINT64_MAX if all can have what they demand, the sum of which may exceed 64 bits.
 * Each round satisfies at least one more, or is the last. */
static uint64_t ucs_node_share_level(const uint64_t *demands, unsigned count,
                                     uint64_t budget)
{
    uint64_t level = budget / count;
    uint64_t given, next;
    unsigned hungry, i;

    for (;;) {
        given  = 0;
        hungry = 0;
        for (i = 0; i < count; ++i) {
            if (demands[i] <= level) {
                given += demands[i]; /* at most count * level <= budget */
            } else {
                ++hungry;
            }
        }
        if (hungry == 0) {
            return UINT64_MAX;
        }

        next = (budget - given) / hungry;
        if (next <= level) {
            return level;
        }
        level = next;
    }
}

uint64_t ucs_node_level(ucs_node_h node, uint64_t mine)
{
    ucs_ledger_t *ledger = node->ledger;
    uint64_t demands[UCS_LEDGER_SLOTS];
    unsigned count = 0;
    unsigned i;

    demands[count++] = mine;
    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        if ((i != (unsigned)node->slot) &&
            (ucs_load_relaxed(&ledger->owner[i]) != 0)) {
            demands[count++] = ucs_ledger_demand(ledger, i, node->params.ram);
        }
    }
    return ucs_node_share_level(demands, count, ucs_node_limit(node));
}

void ucs_node_note_demand(ucs_node_h node, uint64_t bytes)
{
    uint64_t second = node->params.now() / UCS_NODE_SECOND_NS;

    if (second != node->second) {
        node->demand[1] = (second == node->second + 1) ? node->demand[0] : 0;
        node->demand[0] = node->pinned;
        node->second    = second;
    }
    node->demand[0] = ucs_max(node->demand[0], bytes);
    ucs_store_relaxed(&node->ledger->demand[node->slot],
                      ucs_max(node->demand[0], node->demand[1]));
}

/* --- Claims --------------------------------------------------------------- */

/* Ranks change while they are read, so the sum may never have existed. With a
 * claim that fits, what is taken bounds it. */
static void ucs_node_note_peak(ucs_node_h node, const ucs_node_sum_t *others)
{
    uint64_t sum = ucs_node_add(others->pinned, node->pinned);

    node->figures.peak_bytes = ucs_max(node->figures.peak_bytes, sum);
}

static void ucs_node_show_taken(ucs_node_h node)
{
    _Atomic(uint64_t) *word = &node->ledger->taken[node->slot];
    uint64_t bytes          = ucs_min(node->pinned + node->reserved,
                                      node->params.ram);
    uint64_t before         = ucs_load_relaxed(word);
    uint64_t rises          = before & -UCS_LEDGER_RISE;

    if (bytes > before - rises) {
        rises += UCS_LEDGER_RISE;
    }
    /* seq_cst [N-SUM]: before the sum is read by ucs_node_others(), see
     * ucs_node_fits() */
    ucs_store_seq_cst(word, rises | bytes);
}

void ucs_node_reserve(ucs_node_h node, int64_t length)
{
    node->reserved += length;
    ucs_node_show_taken(node);
}

/* Count bytes as pinned without a reservation. Under the lock */
static void ucs_node_pin(ucs_node_h node, uint64_t length,
                         const ucs_node_sum_t *others)
{
    node->pinned += length;
    ucs_node_show_taken(node);
    ucs_store_relaxed(&node->ledger->pinned[node->slot], node->pinned);
    if (others != NULL) {
        ucs_node_note_peak(node, others);
    }
}

int ucs_node_pin_reserved(ucs_node_h node, uint64_t length)
{
    ucs_node_sum_t others;

    if (ucs_node_excess(node, 0, UINT64_MAX, &others) > 0) {
        return 0;
    }

    node->reserved -= length; /* the bytes taken stay the same */
    ucs_node_pin(node, length, &others);
    return 1;
}

/* Without a budget the sum is only a figure of the report */
static void ucs_node_look(ucs_node_h node)
{
    uint64_t now = node->params.now();
    ucs_node_sum_t others;

    if (now - node->looked >= UCS_NODE_LOOK_NS) {
        node->looked = now;
        others       = ucs_node_others(node);
        ucs_node_note_peak(node, &others);
    }
}

/* The first look announces nothing, so that a hopeless claim does not make
 * another rank's fail. [N-SUM] in the second each rank reads after it wrote:
 * the one whose write comes later in the single order of these accesses sees
 * the other's, so all claims that succeed fit together. */
static int ucs_node_fits(ucs_node_h node, uint64_t length, ucs_claim_t mode)
{
    uint64_t mine = node->pinned + length;
    ucs_node_sum_t others;
    int fits;

    if ((ucs_node_excess(node, length, UINT64_MAX, &others) > 0) ||
        ((mode == UCS_CLAIM_HELPER) && (mine > ucs_node_level(node, mine)))) {
        return 0;
    }

    ucs_node_reserve(node, length);
    fits = ucs_node_pin_reserved(node, length);
    if (!fits) {
        ucs_node_reserve(node, -(int64_t)length);
    }
    return fits;
}

/* It is not known what limits it, or so little does not count. relaxed: a refusal that
 * is being learned from may come a claim later. */
static int ucs_node_is_free(ucs_node_h node, uint64_t length, ucs_claim_t mode)
{
    uint64_t mine = node->pinned + node->reserved + length;

    return ((mine <= node->params.most) || (mode == UCS_CLAIM_FORCE)) &&
           (ucs_load_relaxed(&node->ledger->learned) == 0) &&
           ((node->params.budget == UINT64_MAX) ||
            (mine <= node->params.unseen));
}

int ucs_node_claim(ucs_node_h node, uint64_t length, ucs_claim_t mode)
{
    int is_counted = 1;
    ucs_node_sum_t others;

    ucs_lock(&node->lock);
    ucs_node_note_demand(node, node->pinned + length);
    if (ucs_node_is_free(node, length, mode)) {
        ucs_node_pin(node, length, NULL);
        ucs_node_look(node);
    } else if (mode == UCS_CLAIM_FORCE) {
        others = ucs_node_others(node);
        ucs_node_pin(node, length, &others);
        node->figures.forced += (ucs_node_add(others.pinned, node->pinned) >
                                 ucs_node_limit(node));
    } else if (node->pinned + node->reserved + length > node->params.most) {
        is_counted = 0;
    } else {
        is_counted = ucs_node_fits(node, length, mode);
    }
    assert(ucs_node_counts_are_valid(node));
    ucs_unlock(&node->lock);
    return is_counted;
}

void ucs_node_unclaim(ucs_node_h node, uint64_t length)
{
    ucs_lock(&node->lock);
    assert(length <= node->pinned);
    node->pinned -= length;
    ucs_store_relaxed(&node->ledger->pinned[node->slot], node->pinned);
    ucs_node_show_taken(node);
    ucs_unlock(&node->lock);
}

uint64_t ucs_node_refused(ucs_node_h node, uint64_t length)
{
    ucs_node_sum_t others;
    uint64_t sum;

    ucs_lock(&node->lock);
    others = ucs_node_others(node);
    sum    = ucs_node_add(others.pinned, node->pinned);
    ucs_unlock(&node->lock);
    return ucs_max(sum - ucs_min(sum, length), 1);
}

void ucs_node_learn(ucs_node_h node, uint64_t limit)
{
    ucs_lock(&node->lock);
    if (limit < ucs_node_limit(node)) {
        ucs_store_relaxed(&node->ledger->learned_at, node->params.now());
        ucs_store_relaxed(&node->ledger->learned, limit);
    }
    ucs_unlock(&node->lock);
}

int ucs_node_has_budget(ucs_node_h node)
{
    return ucs_node_limit(node) != UINT64_MAX;
}

/* --- Life ----------------------------------------------------------------- */

static void ucs_node_init(ucs_node_h node, const ucs_node_params_t *params)
{
    node->params      = *params;
    node->params.name = NULL; /* the caller's */
    node->key         = ucs_ledger_key(params->name);
    if (params->most == 0) {
        node->params.most = UINT64_MAX;
    }
    if (params->patience_ns == 0) {
        node->params.patience_ns = UCS_NODE_PATIENCE_NS;
    }
    if (params->ram == 0) {
        node->params.ram = (uint64_t)sysconf(_SC_PHYS_PAGES) *
                           sysconf(_SC_PAGESIZE);
    }
    node->params.ram = ucs_min(node->params.ram, UCS_LEDGER_RISE - 1);
    ucs_lock_init(&node->lock);
    pthread_mutex_init(&node->members_lock, NULL);
    pthread_mutex_init(&node->serve_lock, NULL);
    pthread_mutex_init(&node->ask_lock, NULL);
    pthread_mutex_init(&node->mend_lock, NULL);
    ucs_node_show(node);
}

ucs_status_t ucs_node_open(const ucs_node_params_t *params, ucs_node_h *node_p,
                           char *error, size_t max)
{
    ucs_node_h node;
    ucs_status_t status;

    node = calloc(1, sizeof(*node));
    if (node == NULL) {
        snprintf(error, max, "the node's ledger is not used: out of memory");
        return UCS_ERR_NO_MEMORY;
    }

    status = ucs_ledger_open(params->name, &node->ledger, error, max);
    if (status != UCS_OK) {
        goto err_free;
    }

    node->slot = ucs_ledger_enter(node->ledger, &node->owner);
    if (node->slot < 0) {
        snprintf(error, max,
                 "the node's ledger %s is not used: all its slots are taken",
                 params->name);
        status = UCS_ERR_NO_RESOURCE;
        goto err_close;
    }

    ucs_node_init(node, params);
    *node_p = node;
    return UCS_OK;

err_close:
    ucs_ledger_close(node->ledger);
err_free:
    free(node);
    return status;
}

void ucs_node_close(ucs_node_h node)
{
    if (node == NULL) {
        return;
    }

    assert(ucs_node_is_valid(node));
    ucs_ledger_leave(node->ledger, node->slot, node->owner);
    ucs_ledger_close(node->ledger);
    if (node->params.goes) {
        ucs_ledger_remove_unused(node->key);
    }
    pthread_mutex_destroy(&node->members_lock);
    pthread_mutex_destroy(&node->serve_lock);
    pthread_mutex_destroy(&node->ask_lock);
    pthread_mutex_destroy(&node->mend_lock);
    free(node);
}

/* Under the lock of mending */
static int ucs_node_mend_slot(ucs_node_h node)
{
    int has_slot = ucs_ledger_mend(node->ledger, node->slot, node->owner);

    if (!has_slot && ucs_ledger_detach(node->ledger)) {
        (void)ucs_ledger_mend(node->ledger, node->slot, node->owner);
    }

    ucs_lock(&node->lock);
    ucs_node_note_demand(node, node->pinned);
    ucs_node_reserve(node, 0);
    ucs_node_pin(node, 0, NULL);
    ucs_node_show(node);
    ucs_unlock(&node->lock);
    return has_slot;
}

int ucs_node_mend(ucs_node_h node, uint64_t now)
{
    int has_slot;

    pthread_mutex_lock(&node->mend_lock);
    has_slot = ucs_node_mend_slot(node);
    if ((node->reaped == 0) || (now - node->reaped >= UCS_NODE_SECOND_NS)) {
        node->reaped = now;
        (void)ucs_ledger_reap(node->ledger);
    }
    pthread_mutex_unlock(&node->mend_lock);
    return has_slot;
}

void ucs_node_figures(ucs_node_h node, ucs_node_figures_t *figures)
{
    ucs_node_sum_t others;

    ucs_lock(&node->lock);
    others = ucs_node_others(node);
    if ((node->params.budget == UINT64_MAX) || (node->params.unseen > 0)) {
        ucs_node_note_peak(node, &others);
    }
    *figures = node->figures;
    if (node->is_resting) {
        figures->rest_ns += node->params.now() - node->rested;
    }
    ucs_unlock(&node->lock);

    pthread_mutex_lock(&node->members_lock);
    figures->given_bytes = node->given;
    pthread_mutex_unlock(&node->members_lock);

    figures->budget = ucs_node_limit(node);
}
