/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_SINK_H_
#define UCS_SINK_H_

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Checks paths that the helper writes to. The job must neither wait for them
 * nor end because of them, so the helper opens regular files only: opening a
 * pipe or a device may wait or act, and closing a pipe may end its reader. The
 * process's stdout and stderr are open already. Thread-safe.
 */

#ifdef __cplusplus
extern "C" {
#endif

/** What a path may be, for messages. */
#define UCS_SINK_ALLOWED "a regular file in a folder that can be written"

typedef enum ucs_sink {
    UCS_SINK_FILE, /**< a regular file, or nothing there yet */
    UCS_SINK_NULL, /**< /dev/null */
    UCS_SINK_REFUSED
} ucs_sink_t;

/**
 * Does @a path name the process's own stdout or stderr (/dev/stderr, /dev/fd/2
 * and the like)? It must not be opened by that name: the same file would have a
 * second offset, and a new file would replace the job's output.
 *
 * @return Its descriptor, or 0.
 */
int ucs_sink_stream(const char *path);

/**
 * The kind of @a path. Opens nothing.
 *
 * @param [out] why  "it is a pipe" or the like, set if refused.
 */
ucs_sink_t ucs_sink_look(const char *path, const char **why);

/**
 * Open a regular file, created or emptied, or /dev/null. Does not wait, does
 * not follow a dangling link, and touches nothing else at that path.
 *
 * @param [in]  mode  Rights of a new file, before the umask.
 * @param [out] why   Set on failure; static, or of strerror().
 *
 * @return A descriptor, which is the caller's, or -1.
 */
int ucs_sink_open(const char *path, mode_t mode, const char **why);

/** Write all at a place of a regular file. @return NULL, or why not. */
const char *ucs_sink_write_at(int fd, const void *bytes, size_t size,
                              off_t offset);

/**
 * Write to a stream of the process. Gives up after a second without progress,
 * and raises no SIGPIPE without a reader. Up to PIPE_BUF bytes are one write,
 * so that the ranks' texts do not mix.
 *
 * @return Nonzero if all was written.
 */
int ucs_sink_write(int fd, const char *text, size_t length);

/**
 * Suppresses the signals of failed writes: SIGXFSZ at the limit of a file's
 * size, SIGPIPE without a reader. They would end the program, which does not
 * know that the helper writes.
 *
 * While held, a write only returns its error. A pair of calls in one thread;
 * may be nested. Neither call allocates or fails.
 */
typedef struct ucs_write_guard {
    sigset_t mask; /* of the thread, before */
    sigset_t ours; /* those that were not pending before */
} ucs_write_guard_t;

/** Hold the signals of failed writes back from the calling thread. */
void ucs_write_hold(ucs_write_guard_t *guard);

/** Take those that came since, and let the thread have its signals again.
 *  Leaves errno as it is. */
void ucs_write_release(const ucs_write_guard_t *guard);

#ifdef __cplusplus
}
#endif

#endif
