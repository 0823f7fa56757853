/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_MAPS_H_
#define UCS_MAPS_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/io/own_fd.h>

#include <stdint.h>

/*
 * The mappings of this process as the kernel tells of them: /proc/PID/maps read
 * as text, and asked for a single one where the kernel can be (PROCMAP_QUERY,
 * Linux 6.11). Nothing here allocates, logs or takes a lock. Thread-safe.
 */

BEGIN_C_DECLS

/** Flags of a mapping, as in the ABI of PROCMAP_QUERY. */
enum {
    UCS_MAPS_READABLE = 0x01,
    UCS_MAPS_WRITABLE = 0x02,
    UCS_MAPS_EXEC     = 0x04,
    UCS_MAPS_SHARED   = 0x08,
    UCS_MAPS_ACCESS   = UCS_MAPS_READABLE | UCS_MAPS_WRITABLE | UCS_MAPS_EXEC,

    UCS_MAPS_NEXT     = 0x10 /**< of a question: the next one if none covers */
};

/** One mapping. */
typedef struct ucs_maps_vma {
    uintptr_t start;
    uintptr_t end;
    unsigned  flags;   /**< UCS_MAPS_xx */
    int       is_file; /**< of a file or a device */
} ucs_maps_vma_t;

/** Told of a mapping. @return Zero: of no further one. */
typedef int (*ucs_maps_func_t)(void *arg, const ucs_maps_vma_t *vma);

/**
 * Open what the two functions below read. A caller that keeps the descriptor has
 * a forked child forget it: it would show the child its parent's memory.
 *
 * @param [out] own  Keeps it, for @ref ucs_own_fd_close.
 *
 * @return The descriptor, or -1 if /proc is not there.
 */
int ucs_maps_open(ucs_own_fd_t *own);

/** @return Nonzero if there is text to be read. There is none once the thread has
 *          ended that opened it, if the first thread had ended by then; single
 *          mappings can be asked for all the same. */
int ucs_maps_has_text(int fd);

/**
 * Ask for the mapping that covers an address.
 *
 * @param [in]  fd     As of @ref ucs_maps_open.
 * @param [in]  flags  0 or UCS_MAPS_NEXT.
 * @param [out] vma    Set on success.
 *
 * @return 0, or a negative errno: -ENOENT if there is none, -ENOTTY of a kernel
 *         that cannot be asked so.
 */
int ucs_maps_query(int fd, uintptr_t address, unsigned flags,
                   ucs_maps_vma_t *vma);

/** @return Nonzero if a mapping is private anonymous memory. */
static inline int ucs_maps_is_anonymous(const ucs_maps_vma_t *vma)
{
    return !vma->is_file && !(vma->flags & UCS_MAPS_SHARED);
}

/**
 * Read the text and tell @a func of each mapping, in ascending order, until it
 * returns zero.
 *
 * @param [in] own  As of @ref ucs_maps_open.
 *
 * @return 0 or a negative errno: -EBADF if it may have been the text of a file that
 *         the program has put in its place.
 */
int ucs_maps_each(ucs_own_fd_t *own, ucs_maps_func_t func, void *arg);

/** The same of a descriptor that is opened and closed here. */
int ucs_maps_read(ucs_maps_func_t func, void *arg);

/**
 * Mappings of the process that overlap [@a start, @a end), or all with 0 and
 * UINTPTR_MAX. Time grows with their number.
 *
 * @return -1 if /proc cannot be read.
 */
long ucs_maps_count(uintptr_t start, uintptr_t end);

END_C_DECLS

#endif
