/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_HANDS_H_
#define UCS_HANDS_H_

#include <ucs/sys/compiler_def.h>

#include <sched.h>

/**
 * @file hands.h
 *
 * How many threads may work beside the caller for a moment, without taking a
 * processor from anybody, and where.
 */

BEGIN_C_DECLS

/**
 * Processors that the caller may run on, near it: of its own NUMA node, so that
 * memory that the threads touch comes to lie where the caller's would; without
 * libnuma all that it may run on.
 *
 * @param [out] cpus  Set if the result is nonzero.
 *
 * @return How many; 0 if the system does not tell.
 */
unsigned ucs_hands_near(cpu_set_t *cpus);


/**
 * @return How many of @a near processors are idle, the caller's own counted as
 *         one: at least 1. By what the kernel says is running on the whole
 *         machine right now, so on a busy one it is 1.
 */
unsigned ucs_hands_idle(unsigned near);


/** The same from the text of /proc/loadavg; 1 if it is none. */
unsigned ucs_hands_idle_of(unsigned near, const char *loadavg);

END_C_DECLS

#endif
