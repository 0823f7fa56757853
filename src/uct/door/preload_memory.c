/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */

#include <ucs/sys/sync/atomic.h>
#include <uct/ib/helper_md/watch/calls.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* These come from kernels that are newer than the headers. */
#ifndef MADV_DONTNEED_LOCKED
#  define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif
#ifndef MADV_COLLAPSE
#  define MADV_COLLAPSE      25   /* Linux 6.1 */
#endif
#ifndef MAP_FIXED_NOREPLACE
#  define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17 */
#endif
#ifndef MREMAP_DONTUNMAP
#  define MREMAP_DONTUNMAP   4    /* Linux 5.7 */
#endif
#ifndef MADV_GUARD_INSTALL
#  define MADV_GUARD_INSTALL 102  /* Linux 6.13 */
#endif
#ifndef MADV_GUARD_REMOVE
#  define MADV_GUARD_REMOVE  103
#endif

/*
 * Functions of the C library by which a program changes its memory. The stub
 * stands in front of them, reports to its listener, if any, and calls them. It
 * does not see raw system calls, io_uring's, and the C library's own calls.
 */

#define UCT_PRELOAD_EXPORT __attribute__((visibility("default")))

/* The function has the symbol version that programs use, and a look-up by name
 * alone does not find it (preload.map.in). UCX and Open MPI look up the
 * function to patch that way, and must find the C library's. */
#define UCT_PRELOAD_INTERPOSE(_name, _version) \
    __asm__(".symver uct_preload_my_" #_name "," #_name "@" _version)

/* By its header from glibc 2.36 on */
typedef ssize_t (*uct_preload_process_madvise_func_t)(
        int pidfd, const struct iovec *iov, size_t count, int advice,
        unsigned flags);

/* These are the C library's functions, as the next in line has them. They are
 * set before main() runs, and NULL before that, when another library's
 * constructor maps memory: dlsym() may allocate, and that library may be the
 * allocator. */
static _Atomic(__typeof__(&mmap)) uct_preload_mmap;
static _Atomic(__typeof__(&munmap)) uct_preload_munmap;
static _Atomic(__typeof__(&mremap)) uct_preload_mremap;
static _Atomic(__typeof__(&madvise)) uct_preload_madvise;
static _Atomic(uct_preload_process_madvise_func_t) uct_preload_process_madvise;
static _Atomic(__typeof__(&ioctl)) uct_preload_ioctl;

/* Call the C library's function; the kernel while that is not known */
#define UCT_PRELOAD_CALL(_ret, _name, ...) \
    ({ \
        __typeof__(ucs_load_relaxed(&uct_preload_##_name)) real = \
                ucs_load_relaxed(&uct_preload_##_name); \
        \
        (real != NULL) ? real(__VA_ARGS__) : \
                         (_ret)syscall(SYS_##_name, __VA_ARGS__); \
    })

static _Atomic(const uct_helper_calls_t*) uct_preload_listener;

void uct_preload_listen(const uct_helper_calls_t *listener);

UCT_PRELOAD_EXPORT void
uct_preload_listen(const uct_helper_calls_t *listener)
{
    /* [P-LISTEN] The release pairs with the acquire in uct_preload_heard(). */
    ucs_store_release(&uct_preload_listener, listener);
}

static inline const uct_helper_calls_t *uct_preload_heard(void)
{
    return ucs_load_acquire(&uct_preload_listener); /* [P-LISTEN] */
}

static void uct_preload_tell(void (*what)(void *address, size_t length),
                             void *address, size_t length)
{
    int saved = errno;

    what(address, length);
    errno = saved;
}

#define UCT_PRELOAD_FIND(_name) \
    ucs_store_relaxed(&uct_preload_##_name, dlsym(RTLD_NEXT, #_name))

__attribute__((constructor)) static void uct_preload_find_memory(void)
{
    UCT_PRELOAD_FIND(mmap);
    UCT_PRELOAD_FIND(munmap);
    UCT_PRELOAD_FIND(mremap);
    UCT_PRELOAD_FIND(madvise);
    UCT_PRELOAD_FIND(process_madvise);
    UCT_PRELOAD_FIND(ioctl);
}

/* --- mmap ----------------------------------------------------------------- */

/* Memory of a kind that is not kept: what lay there may have been inspected by another
 * thread since the hooks told that it goes */
static void *uct_preload_map_other(const uct_helper_calls_t *listener,
                                   void *address, size_t length, int prot,
                                   int flags, int fd, off_t offset)
{
    void *mapped = UCT_PRELOAD_CALL(void*, mmap, address, length, prot, flags,
                                    fd, offset);

    if ((listener != NULL) && (flags & MAP_FIXED) && (mapped != MAP_FAILED)) {
        uct_preload_tell(listener->discard, mapped, length);
    }
    return mapped;
}

UCT_PRELOAD_EXPORT void *uct_preload_my_mmap(void *address, size_t length,
                                             int prot, int flags, int fd,
                                             off_t offset)
{
    const uct_helper_calls_t *listener = uct_preload_heard();
    void *mapped;

    if ((listener == NULL) || !(flags & MAP_ANONYMOUS) ||
        ((flags & MAP_TYPE) != MAP_PRIVATE)) {
        return uct_preload_map_other(listener, address, length, prot, flags, fd,
                                     offset);
    }

    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
        uct_preload_tell(listener->place, address, length);
    }
    mapped = UCT_PRELOAD_CALL(void*, mmap, address, length, prot, flags, fd,
                              offset);
    if (mapped != MAP_FAILED) {
        uct_preload_tell(listener->mapped, mapped, length);
    }
    return mapped;
}

UCT_PRELOAD_EXPORT void *uct_preload_my_mmap64(void *address, size_t length,
                                               int prot, int flags, int fd,
                                               off_t offset)
        __attribute__((alias("uct_preload_my_mmap")));

UCT_PRELOAD_INTERPOSE(mmap, UCT_PRELOAD_LIBC);
UCT_PRELOAD_INTERPOSE(mmap64, UCT_PRELOAD_LIBC);

/* --- munmap --------------------------------------------------------------- */

/* The report after the call is for a thread that has inspected the memory
 * meanwhile. An odd address is UCX's test of its hooks: the kernel refuses
 * it. */
UCT_PRELOAD_EXPORT int uct_preload_my_munmap(void *address, size_t length)
{
    const uct_helper_calls_t *listener = uct_preload_heard();
    int ret;

    if ((listener == NULL) ||
        ((uintptr_t)address % sysconf(_SC_PAGESIZE) != 0)) {
        return UCT_PRELOAD_CALL(int, munmap, address, length);
    }

    uct_preload_tell(listener->unmap, address, length);
    ret = UCT_PRELOAD_CALL(int, munmap, address, length);
    uct_preload_tell((ret == 0) ? listener->discard : listener->mapped, address,
                     length);
    return ret;
}

UCT_PRELOAD_INTERPOSE(munmap, UCT_PRELOAD_LIBC);

/* --- mremap --------------------------------------------------------------- */

/* The hook of UCX 1.13 takes four arguments, so the kernel would get whatever a
 * register holds as the new address, and of huge pages it looks at that also where it
 * was not asked to move them there. The hook hears of both ranges by calls that
 * change nothing, for they leave memory where it is; the kernel gets all five. */
static void *uct_preload_move(void *old_address, size_t old_size,
                              size_t new_size, int flags, void *new_address)
{
    (void)UCT_PRELOAD_CALL(void*, mremap, old_address, old_size, old_size, 0,
                           NULL);
    if (flags & MREMAP_FIXED) {
        (void)UCT_PRELOAD_CALL(void*, mremap, new_address, new_size, new_size,
                               0, NULL);
    }
    return (void*)syscall(SYS_mremap, old_address, old_size, new_size, flags,
                          new_address);
}

/* The kernel moves a range as one mapping only if all or none of it is watched,
 * and several mappings at once only if none is. After a refusal the memory lies
 * where it was. */
UCT_PRELOAD_EXPORT void *uct_preload_my_mremap(void *old_address,
                                               size_t old_size, size_t new_size,
                                               int flags, ...)
{
    const uct_helper_calls_t *listener = uct_preload_heard();
    void *new_address                      = NULL;
    void *mapped;
    va_list args;

    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
        va_start(args, flags);
        new_address = va_arg(args, void*);
        va_end(args);
    }

    if (listener == NULL) {
        return UCT_PRELOAD_CALL(void*, mremap, old_address, old_size, new_size,
                                flags, new_address);
    }

    if (flags & MREMAP_FIXED) {
        uct_preload_tell(listener->discard, new_address, new_size);
        uct_preload_tell(listener->place, new_address, new_size);
    }
    /* Last: the old range may lie beside the new one. */
    uct_preload_tell(listener->leave, old_address, old_size);
    mapped = uct_preload_move(old_address, old_size, new_size, flags,
                              new_address);
    uct_preload_tell(((mapped == MAP_FAILED) || (flags & MREMAP_DONTUNMAP)) ?
                     listener->mapped : listener->discard,
                     old_address, old_size);
    if (mapped != MAP_FAILED) {
        uct_preload_tell(listener->mapped, mapped, new_size);
    }
    return mapped;
}

UCT_PRELOAD_INTERPOSE(mremap, UCT_PRELOAD_LIBC);

/* --- madvise -------------------------------------------------------------- */

static int uct_preload_is_discard(int advice)
{
    switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case MADV_DONTNEED_LOCKED:
    case MADV_GUARD_INSTALL:
    case MADV_GUARD_REMOVE:
        return 1;
    default:
        return 0;
    }
}

/* The kernel makes no huge pages of watched memory */
static int uct_preload_collapse(const uct_helper_calls_t *listener,
                                void *address, size_t length)
{
    int ret;

    uct_preload_tell(listener->leave, address, length);
    ret = UCT_PRELOAD_CALL(int, madvise, address, length, MADV_COLLAPSE);
    uct_preload_tell(listener->mapped, address, length);
    return ret;
}

UCT_PRELOAD_EXPORT int uct_preload_my_madvise(void *address, size_t length,
                                              int advice)
{
    const uct_helper_calls_t *listener = uct_preload_heard();

    if (listener != NULL) {
        if (advice == MADV_COLLAPSE) {
            return uct_preload_collapse(listener, address, length);
        }
        if (uct_preload_is_discard(advice)) {
            uct_preload_tell(listener->discard, address, length);
        }
    }
    return UCT_PRELOAD_CALL(int, madvise, address, length, advice);
}

UCT_PRELOAD_INTERPOSE(madvise, UCT_PRELOAD_LIBC);

/* The range may be another process's; then our region is registered once more
 * than necessary. */
UCT_PRELOAD_EXPORT ssize_t
uct_preload_my_process_madvise(int pidfd, const struct iovec *iov, size_t count,
                               int advice, unsigned flags)
{
    const uct_helper_calls_t *listener = uct_preload_heard();
    size_t i;

    if ((listener != NULL) && uct_preload_is_discard(advice) &&
        (count <= IOV_MAX)) {
        for (i = 0; i < count; ++i) {
            uct_preload_tell(listener->discard, iov[i].iov_base,
                             iov[i].iov_len);
        }
    }
    return UCT_PRELOAD_CALL(ssize_t, process_madvise, pidfd, iov, count, advice,
                            flags);
}

UCT_PRELOAD_INTERPOSE(process_madvise, "GLIBC_2.36");

/* --- ioctl ---------------------------------------------------------------- */

/* The program's own userfaultfd needs ours out of the way */
UCT_PRELOAD_EXPORT int uct_preload_my_ioctl(int fd, unsigned long request, ...)
{
    const uct_helper_calls_t *listener = uct_preload_heard();
    const struct uffdio_register *range;
    va_list args;
    void *arg;

    va_start(args, request);
    arg = va_arg(args, void*);
    va_end(args);

    if ((listener != NULL) && (request == UFFDIO_REGISTER) && (arg != NULL)) {
        range = arg;
        uct_preload_tell(listener->leave, (void*)(uintptr_t)range->range.start,
                         range->range.len);
    }
    return UCT_PRELOAD_CALL(int, ioctl, fd, request, arg);
}

UCT_PRELOAD_INTERPOSE(ioctl, UCT_PRELOAD_LIBC);
