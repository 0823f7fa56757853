/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_H_
#define UCS_REGCACHE_H_

#include "stats.h"
#include "tuning.h"

#include <ucs/predict/operation.h>
#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/claim.h>
#include <ucs/sys/clock.h>
#include <ucs/type/status.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The cache keeps registered what is about to be communicated. It is a state machine:
 * it owns no thread and reads no clock of its own. Time, the lower memory domain and
 * the ways to wait and to wake come in through @ref ucs_regcache_env_t, so the code
 * that runs in production also runs under a virtual clock with a stub domain.
 *
 * Unless a function says otherwise any thread of the application may call it; one
 * thread at a time steps. All times are nanoseconds of the environment's clock.
 */

BEGIN_C_DECLS

/** Never: the return value of a step that waits for nothing but a wake-up. */
#define UCS_REGCACHE_TIME_NEVER UINT64_MAX

/** Default of what all memory that would be left pinned is worth: a share of
 *  the run time. */
#define UCS_REGCACHE_MAX_SLOWDOWN 0.005

/** Default of what a registration holds in NIC and driver memory beside its pages,
 *  bytes (docs/registrations.md says where it comes from). */
#define UCS_REGCACHE_REGION_BYTES 2048

/** More than any device's whole memory is a slip of the keyboard. */
#define UCS_REGCACHE_REGION_BYTES_MAX (1ul << 30)

typedef struct ucs_regcache *ucs_regcache_h;

/** A registration, as the lower domain names it; never NULL. */
typedef struct ucs_regcache_memh *ucs_regcache_memh_t;

/** What an invalidation is to complete. */
typedef struct ucs_regcache_comp *ucs_regcache_comp_t;

/** What becomes of a registration when its last user gives it back. */
typedef enum ucs_regcache_policy {
    UCS_REGCACHE_POLICY_PREDICT,      /**< deregister in gaps, register before
                                         the use that the order of
                                         communications predicts */
    UCS_REGCACHE_POLICY_PAPER,        /**< deregister in gaps, register before
                                         the predicted use (Li et al. 2011) */
    UCS_REGCACHE_POLICY_RENT,         /**< keep for as long as that costs what
                                         registering again would, then
                                         deregister */
    UCS_REGCACHE_POLICY_LEAVE_PINNED, /**< keep for ever, as UCX's own cache */
    UCS_REGCACHE_POLICY_ON_DEMAND,    /**< deregister at once */
    UCS_REGCACHE_POLICY_LRU,          /**< keep, evict the least recently used
                                         when a ceiling would be passed */
    UCS_REGCACHE_POLICY_OVERLAP,      /**< register when a receive is posted,
                                         while the partner does so; keep; what
                                         is given up under pressure is
                                         registered again (Goglin 2009) */
    UCS_REGCACHE_POLICY_LAST
} ucs_regcache_policy_t;

/** Why memory cannot be trusted to stay what it was. */
typedef enum ucs_regcache_distrust {
    UCS_REGCACHE_DISTRUST_EVENTS = 1, /**< memory events are missed */
    UCS_REGCACHE_DISTRUST_MARKS  = 2, /**< the lower domain marks the pages that
                                         it registers (MADV_DONTFORK) */
    UCS_REGCACHE_DISTRUST_VMAS = 4    /**< the process is near its limit of
                                         mappings */
} ucs_regcache_distrust_t;

/** Which uses may be registered together with what lies ahead of them. */
typedef enum ucs_regcache_cover_kind {
    UCS_REGCACHE_COVER_OFF,    /**< none */
    UCS_REGCACHE_COVER_LOCAL,  /**< those that give others no access */
    UCS_REGCACHE_COVER_REMOTE  /**< all: a key may grant more than was asked
                                    for */
} ucs_regcache_cover_kind_t;

/** One registration for neighbours. All zeros: off. */
typedef struct ucs_regcache_cover {
    ucs_regcache_cover_kind_t kind;
    unsigned                  remote_mask; /**< of a use's access, what it gives
                                                others */
    unsigned                  own_set;     /**< flags of what the program maps
                                                itself: all of these ... */
    unsigned                  own_clear;   /**< ... and none of these. Of
                                                anything else only what is in
                                                memory is registered ahead. */
} ucs_regcache_cover_t;

/** Names of the policies, in the order of the enumeration, NULL-terminated. */
extern const char *ucs_regcache_policy_names[];

/** What came of asking others for bytes of a budget. */
typedef enum ucs_regcache_answer {
    UCS_REGCACHE_ANSWER_NONE,   /**< nothing */
    UCS_REGCACHE_ANSWER_MAYBE,  /**< there may be more than before: try again */
    UCS_REGCACHE_ANSWER_GRANTED /**< what was asked for, and it is claimed */
} ucs_regcache_answer_t;

/**
 * A budget of bytes and registrations that is not this cache's alone. The functions
 * get the environment's @a arg.
 */
typedef struct ucs_regcache_budget {
    /**
     * Count a registration that is about to pin so many bytes. Called under the
     * lock: does not wait, allocate or call the system.
     *
     * @return Nonzero if they fit and are counted; always with
     *         UCS_CLAIM_FORCE.
     */
    int                   (*claim)(void *arg, size_t length, ucs_claim_t why);

    /** It is none any more. Likewise. */
    void                  (*unclaim)(void *arg, size_t length);

    /** Ask others to give back what a registration of @a length bytes takes, and
     *  claim it. Outside of the lock; may wait for a moment. */
    ucs_regcache_answer_t (*ask)(void *arg, size_t length, ucs_ask_t whom);

    /** The lower domain has refused a registration that was claimed, for want of
     *  something that other registrations may hold. These three are called outside of
     *  the lock. @return What may be a limit of all; UINT64_MAX: nothing may. */
    uint64_t              (*refused)(void *arg);

    /** Ask others to give back what is held beyond it; may wait for a moment. */
    void                  (*ask_back)(void *arg, uint64_t limit);

    /** After some had gone it was not refused again: it is the limit. */
    void                  (*learn)(void *arg, uint64_t limit);
} ucs_regcache_budget_t;

/**
 * World of a cache. The functions get @a arg; none may call back into the
 * cache, except `wait` and `yield`, which may let a step run (a simulator
 * does).
 */
typedef struct ucs_regcache_env {
    void *arg;

    /**
     * Register with the lower domain. Quietly: the caller has a way left.
     *
     * @param [in]  flags   Those of the use that registers, with the access of
     *                      all others that the registration is to serve.
     * @param [out] memh_p  Set only on success.
     *
     * @return UCS_OK; UCS_ERR_NO_MEMORY, UCS_ERR_NO_RESOURCE or
     *         UCS_ERR_IO_ERROR for want of something that other registrations
     *         may hold; any other error is about this very range.
     */
    ucs_status_t (*mem_reg)(void *arg, void *address, size_t length,
                            unsigned flags, ucs_regcache_memh_t *memh_p);

    /**
     * Deregister with the lower domain. @a comp is NULL, or what is to be
     * completed by it: then the registration must be invalidated.
     */
    ucs_status_t (*mem_dereg)(void *arg, ucs_regcache_memh_t memh,
                              ucs_regcache_comp_t comp);

    /** Complete one more invalidation of a registration that @a mem_dereg has
     *  invalidated. NULL: none is ever asked for. */
    void         (*complete)(void *arg, ucs_regcache_comp_t comp);

    /** Monotonic time in nanoseconds. */
    uint64_t     (*now)(void *arg);

    /** How a hit may read the same time without a call; NULL: it may not. */
    const ucs_clock_scale_t *clock;

    /** Make a sleeping helper run a step soon. Wait-free, no allocation. */
    void         (*wake)(void *arg);

    /** Block while `*word == value`, for at most @a ns, or for as long as that
     *  takes if @a ns is UINT64_MAX; may return early, the caller re-checks.
     *  @a word is the half of a region's word that every change of state
     *  changes. */
    void         (*wait)(void *arg, uint32_t *word, uint32_t value,
                         uint64_t ns);

    /**
     * The cache begins (nonzero), or ceases (0), to learn from operations that
     * are too short to be registered; at first it does not. Ended as often as
     * begun, at the latest by @ref ucs_regcache_destroy; two of different
     * threads may come in either order. Any thread; wait-free. NULL: it is told
     * all of them anyway.
     */
    void         (*listen)(void *arg, int listens);

    /** Wake all that wait on @a word. */
    void         (*wake_waiters)(void *arg, uint32_t *word);

    /** Let other threads run for a moment; NULL: give_way.h. */
    void         (*yield)(void *arg);

    /**
     * May the registration of these pages outlive its use? What may not is
     * deregistered by its last user and never registered by the helper. Called
     * outside of the lock before a registration, with the region already where
     * memory events find it; NULL: everything may.
     *
     * @param [in]    flags    UCS_REGCACHE_INSPECT_xx.
     * @param [inout] start_p  Range of pages; if the answer is yes, it may be
     * @param [inout] end_p    made larger: to all pages that are known to have
     *                         the same answer until an event removes them.
     */
    int          (*inspect)(void *arg, unsigned flags, uintptr_t *start_p,
                            uintptr_t *end_p);

    /** A budget that is shared with others; NULL: there is none. */
    const ucs_regcache_budget_t *budget;

    /** Bytes that all caches of the program would hold if all were left pinned, which
     *  the price of memory is a part of. Each adds its own when it looks, and takes
     *  them off at its end; relaxed: a sum. NULL: this is the only one. */
    _Atomic(uint64_t)           *leave_bytes;
} ucs_regcache_env_t;

/** What is asked of @a inspect. */
enum {
    UCS_REGCACHE_INSPECT_KNOWN = 1 << 0,    /**< the answer was yes before, and
                                               no event has come since */
    UCS_REGCACHE_INSPECT_SPECULATE = 1 << 1 /**< nobody asked for the
                                               registration: it must not bring
                                               pages into memory either */
};

/** Parameters of @ref ucs_regcache_create. */
typedef struct ucs_regcache_params {
    ucs_regcache_policy_t policy;
    size_t                min_size;     /**< bytes; shorter requests go to the
                                             small leave-pinned cache */
    size_t                max_pinned;   /**< bytes, SIZE_MAX: no ceiling */
    unsigned long         max_regions;  /**< regions, ULONG_MAX: no ceiling */
    unsigned              dq_length;    /**< entries of the DQ, a power of two;
                                             0: default */
    unsigned              max_contexts; /**< bound of the call-site table; 0:
                                             default */
    double                max_slowdown; /**< what all memory that would be left
                                             pinned is worth, as a share of the
                                             run time; above 0, at most 1; 0:
                                             UCS_REGCACHE_MAX_SLOWDOWN */
    size_t                region_bytes; /**< that a registration holds beside
                                             its pages: counted with these
                                             where memory has a price, not
                                             where it has a ceiling */
    size_t                max_length; /**< bytes of one registration that the
                                             lower domain takes; 0: not known */
    size_t                page_size; /**< bytes, a power of two; 0: system's */
    unsigned              access_mask; /**< of a use's flags, those that allow
                                             something; a registration serves
                                             what it allows all of. 0: all */

    ucs_regcache_cover_t  cover;       /**< none is made below a ceiling of
                                             bytes */

    const ucs_regcache_tuning_t *tuning; /**< copied; NULL: the defaults */
} ucs_regcache_params_t;

/** @return Bytes that a cache of so many regions takes at most, with any policy. What
 *          is never used of them is not touched. */
size_t ucs_regcache_max_bytes(const ucs_regcache_params_t *params,
                              size_t regions);

/**
 * Create a cache without regions.
 *
 * @param [in]  params    Copied.
 * @param [in]  env       Copied; what it points to must outlive the cache.
 * @param [out] cache_p  Set only on success; owned by the caller.
 *
 * @return UCS_OK, UCS_ERR_NO_MEMORY, or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t ucs_regcache_create(const ucs_regcache_params_t *params,
                                 const ucs_regcache_env_t *env,
                                 ucs_regcache_h *cache_p);

/**
 * Deregister every region, those in use included (the domain is closing), and
 * release the cache. Nobody is inside a call, and no event comes any more.
 */
void ucs_regcache_destroy(ucs_regcache_h cache);

/**
 * Take a reference on a registration of [@a address, @a address + @a length): a live
 * one that covers range and access flags (hit: no allocation, no system call, no
 * lock), one that is being registered (waits for it), or a new one. Not from a memory
 * event.
 *
 * @param [in]  length  Bytes, above 0; the range does not wrap around.
 * @param [in]  flags   Access, by the mask of the parameters, and others, which the
 *                      lower domain is given if the use registers.
 * @param [in]  sp      Names the path that leads to the call: its stack position
 *                      (ucs/sys/proc/stack.h).
 * @param [out] memh_p  The lower domain's own handle, valid until
 *                      @ref ucs_regcache_put.
 *
 * @return UCS_OK, or what the lower domain returned, quietly, if need be after idle
 *         registrations were evicted and the registration retried once. Then
 *         @ref ucs_regcache_yield, and the lower domain can be asked directly: a
 *         handle that is not the cache's goes back to it as well.
 */
ucs_status_t ucs_regcache_get(ucs_regcache_h cache, void *address,
                              size_t length, unsigned flags, uintptr_t sp,
                              ucs_regcache_memh_t *memh_p);

/**
 * Give back one reference, in whatever thread; may deregister.
 *
 * @param [in] memh  Of @ref ucs_regcache_get.
 * @param [in] comp  NULL, or invalidate: the region leaves look-up at once, and is
 *                   deregistered with this completion once its last user has given it
 *                   back.
 *
 * @return UCS_OK; UCS_ERR_NO_ELEM if @a memh is not the cache's: the caller hands it
 *         to the lower domain.
 */
ucs_status_t ucs_regcache_put(ucs_regcache_h cache, ucs_regcache_memh_t memh,
                              ucs_regcache_comp_t comp);

/**
 * Has a memory event taken this registration's mapping away, or somebody invalidated
 * it? Its users may still hold it then.
 *
 * @param [in] memh  The caller has a reference on it, or it is not the cache's.
 *
 * @return Nonzero if so; 0 for a handle that is not the cache's.
 */
int ucs_regcache_is_gone(ucs_regcache_h cache, ucs_regcache_memh_t memh);

/**
 * Memory event: [@a address, @a address + @a length) is about to be unmapped. On
 * return no region overlapping it can be found any more, pending registrations of it
 * are cancelled and those in progress are doomed. Does not allocate, free, log, or
 * wait for a lock that is held across anything long. Also in a signal handler that
 * has interrupted the cache itself.
 */
void ucs_regcache_unmapped(ucs_regcache_h cache, uintptr_t address,
                           size_t length);

/**
 * Memory event: [@a address, @a address + @a length) has just been mapped. Does what
 * @ref ucs_regcache_unmapped does, for an event may have been missed; and covers may
 * take these pages in. From the thread that mapped them, before the program learns
 * the address.
 */
void ucs_regcache_mapped(ucs_regcache_h cache, uintptr_t address,
                         size_t length);

/**
 * Registrations of pages [@a start, @a end) may outlive their use: their first use
 * need not ask the environment. Forgotten where there is no room for it, or memory is
 * distrusted. Also inside a memory event.
 *
 * @param [in] events  Number of memory events, which grows before each event is told.
 * @param [in] number  What it was before the memory was looked at: if it is another
 *                     by now nothing is learned.
 */
void ucs_regcache_learn(ucs_regcache_h cache, uintptr_t start, uintptr_t end,
                        const _Atomic(uint64_t) *events, uint64_t number);

/**
 * As @ref ucs_regcache_unmapped, by a thread that must not wait for the lock's owner.
 *
 * @param [in] is_gone  The pages have been unmapped already, and others may have been
 *                      mapped there since.
 *
 * @return Zero if the lock is not free: nothing has been done, try again.
 */
int ucs_regcache_try_unmapped(ucs_regcache_h cache, uintptr_t address,
                              size_t length, int is_gone);

/** Gate for memory events that are read: while it is shut no reference is taken, and
 *  @ref ucs_regcache_get waits. One thread shuts and opens it. Neither waits. */
void ucs_regcache_gate_shut(ucs_regcache_h cache);
void ucs_regcache_gate_open(ucs_regcache_h cache);

/**
 * One step of the helper: deregisters what was struck, serves the deregistration
 * queue and the registration queue in turn. One thread at a time; which one may
 * change.
 *
 * @return When the next step is due at the latest, ns, or
 *         @ref UCS_REGCACHE_TIME_NEVER.
 */
uint64_t ucs_regcache_step(ucs_regcache_h cache, uint64_t now);

/**
 * What the program has said at UCP's entry points, by the thread that steps, between
 * steps. Receives that were posted are acted upon in the next step.
 *
 * @param [in] operations  Those of one thread in the order of their times.
 */
void ucs_regcache_tell(ucs_regcache_h cache, const ucs_operation_t *operations,
                       unsigned count);

/** @return Bytes from which on operations are always worth telling
 *          (@ref ucs_regcache_tell), shorter ones while the environment's `listen`
 *          says it; UINT64_MAX: none are. Does not change. */
uint64_t ucs_regcache_wants_from(ucs_regcache_h cache);

/**
 * A receive of @a length bytes was posted that the next step will hear of. Outside of
 * steps; the index lock is only tried.
 *
 * @return Nonzero if the helper should be woken: the policy has the buffer registered
 *         at once, it is not, and its registration takes longer than a wake-up.
 */
int ucs_regcache_post_is_urgent(ucs_regcache_h cache, uintptr_t address,
                                size_t length);

/**
 * A step in place of the helper's, by a thread that waits.
 *
 * @param [in] spare_ns  For so long the caller has waited already. What takes longer
 *                       in the lower domain is left to the helper, or to a later idle
 *                       step.
 *
 * @return As @ref ucs_regcache_step; @a now if a registration was left.
 */
uint64_t ucs_regcache_idle_step(ucs_regcache_h cache, uint64_t now,
                                uint64_t spare_ns);

/** @return Nonzero if the latest idle step registered or deregistered, had no time to
 *          register, or heard of uses that had to. By the thread that took it. */
int ucs_regcache_idle_was_used(ucs_regcache_h cache);

/** @return Nonzero if the policy wants steps by a helper thread at all. */
int ucs_regcache_needs_helper(ucs_regcache_h cache);

/** @return Nonzero if registrations outlive their uses: a thread must step when it is
 *          woken, for what was unmapped would stay pinned until the next use. */
int ucs_regcache_keeps_idle(ucs_regcache_h cache);

/** The helper thread cannot be had: from now on behave as leave_pinned; threads that
 *  register deregister what was struck. */
void ucs_regcache_helper_refused(ucs_regcache_h cache);

/** @return Nonzero if the calling thread has the index lock: it is in a signal handler
 *          that interrupted it, and must not call what follows. */
int ucs_regcache_is_locked_here(ucs_regcache_h cache);

/** Snapshot of all figures at time @a now, ns. */
void ucs_regcache_stats(ucs_regcache_h cache, uint64_t now,
                        ucs_regcache_stats_t *stats);

/** Add one cache's figures to a sum. Peaks add up too (so the peak of a sum is an
 *  upper bound), and a cost model is taken from the cache with more samples. */
void ucs_regcache_stats_add(ucs_regcache_stats_t *sum,
                            const ucs_regcache_stats_t *stats);

/**
 * Distrust memory for this reason, or no longer. While there is a reason each use
 * registers by itself and deregisters at its end, as without any cache. What was
 * registered before is out of look-up on return. Where a memory event may be.
 *
 * @param [in] reason  One of @ref ucs_regcache_distrust_t.
 */
void ucs_regcache_distrust(ucs_regcache_h cache, unsigned reason);
void ucs_regcache_trust(ucs_regcache_h cache, unsigned reason);

/** Give way to an application that is short of something: deregister all that nobody
 *  uses, and wait until no registration that nobody asked for is under way. The
 *  helper registers nothing in advance for a while. */
void ucs_regcache_yield(ucs_regcache_h cache);

/** Deregister what nobody uses, until at least @a length bytes are unpinned.
 *  @return Bytes unpinned; less if no more are idle. */
size_t ucs_regcache_shrink(ucs_regcache_h cache, size_t length);

/** Likewise, until so many registrations have gone. @return How many have. */
uint64_t ucs_regcache_shrink_regions(ucs_regcache_h cache, uint64_t count);

/**
 * The helper stands down: what is registered stays, as under leave_pinned, and
 * @ref ucs_regcache_rested is to be called instead of a step. It resumes: what is
 * idle and not about to be used goes. By the helper, between steps; neither does
 * anything the second time, nor for a cache that needs no helper.
 */
void ucs_regcache_rest(ucs_regcache_h cache);
void ucs_regcache_resume(ucs_regcache_h cache);

/** The step of a helper that has stood down: deregisters what was struck. */
void ucs_regcache_rested(ucs_regcache_h cache);

/** @return Nonzero if the latest step has registered or deregistered what a plan said,
 *          not what was announced or had to go. By the thread of the step. */
int ucs_regcache_step_did_plans(ucs_regcache_h cache);

/**
 * Say for which share of that work somebody else waits, who would run if the helper did
 * not: so much of what it takes is charged to the plans that need it. At first none is.
 * Any thread.
 *
 * @param [in] share  Of what it does; 0 to 1, more counts as 1.
 * @param [in] any    Of what it would do at any time: a deregistration is put off to
 *                    where the rank does not communicate, as long as that costs less.
 */
void ucs_regcache_set_wanted(ucs_regcache_h cache, double share, double any);

/** @return Nonzero if a registration failed for want of something that idle
 *          registrations may hold. */
int ucs_regcache_status_is_exhausted(ucs_status_t status);

END_C_DECLS

#endif
