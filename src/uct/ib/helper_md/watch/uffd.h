/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_UFFD_H_
#define UCT_HELPER_UFFD_H_

#include <stdint.h>

/*
 * The kernel's side of watching: a userfaultfd for events alone. Stateless;
 * nothing here allocates, logs or takes a lock. Thread-safe.
 */

/**
 * Open one for unmapped, moved and discarded memory.
 *
 * @param [out] reason_p  On failure what was refused, a constant string.
 *
 * @return The descriptor, non-blocking and closed by exec(), or -1.
 */
int uct_helper_uffd_open(const char **reason_p);

/** Watch [@a start, @a end), whole pages. @return Zero if refused, as where
 *  another userfaultfd watches or nothing is mapped. */
int uct_helper_uffd_watch(int fd, uintptr_t start, uintptr_t end);

/** The reverse. @return Zero if refused; what is not watched is no error. */
int uct_helper_uffd_unwatch(int fd, uintptr_t start, uintptr_t end);

/** The reverse for all private anonymous memory of the process. */
void uct_helper_uffd_unwatch_all(int fd);

#endif
