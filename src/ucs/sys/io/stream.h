/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_STREAM_H_
#define UCS_STREAM_H_

#include <ucs/sys/compiler_def.h>

/*
 * The program's output and error streams, which are lent to us. A program may close
 * them, as daemons do, and its next file or connection has their number. So what we
 * say goes to a terminal or another device, or to the file that was there when this
 * library was loaded or the domain was opened, and is lost otherwise.
 */

BEGIN_C_DECLS

/** Both streams are as the user wants them now. One thread at a time. */
void ucs_stream_note(void);

/**
 * @param [in] fd  STDOUT_FILENO or STDERR_FILENO.
 *
 * @return Nonzero if what is written there is read as output. Any thread.
 */
int ucs_stream_is_output(int fd);

/**
 * Have a stream of the C library for one message. The program may keep it to itself
 * (flockfile()) for as long as it likes, also while it waits for the caller.
 *
 * @param [in] fd  STDOUT_FILENO or STDERR_FILENO.
 *
 * @return Nonzero if the caller has it, for @ref ucs_stream_release; zero if it is no
 *         output, or was not to be had for a second.
 */
int ucs_stream_hold(int fd);

/** Give it back. */
void ucs_stream_release(int fd);

END_C_DECLS

#endif
