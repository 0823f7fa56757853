/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "callsite.h"
#include "saturate.h"

#include <stdlib.h>

/* No entry: end of a list, empty bucket */
#define CALLSITE_NIL UINT32_MAX

enum {
    CALLSITE_FLAG_LAST    = 1 << 0, /* the next use is to be measured from
                                       last_ns */
    CALLSITE_FLAG_SPENT   = 1 << 1, /* the prediction since last_ns was
                                       reported unused */
    CALLSITE_FLAG_RELEARN = 1 << 2, /* has been forgotten before */
    CALLSITE_FLAG_BORROWED = 1 << 3 /* the period is the lender's */
};

/*
 * Invariants: (period_ns != 0) == (confidence != 0)
 *             period_ns != 0  implies  CALLSITE_FLAG_LAST
 *             generation != 0 once the entry has been used
 */
typedef struct callsite_entry {
    ucs_predict_sig_t signature;
    uintptr_t         address;
    size_t            length;
    uint64_t          last_ns;
    uint64_t          period_ns;
    uint64_t          gap_ns;       /* between the latest two uses */
    uint64_t          deviation_ns; /* smoothed difference between gaps */
    ucs_predict_sig_t lender;       /* signature of its context of length 0 */
    uint64_t          uses;
    uint32_t          generation;
    uint32_t          chain_prev; /* in the bucket; NIL: first */
    uint32_t          chain_next;
    uint32_t          lru_prev;   /* towards the latest used */
    uint32_t          lru_next;   /* towards the least recently used */
    uint8_t           confidence;
    uint8_t           flags;
} callsite_entry_t;

/*
 * Entries [0, count) are in use and never become free again: eviction gives
 * an old one's entry to a new context. Each of them is in the LRU list, and
 * in the chain of the bucket (signature & bucket_mask).
 */
struct ucs_predict_table {
    ucs_predict_params_t params;
    ucs_predict_window_t window;
    uint32_t             count;
    uint32_t             bucket_mask;
    uint32_t             lru_first; /* latest used */
    uint32_t             lru_last;  /* least recently used: the next victim */
    uint32_t            *buckets;   /* behind the entries, same allocation */
    callsite_entry_t     entries[];
};

void ucs_predict_params_tune(ucs_predict_params_t *params,
                             const ucs_predict_tuning_t *tuning)
{
    params->max_entries        = 4096;
    params->window_length      = tuning->window;
    params->slack_fraction     = tuning->slack_share;
    params->slack_min_ns       = tuning->slack_min_ns;
    params->slack_max_ns       = tuning->slack_max_ns;
    params->confidence_initial = tuning->confidence_initial;
    params->confidence_max     = tuning->confidence_max;
    params->margin_min_part    = tuning->margin_min_part;
    params->margin_max_part    = tuning->margin_max_part;
    params->deviation_part     = tuning->deviation_part;
    params->deviation_weight   = tuning->deviation_weight;
    params->borrow             = 0;
}

void ucs_predict_params_init(ucs_predict_params_t *params)
{
    ucs_predict_params_tune(params, &ucs_predict_tuning_default);
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

static uint32_t callsite_num_buckets(uint32_t max_entries)
{
    uint32_t num_buckets = 1;

    while (num_buckets < max_entries) {
        num_buckets *= 2;
    }

    return num_buckets;
}

static size_t callsite_memory(uint32_t max_entries)
{
    return sizeof(struct ucs_predict_table) +
           (max_entries * sizeof(callsite_entry_t)) +
           (callsite_num_buckets(max_entries) * sizeof(uint32_t));
}

ucs_status_t ucs_predict_table_create(const ucs_predict_params_t *params,
                                      ucs_predict_table_h *table_p)
{
    ucs_predict_params_t defaults;
    ucs_predict_table_h table;
    uint32_t i;

    if (params == NULL) {
        ucs_predict_params_init(&defaults);
        params = &defaults;
    } else if (!callsite_params_are_valid(params)) {
        return UCS_ERR_INVALID_PARAM;
    }

    table = calloc(1, callsite_memory(params->max_entries));
    if (table == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    table->params      = *params;
    table->bucket_mask = callsite_num_buckets(params->max_entries) - 1;
    table->lru_first   = CALLSITE_NIL;
    table->lru_last    = CALLSITE_NIL;
    table->buckets     = (uint32_t*)&table->entries[params->max_entries];
    for (i = 0; i <= table->bucket_mask; ++i) {
        table->buckets[i] = CALLSITE_NIL;
    }

    *table_p = table;
    return UCS_OK;
}

void ucs_predict_table_destroy(ucs_predict_table_h table)
{
    free(table);
}

static uint32_t callsite_index(const struct ucs_predict_table *table,
                               const callsite_entry_t *entry)
{
    return (uint32_t)(entry - table->entries);
}

/* The entry that `ref` refers to, NULL if it is stale */
static callsite_entry_t *callsite_deref(ucs_predict_table_h table,
                                        ucs_predict_ref_t ref)
{
    if ((ref.index >= table->count) ||
        (table->entries[ref.index].generation != ref.generation)) {
        return NULL;
    }

    return &table->entries[ref.index];
}

static uint32_t *callsite_bucket(ucs_predict_table_h table,
                                 ucs_predict_sig_t signature)
{
    return &table->buckets[signature & table->bucket_mask];
}

static callsite_entry_t *callsite_find(ucs_predict_table_h table,
                                       ucs_predict_sig_t signature)
{
    uint32_t index = *callsite_bucket(table, signature);

    while (index != CALLSITE_NIL) {
        if (table->entries[index].signature == signature) {
            return &table->entries[index];
        }
        index = table->entries[index].chain_next;
    }

    return NULL;
}

static void callsite_chain_insert(ucs_predict_table_h table,
                                  callsite_entry_t *entry)
{
    uint32_t *bucket = callsite_bucket(table, entry->signature);
    uint32_t index   = callsite_index(table, entry);

    entry->chain_prev = CALLSITE_NIL;
    entry->chain_next = *bucket;
    if (*bucket != CALLSITE_NIL) {
        table->entries[*bucket].chain_prev = index;
    }
    *bucket = index;
}

static void callsite_chain_remove(ucs_predict_table_h table,
                                  callsite_entry_t *entry)
{
    if (entry->chain_prev != CALLSITE_NIL) {
        table->entries[entry->chain_prev].chain_next = entry->chain_next;
    } else {
        *callsite_bucket(table, entry->signature) = entry->chain_next;
    }
    if (entry->chain_next != CALLSITE_NIL) {
        table->entries[entry->chain_next].chain_prev = entry->chain_prev;
    }
}

static void callsite_lru_insert(ucs_predict_table_h table,
                                callsite_entry_t *entry)
{
    uint32_t index = callsite_index(table, entry);

    entry->lru_prev = CALLSITE_NIL;
    entry->lru_next = table->lru_first;
    if (table->lru_first != CALLSITE_NIL) {
        table->entries[table->lru_first].lru_prev = index;
    } else {
        table->lru_last = index;
    }
    table->lru_first = index;
}

static void callsite_lru_remove(ucs_predict_table_h table,
                                callsite_entry_t *entry)
{
    if (entry->lru_prev != CALLSITE_NIL) {
        table->entries[entry->lru_prev].lru_next = entry->lru_next;
    } else {
        table->lru_first = entry->lru_next;
    }
    if (entry->lru_next != CALLSITE_NIL) {
        table->entries[entry->lru_next].lru_prev = entry->lru_prev;
    } else {
        table->lru_last = entry->lru_prev;
    }
}

/* An entry for a new context: a fresh one, or that of the evicted victim. Its
 * generation is all that remains of the victim. */
static callsite_entry_t *callsite_take(ucs_predict_table_h table)
{
    callsite_entry_t *entry;
    uint32_t generation;

    if (table->count < table->params.max_entries) {
        entry = &table->entries[table->count++];
    } else {
        entry = &table->entries[table->lru_last];
        callsite_chain_remove(table, entry);
        callsite_lru_remove(table, entry);
    }

    generation = entry->generation + 1;
    *entry     = (callsite_entry_t){
        .generation = (generation != 0) ? generation : 1
    };
    return entry;
}

static callsite_entry_t *callsite_get(ucs_predict_table_h table,
                                      ucs_predict_sig_t signature)
{
    callsite_entry_t *entry = callsite_find(table, signature);

    if (entry != NULL) {
        callsite_lru_remove(table, entry);
    } else {
        entry            = callsite_take(table);
        entry->signature = signature;
        callsite_chain_insert(table, entry);
    }

    callsite_lru_insert(table, entry);
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
static void callsite_deviate(const ucs_predict_params_t *params,
                             callsite_entry_t *entry, uint64_t gap_ns)
{
    uint64_t difference = (gap_ns > entry->gap_ns) ? (gap_ns - entry->gap_ns) :
                                                     (entry->gap_ns - gap_ns);

    if (difference > entry->period_ns / 2) {
        difference = entry->period_ns / 2;
    }
    entry->deviation_ns -= entry->deviation_ns / params->deviation_weight;
    entry->deviation_ns += difference / params->deviation_weight;
    entry->gap_ns        = gap_ns;
}

static void callsite_begin(const ucs_predict_params_t *params,
                           callsite_entry_t *entry, uint64_t gap_ns)
{
    entry->period_ns    = gap_ns;
    entry->gap_ns       = gap_ns;
    entry->deviation_ns = gap_ns / params->deviation_part;
    entry->confidence   = (entry->flags & CALLSITE_FLAG_RELEARN) ? 1 :
                          (uint8_t)params->confidence_initial;
    entry->flags       &= ~CALLSITE_FLAG_BORROWED;
}

/* Rules 1 to 3 of callsite.h */
static void callsite_learn(const ucs_predict_params_t *params,
                           callsite_entry_t *entry, uint64_t start_ns)
{
    if ((entry->uses > 0) && (start_ns <= entry->last_ns)) {
        return;
    }

    if ((entry->period_ns != 0) &&
        !(entry->flags & CALLSITE_FLAG_BORROWED)) {
        callsite_confirm(params, entry, start_ns - entry->last_ns);
        callsite_deviate(params, entry, start_ns - entry->last_ns);
    } else if (entry->flags & CALLSITE_FLAG_LAST) {
        callsite_begin(params, entry, start_ns - entry->last_ns);
    }

    entry->last_ns = start_ns;
    entry->flags   = (entry->flags | CALLSITE_FLAG_LAST) &
                     ~CALLSITE_FLAG_SPENT;
}

static callsite_entry_t *callsite_record(ucs_predict_table_h table,
                                         const ucs_predict_use_t *use,
                                         ucs_predict_sig_t signature)
{
    callsite_entry_t *entry = callsite_get(table, signature);

    callsite_learn(&table->params, entry, use->start_ns);
    entry->address = use->address;
    entry->length  = use->length;
    ++entry->uses;
    return entry;
}

/* Rule 7 */
static void callsite_borrow(ucs_predict_table_h table, callsite_entry_t *entry,
                            ucs_predict_sig_t lender_signature)
{
    const callsite_entry_t *lender = callsite_find(table, lender_signature);

    if ((lender == NULL) || (lender->period_ns == 0)) {
        return;
    }

    entry->period_ns    = lender->period_ns;
    entry->deviation_ns = lender->deviation_ns;
    entry->lender       = lender_signature;
    entry->confidence   = 1;
    entry->flags       |= CALLSITE_FLAG_BORROWED;
}

ucs_predict_ref_t ucs_predict_table_record(ucs_predict_table_h table,
                                           const ucs_predict_use_t *use)
{
    unsigned window_length     = table->params.window_length;
    ucs_predict_sig_t lender   = 0;
    ucs_predict_sig_t signature;
    callsite_entry_t *entry;

    if (table->params.borrow && (window_length > 0)) {
        lender = ucs_predict_signature(use->path, use->address, &table->window,
                                       0);
        (void)callsite_record(table, use, lender);
    }

    signature = ucs_predict_signature(use->path, use->address, &table->window,
                                      window_length);
    entry     = callsite_record(table, use, signature);
    if ((entry->uses == 1) && (lender != 0)) {
        callsite_borrow(table, entry, lender);
    }

    ucs_predict_window_push(&table->window,
                            ucs_predict_comm(use->type, use->address));
    return (ucs_predict_ref_t){callsite_index(table, entry),
                               entry->generation};
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

/* Rule 5; the period is known */
static void callsite_doubt(callsite_entry_t *entry)
{
    entry->flags |= CALLSITE_FLAG_SPENT;
    if (--entry->confidence == 0) {
        entry->period_ns = 0;
        entry->flags     = CALLSITE_FLAG_RELEARN;
    }
}

void ucs_predict_table_unused(ucs_predict_table_h table, ucs_predict_ref_t ref)
{
    callsite_entry_t *entry = callsite_deref(table, ref);
    callsite_entry_t *lender;

    if ((entry == NULL) || (entry->period_ns == 0)) {
        return;
    }

    if (entry->flags & CALLSITE_FLAG_BORROWED) {
        lender = callsite_find(table, entry->lender);
        if ((lender != NULL) && (lender->period_ns != 0)) {
            callsite_doubt(lender);
        }
        entry->period_ns  = 0;
        entry->confidence = 0;
        entry->flags      = CALLSITE_FLAG_LAST;
        return;
    }

    callsite_doubt(entry);
}

uint64_t ucs_predict_table_margin(ucs_predict_table_h table,
                                  ucs_predict_ref_t ref)
{
    const ucs_predict_params_t *params = &table->params;
    callsite_entry_t *entry            = callsite_deref(table, ref);
    uint64_t margin;

    if (entry == NULL) {
        return 0;
    }

    margin = 2 * entry->deviation_ns;
    if (margin > entry->period_ns / params->margin_max_part) {
        return entry->period_ns / params->margin_max_part;
    }
    if (margin < entry->period_ns / params->margin_min_part) {
        return entry->period_ns / params->margin_min_part;
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

ucs_status_t ucs_predict_table_entry(ucs_predict_table_h table,
                                     ucs_predict_ref_t ref,
                                     ucs_predict_entry_info_t *info)
{
    callsite_entry_t *entry = callsite_deref(table, ref);

    if (entry == NULL) {
        return UCS_ERR_NO_ELEM;
    }

    info->signature  = entry->signature;
    info->address    = entry->address;
    info->length     = entry->length;
    info->period_ns  = entry->period_ns;
    info->last_ns    = entry->last_ns;
    info->confidence = entry->confidence;
    info->uses       = entry->uses;
    return UCS_OK;
}

uint32_t ucs_predict_table_count(ucs_predict_table_h table)
{
    return table->count;
}

size_t ucs_predict_table_memory(ucs_predict_table_h table)
{
    return callsite_memory(table->params.max_entries);
}

static int callsite_entry_is_valid(ucs_predict_table_h table,
                                   const callsite_entry_t *entry)
{
    return (entry->generation != 0) && (entry->signature != 0) &&
           ((entry->period_ns != 0) == (entry->confidence != 0)) &&
           ((entry->period_ns == 0) || (entry->flags & CALLSITE_FLAG_LAST)) &&
           (entry->confidence <= table->params.confidence_max) &&
           (callsite_find(table, entry->signature) == entry);
}

int ucs_predict_table_is_valid(ucs_predict_table_h table)
{
    uint32_t prev    = CALLSITE_NIL;
    uint32_t visited = 0;
    uint32_t index;

    for (index = table->lru_first; index != CALLSITE_NIL;
         index = table->entries[index].lru_next) {
        /* The count bounds the walk, should the list be a ring */
        if ((index >= table->count) || (visited == table->count) ||
            (table->entries[index].lru_prev != prev) ||
            !callsite_entry_is_valid(table, &table->entries[index])) {
            return 0;
        }
        prev = index;
        ++visited;
    }

    return (visited == table->count) && (table->lru_last == prev);
}
