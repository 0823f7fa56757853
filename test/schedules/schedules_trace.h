/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_TRACE_H_
#define SCHEDULES_TRACE_H_

#include "schedules_sched.h"

/**
 * @file schedules_trace.h
 *
 * Between the scheduler and the file that traces, injects faults and reports.
 */

/** Second figure of a step that is a switch; the first is the line. */
#define SIM_TRACE_SWITCH (UINT64_MAX - 1)

void sim_trace_begin(uint64_t seed);
void sim_faults_begin(const sim_faults_t *faults);

/** End the schedule from within a fiber; outside of all it returns. */
void sim_abandon(void);

/** @return Name of a fiber. */
const char *sim_name(int fiber);

#endif
