/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_KNOWN_MEMORY_H_
#define UCS_REGCACHE_KNOWN_MEMORY_H_

#include "region.h"

#include <ucs/datastruct/extents.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is known of memory, whoever has registered it: may a registration of it
 * outlive its use, and which neighbours may it be registered with?
 */

/** After so many refusals by the lower domain no covers are tried any more: each costs
 *  a use a registration in vain. */
#define UCS_REGCACHE_COVER_FAILURES 8

/** Memory events that are remembered, a power of two. */
#define UCS_REGCACHE_EVENTS 64u

/** A memory event: pages [start, end) at a time. */
typedef struct ucs_regcache_event {
    uintptr_t start;
    uintptr_t end;
    uint64_t  time; /* ns */
} ucs_regcache_event_t;

/** Mappings in which the program's own pieces are counted; with more the oldest begins
 *  anew. */
#define UCS_REGCACHE_FIELDS 8

/** A mapping in which the program maps pieces itself (field.c). */
typedef struct ucs_regcache_field {
    uintptr_t at;      /* an address in it; 0: there is none */
    size_t    asked;   /* bytes of first uses */
    size_t    covered; /* bytes that were registered for these */
    size_t    longest; /* bytes of a piece, in whole pages */
    int       is_uneven; /* pieces differ, or lie across their multiples */
    unsigned  refused; /* covers that would have brought in memory */
} ucs_regcache_field_t;

/** Kinds of access that uses give others, of which it is remembered for which bytes. */
#define UCS_REGCACHE_GIVEN 2

/** Bytes of which uses have given others keys (cover/given.c). */
typedef struct ucs_regcache_given {
    ucs_extents_t bytes;
    unsigned      access; /* that these keys give; 0: there are none */
} ucs_regcache_given_t;

/** What is known of memory, by pages. Protected by the index lock. */
typedef struct ucs_regcache_memory {
    ucs_extents_t seen;      /* was registered once and is still mapped */
    ucs_extents_t kept;      /* its registration may outlive its use */
    ucs_extents_t barred;    /* it may not */
    ucs_extents_t untouched; /* no event has touched it, or it was mapped or asked
                                for since; empty without covers */
    ucs_regcache_given_t given[UCS_REGCACHE_GIVEN];
    unsigned      cover_failures; /* covers that were refused */
    int           has_covers;     /* there was one: more may be pinned than was
                                     asked for */
    ucs_regcache_field_t fields[UCS_REGCACHE_FIELDS];
    unsigned      fields_begun;   /* ever */
    uint64_t      events; /* memory events so far */
    ucs_regcache_event_t latest[UCS_REGCACHE_EVENTS]; /* by their number */
} ucs_regcache_memory_t;

/** What is known of the memory of a region that is REGISTERING. */
typedef struct ucs_regcache_inspection {
    uintptr_t     start;     /* pages: its own, and if the environment said yes
                                all that are known to be alike */
    uintptr_t     end;
    uint64_t      events;    /* memory events before it */
    int           is_kept;   /* it may outlive its use, as was found before */
    int           is_barred; /* it may not, likewise */
    ucs_extents_t *learned;  /* what they are to be added to; NULL: nothing */
} ucs_regcache_inspection_t;

/* --- inspect.c --- */

/** Look up what is known of a region's memory. Under the lock. */
void ucs_regcache_inspect_begin(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region,
                                ucs_regcache_inspection_t *inspection);

/**
 * May the registration outlive its use, or, with UCS_REGCACHE_INSPECT_SPECULATE
 * in @a flags, be made? Outside of the lock.
 */
int ucs_regcache_inspect(ucs_regcache_h cache, unsigned flags,
                         ucs_regcache_inspection_t *inspection);

/** Remember the answer. Under the lock. */
void ucs_regcache_inspect_end(ucs_regcache_h cache,
                              const ucs_regcache_inspection_t *inspection);

/* --- cover.c: under the lock, but for the first --- */

/** @return UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t ucs_regcache_cover_init(ucs_regcache_h cache,
                                     const ucs_regcache_params_t *params);

/** Enlarge what is to be registered by what lies ahead of it, if neighbours are
 *  registered and covers are on, or around it, if other pieces of the mapping
 *  are. @return Nonzero if it is enlarged. */
int ucs_regcache_cover(ucs_regcache_h cache, ucs_regcache_request_t *whole);

/** The inspection has said no to a cover. */
void ucs_regcache_cover_refused(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region);

/** @return What is to be asked of the memory of a region that a use with these
 *          flags registers, UCS_REGCACHE_INSPECT_xx. Outside of the lock, too. */
unsigned ucs_regcache_cover_question(ucs_regcache_h cache,
                                     const ucs_regcache_region_t *region,
                                     unsigned flags);

/** A use asks for a range, which is not in memory.seen yet if this is the first:
 *  whatever an event did to it is over. */
void ucs_regcache_cover_asked(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request);

/** Pages have just been mapped: whatever an event did to them is over. */
void ucs_regcache_cover_mapped(ucs_regcache_h cache, uintptr_t start,
                               uintptr_t end);

/** A use has found its range in a cover. */
void ucs_regcache_cover_serves(ucs_regcache_h cache,
                               const ucs_regcache_request_t *request);

#endif
