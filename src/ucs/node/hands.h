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
 * How many threads may work beside the caller on idle processors, and where.
 */

BEGIN_C_DECLS

/**
 * Processors of the caller's NUMA node that it may run on, so that the threads
 * touch memory where the caller would; without libnuma all that it may run on.
 *
 * @param [out] cpus  Set if the result is nonzero.
 *
 * @return How many; 0 on failure.
 */
unsigned ucs_hands_near(cpu_set_t *cpus);


/**
 * @return How many of @a near processors are idle, the caller's included: at
 *         least 1. From what runs on the whole machine now, so on a busy one it
 *         is 1.
 */
unsigned ucs_hands_idle(unsigned near);


/** The same from the text of /proc/loadavg; 1 if it is none. */
unsigned ucs_hands_idle_of(unsigned near, const char *loadavg);

END_C_DECLS

#endif
