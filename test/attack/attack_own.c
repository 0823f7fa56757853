/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * What is the program's own: its descriptors, whatever number they have, and
 * its userfaultfd.
 */

#include "attack.h"
#include "../own_proc.h"
#include "../refuse_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DESCRIPTOR 256
#define OWN_FILES      20

static const char precious[] = "the program's own bytes";
static int precious_fd       = -1;

/* Unless there is one, a number that is free */
static int find_userfaultfd(void)
{
    int fd = own_proc_userfaultfd(MAX_DESCRIPTOR);

    return (fd < 0) ? MAX_DESCRIPTOR : fd;
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
ATTACK(descriptor, md)
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

/*
 * Files of the program's own under all the numbers that it did not open
 */

static int own_files[OWN_FILES];

static int own_file(void)
{
    FILE *file = tmpfile();
    int fd     = (file == NULL) ? -1 : dup(fileno(file));

    if ((fd < 0) || (write(fd, precious, sizeof(precious)) < 0) ||
        (lseek(fd, 4, SEEK_SET) != 4)) {
        attack_die("no file: %m");
    }
    fclose(file);
    return fd;
}

static void check_file(int fd)
{
    char bytes[2 * sizeof(precious)] = "";

    if ((lseek(fd, 0, SEEK_CUR) != 4) ||
        (pread(fd, bytes, sizeof(bytes), 0) != sizeof(precious)) ||
        (strcmp(bytes, precious) != 0)) {
        attack_die("the file behind descriptor %d has changed", fd);
    }
}

/* What a thread does for the first time is done once more */
static void use_in_new_threads(uct_md_h md)
{
    int i;

    for (i = 0; i < 8; ++i) {
        attack_use_in_a_thread(md);
    }
}

/* The software NIC's descriptors, which lie below, are as a card's driver's */
ATTACK(strange_files, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    int i;

    attack_use_often(md, buffer, ATTACK_SIZE);
    syscall(SYS_close_range, find_userfaultfd(), ~0u, 0);
    for (i = 0; i < OWN_FILES; ++i) {
        own_files[i] = own_file();
    }
    use_in_new_threads(md);
    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; i < OWN_FILES; ++i) {
        check_file(own_files[i]);
    }
}

/* Whoever reads one of these waits for ever, and what is written is read */
ATTACK(strange_sockets, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    int ends[OWN_FILES][2];
    char byte;
    int i;

    attack_use_often(md, buffer, ATTACK_SIZE);
    syscall(SYS_close_range, find_userfaultfd(), ~0u, 0);
    for (i = 0; i < OWN_FILES; ++i) {
        if (((i % 2) ? pipe(ends[i]) :
                       socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i])) != 0) {
            attack_die("no pair: %m");
        }
    }
    use_in_new_threads(md);
    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; i < OWN_FILES; ++i) {
        fcntl(ends[i][0], F_SETFL, O_NONBLOCK);
        if ((read(ends[i][0], &byte, 1) >= 0) || (errno != EAGAIN)) {
            attack_die("pair %d: something was written or closed", i);
        }
    }
}

static _Atomic int own_is_over;

/* Again and again all that it does not know is closed, and its own opened */
static void *close_main(void *arg)
{
    int first = *(int*)arg;
    int fds[8], i;

    while (!own_is_over) {
        syscall(SYS_close_range, first, ~0u, 0);
        for (i = 0; i < 8; ++i) {
            fds[i] = own_file();
        }
        for (i = 0; i < 8; ++i) {
            check_file(fds[i]);
        }
    }
    return NULL;
}

/* Beside a thread that closes all from a number on */
static void use_while_closed(uct_md_h md, char *buffer, int first)
{
    double end = attack_now() + 0.5;
    pthread_t id;

    if (pthread_create(&id, NULL, close_main, &first) != 0) {
        attack_die("no thread");
    }
    while (attack_now() < end) {
        attack_use(md, buffer, ATTACK_SIZE);
        use_in_new_threads(md);
    }
    own_is_over = 1;
    pthread_join(id, NULL);
    attack_use_often(md, buffer, ATTACK_SIZE);
}

ATTACK(closed_all_the_time, md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    attack_use_often(md, buffer, ATTACK_SIZE);
    use_while_closed(md, buffer, find_userfaultfd());
}

/*
 * What the program opens for itself in place of what it has closed
 */

static void count_own(const char *who)
{
    unsigned count = 0;
    int i;

    for (i = 0; i < OWN_FILES; ++i) {
        count += (fcntl(own_files[i], F_GETFD) >= 0);
    }
    printf("%s: %u of %u are open\n", who, count, OWN_FILES);
}

static void count_own_at_the_end(void)
{
    count_own("at the end");
}

/* The very file that we have open, as a profiler has */
ATTACK(same_file, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    pid_t child;
    int i;

    attack_use_often(md, buffer, ATTACK_SIZE);
    syscall(SYS_close_range, find_userfaultfd(), ~0u, 0);
    for (i = 0; i < OWN_FILES; ++i) {
        own_files[i] = open("/proc/self/maps", O_RDONLY);
    }
    use_in_new_threads(md);
    attack_use_often(md, buffer, ATTACK_SIZE);
    child = fork();
    if (child == 0) {
        count_own("child");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    atexit(count_own_at_the_end);
}

/* Also what the software NIC has: without it nothing is pinned, and nothing fails */
ATTACK(all_closed, md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    attack_use_often(md, buffer, ATTACK_SIZE);
    use_while_closed(md, buffer, STDERR_FILENO + 1);
}

/*
 * A program that opens nothing
 */

/* Calls that take a number of the program's table of descriptors */
static const int taking_calls[] = {
#ifdef SYS_open
    SYS_open, SYS_creat, SYS_pipe, SYS_dup2, SYS_eventfd, SYS_epoll_create,
#endif
    SYS_openat, SYS_openat2, SYS_pipe2, SYS_dup, SYS_dup3, SYS_eventfd2,
    SYS_epoll_create1, SYS_socket, SYS_socketpair, SYS_memfd_create,
    SYS_timerfd_create, SYS_signalfd4, SYS_inotify_init1, SYS_userfaultfd,
    SYS_io_uring_setup, SYS_pidfd_open, SYS_perf_event_open
};

/* Whatever is done only now and then is due by its end */
ATTACK(opens_nothing, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    double end   = attack_now() + 2.5;
    char *fresh;
    pid_t child;

    attack_use_often(md, buffer, ATTACK_SIZE);
    /* From now on such a call ends the program, in whatever thread */
    if (refuse_calls(taking_calls,
                     sizeof(taking_calls) / sizeof(taking_calls[0]), 0) != 0) {
        attack_die("no filter: %m");
    }
    while (attack_now() < end) {
        attack_use_often(md, buffer, ATTACK_SIZE);
        use_in_new_threads(md);
        fresh = attack_map_raw(2 * ATTACK_SIZE);
        attack_use(md, fresh, 2 * ATTACK_SIZE);
        munmap(fresh, ATTACK_SIZE);
        attack_use(md, fresh + ATTACK_SIZE, ATTACK_SIZE);
        syscall(SYS_munmap, fresh + ATTACK_SIZE, ATTACK_SIZE);
        child = fork();
        if (child == 0) {
            _exit(0);
        }
        waitpid(child, NULL, 0);
        attack_sleep(100);
    }
    puts("nothing was opened");
    _exit(0); /* at its end the reader of kernel events opens a file in its own table */
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
ATTACK(userfaultfd, md)
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
