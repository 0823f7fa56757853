/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_ANNOUNCE_H_
#define UCS_REGCACHE_ANNOUNCE_H_

#include <ucs/regcache/region/region.h>
#include <ucs/predict/operation.h>

/*
 * Announced uses: receives that the program has posted and that are long enough to need
 * a registration. Such a use is certain, also of a buffer that was never used before;
 * only its time is not, for that is the partner's. So its buffer is registered at once,
 * and given up when holding it has cost a missed use. If the policy's plan registers the
 * buffer later, it is left to the plan, provided that holding it until then costs more than
 * such plans of this buffer have lost by coming too late for an announced use.
 *
 * Of memory that nobody has used yet as much is registered as the longest message so
 * far, with the access of the latest use; until there was one it waits. Receives whose
 * messages are too short to be registered cost a registration in vain: an account says
 * whether those that save a use pay for them. Under a policy that keeps what is
 * registered the whole buffer is registered at the post, and stays.
 *
 *   WAITING  to be registered at `due`
 *   READY    it is registered, and stays so until `until`
 *   PASSED   it does not pay, or did not
 *
 * A memory event over its range voids an announcement. The region that it keeps is a
 * region like others: events strike it, and ceilings evict it. Owned by the thread that
 * steps.
 */

/** Receives that are remembered at once; of more the latest are. */
#define UCS_REGCACHE_ANNOUNCED 128u

typedef enum ucs_regcache_announced_state {
    UCS_REGCACHE_ANNOUNCED_NONE,
    UCS_REGCACHE_ANNOUNCED_WAITING,
    UCS_REGCACHE_ANNOUNCED_READY,
    UCS_REGCACHE_ANNOUNCED_PASSED
} ucs_regcache_announced_state_t;

typedef struct ucs_regcache_announcement {
    uint64_t                       posted;     /* ns */
    uint64_t                       due;        /* ns, when registering begins */
    uint64_t                       planned;    /* ns, when the plan of its buffer
                                                  registers it; 0: there is none.
                                                  While it is WAITING it is left to
                                                  that plan */
    uint64_t                       until;      /* ns, when it is given up */
    uint64_t                       ready;      /* ns, since when it is READY */
    uint64_t                       rent;       /* ns: holding it so long costs a
                                                  missed use */
    uint64_t                       takes;      /* ns, registering it */
    size_t                         bytes;      /* that it pins */
    uintptr_t                      start;
    uintptr_t                      end;
    uint32_t                       id;         /* 0: its end is not told */
    uint32_t                       thread;
    uint32_t                       is_over;    /* no use can be its own */
    uint32_t                       is_left;    /* it has been left to the plan */
    uint32_t                       has_acted;  /* it was registered for this */
    uint32_t                       in_wait;    /* READY in an idle step, so by the
                                                  rank itself */
    uint32_t                       is_first;   /* what the helper registered for
                                                  it never was before */
    uint32_t                       is_new;     /* nobody has used the place: how
                                                  much of it will be, other
                                                  messages tell */
    uint32_t                       is_settled; /* it is known by what access and
                                                  how far it will be used, so
                                                  `due` and `until` are */
    ucs_regcache_announced_state_t state;
    ucs_regcache_region_t          *region;    /* READY */
    uint64_t                       generation; /* likewise */
} ucs_regcache_announcement_t;

/** All zero: nothing was announced. */
typedef struct ucs_regcache_announced {
    ucs_regcache_announcement_t list[UCS_REGCACHE_ANNOUNCED];
    unsigned                    first;     /* number of the oldest that is not
                                              NONE, as they were posted */
    unsigned                    next;      /* likewise, of the next one; the list
                                              has those before it */
    unsigned                    ready;     /* that are READY */
    size_t                      ready_bytes; /* of these, two that share a buffer
                                                counted as two */
    uint64_t                    longest;   /* bytes of the longest message that
                                              was sent or received */
    double                      debt;      /* missed uses, that were spent in vain
                                              and have not been saved since */
    double                      saved;     /* of the use being learned from */
    int                         was_ready; /* likewise */
    int                         was_left;  /* likewise, to the plan */
} ucs_regcache_announced_t;

/*
 * What announce.c, which knows the announcements and what they are worth, does for
 * announce_serve.c, which registers for them. All of it is the thread's that steps,
 * without the index lock; nothing fails, and announcements stay in the list.
 */

/** @return The announcement of a number, of those from the first to before the next. */
static inline ucs_regcache_announcement_t *
ucs_regcache_announced_at(ucs_regcache_announced_t *announced, unsigned i)
{
    return &announced->list[i % UCS_REGCACHE_ANNOUNCED];
}

/** Visit all that are not NONE, as they were posted. The one that is visited may be set
 *  to any state. */
#define ucs_regcache_announced_for_each(_of, _i, _announced) \
    for ((_i) = (_announced)->first; (_i) != (_announced)->next; ++(_i)) \
        if (((_of) = ucs_regcache_announced_at(_announced, _i))->state != \
            UCS_REGCACHE_ANNOUNCED_NONE)

/**
 * Change the state, and what is counted of the READY ones. What an announcement had READY
 * stays registered.
 *
 * @param [inout] of  Of the list; if it was or becomes READY its region, generation and
 *                    bytes are set.
 */
void ucs_regcache_announced_set(ucs_regcache_announced_t *announced,
                                ucs_regcache_announcement_t *of,
                                ucs_regcache_announced_state_t state);

/** Find out how much is to be registered, when, and until when, ns; and what that
 *  costs. If it is not clear yet how it will be used, `is_settled` is 0 then, and it is to be
 *  asked again. Takes the index lock. */
void ucs_regcache_announced_settle(ucs_regcache_h cache,
                                   ucs_regcache_announcement_t *of);

/** Give up what has ended, or did not come until @a now, ns; its registrations too if
 *  nothing else keeps them. Something was said before. Takes the index lock. */
void ucs_regcache_announced_expire(ucs_regcache_h cache, uint64_t now);

#endif
