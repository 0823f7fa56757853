/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_SLICE_H_
#define UCS_SLICE_H_

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * Let a thread that wakes up on the caller's processor have it at once.
 *
 * Since Linux 6.6 a thread that wakes up waits until the running one has had
 * its time slice, up to 2.8 ms, or until the next tick. Since Linux 6.12 it
 * takes the processor at once if its own slice is shorter (PREEMPT_SHORT in
 * kernel/sched/fair.c). So the calling thread asks for a longer slice than
 * others have. Its share of the processor stays the same, unlike with
 * SCHED_IDLE or a nice value, so it does not starve with a lock held.
 *
 * Nothing happens if the thread is not of class SCHED_OTHER, or the kernel is
 * older or refuses. An ordinary user may do it.
 */
void ucs_slice_lengthen(void);

END_C_DECLS

#endif
