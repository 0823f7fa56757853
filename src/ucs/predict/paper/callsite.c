/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "callsite_int.h"
#include <ucs/predict/saturate.h>

#include <ucs/sys/hash.h>
#include <ucs/sys/mem/own_memory.h>

#include <string.h>

/* Rule 6: parts of a period, and uses over which differences are smoothed */
#define CALLSITE_MARGIN_MIN_PART  48
#define CALLSITE_MARGIN_MAX_PART  8
#define CALLSITE_DEVIATION_PART   32
#define CALLSITE_DEVIATION_WEIGHT 4

/* Different seeds, so that a communication and a context that consist of the
 * same numbers still have different hashes. */
#define PREDICT_SEED_COMM    UINT64_C(0xd1b54a32d192ed03)
#define PREDICT_SEED_CONTEXT UINT64_C(0xaef17502108ef2d9)

/* Addresses share most of their bits and differ in a few low ones: each has to
 * reach the bits by which a table chooses its bucket. The state is mixed before
 * the value comes in, which makes the order count. */
static uint64_t predict_absorb(uint64_t state, uint64_t value)
{
    return ucs_hash_mix((state * UCS_HASH_FACTOR) ^
                        ucs_hash_mix(value + UCS_HASH_FACTOR));
}

static uint64_t predict_nonzero(uint64_t hash)
{
    return (hash != 0) ? hash : 1;
}

uint64_t ucs_predict_comm(unsigned type, uintptr_t address)
{
    uint64_t hash = predict_absorb(PREDICT_SEED_COMM, type);

    return predict_nonzero(predict_absorb(hash, address));
}

void ucs_predict_window_push(ucs_predict_window_t *w, uint64_t comm)
{
    if (comm == 0) {
        return;
    }

    memmove(&w->comm[1], &w->comm[0],
            (UCS_PREDICT_WINDOW_MAX - 1) * sizeof(w->comm[0]));
    w->comm[0] = comm;
}

ucs_predict_sig_t ucs_predict_signature(ucs_predict_sig_t path,
                                        uintptr_t address,
                                        const ucs_predict_window_t *window,
                                        unsigned window_length)
{
    uint64_t hash = predict_absorb(PREDICT_SEED_CONTEXT, path);
    unsigned i;

    hash = predict_absorb(hash, address);
    for (i = 0; (i < window_length) && (i < UCS_PREDICT_WINDOW_MAX); ++i) {
        hash = predict_absorb(hash, window->comm[i]);
    }

    return predict_nonzero(hash);
}

void ucs_predict_params_init(ucs_predict_params_t *params)
{
    params->max_entries        = 4096;
    params->window_length      = 2; /* Li et al. 2011, section 4.2 */
    params->slack_fraction     = 0.25;
    params->slack_min_ns       = 2000000;
    params->slack_max_ns       = 1000000000;
    params->confidence_initial = 2;
    params->confidence_max     = 4;
}

static int callsite_params_are_valid(const ucs_predict_params_t *params)
{
    /* A fraction that is not a number fails both of its comparisons */
    return (params->max_entries >= 1) &&
           (params->max_entries <= UCS_PREDICT_MAX_ENTRIES) &&
           (params->window_length <= UCS_PREDICT_WINDOW_MAX) &&
           (params->slack_fraction >= 0) && (params->slack_fraction <= 1) &&
           (params->slack_min_ns <= params->slack_max_ns) &&
           (params->confidence_initial >= 1) &&
           (params->confidence_initial <= params->confidence_max) &&
           (params->confidence_max <= UINT8_MAX);
}

ucs_status_t ucs_predict_table_create(const ucs_predict_params_t *params,
                                      ucs_predict_table_h *table_p)
{
    ucs_predict_table_h table;
    ucs_status_t status;

    if (!callsite_params_are_valid(params)) {
        return UCS_ERR_INVALID_PARAM;
    }

    table = ucs_own_alloc(sizeof(*table));
    if (table == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    table->params = *params;
    status        = ucs_predict_lru_init(&table->contexts, params->max_entries,
                                         sizeof(callsite_entry_t));
    if (status != UCS_OK) {
        ucs_own_free(table);
        return status;
    }

    *table_p = table;
    return UCS_OK;
}

void ucs_predict_table_destroy(ucs_predict_table_h table)
{
    if (table == NULL) {
        return;
    }

    ucs_predict_lru_cleanup(&table->contexts);
    ucs_own_free(table);
}

/* The entry that `ref` refers to, NULL if it is stale */
static callsite_entry_t *callsite_deref(ucs_predict_table_h table,
                                        ucs_predict_ref_t ref)
{
    return ucs_predict_lru_deref(&table->contexts, ref);
}

static callsite_entry_t *callsite_get(ucs_predict_table_h table,
                                      ucs_predict_sig_t signature)
{
    callsite_entry_t *entry;
    int is_new;

    entry = ucs_predict_lru_get(&table->contexts, signature, &is_new);
    if (is_new) { /* of the context that was evicted nothing remains */
        memset((char*)entry + sizeof(entry->node), 0,
               sizeof(*entry) - sizeof(entry->node));
    }

    return entry;
}

static uint64_t callsite_slack(const ucs_predict_params_t *params,
                               uint64_t period_ns)
{
    uint64_t slack = ucs_predict_sat_ceil(params->slack_fraction *
                                          (double)period_ns);

    if (slack < params->slack_min_ns) {
        return params->slack_min_ns;
    }

    return (slack < params->slack_max_ns) ? slack : params->slack_max_ns;
}

static void callsite_confirm(const ucs_predict_params_t *params,
                             callsite_entry_t *entry, uint64_t gap_ns)
{
    uint64_t error_ns = (gap_ns > entry->period_ns) ?
                        (gap_ns - entry->period_ns) :
                        (entry->period_ns - gap_ns);

    if ((error_ns <= callsite_slack(params, entry->period_ns)) &&
        (entry->confidence < params->confidence_max)) {
        ++entry->confidence;
    }

    if (gap_ns < entry->period_ns) {
        entry->period_ns = gap_ns;
    }
}

/* Rule 6. A pause between two phases of a program says nothing about how
 * regular either is, so a difference counts for half a period at most. */
static void callsite_deviate(callsite_entry_t *entry, uint64_t gap_ns)
{
    uint64_t difference = (gap_ns > entry->gap_ns) ? (gap_ns - entry->gap_ns) :
                                                     (entry->gap_ns - gap_ns);

    if (difference > entry->period_ns / 2) {
        difference = entry->period_ns / 2;
    }
    entry->deviation_ns -= entry->deviation_ns / CALLSITE_DEVIATION_WEIGHT;
    entry->deviation_ns += difference / CALLSITE_DEVIATION_WEIGHT;
    entry->gap_ns        = gap_ns;
}

static void callsite_begin(const ucs_predict_params_t *params,
                           callsite_entry_t *entry, uint64_t gap_ns)
{
    entry->period_ns    = gap_ns;
    entry->gap_ns       = gap_ns;
    entry->deviation_ns = gap_ns / CALLSITE_DEVIATION_PART;
    entry->confidence   = (entry->flags & CALLSITE_FLAG_RELEARN) ? 1 :
                          (uint8_t)params->confidence_initial;
}

/* Rules 1 to 3 of callsite.h */
static void callsite_learn(const ucs_predict_params_t *params,
                           callsite_entry_t *entry, uint64_t start_ns)
{
    if ((entry->uses > 0) && (start_ns <= entry->last_ns)) {
        return;
    }

    if (entry->period_ns != 0) {
        callsite_confirm(params, entry, start_ns - entry->last_ns);
        callsite_deviate(entry, start_ns - entry->last_ns);
    } else if (entry->flags & CALLSITE_FLAG_LAST) {
        callsite_begin(params, entry, start_ns - entry->last_ns);
    }

    entry->last_ns = start_ns;
    entry->flags   = (entry->flags | CALLSITE_FLAG_LAST) &
                     ~CALLSITE_FLAG_SPENT;
}

ucs_predict_ref_t ucs_predict_table_record(ucs_predict_table_h table,
                                           const ucs_predict_use_t *use)
{
    callsite_entry_t *entry;

    entry = callsite_get(table,
                         ucs_predict_signature(use->path, use->address,
                                               &table->window,
                                               table->params.window_length));
    callsite_learn(&table->params, entry, use->start_ns);
    ++entry->uses;
    ucs_predict_window_push(&table->window,
                            ucs_predict_comm(use->type, use->address));
    return ucs_predict_lru_ref(&table->contexts, entry);
}

int ucs_predict_table_deadline(ucs_predict_table_h table,
                               ucs_predict_ref_t ref, uint64_t *deadline_ns)
{
    callsite_entry_t *entry = callsite_deref(table, ref);

    if ((entry == NULL) || (entry->period_ns == 0) ||
        (entry->flags & CALLSITE_FLAG_SPENT)) {
        return 0;
    }

    *deadline_ns = ucs_predict_sat_add(entry->last_ns, entry->period_ns);
    return 1;
}

/* Rule 5 */
void ucs_predict_table_unused(ucs_predict_table_h table, ucs_predict_ref_t ref)
{
    callsite_entry_t *entry = callsite_deref(table, ref);

    if ((entry == NULL) || (entry->period_ns == 0)) {
        return;
    }
    entry->flags |= CALLSITE_FLAG_SPENT;
    if (--entry->confidence == 0) {
        entry->period_ns = 0;
        entry->flags     = CALLSITE_FLAG_RELEARN;
    }
}

uint64_t ucs_predict_table_margin(ucs_predict_table_h table,
                                  ucs_predict_ref_t ref)
{
    callsite_entry_t *entry = callsite_deref(table, ref);
    uint64_t margin;

    if (entry == NULL) {
        return 0;
    }

    margin = 2 * entry->deviation_ns;
    if (margin > entry->period_ns / CALLSITE_MARGIN_MAX_PART) {
        return entry->period_ns / CALLSITE_MARGIN_MAX_PART;
    }
    if (margin < entry->period_ns / CALLSITE_MARGIN_MIN_PART) {
        return entry->period_ns / CALLSITE_MARGIN_MIN_PART;
    }
    return margin;
}

uint64_t ucs_predict_table_slack(ucs_predict_table_h table,
                                 ucs_predict_ref_t ref)
{
    callsite_entry_t *entry = callsite_deref(table, ref);

    return callsite_slack(&table->params,
                          (entry != NULL) ? entry->period_ns : 0);
}
