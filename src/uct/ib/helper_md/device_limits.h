/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_DEVICE_LIMITS_H_
#define UCT_HELPER_DEVICE_LIMITS_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/*
 * What the system and a device allow, as they say at the start. Opens descriptors for
 * a moment: while a domain is being opened, which does so as well.
 */

BEGIN_C_DECLS

/** Of one device. */
typedef struct uct_helper_limits {
    uint64_t regions;    /**< registrations; UINT64_MAX: not known */
    size_t   max_length; /**< bytes of one; 0: not known */
} uct_helper_limits_t;

/**
 * Ask libibverbs, which UCX has loaded, for a device's max_mr and max_mr_size.
 *
 * @param [in]  device  Its name, as of the memory domain.
 * @param [out] limits  Not known if there is no such device, no library, or it
 *                      says nothing.
 */
void uct_helper_limits_verbs(const char *device, uct_helper_limits_t *limits);

/** @return Bytes that this process may lock (RLIMIT_MEMLOCK); UINT64_MAX if any,
 *          as with CAP_IPC_LOCK. */
uint64_t uct_helper_limits_memlock(void);

END_C_DECLS

#endif
