/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_DQ_H_
#define UCS_DQ_H_

#include <ucs/sys/atomic.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>
#include <ucs/sys/compiler_def.h>

/**
 * @file dq.h
 *
 * Deregistration queue: a lock-less circular queue into which the threads that
 * communicate push one entry per finished use, and which the helper drains
 * (Li et al. 2011, section 4.1). Several producers, one consumer.
 *
 * The paper lets a producer overwrite the oldest entry when the helper does
 * not keep up. With several producers that would need a lock or tear entries,
 * so here the *new* entry is dropped and counted; the helper, seeing the count
 * change, looks through the registered regions instead. Either way a use is
 * skipped, and no producer ever waits.
 *
 * Each slot has a ticket (after D. Vyukov's bounded queue):
 *   ticket == position               free for the producer at this position
 *   ticket == position + 1           filled, for the consumer
 *   ticket == position + length      free again, one lap later
 */

BEGIN_C_DECLS

typedef struct ucs_use {
    void      *region;  /**< ucs_regcache_region_t; compare the generation */
    uint64_t  generation;
    uint64_t  start_ns; /**< when the use began */
    uint64_t  end_ns;   /**< when the last user gave it back */
    uintptr_t sp;       /**< stack position of the use, stands for its path */
    uintptr_t address;
    size_t    length;   /**< bytes */
} ucs_use_t;

typedef struct ucs_dq *ucs_dq_h;

/** @param [in] length  Entries, a power of two of at least 2. */
ucs_status_t ucs_dq_create(unsigned length, ucs_dq_h *dq_p);

void ucs_dq_destroy(ucs_dq_h dq);

/**
 * Push one use; any thread, wait-free but for other producers' steps.
 *
 * @return Nonzero on success, zero if the queue was full: the entry is lost
 *         and counted.
 */
int ucs_dq_push(ucs_dq_h dq, const ucs_use_t *use);

/** Pop the oldest use; the helper only. @return Nonzero if there was one. */
int ucs_dq_pop(ucs_dq_h dq, ucs_use_t *use);

/** @return Entries lost so far. */
uint64_t ucs_dq_lost(ucs_dq_h dq);

/** @return Nonzero if an entry was waiting at the time of the call. */
int ucs_dq_is_pending(ucs_dq_h dq);

END_C_DECLS

#endif
