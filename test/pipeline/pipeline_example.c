/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Two processes of one machine: the second one sends 8 MiB to the first. The
 * example of docs/pipeline.md; make check builds and runs it.
 */
#include <ucx_pipeline.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 8 * 1024 * 1024, TAG = 7 };

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static void give(int fd, const void *bytes, size_t length)
{
    check(write(fd, bytes, length) == (ssize_t)length, "write");
}

static void take(int fd, void *bytes, size_t length)
{
    ssize_t got;

    for (; length > 0; length -= got, bytes = (char*)bytes + got) {
        got = read(fd, bytes, length);
        check(got > 0, "read");
    }
}

/* Each tells the other its address, here through a socket */
static ucx_pipeline_h start(unsigned self, int fd)
{
    ucx_pipeline_options_t options;
    ucx_pipeline_h pipeline;
    const void *address;
    void *other;
    size_t length;

    ucx_pipeline_options_init(&options);
    options.mode = UCX_PIPELINE_MODE_CACHE;
    check(ucx_pipeline_create(self, 2, &options, &pipeline) == UCS_OK,
          "create");
    ucx_pipeline_address(pipeline, &address, &length);
    check(ucx_pipeline_connect(pipeline, self, address) == UCS_OK, "connect");
    give(fd, &length, sizeof(length));
    give(fd, address, length);
    take(fd, &length, sizeof(length));
    other = malloc(length);
    check(other != NULL, "malloc");
    take(fd, other, length);
    check(ucx_pipeline_connect(pipeline, 1 - self, other) == UCS_OK, "connect");
    free(other);
    return pipeline;
}

static void run(unsigned self, int fd)
{
    ucx_pipeline_h pipeline = start(self, fd);
    char *buffer            = malloc(LENGTH);
    ucx_pipeline_request_h request;
    ucx_pipeline_status_t status;
    char byte;

    check(buffer != NULL, "malloc");
    memset(buffer, self ? 'x' : 'o', LENGTH);
    if (self == 1) {
        check(ucx_pipeline_send(pipeline, 0, TAG, buffer, LENGTH, &request) ==
              UCS_OK, "send");
    } else {
        check(ucx_pipeline_recv(pipeline, UCX_PIPELINE_ANY_SOURCE, TAG,
                                UINT64_MAX, buffer, LENGTH, &request) ==
              UCS_OK, "recv");
    }
    check(ucx_pipeline_wait(request, &status) == UCS_OK, "wait");
    check(ucx_pipeline_request_free(request) == UCS_OK, "free");
    check((buffer[0] == 'x') && (buffer[LENGTH - 1] == 'x'), "data");

    /* neither ends before the other has what it waits for */
    give(fd, "e", 1);
    take(fd, &byte, 1);
    check(ucx_pipeline_destroy(pipeline) == UCS_OK, "destroy");
    free(buffer);
    if (self == 0) {
        printf("received %zu bytes with tag %llu from %u\n", status.length,
               (unsigned long long)status.tag, status.peer);
    }
}

int main(void)
{
    int fds[2], status;
    pid_t child;

    check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
    child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        close(fds[0]);
        run(1, fds[1]);
        return 0;
    }
    close(fds[1]);
    run(0, fds[0]);
    check((waitpid(child, &status, 0) == child) && (status == 0), "child");
    return 0;
}
