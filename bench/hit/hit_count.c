/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hit_bench.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#  define PR_SET_SYSCALL_USER_DISPATCH 59
#  define PR_SYS_DISPATCH_ON           1
#endif

#define HIT_DISPATCH_ALLOW 0
#define HIT_DISPATCH_BLOCK 1

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *ptr, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *ptr);

static __thread uint64_t hit_allocs;
static __thread volatile uint64_t hit_syscalls;
static __thread volatile int hit_last_syscall = -1;
static __thread volatile char hit_selector    = HIT_DISPATCH_ALLOW;

void *malloc(size_t size)
{
    ++hit_allocs;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    ++hit_allocs;
    return __libc_calloc(count, size);
}

void *realloc(void *ptr, size_t size)
{
    ++hit_allocs;
    return __libc_realloc(ptr, size);
}

void *memalign(size_t alignment, size_t size)
{
    ++hit_allocs;
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **ptr_p, size_t alignment, size_t size)
{
    void *ptr = memalign(alignment, size);

    if (ptr == NULL) {
        return ENOMEM;
    }

    *ptr_p = ptr;
    return 0;
}

void free(void *ptr)
{
    ++hit_allocs;
    __libc_free(ptr);
}

#ifdef __x86_64__
/* The kernel did not run the call: do it here, for the thread goes on as if
 * nothing had happened. The window stays open to further calls uncounted, as
 * the return from this handler is a system call, too. */
static void hit_sigsys(int signo, siginfo_t *info, void *context)
{
    ucontext_t *ucontext = context;
    greg_t *regs         = ucontext->uc_mcontext.gregs;
    long ret;

    hit_selector     = HIT_DISPATCH_ALLOW;
    hit_last_syscall = info->si_syscall;
    hit_syscalls     = hit_syscalls + 1;
    ret              = syscall(info->si_syscall, regs[REG_RDI], regs[REG_RSI],
                               regs[REG_RDX], regs[REG_R10], regs[REG_R8],
                               regs[REG_R9]);
    regs[REG_RAX]    = (ret == -1) ? -errno : ret;

    /* Returning restores the signal mask of before; the call may have been the
     * one that changes it */
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &ucontext->uc_sigmask,
            _NSIG / 8);
}

int hit_count_init(void)
{
    struct sigaction action = {
        .sa_sigaction = hit_sigsys, .sa_flags = SA_SIGINFO | SA_NODEFER
    };
    uint64_t before;

    if ((sigaction(SIGSYS, &action, NULL) != 0) ||
        (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0,
               &hit_selector) != 0)) {
        return 0;
    }

    before = hit_syscalls;
    hit_count_arm();
    syscall(SYS_getppid);
    hit_count_disarm();
    return (hit_syscalls == before + 1) && (hit_last_syscall == SYS_getppid);
}
#else
int hit_count_init(void)
{
    return 0;
}
#endif

void hit_count_arm(void)
{
    hit_selector = HIT_DISPATCH_BLOCK;
}

void hit_count_disarm(void)
{
    hit_selector = HIT_DISPATCH_ALLOW;
}

void hit_count_get(hit_count_t *count)
{
    count->allocs       = hit_allocs;
    count->syscalls     = hit_syscalls;
    count->last_syscall = hit_last_syscall;
}
