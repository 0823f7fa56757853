/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_SITE_H_
#define UCT_HELPER_SITE_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file site.h
 *
 * Where a registration comes from: a hash of the return addresses on the stack
 * from the caller of UCP upwards (Li et al., CF'11, section 3.1). Frames of
 * UCX's libraries and of the helper itself are left out, for they depend on
 * the protocol and not on the program.
 *
 * A walk of the stack costs some 100 ns and, the first time that it meets a
 * function, system calls. So only a use that has to register walks; a hit
 * leaves its stack position, and the helper asks a table which path was walked
 * last from that position with that buffer. Two paths that meet in this are
 * confused until one of them misses, which costs a prediction and nothing else.
 */

BEGIN_C_DECLS

/** Most frames of a path that count. */
#define UCT_HELPER_SITE_MAX_FRAMES 24

typedef struct uct_helper_site *uct_helper_site_h;

/** Figures of one site table. */
typedef struct uct_helper_site_stats {
    uint64_t walks;     /**< walks of the stack */
    uint64_t confirmed; /**< that agreed with what was remembered */
    uint64_t corrected; /**< that did not */
} uct_helper_site_stats_t;


/**
 * Create an empty table and note which libraries are UCX's.
 *
 * @param [out] site_p  Owned by the caller.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_helper_site_create(uct_helper_site_h *site_p);


/** Release the table; no call may be in progress. */
void uct_helper_site_destroy(uct_helper_site_h site);


/**
 * Walk the stack and remember the path. From any thread, but not from a memory
 * event: the first walk of a thread allocates, and a walk may take the dynamic
 * loader's lock.
 *
 * @param [in] sp       Stack position of the call that the path is remembered
 *                      under.
 * @param [in] address  Buffer.
 * @param [in] length   Bytes.
 *
 * @return The signature, never 0.
 */
uint64_t uct_helper_site_walk(uct_helper_site_h site, uintptr_t sp,
                              uintptr_t address, size_t length);


/**
 * @return The signature that was remembered last under this key, or 0. Any
 *         thread; neither allocates nor waits.
 */
uint64_t uct_helper_site_recall(uct_helper_site_h site, uintptr_t sp,
                                uintptr_t address, size_t length);


/** Snapshot of the figures; any thread. */
void uct_helper_site_stats(uct_helper_site_h site,
                           uct_helper_site_stats_t *stats);

END_C_DECLS

#endif
