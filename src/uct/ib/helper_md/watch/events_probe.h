/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_EVENTS_PROBE_H_
#define UCT_HELPER_EVENTS_PROBE_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * The self-test of the memory events: munmap(), mmap() over a mapping, mremap()
 * and madvise() are called, and each event must arrive. brk() cannot be tried,
 * for other threads may use it: its code is compared with that of the start.
 *
 * No mapping changes. The kernel refuses each call because the address is odd;
 * the hooks have reported it by then, since their event comes before the memory
 * goes (ucm_munmap(), ucm_mmap(), ucm_mremap(), ucm_madvise() of UCX 1.13 to
 * 1.20). A page of the probe's own would lie where the program has just
 * unmapped something; a program that maps there again with MAP_FIXED would
 * destroy it, and the probe would unmap the program's page.
 */

BEGIN_C_DECLS

/** Longest time between two probes. */
#define UCT_HELPER_EVENTS_PROBE_NS UINT64_C(100000000)

/** From the event handler: an event of this address has arrived. */
void uct_helper_events_probe_saw(uintptr_t address);

/**
 * The first probe, from this thread and from another one.
 *
 * @return NULL, or which event was missed: a constant sentence to which "any more"
 *         can be added.
 */
const char *uct_helper_events_probe_first(void);

/** @return Nonzero if it is time to probe again, or the code of one of these
 *          functions has changed. Any thread; takes some nanoseconds. */
int uct_helper_events_probe_is_due(uint64_t now);

/** Probe again, unless another thread is at it. As
 *  @ref uct_helper_events_probe_first. */
const char *uct_helper_events_probe_again(uint64_t now);

/** In a child: the thread that was probing does not exist here. */
void uct_helper_events_probe_forget(void);

END_C_DECLS

#endif
