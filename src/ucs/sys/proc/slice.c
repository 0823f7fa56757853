/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/proc/slice.h>

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ns. Twice the longest slice that the kernel gives by itself (2.8 ms). At half
 * of this a woken thread may wait again; twice as much changes nothing. */
#define UCS_SLICE_NS UINT64_C(6000000)

/* struct sched_attr of linux/sched/types.h in its first version. Only newer C
 * libraries have it, and they conflict with the kernel's header. */
typedef struct ucs_slice_attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t  nice;
    uint32_t priority;
    uint64_t runtime; /* ns; of class SCHED_OTHER: the slice */
    uint64_t deadline;
    uint64_t period;
} ucs_slice_attr_t;

void ucs_slice_lengthen(void)
{
    ucs_slice_attr_t attr;

    if ((syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0) ||
        (attr.policy != SCHED_OTHER)) {
        return;
    }
    attr.runtime = UCS_SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attr, 0);
}
