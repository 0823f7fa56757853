/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef REFUSE_CALLS_H_
#define REFUSE_CALLS_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/**
 * @file refuse_calls.h
 *
 * A process that is refused some system calls, as by a strict sandbox.
 */

#define REFUSE_CALLS_MAX 64

/** From now on each of these calls fails with @a error in every thread of this
 *  process, or ends the process, if that is 0.
 *  @return Zero, or an error: nothing is refused. */
static inline int refuse_calls(const int *calls, unsigned count, int error)
{
    const unsigned action = (error == 0) ? SECCOMP_RET_KILL_PROCESS :
                                           SECCOMP_RET_ERRNO | (unsigned)error;
    struct sock_filter code[REFUSE_CALLS_MAX + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
    };
    const struct sock_filter allow  = BPF_STMT(BPF_RET | BPF_K,
                                               SECCOMP_RET_ALLOW);
    const struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, action);
    struct sock_fprog program       = {(unsigned short)(count + 3), code};
    unsigned i;

    if (count > REFUSE_CALLS_MAX) {
        return -1;
    }
    for (i = 0; i < count; ++i) { /* the last instruction refuses */
        code[i + 1].code = BPF_JMP | BPF_JEQ | BPF_K;
        code[i + 1].jt   = (unsigned char)(count - i);
        code[i + 1].k    = (unsigned)calls[i];
    }
    code[count + 1] = allow;
    code[count + 2] = refuse;
    return ((prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) &&
            (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                     SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)) ? 0 : -1;
}

#endif
