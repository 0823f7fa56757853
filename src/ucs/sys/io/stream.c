/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/io/stream.h>

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* When the library was loaded, and when the latest domain was opened */
enum {
    UCS_STREAM_LOADED,
    UCS_STREAM_OPENED,
    UCS_STREAM_MOMENTS
};

/* A wait is of so many pauses, a second or a little more */
#define UCS_STREAM_TRIES    1000
#define UCS_STREAM_PAUSE_NS 1000000

/* By descriptor; of one that was closed there is no file. Numbers of files do not
 * change, so that a reader beside ucs_stream_note() finds an old one or a new one. */
static struct stat ucs_stream_files[UCS_STREAM_MOMENTS][STDERR_FILENO + 1];

static void ucs_stream_look(struct stat *files)
{
    int fd;

    for (fd = STDOUT_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (fstat(fd, &files[fd]) != 0) {
            files[fd].st_ino = 0;
        }
    }
}

__attribute__((constructor)) static void ucs_stream_init(void)
{
    ucs_stream_look(ucs_stream_files[UCS_STREAM_LOADED]);
}

void ucs_stream_note(void)
{
    ucs_stream_look(ucs_stream_files[UCS_STREAM_OPENED]);
}

int ucs_stream_is_output(int fd)
{
    const struct stat *then;
    struct stat now;
    unsigned i;

    if (fstat(fd, &now) != 0) {
        return 0;
    }
    if (S_ISCHR(now.st_mode)) {
        return 1;
    }
    for (i = 0; i < UCS_STREAM_MOMENTS; ++i) {
        then = &ucs_stream_files[i][fd];
        if ((then->st_ino != 0) && (then->st_ino == now.st_ino) &&
            (then->st_dev == now.st_dev)) {
            return 1;
        }
    }
    return 0;
}

static FILE *ucs_stream_file(int fd)
{
    return (fd == STDOUT_FILENO) ? stdout : stderr;
}

int ucs_stream_hold(int fd)
{
    const struct timespec pause = {0, UCS_STREAM_PAUSE_NS};
    unsigned left               = UCS_STREAM_TRIES;

    if (!ucs_stream_is_output(fd)) {
        return 0;
    }
    while (ftrylockfile(ucs_stream_file(fd)) != 0) {
        if (left-- == 0) {
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    return 1;
}

void ucs_stream_release(int fd)
{
    funlockfile(ucs_stream_file(fd));
}
