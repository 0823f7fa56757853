/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_HELPER_H_
#define SCHEDULES_HELPER_H_

#include <stddef.h>

/**
 * @file schedules_helper.h
 *
 * The simulated helper thread: it steps the cache until the program has ended
 * and nothing is left to do.
 */

/** @return Bytes that may stay registered idle for ever: predict and rent make
 *          use of what the user granted, and look after it; overlap keeps what
 *          there is room for. */
size_t sim_granted(void);

/** The helper, from its first step to its last. @a arg is NULL. */
void sim_helper_main(void *arg);

#endif
