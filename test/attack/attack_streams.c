/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * The program's streams, and the clock that it is shown. What comes out is written
 * elsewhere, for the streams are closed, or are files of the program's own.
 */

#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STREAMS 3
#define SPARE   200 /* a number that nobody uses */

/* What waits for longer has failed, s */
#define END_AFTER 20

static const char precious[] = "the program's own bytes";

static int clock_stands;

/* Before the C library's, as of a library that shows programs another time */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock_stands) {
        *time = (struct timespec){1000, 0};
        return 0;
    }
    return syscall(SYS_clock_gettime, clock, time);
}

/* The output as it was, under another number; the streams are closed */
static FILE *close_streams(void)
{
    FILE *output = NULL;
    int fd       = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, SPARE);

    if (fd >= 0) {
        output = fdopen(fd, "w");
    }
    if (output == NULL) {
        attack_die("no output: %m");
    }
    setvbuf(output, NULL, _IOLBF, 0);
    for (fd = 0; fd < STREAMS; ++fd) {
        close(fd);
    }
    return output;
}

/* The watch of memory and the software NIC are lost: both have something to say */
ATTACK(streams, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    char bytes[2 * sizeof(precious)];
    unsigned changed = 0;
    FILE *output;
    int fd;

    attack_use_often(md, buffer, ATTACK_SIZE);
    output = close_streams();
    syscall(SYS_close_range, STREAMS, SPARE - 1, 0);
    for (fd = 0; fd < STREAMS; ++fd) {
        if ((memfd_create("own", 0) != fd) ||
            (write(fd, precious, sizeof(precious)) != sizeof(precious)) ||
            (lseek(fd, 4, SEEK_SET) != 4)) {
            attack_die("no file: %m");
        }
    }
    attack_use_in_a_thread(md);
    attack_use_often(md, buffer, ATTACK_SIZE);
    uct_md_close(md);

    for (fd = 0; fd < STREAMS; ++fd) {
        changed += (lseek(fd, 0, SEEK_CUR) != 4) ||
                   (pread(fd, bytes, sizeof(bytes), 0) != sizeof(precious)) ||
                   (memcmp(bytes, precious, sizeof(precious)) != 0);
    }
    fprintf(output, "%u files have changed\n", changed);
    _exit(changed);
}

/* A program that was started without streams writes all the same */
ATTACK_BEFORE(no_streams, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    FILE *output = close_streams();
    int fd;

    md = attack_open();
    attack_use_often(md, buffer, ATTACK_SIZE);
    for (fd = 0; fd < STREAMS; ++fd) {
        fprintf(output, "%d: %s\n", fd,
                (write(fd, precious, sizeof(precious)) < 0) ? strerror(errno) :
                                                              "written");
    }
    attack_use_often(md, buffer, ATTACK_SIZE);
    fprintf(output, "the next number is %d\n", open("/dev/null", O_RDWR));
    uct_md_close(md);
    exit(0);
}

/* A program that puts a text together from several threads keeps the streams to itself,
 * and waits for the threads */
ATTACK(kept_streams, md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    alarm(END_AFTER);
    attack_use_often(md, buffer, ATTACK_SIZE);
    syscall(SYS_close_range, STREAMS, ~0u, 0);
    flockfile(stdout);
    flockfile(stderr);
    attack_use_in_a_thread(md);
    attack_use_in_a_thread(md);
    funlockfile(stderr);
    funlockfile(stdout);
}

/* While the domain is opened and used first, and at the end */
ATTACK_BEFORE(no_time, md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    alarm(END_AFTER);
    clock_stands = 1;
    md           = attack_open();
    attack_use_often(md, buffer, ATTACK_SIZE);
    attack_use_in_a_thread(md);
    munmap(buffer, ATTACK_SIZE);
    uct_md_close(md);
    puts("without time");
}
