/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * What is the program's own: its descriptors, whatever number they have, and
 * its userfaultfd.
 */

#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_DESCRIPTOR 256

static const char precious[] = "the program's own bytes";
static int precious_fd       = -1;


/* Unless there is one, a number that is free */
static int find_userfaultfd(void)
{
    char path[64], target[64];
    ssize_t length;
    int fd;

    for (fd = 3; fd < MAX_DESCRIPTOR; ++fd) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target) - 1);
        if (length > 0) {
            target[length] = '\0';
            if (strstr(target, "userfaultfd") != NULL) {
                return fd;
            }
        }
    }
    return MAX_DESCRIPTOR;
}

/* A pipe with bytes in it, under a number that the program did not open */
static int replace(int fd)
{
    int ends[2];

    if ((pipe(ends) != 0) || (dup2(ends[0], fd) != fd)) {
        attack_die("no pipe: %m");
    }
    close(ends[0]);
    if (write(ends[1], precious, sizeof(precious)) != sizeof(precious)) {
        attack_die("no bytes: %m");
    }
    return ends[1];
}

/* When the domain has been closed */
static void say_what_is_left(void)
{
    printf("its own descriptor is %s\n",
           (fcntl(precious_fd, F_GETFD) < 0) ? "gone" : "there");
}

/* Daemons, shells and test runners close what they do not know, and put their
 * own in place of it */
static void run_descriptor(uct_md_h md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    char bytes[sizeof(precious)] = "";
    int fd, writer;

    attack_use_often(md, buffer, ATTACK_SIZE);
    fd     = find_userfaultfd();
    writer = replace(fd);
    munmap(buffer, ATTACK_SIZE);
    buffer = attack_map(ATTACK_SIZE);
    attack_use_often(md, buffer, ATTACK_SIZE);
    munmap(buffer, ATTACK_SIZE);

    fcntl(fd, F_SETFL, O_NONBLOCK);
    if ((read(fd, bytes, sizeof(bytes)) != sizeof(bytes)) ||
        (strcmp(bytes, precious) != 0)) {
        attack_die("not its own bytes: %m");
    }
    close(writer);
    precious_fd = fd;
    atexit(say_what_is_left);
}

/* As a program closes what it does not know */
static void run_closed(uct_md_h md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    attack_use_often(md, buffer, ATTACK_SIZE);
    close(find_userfaultfd());
    munmap(buffer, ATTACK_SIZE);
    buffer = attack_map(ATTACK_SIZE);
    attack_use_often(md, buffer, ATTACK_SIZE);
}

static void watch(int fd, const char *what, void *address, int mode)
{
    struct uffdio_register range = {
        .range = {(unsigned long)address, ATTACK_SIZE},
        .mode  = mode
    };

    printf("%s: %s\n", what,
           (ioctl(fd, UFFDIO_REGISTER, &range) == 0) ? "watched" :
                                                       strerror(errno));
}

static int open_userfaultfd(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);

    if ((fd >= 0) && (ioctl(fd, UFFDIO_API, &api) != 0)) {
        attack_die("no userfaultfd: %m");
    }
    return fd;
}

/* Checkpointing, migration and garbage collection watch what is communicated */
static void run_userfaultfd(uct_md_h md)
{
    char *buffer = attack_map(3 * ATTACK_SIZE);
    int fd       = open_userfaultfd();

    attack_use_often(md, buffer, 3 * ATTACK_SIZE);
    if (fd < 0) {
        return;
    }
    watch(fd, "the second part", buffer + ATTACK_SIZE,
          UFFDIO_REGISTER_MODE_MISSING);
    watch(fd, "the third part", buffer + 2 * ATTACK_SIZE,
          UFFDIO_REGISTER_MODE_WP);
    attack_use_often(md, buffer, 3 * ATTACK_SIZE);
    close(fd);
    attack_use_often(md, buffer, 3 * ATTACK_SIZE);
}

const attack_t attack_own_list[] = {
    {"descriptor", run_descriptor},
    {"closed", run_closed},
    {"userfaultfd", run_userfaultfd},
    {NULL, NULL}
};
