/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_END_H_
#define SCHEDULES_END_H_

/** The program has ended, and no fiber is inside of the cache: look whether its
 *  figures agree with what is registered, destroy it, and look for what is
 *  left. What does not hold is a violation. */
void sim_end_check(void);

#endif
