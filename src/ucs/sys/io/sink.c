/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/io/sink.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* A live reader takes a text at once; the job does not wait longer for a
 * stopped one */
#define UCS_SINK_PATIENCE_S 1

/* Numbers of /dev/null, the same on every Linux */
#define UCS_SINK_NULL_MAJOR 1
#define UCS_SINK_NULL_MINOR 3

int ucs_sink_stream(const char *path)
{
    static const struct {
        const char *path;
        int        fd;
    } names[] = {
        {"/dev/stdout", STDOUT_FILENO},    {"/dev/stderr", STDERR_FILENO},
        {"/dev/fd/1", STDOUT_FILENO},      {"/dev/fd/2", STDERR_FILENO},
        {"/proc/self/fd/1", STDOUT_FILENO}, {"/proc/self/fd/2", STDERR_FILENO}
    };
    unsigned i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (!strcmp(path, names[i].path)) {
            return names[i].fd;
        }
    }
    return 0;
}

static ucs_sink_t ucs_sink_classify(const struct stat *st, const char **why)
{
    if (S_ISREG(st->st_mode)) {
        return UCS_SINK_FILE;
    }
    if (S_ISCHR(st->st_mode) &&
        (st->st_rdev == makedev(UCS_SINK_NULL_MAJOR, UCS_SINK_NULL_MINOR))) {
        return UCS_SINK_NULL;
    }

    *why = S_ISFIFO(st->st_mode) ? "it is a pipe" :
           S_ISDIR(st->st_mode)  ? "it is a folder" :
           S_ISSOCK(st->st_mode) ? "it is a socket" :
                                   "it is a device";
    return UCS_SINK_REFUSED;
}

ucs_sink_t ucs_sink_look(const char *path, const char **why)
{
    struct stat st;

    if (ucs_sink_stream(path)) {
        *why = "it is a stream of the job's own";
        return UCS_SINK_REFUSED;
    }
    if (stat(path, &st) == 0) {
        return ucs_sink_classify(&st, why);
    }
    if (lstat(path, &st) == 0) {
        *why = "it is a link to nothing";
        return UCS_SINK_REFUSED;
    }
    return UCS_SINK_FILE; /* creating it will report an error */
}

/* The path may have changed since the check, so the opened file is checked.
 * O_NONBLOCK: opening a pipe does not wait. O_TRUNC affects files only. A new
 * link is followed only to an existing file. */
int ucs_sink_open(const char *path, mode_t mode, const char **why)
{
    const int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_TRUNC;
    struct stat st;
    int fd;

    if (ucs_sink_look(path, why) == UCS_SINK_REFUSED) {
        return -1;
    }

    fd = open(path, flags);
    if ((fd < 0) && (errno == ENOENT)) {
        fd = open(path, flags | O_CREAT | O_NOFOLLOW, mode);
    }
    if ((fd < 0) || (fstat(fd, &st) != 0)) {
        *why = strerror(errno);
    } else if (ucs_sink_classify(&st, why) != UCS_SINK_REFUSED) {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

const char *ucs_sink_write_at(int fd, const void *bytes, size_t size,
                              off_t offset)
{
    size_t done = 0;
    ssize_t ret;

    while (done < size) {
        ret = pwrite(fd, (const char*)bytes + done, size - done, offset + done);
        if (ret > 0) {
            done += ret;
        } else if ((ret == 0) || (errno != EINTR)) {
            return strerror((ret == 0) ? ENOSPC : errno);
        }
    }
    return NULL;
}

void ucs_write_hold(ucs_write_guard_t *guard)
{
    static const int signals[] = {SIGXFSZ, SIGPIPE};
    sigset_t held, pending;
    size_t i;

    sigpending(&pending);
    sigemptyset(&held);
    sigemptyset(&guard->ours);
    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i) {
        sigaddset(&held, signals[i]);
        if (!sigismember(&pending, signals[i])) {
            sigaddset(&guard->ours, signals[i]);
        }
    }
    pthread_sigmask(SIG_BLOCK, &held, &guard->mask);
}

/* A write raises its signal in the writing thread, so it is pending here when
 * the write returns */
void ucs_write_release(const ucs_write_guard_t *guard)
{
    const struct timespec at_once = {0, 0};
    int error                     = errno;

    while (sigtimedwait(&guard->ours, NULL, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
    errno = error;
}

/* A stream's flags are shared, so it cannot be made non-blocking. Where poll()
 * reports room, there is room for PIPE_BUF bytes. No signal ends the wait: a program
 * with a timer would lose the rest of the text. */
static int ucs_sink_write_pieces(int fd, const char *text, size_t length)
{
    const struct timespec patience = {UCS_SINK_PATIENCE_S, 0};
    struct pollfd poller           = {.fd = fd, .events = POLLOUT};
    sigset_t all;
    ssize_t ret;

    sigfillset(&all);
    while (length > 0) {
        if ((ppoll(&poller, 1, &patience, &all) <= 0) ||
            !(poller.revents & POLLOUT)) {
            return 0;
        }
        ret = write(fd, text, (length < PIPE_BUF) ? length : PIPE_BUF);
        if (ret <= 0) {
            return 0;
        }
        text   += ret;
        length -= ret;
    }
    return 1;
}

int ucs_sink_write(int fd, const char *text, size_t length)
{
    ucs_write_guard_t guard;
    int done;

    ucs_write_hold(&guard);
    done = ucs_sink_write_pieces(fd, text, length);
    ucs_write_release(&guard);
    return done;
}
