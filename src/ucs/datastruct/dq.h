/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_DQ_H_
#define UCS_DQ_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A lock-less circular queue of records of one size, several producers, one
 * consumer. The registration cache has one as its deregistration queue, into
 * which the threads that communicate push one record per finished use, and
 * which the helper drains (Li et al. 2011, section 4.1).
 *
 * The paper lets a producer overwrite the oldest entry when the helper does not
 * keep up. With several producers that would need a lock or tear records, so
 * here the *new* record is dropped and counted; the helper, seeing the count
 * change, looks through the registered regions instead. Either way a use is
 * skipped, and no producer ever waits.
 *
 * A queue has two rings: any thread pushes into one, a single thread into the
 * other, without a read-modify-write. Records of one ring come out in their
 * order; the rings take turns.
 *
 * Each slot has a ticket (after D. Vyukov's bounded queue), which counts from
 * the first position of the slot's lap, so that zeroed memory is an empty ring:
 *   ticket == lap           free for the producer at this position
 *   ticket == lap + 1       filled, for the consumer
 *   ticket == lap + length  free again, one lap later
 * Invariant, while no push and no pop is under way: the slots of a ring's
 * positions [tail, head) are filled, those of [head, tail + length) free.
 */

BEGIN_C_DECLS

/** Bytes of a record: with its ticket it fills a cache line. A constant, so
 *  that the copy is some moves and no call. */
#define UCS_DQ_RECORD_SIZE 56

/** Each type of record has this at file scope. */
#define UCS_DQ_CHECK_RECORD(_type) \
    static_assert(sizeof(_type) == UCS_DQ_RECORD_SIZE, \
                  #_type " does not fill a record of the queue")

typedef struct ucs_dq *ucs_dq_h;

/** @return Bytes of a queue; those of an unused ring are not touched. */
size_t ucs_dq_bytes(unsigned length);

/**
 * @param [in] length  Records of each ring, a power of two of at least 2.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_dq_create(unsigned length, ucs_dq_h *dq_p);

/** Release the queue and what is in it; NULL does nothing. */
void ucs_dq_destroy(ucs_dq_h dq);

/**
 * Push a copy of one record of UCS_DQ_RECORD_SIZE bytes; any thread, wait-free
 * but for other producers' steps.
 *
 * @return Nonzero on success, zero if the queue was full: the record is lost
 *         and counted.
 */
int ucs_dq_push(ucs_dq_h dq, const void *record);

/** The same, without a read-modify-write; only one thread may call it. */
int ucs_dq_push_alone(ucs_dq_h dq, const void *record);

/** Pop the oldest record of a ring, UCS_DQ_RECORD_SIZE bytes; the consumer
 *  only.
 *  @return Nonzero if there was one. */
int ucs_dq_pop(ucs_dq_h dq, void *record);

/** @return Records lost so far; any thread. */
uint64_t ucs_dq_lost(ucs_dq_h dq);

/** @return Nonzero if the invariant holds; for tests and debug, while no push
 *          and no pop is under way. */
int ucs_dq_is_valid(ucs_dq_h dq);

END_C_DECLS

#endif
