/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_H_
#define UCS_PREDICT_H_

/**
 * @file predict.h
 *
 * When will this buffer be communicated next, and how long does it take to
 * have it registered by then? The predictor of Li et al., "Scalable Memory
 * Registration for High Performance Networks Using Helper Threads", CF'11.
 *
 * Nothing here starts a thread, reads a clock or knows of UCT: time comes in
 * as an argument, in nanoseconds of whatever monotonic clock the caller has.
 * No object is locked: each belongs to one thread at a time.
 */

#include <ucs/predict/paper/callsite.h>
#include <ucs/predict/condition.h>
#include <ucs/predict/cost.h>
#include <ucs/predict/paper/signature.h>

#endif
