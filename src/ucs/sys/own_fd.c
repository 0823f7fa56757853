/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "own_fd.h"

#include <ucs/sys/atomic.h>

#include <sys/stat.h>
#include <unistd.h>


int ucs_own_fd_set(ucs_own_fd_t *own, int fd)
{
    struct stat file;

    if (fstat(fd, &file) != 0) {
        return 0;
    }

    own->device = file.st_dev;
    own->inode  = file.st_ino;
    /* [R-OWN] The release pairs with the acquire in ucs_own_fd_get(). */
    ucs_store_release(&own->fd, fd);
    return 1;
}

int ucs_own_fd_get(ucs_own_fd_t *own)
{
    /* [R-OWN] The acquire pairs with the release in ucs_own_fd_set(). */
    int fd = ucs_load_acquire(&own->fd);
    struct stat file;

    return ((fd >= 0) && (fstat(fd, &file) == 0) &&
            (file.st_dev == own->device) && (file.st_ino == own->inode)) ?
                   fd :
                   -1;
}

int ucs_own_fd_number(ucs_own_fd_t *own)
{
    return ucs_load_relaxed(&own->fd);
}

void ucs_own_fd_close(ucs_own_fd_t *own)
{
    int fd = ucs_own_fd_get(own);

    ucs_own_fd_forget(own);
    if (fd >= 0) {
        close(fd);
    }
}

void ucs_own_fd_forget(ucs_own_fd_t *own)
{
    ucs_store_relaxed(&own->fd, -1);
}
