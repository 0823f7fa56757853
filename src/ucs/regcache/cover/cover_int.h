/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_COVER_INT_H_
#define UCS_REGCACHE_COVER_INT_H_

#include <ucs/predict/walk.h>
#include <ucs/regcache/region/known_memory.h>

#include <stddef.h>
#include <stdint.h>

/*
 * What the files of covers do for each other; nobody else includes it. All are
 * called under the index lock.
 */

/** Neighbours that are looked at to either side: those before the covers are as
 *  many as pieces, and 64 of these make covers of 64 pieces from then on. */
#define UCS_REGCACHE_COVER_NEIGHBOURS 64

/* --- cover.c --- */

/** @return Nonzero if it is the program's own mapping: its pages are wanted in
 *          memory. */
int ucs_regcache_cover_is_own(ucs_regcache_h cache, unsigned flags);

/** @return Nonzero if the request may be registered with what nobody asked for:
 *          the user allows it, for its access, and no ceiling forbids it. */
int ucs_regcache_may_cover(ucs_regcache_h cache,
                           const ucs_regcache_request_t *request);

/* --- given.c: what others have keys of --- */

/** A use asks for a range: if it gives others access, they have it of these
 *  bytes. */
void ucs_regcache_given_note(ucs_regcache_h cache,
                             const ucs_regcache_request_t *request);

/** @return How many bytes beyond a walk's step at @a at, where it goes, others have been
 *          given together with that, with this access; 0 also if they have not. */
size_t ucs_regcache_given_bytes(ucs_regcache_h cache,
                                const ucs_predict_walk_t *walk, unsigned access,
                                uintptr_t at);

/** Enlarge what is to be registered for the step at @a at by so many bytes, where the
 *  walk goes, or as far as a cover may reach: to the byte, and by whole steps. */
void ucs_regcache_given_enlarge(ucs_regcache_h cache,
                                ucs_regcache_request_t *whole, uintptr_t at,
                                size_t bytes);

/* --- field.c: what the program maps piece by piece --- */

/** @return What is counted of the mapping of an address, or NULL if the mapping
 *          is not known or nothing of it was counted. The cache's; another
 *          mapping may take its place later. */
ucs_regcache_field_t *ucs_regcache_cover_field(ucs_regcache_h cache,
                                               uintptr_t address);

/** Count the first use of a piece that the program maps itself, if its mapping
 *  is known. */
void ucs_regcache_cover_count(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request);

/** @return How many bytes of a mapping are to be registered around a piece: as
 *          many as were registered in it so far, but such that of all a share
 *          has been asked for; 0 if @a field is NULL. */
size_t ucs_regcache_cover_scatter(ucs_regcache_h cache,
                                  const ucs_regcache_field_t *field);

/* --- extend.c: how far a cover may reach --- */

/** Enlarge @a whole behind its end, by @a length bytes at most, as far as
 *  memory is free of other regions, of the kind that may be kept, and no event
 *  has touched it. At the other end nothing is cut. */
void ucs_regcache_cover_behind_by(ucs_regcache_h cache,
                                  ucs_regcache_request_t *whole,
                                  size_t length);

/** Likewise before its start. */
void ucs_regcache_cover_before_by(ucs_regcache_h cache,
                                  ucs_regcache_request_t *whole,
                                  size_t length);

/** As much to either side as there is, @a length bytes in all. By multiples of
 *  the piece: what lies across an end of a cover needs a registration of its
 *  own, and pieces of one length mostly lie at multiples of it. */
void ucs_regcache_cover_around_by(ucs_regcache_h cache,
                                  ucs_regcache_request_t *whole,
                                  size_t length);

/** Reach into the registrations at the ends at which @a whole is larger than
 *  what was @a asked for, by @a longest bytes, but by a quarter at most: what
 *  is pinned twice stays a small part of all. */
void ucs_regcache_cover_overlap(ucs_regcache_h cache,
                                ucs_regcache_request_t *whole,
                                const ucs_regcache_request_t *asked,
                                size_t longest);

#endif
