/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "input.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* A writer that was started together with us is there by then */
#define TOOL_INPUT_PATIENCE_MS 1000


/* @return 0, or -1 after a message */
static int tool_input_check(const char *file, const struct stat *st)
{
    if (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode)) {
        return 0;
    }

    tool_message("%s: is a %s; allowed: a regular file or a pipe", file,
                 S_ISDIR(st->st_mode)  ? "folder" :
                 S_ISSOCK(st->st_mode) ? "socket" :
                                         "device");
    return -1;
}

/* Only tee() tells, without taking anything out, whether an empty pipe has a
 * writer; it wants a pipe to copy to */
static int tool_input_has_writer(int fd)
{
    int has_writer = 1;
    int copy[2];

    if (pipe2(copy, O_CLOEXEC) == 0) {
        has_writer = (tee(fd, copy[1], 1, SPLICE_F_NONBLOCK) != 0);
        close(copy[0]);
        close(copy[1]);
    }
    return has_writer;
}

static int tool_input_await(const char *file, int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    if (poll(&poller, 1, TOOL_INPUT_PATIENCE_MS) != 0) {
        return 0;
    }
    if (!tool_input_has_writer(fd)) {
        tool_message("%s: nobody writes to this pipe", file);
        return -1;
    }

    tool_message("%s: waiting for what is written to this pipe", file);
    while ((poll(&poller, 1, -1) < 0) && (errno == EINTR)) {
    }
    return 0;
}

/* What is no file is not opened, for that may act on a device; and as it may be
 * another by then, what was opened counts. O_NONBLOCK: to open a pipe does not
 * wait, to read it does. */
int tool_input_open(const char *file)
{
    int fd = -1;
    struct stat st;

    if (stat(file, &st) != 0) {
        goto err;
    }
    if (tool_input_check(file, &st) != 0) {
        return -1;
    }

    fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if ((fd < 0) || (fstat(fd, &st) != 0)) {
        goto err;
    }
    if ((tool_input_check(file, &st) != 0) ||
        (S_ISFIFO(st.st_mode) && (tool_input_await(file, fd) != 0))) {
        goto err_close;
    }
    if (fcntl(fd, F_SETFL, 0) != 0) {
        goto err;
    }
    return fd;

err:
    tool_message("%s: cannot be read: %m", file);
err_close:
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

gzFile tool_input_open_gz(const char *file)
{
    int fd    = tool_input_open(file);
    gzFile in = NULL;

    if (fd >= 0) {
        in = gzdopen(fd, "rb");
        if (in == NULL) {
            tool_out_of_memory();
        }
    }
    return in;
}
