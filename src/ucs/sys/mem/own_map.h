/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_OWN_MAP_H_
#define UCS_OWN_MAP_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Pages of our own that are never locked, in spite of mlockall(), and do not
 * count towards RLIMIT_MEMLOCK. Any thread. By system calls: the library's
 * functions would tell the caches, and nothing of ours is registered.
 */

BEGIN_C_DECLS

/* What not each C library shows */
#define UCS_OWN_MAYMOVE   1        /* MREMAP_MAYMOVE */
#define UCS_OWN_NOREPLACE 0x100000 /* MAP_FIXED_NOREPLACE, Linux 4.17 */

/** @return Bytes rounded up to whole pages, or 0 on overflow. */
static inline size_t ucs_own_round(size_t length)
{
    size_t page = sysconf(_SC_PAGESIZE);

    return (length > SIZE_MAX - page) ? 0 : (length + page - 1) / page * page;
}

/**
 * As @ref ucs_own_map, at a place of the caller's choice.
 *
 * @param [in] place   Address of a page; 0: the kernel chooses, as it may where
 *                     a thread of the program is the caller.
 * @param [in] length  Bytes, above 0; rounded up to whole pages.
 *
 * @return Pages that @ref ucs_own_unmap releases, or NULL: the place is not
 *         free, or there is no memory.
 */
static inline void *ucs_own_map_at(uintptr_t place, size_t length)
{
    size_t page = sysconf(_SC_PAGESIZE);
    void *address, *grown;

    length = ucs_own_round(length);
    if (length == 0) {
        return NULL;
    }
    address = (void*)syscall(SYS_mmap, place, page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS |
                                     ((place == 0) ? 0 : UCS_OWN_NOREPLACE),
                             -1, 0);
    if (address == MAP_FAILED) {
        return NULL;
    }
    /* A mapping that grows out of an unlocked page is not locked */
    (void)syscall(SYS_munlock, address, page);
    grown = address;
    if ((place != 0) && ((uintptr_t)address != place)) {
        grown = MAP_FAILED; /* an older kernel takes it for a hint */
    } else if (length > page) {
        grown = (void*)syscall(SYS_mremap, address, page, length,
                               (place == 0) ? UCS_OWN_MAYMOVE : 0);
    }
    if (grown == MAP_FAILED) {
        syscall(SYS_munmap, address, page);
        return NULL;
    }
    return grown;
}

/**
 * Map pages, zeroed, readable and writable. They lie far from where the kernel
 * puts a program's mappings: a program may unmap a range and map it anew with
 * MAP_FIXED, and what a thread of ours had mapped there in between would be lost.
 * Where that place is taken, refused or out of reach, the kernel chooses.
 *
 * @param [in] length  Bytes, above 0; rounded up to whole pages.
 *
 * @return Pages that @ref ucs_own_unmap releases, or NULL.
 */
void *ucs_own_map(size_t length);

/** Release what @ref ucs_own_map returned for this length. NULL is nothing. */
static inline void ucs_own_unmap(void *address, size_t length)
{
    if (address != NULL) {
        syscall(SYS_munmap, address, ucs_own_round(length));
    }
}

END_C_DECLS

#endif
