/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Two processes over the pipeline and real UCP, without an MPI:
 *   ends receiver  the receiver is killed within a message: the sender's
 *                  requests end with an error, and nothing stays registered
 *   ends sender    the other way round
 *   ends unmap     mode cache: buffers whose registrations are kept are
 *                  unmapped, and others come at their addresses
 *   ends unseen    the same by a system call that UCM does not see: must fail
 * A second argument sets the bytes of a fragment, 0: derived. A third one says
 * when a side is killed: before it has begun with a message, or stopped within it
 * and killed a second later. It is waited for at once, as by a launcher.
 */

#include "../../bench/bench_util.h"

#include <ucx_pipeline.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUM_MESSAGES  6
#define MESSAGE_BYTES ((size_t)32 << 20)
#define DYING         2  /* message within which a side is killed */
#define WATCHDOG_S    50
#define MAX_ADDRESS   4096
#define MAX_SECONDS   14 /* far below the 20 that UCX's keepalive takes by itself */

static const char *side;
static ucx_pipeline_h pipeline;
static int link_fd;
static size_t fragment; /* 0: derived */
static const char *when = "";
static pid_t child;
static volatile int child_status = -1;

__attribute__((noreturn, format(printf, 1, 2)))
static void fail(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "ends: %s FAILED: ", side);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(1);
}

#define CHECK(_condition) \
    do { \
        if (!(_condition)) { \
            fail("line %d: %s", __LINE__, #_condition); \
        } \
    } while (0)

static double now(void)
{
    return bench_now() * 1e-9;
}

static void begin(int self, ucx_pipeline_mode_t mode)
{
    char buffer[MAX_ADDRESS] = "";
    ucx_pipeline_options_t options;
    const void *address;
    size_t length;

    ucx_pipeline_options_init(&options);
    options.mode         = mode;
    options.fragment     = (fragment > 0) ? fragment : options.fragment;
    options.max_slowdown = 0; /* registering costs next to nothing here */
    CHECK(ucx_pipeline_create(self, 2, &options, &pipeline) == UCS_OK);
    ucx_pipeline_address(pipeline, &address, &length);
    CHECK(length <= sizeof(buffer));
    memcpy(buffer, address, length);
    CHECK(write(link_fd, buffer, sizeof(buffer)) == sizeof(buffer));
    CHECK(ucx_pipeline_connect(pipeline, self, address) == UCS_OK);
    CHECK(recv(link_fd, buffer, sizeof(buffer), MSG_WAITALL) ==
          sizeof(buffer));
    CHECK(ucx_pipeline_connect(pipeline, !self, buffer) == UCS_OK);
}

static ucx_pipeline_stats_t stats(void)
{
    ucx_pipeline_stats_t result = {.size = sizeof(result)};

    ucx_pipeline_get_stats(pipeline, &result);
    return result;
}

/* Progress until the other side has done as much */
static void meet(void)
{
    char byte = 0;

    CHECK(write(link_fd, &byte, 1) == 1);
    while (recv(link_fd, &byte, 1, MSG_DONTWAIT) != 1) {
        ucx_pipeline_progress(pipeline);
    }
}

static ucx_pipeline_request_h post(int is_sender, int tag, char *data,
                                   size_t length)
{
    ucx_pipeline_request_h request;
    ucs_status_t status;

    status = is_sender ?
             ucx_pipeline_send(pipeline, 1, tag, data, length, &request) :
             ucx_pipeline_recv(pipeline, 0, tag, UINT64_MAX, data, length,
                               &request);
    CHECK(status == UCS_OK);
    return request;
}

/* --- A side is killed ----------------------------------------------------- */

/* Somebody else kills who has stopped */
static void stop(void)
{
    pid_t self = getpid(), killer = fork();

    CHECK(killer >= 0);
    if (killer == 0) {
        sleep(1);
        kill(self, SIGKILL);
        _exit(0);
    }
    raise(SIGSTOP);
}

static void die_within(ucx_pipeline_request_h request)
{
    while (!ucx_pipeline_test(request, NULL)) {
        ucx_pipeline_progress(pipeline);
        if (stats().registered > 0) {
            break; /* its fragments are under way */
        }
    }
    if (!strcmp(when, "stopped")) {
        stop();
    }
    kill(getpid(), SIGKILL);
}

static void killed(int self, int dies)
{
    char *data = malloc(NUM_MESSAGES * MESSAGE_BYTES);
    ucx_pipeline_request_h requests[NUM_MESSAGES], late;
    ucs_status_t status = UCS_OK;
    double start;
    int i, good = 0;

    begin(self, UCX_PIPELINE_MODE_PIPELINE);
    memset(data, 17, NUM_MESSAGES * MESSAGE_BYTES);
    for (i = 0; i < NUM_MESSAGES; ++i) {
        if (dies && (i == DYING) && !strcmp(when, "before")) {
            kill(getpid(), SIGKILL);
        }
        requests[i] = post(self == 0, i, data + i * MESSAGE_BYTES,
                           MESSAGE_BYTES);
        if (dies) {
            if (i == DYING) {
                die_within(requests[i]);
            }
            CHECK(ucx_pipeline_wait(requests[i], NULL) == UCS_OK);
        }
    }
    start = now();
    for (i = 0; i < NUM_MESSAGES; ++i) {
        status = ucx_pipeline_wait(requests[i], NULL);
        good  += (status == UCS_OK);
        CHECK((status == UCS_OK) == (i < DYING));
        CHECK(ucx_pipeline_request_free(requests[i]) == UCS_OK);
    }
    CHECK(now() - start < MAX_SECONDS);
    CHECK(stats().registered == 0);
    if (self == 0) {
        CHECK(ucx_pipeline_send(pipeline, 1, 9, data, 1, &late) != UCS_OK);
    } else {
        CHECK(ucx_pipeline_recv(pipeline, 0, 9, UINT64_MAX, data, 1, &late) !=
              UCS_OK);
    }
    CHECK(ucx_pipeline_destroy(pipeline) == UCS_OK);
    printf("ends: %d messages arrived, the others: %s, after %.1f s\n", good,
           ucs_status_string(status), now() - start);
    free(data);
}

/* --- A buffer goes whose registrations are kept --------------------------- */

/* There, unless another thread of the process has been quicker */
static char *map(char *at)
{
    char *data = mmap(at, MESSAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS |
                      ((at != NULL) ? MAP_FIXED_NOREPLACE : 0), -1, 0);

    if ((data == MAP_FAILED) && (at != NULL) && (errno == EEXIST)) {
        return map(NULL);
    }
    CHECK(data != MAP_FAILED);
    return data;
}

static void exchange(int self, int round, char *data)
{
    ucx_pipeline_request_h request;
    size_t i;

    memset(data, (self == 0) ? round + 1 : 0, MESSAGE_BYTES);
    request = post(self == 0, round, data, MESSAGE_BYTES);
    CHECK(ucx_pipeline_wait(request, NULL) == UCS_OK);
    CHECK(ucx_pipeline_request_free(request) == UCS_OK);
    for (i = 0; i < MESSAGE_BYTES; ++i) {
        if (data[i] != round + 1) {
            fail("byte %zu of round %d is wrong", i, round);
        }
    }
    meet();
}

static void unmapped(int self, int unseen)
{
    ucx_pipeline_stats_t before, first, again;
    char *data;
    int round;

    begin(self, UCX_PIPELINE_MODE_CACHE);
    data = map(NULL);
    for (round = 0; round < 8; round += 2) {
        before = stats();
        exchange(self, round, data);
        first = stats();
        if (first.registrations == before.registrations) {
            fail("round %d took registrations of what was unmapped", round);
        }
        CHECK(first.kept >= MESSAGE_BYTES / 2);
        CHECK(first.kept < 2 * MESSAGE_BYTES);
        exchange(self, round + 1, data); /* the same buffer */
        again = stats();
        /* What was copied while nothing was kept is registered now, in smaller
         * fragments maybe; what was registered is not, or more would be kept */
        CHECK(again.kept <= MESSAGE_BYTES);
        CHECK(again.reused > first.reused);
        if (unseen) {
            CHECK(syscall(SYS_munmap, data, MESSAGE_BYTES) == 0);
        } else {
            CHECK(munmap(data, MESSAGE_BYTES) == 0);
        }
        data = map(data);
        meet();
    }
    CHECK(ucx_pipeline_destroy(pipeline) == UCS_OK);
    printf("ends: %lu registrations, %lu reused\n",
           (unsigned long)again.registrations, (unsigned long)again.reused);
}

static void run(int self, const char *what)
{
    side = (self == 0) ? "sender" : "receiver";
    alarm(WATCHDOG_S);
    if (!strcmp(what, "receiver") || !strcmp(what, "sender")) {
        killed(self, !strcmp(what, side));
    } else {
        unmapped(self, !strcmp(what, "unseen"));
    }
}

static void child_ended(int signal_number)
{
    int status;

    if ((child > 0) && (waitpid(child, &status, WNOHANG) == child)) {
        child_status = status;
    }
}

int main(int argc, char **argv)
{
    const struct sigaction action = {
        .sa_handler = child_ended,
        .sa_flags   = SA_RESTART | SA_NOCLDSTOP
    };
    const char *what = (argc >= 2) ? argv[1] : "";
    int fds[2], is_kill;

    is_kill = !strcmp(what, "receiver") || !strcmp(what, "sender");
    if (!is_kill && strcmp(what, "unmap") && strcmp(what, "unseen")) {
        fprintf(stderr, "usage: ends receiver|sender|unmap|unseen "
                        "[FRAGMENT [before|stopped]]\n");
        return 2;
    }
    fragment = (argc >= 3) ? strtoul(argv[2], NULL, 10) : 0;
    when     = (argc >= 4) ? argv[3] : "";
    side     = "start";
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
    child   = fork();
    link_fd = fds[child == 0];
    close(fds[child != 0]);
    if (child == 0) { /* the side that may die */
        run(!strcmp(what, "sender") ? 0 : 1, what);
        return 0;
    }
    run(!strcmp(what, "sender") ? 1 : 0, what);
    while (child_status == -1) {
        usleep(1000);
    }
    CHECK(is_kill ? (WIFSIGNALED(child_status) &&
                     (WTERMSIG(child_status) == SIGKILL)) :
                    (child_status == 0));
    return 0;
}
