/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_HELPER_ATOMIC_H_
#define UCS_HELPER_ATOMIC_H_

#ifdef __cplusplus
/* So that tests can include the C headers: what C23 and C++23 agreed upon */
#include <atomic>
#define _Atomic(_type) std::atomic<_type>
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;
#else
#include <stdatomic.h>
#endif

/*
 * Atomics with the memory order in the operation's name. All `_Atomic` objects
 * are read and written by these. Types are written `_Atomic(type)`.
 *
 * Each operation that orders (acquire, release, acq_rel, seq_cst) has a comment
 * that says what it orders and names its partner by a label on both sides:
 * `acquire [R-LIVE]: pairs with the release in ...`. An operation without a
 * partner is relaxed. docs/internals.md has the table of labels; test/rooms
 * looks for operations without one.
 */

#define ucs_load_relaxed(_p) \
    atomic_load_explicit(_p, memory_order_relaxed)
#define ucs_load_acquire(_p) \
    atomic_load_explicit(_p, memory_order_acquire)
#define ucs_store_relaxed(_p, _v) \
    atomic_store_explicit(_p, _v, memory_order_relaxed)
#define ucs_store_release(_p, _v) \
    atomic_store_explicit(_p, _v, memory_order_release)

/* For two threads that each write a word of their own and then read the
 * other's: at least one must see the other, which acquire and release do not
 * promise */
#define ucs_load_seq_cst(_p) \
    atomic_load_explicit(_p, memory_order_seq_cst)
#define ucs_store_seq_cst(_p, _v) \
    atomic_store_explicit(_p, _v, memory_order_seq_cst)

#define ucs_add_relaxed(_p, _v) \
    atomic_fetch_add_explicit(_p, _v, memory_order_relaxed)
#define ucs_sub_relaxed(_p, _v) \
    atomic_fetch_sub_explicit(_p, _v, memory_order_relaxed)
#define ucs_add_release(_p, _v) \
    atomic_fetch_add_explicit(_p, _v, memory_order_release)
#define ucs_add_acq_rel(_p, _v) \
    atomic_fetch_add_explicit(_p, _v, memory_order_acq_rel)
#define ucs_sub_acq_rel(_p, _v) \
    atomic_fetch_sub_explicit(_p, _v, memory_order_acq_rel)
#define ucs_or_acq_rel(_p, _v) \
    atomic_fetch_or_explicit(_p, _v, memory_order_acq_rel)
#define ucs_and_acq_rel(_p, _v) \
    atomic_fetch_and_explicit(_p, _v, memory_order_acq_rel)
#define ucs_swap_relaxed(_p, _v) \
    atomic_exchange_explicit(_p, _v, memory_order_relaxed)
#define ucs_swap_acq_rel(_p, _v) \
    atomic_exchange_explicit(_p, _v, memory_order_acq_rel)

/* On failure *_old_p holds the value found; a failure orders like an acquire */
#define ucs_cas_acq_rel(_p, _old_p, _new) \
    atomic_compare_exchange_strong_explicit(_p, _old_p, _new, \
                                            memory_order_acq_rel, \
                                            memory_order_acquire)
#define ucs_cas_relaxed(_p, _old_p, _new) \
    atomic_compare_exchange_strong_explicit(_p, _old_p, _new, \
                                            memory_order_relaxed, \
                                            memory_order_relaxed)

#endif
