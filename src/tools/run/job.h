/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_JOB_H_
#define UCX_HELPER_TOOL_JOB_H_

/**
 * @file job.h
 *
 * Start the command, in place of this process or as its child.
 */

/**
 * Replace this process by the command. Returns only on failure, after a
 * message.
 *
 * @return 127 when there is no such command, otherwise 126.
 */
int tool_job_exec(char *const *argv);

/**
 * Run the command as a child and wait for its end. Signals that ask a job to
 * do something (HUP, INT, QUIT, USR1, USR2, ALRM, TERM, XCPU) are handed on,
 * except those that the terminal's keys send, for these reach the child by
 * themselves. The child starts with the signal mask and dispositions that
 * this process was started with, and is asked to terminate if this process is
 * killed.
 *
 * @param started  Receives zero when the command could not be started.
 *
 * @return The command's exit status, 128+signal when a signal ended it, as
 *         tool_job_exec() when it could not be started.
 */
int tool_job_wait(char *const *argv, int *started);

#endif
