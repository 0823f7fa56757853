/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_POPULATE_H_
#define UCS_POPULATE_H_

#include <ucs/sys/compiler_def.h>

#include <sched.h>
#include <stddef.h>

/**
 * @file populate.h
 *
 * Several threads bring the pages of a range into memory. Zeroing and mapping
 * new pages takes most of the time of a large new registration, which one
 * thread does otherwise. Nothing here fails: the registration populates the
 * rest.
 */

BEGIN_C_DECLS

/** Bytes that one thread populates before it takes more. At half, twice as many
 *  system calls and no gain; at double, of a range of 256 MB two threads may
 *  end a quarter of it apart. A multiple of a huge page. */
#define UCS_POPULATE_CHUNK (32ul << 20)

/** Threads at most, the caller included: what one memory controller serves; at
 *  double they wait for each other, at half a node of many cores is not
 *  used. */
#define UCS_POPULATE_HANDS_MAX 16u

/** The result. */
typedef struct ucs_populated {
    size_t   bytes; /**< of populated chunks: not in memory before, by some of
                         their pages */
    unsigned hands; /**< threads that worked, the caller included */
} ucs_populated_t;


/**
 * Populate the whole pages of [@a address, @a address + @a length), as if each
 * were written to. Needs Linux 5.14; before, nothing is done. Stops at the
 * first page that cannot be had. From any thread that is not cancelled
 * meanwhile; starts threads, which have all signals blocked, and joins them
 * before it returns.
 *
 * @param [in] cpus   Where the threads may run; NULL: where the caller may. New
 *                    pages come to lie near the thread that populates them.
 * @param [in] hands  Threads at most, the caller included; 1: it alone, 0 does
 *                    nothing.
 */
ucs_populated_t ucs_populate(void *address, size_t length,
                             const cpu_set_t *cpus, unsigned hands);

END_C_DECLS

#endif
