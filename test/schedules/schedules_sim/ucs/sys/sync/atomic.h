/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SIM_ATOMIC_H_
#define SIM_ATOMIC_H_

#include_next <ucs/sys/sync/atomic.h>

#include "../../../../schedules_point.h"

/**
 * @file atomic.h
 *
 * Stands before the production header on the include path of
 * test/schedules, which compiles the cache a second time: the same interface with
 * a scheduling point before each operation. Fibers share one thread, so what
 * is explored is every interleaving of these operations under sequential
 * consistency, not what weaker orders would add (ThreadSanitizer looks there).
 */

#undef ucs_load_relaxed
#undef ucs_load_acquire
#undef ucs_store_relaxed
#undef ucs_store_release
#undef ucs_add_relaxed
#undef ucs_sub_relaxed
#undef ucs_add_acq_rel
#undef ucs_sub_acq_rel
#undef ucs_or_acq_rel
#undef ucs_and_acq_rel
#undef ucs_swap_acq_rel
#undef ucs_cas_acq_rel
#undef ucs_cas_relaxed

#define sim_relaxed memory_order_relaxed

#define ucs_load_relaxed(_p) \
    ({ sim_point(); atomic_load_explicit(_p, sim_relaxed); })
#define ucs_load_acquire(_p) ucs_load_relaxed(_p)
#define ucs_store_relaxed(_p, _v) \
    ({ sim_point(); atomic_store_explicit(_p, _v, sim_relaxed); })
#define ucs_store_release(_p, _v) ucs_store_relaxed(_p, _v)
#define ucs_add_relaxed(_p, _v) \
    ({ sim_point(); atomic_fetch_add_explicit(_p, _v, sim_relaxed); })
#define ucs_add_acq_rel(_p, _v) ucs_add_relaxed(_p, _v)
#define ucs_sub_relaxed(_p, _v) \
    ({ sim_point(); atomic_fetch_sub_explicit(_p, _v, sim_relaxed); })
#define ucs_sub_acq_rel(_p, _v) ucs_sub_relaxed(_p, _v)
#define ucs_or_acq_rel(_p, _v) \
    ({ sim_point(); atomic_fetch_or_explicit(_p, _v, sim_relaxed); })
#define ucs_and_acq_rel(_p, _v) \
    ({ sim_point(); atomic_fetch_and_explicit(_p, _v, sim_relaxed); })
#define ucs_swap_acq_rel(_p, _v) \
    ({ sim_point(); atomic_exchange_explicit(_p, _v, sim_relaxed); })

/* The fiber that fails may be spinning: let another fiber run */
#define ucs_cas_relaxed(_p, _old_p, _new) \
    ({ \
        int sim_is_set; \
        sim_point(); \
        sim_is_set = atomic_compare_exchange_strong_explicit( \
                _p, _old_p, _new, sim_relaxed, sim_relaxed); \
        if (!sim_is_set) { \
            sim_spin(__func__, __LINE__); \
        } \
        sim_is_set; \
    })
#define ucs_cas_acq_rel(_p, _old_p, _new) ucs_cas_relaxed(_p, _old_p, _new)

#endif
