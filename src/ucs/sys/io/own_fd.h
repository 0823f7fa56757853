/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_OWN_FD_H_
#define UCS_OWN_FD_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <sys/types.h>

/*
 * A descriptor of ours in the program's table. The program may close it, with
 * all descriptors that it does not know, or put a file of its own in its place,
 * even the same one. So the file's number and device, and a mark of its being open,
 * are compared before each use.
 *
 * Nothing here allocates, logs or takes a lock. Thread-safe, except @ref
 * ucs_own_fd_set.
 */

BEGIN_C_DECLS

/** Initial value of a @ref ucs_own_fd_t. */
#define UCS_OWN_FD_INIT {-1, 0, 0, 0}

/** One descriptor, or none. */
typedef struct ucs_own_fd {
    _Atomic(int) fd;     /**< -1: none */
    dev_t        device; /**< written before fd */
    ino_t        inode;
    int          mark;
} ucs_own_fd_t;

/**
 * Keep @a fd, which is closed by exec(). One thread at a time, and not while
 * another one is kept. A number of one of the three streams is exchanged for one
 * above them: @ref ucs_own_fd_number.
 *
 * @return Zero if that or fstat() fails; the caller keeps the descriptor then.
 */
int ucs_own_fd_set(ucs_own_fd_t *own, int fd);

/**
 * Open a file to be read, and keep its descriptor. As @ref ucs_own_fd_set.
 *
 * @return The descriptor, or -1, with errno, if there is none to close.
 */
int ucs_own_fd_open(ucs_own_fd_t *own, const char *path);

/**
 * Read a short file of /proc or /sys. Reads nothing from a file of the
 * program's, whatever the program does with the descriptor meanwhile.
 *
 * @param [out] text  As much as fits, with a terminating zero.
 * @param [in]  max   Bytes of @a text, above 0.
 *
 * @return Bytes before the zero, or -1 with errno.
 */
ssize_t ucs_own_fd_read_text(const char *path, char *text, size_t max);

/** @return The descriptor, or -1 if there is none or the program has closed or
 *          replaced it. It may still do so afterwards, so use only requests
 *          that another file refuses. */
int ucs_own_fd_get(ucs_own_fd_t *own);

/** @return The descriptor's number, or -1. Without the comparison: for a
 *          message, or to save time. */
int ucs_own_fd_number(ucs_own_fd_t *own);

/** Close it, if it is still ours. Afterwards there is none. */
void ucs_own_fd_close(ucs_own_fd_t *own);

/** Forget it without closing: in a child, which may share its table of
 *  descriptors with its parent. */
void ucs_own_fd_forget(ucs_own_fd_t *own);

END_C_DECLS

#endif
