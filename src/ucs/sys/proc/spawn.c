/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/proc/spawn.h>
#include <ucs/sys/mem/own_memory.h>
#include <ucs/sys/proc/process.h>

#include <ucs/sys/sync/atomic.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Units of a value of ucs_spawn_ours(): a begin or end, and a thread */
#define UCS_SPAWN_CHANGE (UINT64_C(1) << 32)
#define UCS_SPAWN_THREAD UINT64_C(1)

/* Larger stacks than this are not tried, bytes */
#define UCS_SPAWN_STACK_MAX (UINT64_C(1) << 30)

static _Atomic(uint64_t) ucs_spawn_state;

/* Inaccessible bytes below our stacks, more than the default guard of the
 * program's: memory right above such a guard may be a stack, and is not kept
 * registered (watch/range.c). Where the kernel chooses the place of ours, the
 * program's next mapping is often right above. */
#define UCS_SPAWN_GUARD (320ul << 10)

static int ucs_spawn_map(ucs_spawned_t *thread, pthread_attr_t *attr,
                         size_t length)
{
    thread->length = UCS_SPAWN_GUARD + length;
    thread->stack  = (length > SIZE_MAX - UCS_SPAWN_GUARD) ?
                             NULL :
                             ucs_own_map(thread->length);
    if (thread->stack == NULL) {
        return ENOMEM;
    }
    (void)syscall(SYS_mprotect, thread->stack, UCS_SPAWN_GUARD, PROT_NONE);
    return pthread_attr_setstack(attr, (char*)thread->stack + UCS_SPAWN_GUARD,
                                 length);
}

/* The C library puts a program's thread-local variables on the stack, and
 * refuses one that is too small for them; their size is not known */
static int ucs_spawn_create(ucs_spawned_t *thread, pthread_attr_t *attr,
                            size_t stack_size, void *(*main_func)(void *arg),
                            void *arg)
{
    int ret;

    do {
        ret = (stack_size > 0) ? ucs_spawn_map(thread, attr, stack_size) : 0;
        if (ret == 0) {
            ret = pthread_create(&thread->id, attr, main_func, arg);
        }
        if (ret != 0) {
            ucs_own_unmap(thread->stack, thread->length);
            thread->stack = NULL;
        }
        stack_size *= 2;
    } while ((ret == EINVAL) && (stack_size > 0) &&
             (stack_size <= UCS_SPAWN_STACK_MAX));
    return ret;
}

int ucs_spawn(ucs_spawned_t *thread, size_t stack_size,
              void *(*main_func)(void *arg), void *arg)
{
    sigset_t all, old;
    pthread_attr_t attr;
    int ret;

    thread->stack  = NULL;
    thread->length = 0;
    ret            = pthread_attr_init(&attr);
    if (ret != 0) {
        return ret;
    }

    /* The thread inherits the mask: blocking by itself would be too late */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = ucs_spawn_create(thread, &attr, stack_size, main_func, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return ret;
}

static void ucs_spawn_release(ucs_spawned_t *thread)
{
    ucs_own_unmap(thread->stack, thread->length);
    thread->stack = NULL;
}

void *ucs_spawn_join(ucs_spawned_t *thread)
{
    void *result = NULL;

    pthread_join(thread->id, &result);
    ucs_spawn_release(thread);
    return result;
}

int ucs_spawn_try_join(ucs_spawned_t *thread)
{
    if (pthread_tryjoin_np(thread->id, NULL) != 0) {
        return 0;
    }
    ucs_spawn_release(thread);
    return 1;
}

void ucs_spawn_enter(void)
{
    /* First, a child forgets its parent's threads */
    ucs_process_id();
    /* release [S-OURS]: pairs with the acquire in ucs_spawn_ours(); the kernel
     * counts this thread already */
    ucs_add_acq_rel(&ucs_spawn_state, UCS_SPAWN_CHANGE + UCS_SPAWN_THREAD);
}

void ucs_spawn_leave(void)
{
    /* release [S-OURS]: likewise; the kernel still counts this thread */
    ucs_add_acq_rel(&ucs_spawn_state, UCS_SPAWN_CHANGE - UCS_SPAWN_THREAD);
}

uint64_t ucs_spawn_ours(void)
{
    /* acquire [S-OURS]: pairs with the additions of a thread that enters or
     * leaves: what the kernel says of it in between is later than the one and
     * earlier than the other */
    return ucs_load_acquire(&ucs_spawn_state);
}

void ucs_spawn_forget(void)
{
    ucs_store_relaxed(&ucs_spawn_state, 0);
}
