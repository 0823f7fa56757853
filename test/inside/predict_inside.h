/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef PREDICT_INSIDE_H_
#define PREDICT_INSIDE_H_

#include <ucs/predict/lru.h>
#include <ucs/predict/order/order.h>
#include <ucs/predict/paper/callsite.h>

/**
 * @file predict_inside.h
 *
 * What tests look at inside of the predictors.
 */

BEGIN_C_DECLS

/** @return Nonzero if the invariants hold. Looks at every link. */
int ucs_predict_lru_is_valid(const ucs_predict_lru_t *lru);
int ucs_predict_order_is_valid(ucs_predict_order_h order);
int ucs_predict_table_is_valid(ucs_predict_table_h table);

/** @return Bytes from creation to end, what is never used included. */
size_t ucs_predict_lru_memory(const ucs_predict_lru_t *lru);
size_t ucs_predict_order_memory(ucs_predict_order_h order);
size_t ucs_predict_table_memory(ucs_predict_table_h table);

/** @return A buffer that is known, else a stale reference. */
ucs_predict_ref_t ucs_predict_order_find(ucs_predict_order_h order,
                                         uintptr_t address, size_t length);

/** @return The ucs_predict_plan_t that is followed in a buffer's present gap. */
int ucs_predict_order_plan(ucs_predict_order_h order, ucs_predict_ref_t buffer);

/** @return Buffers, labels, contexts remembered. */
uint32_t ucs_predict_order_buffers(ucs_predict_order_h order);
uint32_t ucs_predict_order_labels(ucs_predict_order_h order);
uint32_t ucs_predict_table_count(ucs_predict_table_h table);

/** What a table knows of a context. */
typedef struct ucs_predict_entry_info {
    ucs_predict_sig_t signature;
    uint64_t          period_ns;  /**< 0: not known */
    uint64_t          last_ns;    /**< latest registration time */
    unsigned          confidence; /**< 0 if the period is not known */
    uint64_t          uses;       /**< since the context was last created */
} ucs_predict_entry_info_t;

/** @return UCS_OK, or UCS_ERR_NO_ELEM if the reference is stale. */
ucs_status_t ucs_predict_table_entry(ucs_predict_table_h table,
                                     ucs_predict_ref_t ref,
                                     ucs_predict_entry_info_t *info);

END_C_DECLS

#endif
