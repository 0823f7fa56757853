/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_REQUEST_H_
#define UCS_REGCACHE_REQUEST_H_

#include <ucs/regcache/regcache.h>

#include <stddef.h>
#include <stdint.h>

/*
 * What a use asks for, as it is handed on, and what it has lost.
 */

/**
 * What a use asks for: filled once where it comes in, and handed on as it is.
 * Addresses are rounded to pages there and nowhere behind.
 */
typedef struct ucs_regcache_request {
    uintptr_t            start;      /* bytes [start, end) */
    uintptr_t            end;
    uintptr_t            first;      /* the pages that they touch: first byte of
                                        the first */
    uintptr_t            last;       /* behind the last */
    unsigned             flags;      /* for the lower domain, if it registers */
    unsigned             access;     /* those of them that allow something */
    ucs_regcache_class_t size_class;
    uintptr_t            sp;         /* stack position of the call */
    uint64_t             now;        /* ns, when it came */
    int                  is_alone;   /* for this use only: in no look-up */
    int                  is_cover;   /* more than anybody asked for */
    int                  is_scattered; /* likewise, and beyond neighbours */
    int                  is_window;    /* likewise, ahead of a walk */
    size_t               ahead;        /* pages beyond what was asked for */
    const struct ucs_predict_walk *walk; /* that it is a step of, and for which
                                            windows are made; NULL: none */
} ucs_regcache_request_t;

/** What a use has lost beyond a hit and is not in the totals yet. */
typedef struct ucs_regcache_loss {
    uint64_t            since; /* ns: up to then it is */
    ucs_regcache_lost_t why;   /* it loses since */
} ucs_regcache_loss_t;

#endif
