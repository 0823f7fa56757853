/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/io/own_fd.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of asynchronous input, which none of our files has: a mark that the kernel keeps
 * with the open file, and that the same file, opened by the program, lacks */
#define UCS_OWN_FD_MARK SIGURG

/* A program that was started without its streams writes to their numbers all the same.
 * @return Another number for the file, or -1 */
static int ucs_own_fd_above_streams(int fd)
{
    int above;

    if (fd > STDERR_FILENO) {
        return fd;
    }
    above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (above >= 0) {
        close(fd);
    }
    return above;
}

int ucs_own_fd_set(ucs_own_fd_t *own, int fd)
{
    struct stat file;

    fd = (fd < 0) ? fd : ucs_own_fd_above_streams(fd);
    if ((fd < 0) || (fstat(fd, &file) != 0)) {
        return 0;
    }

    (void)fcntl(fd, F_SETSIG, UCS_OWN_FD_MARK);
    own->device = file.st_dev;
    own->inode  = file.st_ino;
    own->mark   = fcntl(fd, F_GETSIG); /* a filter of system calls may refuse */
    /* [R-OWN] The release pairs with the acquire in ucs_own_fd_get(). */
    ucs_store_release(&own->fd, fd);
    return 1;
}

int ucs_own_fd_open(ucs_own_fd_t *own, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if ((fd < 0) || !ucs_own_fd_set(own, fd)) {
        return -1; /* or the program has closed it */
    }
    return ucs_own_fd_number(own);
}

/* pread() does no harm to a file of the program's: it does not move the
 * position, and it fails at once on files without one. */
ssize_t ucs_own_fd_read_text(const char *path, char *text, size_t max)
{
    ucs_own_fd_t own = UCS_OWN_FD_INIT;
    size_t length    = 0;
    int fd           = ucs_own_fd_open(&own, path);
    ssize_t ret;

    if (fd < 0) {
        return -1;
    }

    while (((ret = pread(fd, text + length, max - 1 - length, length)) > 0) ||
           ((ret < 0) && (errno == EINTR))) {
        length += (ret > 0) ? ret : 0;
    }
    if (ucs_own_fd_get(&own) < 0) {
        errno = EBADF;
        return -1;
    }

    ucs_own_fd_close(&own);
    text[length] = '\0';
    return length;
}

int ucs_own_fd_get(ucs_own_fd_t *own)
{
    /* [R-OWN] The acquire pairs with the release in ucs_own_fd_set(). */
    int fd = ucs_load_acquire(&own->fd);
    struct stat file;

    return ((fd >= 0) && (fstat(fd, &file) == 0) &&
            (file.st_dev == own->device) && (file.st_ino == own->inode) &&
            (fcntl(fd, F_GETSIG) == own->mark)) ?
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
