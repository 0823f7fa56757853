/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Two processes over UCP, without an MPI that would end both. One sends large
 * messages; while they are under way
 *   --what kill   the other is killed with SIGKILL
 *   --what close  the sender closes the endpoint by force
 * Then every request of the sender must end, its memory is overwritten,
 * unmapped and mapped again, and what was registered must have been let go.
 * (All messages go once before, for UCX's own pools to grow.) A receiver that
 * lives must never be told that a message arrived whose bytes are those that
 * were written afterwards.
 */

#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define NUM_MESSAGES  12
#define MESSAGE_BYTES (2ul << 20)
#define ALL_BYTES     (NUM_MESSAGES * MESSAGE_BYTES)
#define DYING         2    /* message within which the receiver is killed */
#define GOOD          0x11 /* content of message i: GOOD + i */
#define LATE          0xee /* written once all requests have ended */
#define MARGIN_BYTES  (ALL_BYTES / 4)
#define WATCHDOG_S    100
#define LET_GO_TRIES  1000 /* PAUSE_NS each */
#define STEADY_TRIES  150
#define PAUSE_NS      10000000l

typedef struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    int           failed; /* the error handler has been called */
    uint8_t       *data;
    void          *requests[NUM_MESSAGES];
    ucs_status_t  status[NUM_MESSAGES];
} side_t;

static const char *side_name = "sender";

__attribute__((noreturn, format(printf, 1, 2)))
static void fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "peer: FAILED in the %s: ", side_name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    _exit(1);
}

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fail("%s: %s", what, ucs_status_string(status));
    }
}

/* --- the two sides ---------------------------------------------------------
 * */

static void peer_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    side_t *side = arg;

    printf("peer: %s: the endpoint failed: %s\n", side_name,
           ucs_status_string(status));
    side->failed = 1;
}

static void *map_data(void *where)
{
    void *data = mmap(where, ALL_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0),
                      -1, 0);

    if (data == MAP_FAILED) {
        fail("no memory");
    }
    return data;
}

static void side_init(side_t *side)
{
    const ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG
    };
    const ucp_worker_params_t worker_params = {.field_mask = 0};

    memset(side, 0, sizeof(*side));
    check(ucp_init(&params, NULL, &side->context), "ucp_init");
    check(ucp_worker_create(side->context, &worker_params, &side->worker),
          "ucp_worker_create");
    side->data = map_data(NULL);
}

static void must(int good, const char *what)
{
    if (!good) {
        fail("%s", what);
    }
}

static void side_connect(side_t *side, int channel)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = peer_failed,
        .err_handler.arg = side
    };
    ucp_address_t *address;
    size_t length;
    void *remote;

    check(ucp_worker_get_address(side->worker, &address, &length),
          "ucp_worker_get_address");
    must(write(channel, &length, sizeof(length)) == sizeof(length), "write");
    must(write(channel, address, length) == (ssize_t)length, "write");
    ucp_worker_release_address(side->worker, address);

    must(read(channel, &length, sizeof(length)) == sizeof(length), "read");
    remote = malloc(length);
    must((remote != NULL) &&
         (recv(channel, remote, length, MSG_WAITALL) == (ssize_t)length),
         "recv");
    params.address = remote;
    check(ucp_ep_create(side->worker, &params, &side->ep), "ucp_ep_create");
    free(remote);
}

static void side_cleanup(side_t *side)
{
    munmap(side->data, ALL_BYTES);
    ucp_worker_destroy(side->worker);
    ucp_cleanup(side->context);
}

/* @return Nonzero once it is over; the request is released then */
static int request_is_done(side_t *side, int i)
{
    void *request = side->requests[i];

    if (request == NULL) {
        return 1;
    }
    if (UCS_PTR_IS_ERR(request)) {
        side->status[i]   = UCS_PTR_STATUS(request);
        side->requests[i] = NULL;
        return 1;
    }
    side->status[i] = ucp_request_check_status(request);
    if (side->status[i] == UCS_INPROGRESS) {
        return 0;
    }
    ucp_request_free(request);
    side->requests[i] = NULL;
    return 1;
}

static int count_done(side_t *side)
{
    int i, done = 0;

    for (i = 0; i < NUM_MESSAGES; i++) {
        done += request_is_done(side, i);
    }
    return done;
}

static ucp_tag_t tag_of(int round, int i)
{
    return round * NUM_MESSAGES + i;
}

static void wait_all(side_t *side)
{
    int i;

    while (count_done(side) < NUM_MESSAGES) {
        ucp_worker_progress(side->worker);
    }
    for (i = 0; i < NUM_MESSAGES; i++) {
        check(side->status[i], "the first round");
    }
}

/* Other memory at the same place: helper and UCX must let go of the old */
static void replace_data(side_t *side)
{
    munmap(side->data, ALL_BYTES);
    side->data = map_data(side->data);
}

static void close_endpoint(side_t *side)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE
    };
    void *request = ucp_ep_close_nbx(side->ep, &param);

    if (UCS_PTR_IS_PTR(request)) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_worker_progress(side->worker);
        }
        ucp_request_free(request);
    }
}

/* --- receiver --------------------------------------------------------------
 * */

static void post_receives(side_t *side, int round)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    int i;

    for (i = 0; i < NUM_MESSAGES; i++) {
        side->requests[i] = ucp_tag_recv_nbx(side->worker,
                                             side->data + i * MESSAGE_BYTES,
                                             MESSAGE_BYTES, tag_of(round, i),
                                             UINT64_MAX,
                                             &param);
    }
}

static void check_received(side_t *side)
{
    size_t i, j;

    for (i = 0; i < NUM_MESSAGES; i++) {
        if ((side->requests[i] != NULL) || (side->status[i] != UCS_OK)) {
            continue;
        }
        for (j = 0; j < MESSAGE_BYTES; j++) {
            if (side->data[i * MESSAGE_BYTES + j] != GOOD + i) {
                fail("message %zu, told to be whole, has 0x%02x at %zu%s", i,
                     side->data[i * MESSAGE_BYTES + j], j,
                     (side->data[i * MESSAGE_BYTES + j] == LATE) ?
                     ": a LATE access" : "");
            }
        }
    }
}

/* Killed while a message arrives: its first byte is there, and it is not over
 * */
static void die_within(side_t *side)
{
    volatile uint8_t *first = side->data + DYING * MESSAGE_BYTES;

    while (*first == 0) {
        ucp_worker_progress(side->worker);
    }
    if (count_done(side) == NUM_MESSAGES) {
        fail("all arrived before it could die");
    }
    raise(SIGKILL);
}

static void receiver(int channel, int is_kill)
{
    side_t side;
    char byte;

    side_name = "receiver";
    alarm(WATCHDOG_S);
    side_init(&side);
    side_connect(&side, channel);
    post_receives(&side, 0);
    wait_all(&side);
    replace_data(&side);
    post_receives(&side, 1);
    if (is_kill) {
        die_within(&side);
    }

    /* Until the sender is through with its memory */
    while (recv(channel, &byte, 1, MSG_DONTWAIT) != 1) {
        ucp_worker_progress(side.worker);
        count_done(&side);
    }
    printf("peer: receiver: %d of %d receives are over\n", count_done(&side),
           NUM_MESSAGES);
    check_received(&side);
    fflush(stdout);
    _exit(0); /* what has not arrived never will: nothing to clean up for */
}

/* --- sender ----------------------------------------------------------------
 * */

static size_t pinned_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    size_t kib = 0;
    char line[256];

    must(file != NULL, "/proc/self/status");
    while (fgets(line, sizeof(line), file) != NULL) {
        sscanf(line, "VmPin: %zu", &kib);
    }
    fclose(file);
    return kib << 10;
}

/* Kernels before 6.18 unpin a little later, and where ranks want all cores the
 * helper may come a second after memory was unmapped */
static size_t steady_pinned_bytes(void)
{
    const struct timespec pause = {0, PAUSE_NS};
    size_t last                 = pinned_bytes();
    int steady                  = 0;
    size_t now;

    while (steady < STEADY_TRIES) {
        nanosleep(&pause, NULL);
        now    = pinned_bytes();
        steady = (now == last) ? steady + 1 : 0;
        last   = now;
    }
    return last;
}

static void post_sends(side_t *side, int round)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    int i;

    for (i = 0; i < NUM_MESSAGES; i++) {
        memset(side->data + i * MESSAGE_BYTES, GOOD + i, MESSAGE_BYTES);
    }
    for (i = 0; i < NUM_MESSAGES; i++) {
        side->requests[i] = ucp_tag_send_nbx(side->ep,
                                             side->data + i * MESSAGE_BYTES,
                                             MESSAGE_BYTES, tag_of(round, i),
                                             &param);
    }
}

/* Killed: until that is noticed. Otherwise until a message is under way: its
 * memory is registered. @return Most bytes seen pinned. */
static size_t progress_until_failure(side_t *side, size_t base, int is_kill)
{
    size_t peak = 0;
    size_t now;

    do {
        ucp_worker_progress(side->worker);
        now  = pinned_bytes();
        peak = (now > peak) ? now : peak;
        if (!is_kill && (now >= base + MESSAGE_BYTES)) {
            break;
        }
    } while (!side->failed);
    return peak;
}

static void check_ends(side_t *side)
{
    int i, broken = 0;

    while (count_done(side) < NUM_MESSAGES) {
        ucp_worker_progress(side->worker);
    }
    for (i = 0; i < NUM_MESSAGES; i++) {
        broken += (side->status[i] != UCS_OK);
    }
    printf("peer: sender: %d of %d sends were broken off\n", broken,
           NUM_MESSAGES);
    must(broken > 0, "all was sent before the end came");
}

static void check_let_go(size_t base, size_t peak)
{
    const struct timespec pause = {0, PAUSE_NS};
    int tries;

    for (tries = 0; tries < LET_GO_TRIES; tries++) {
        if (pinned_bytes() <= base + MARGIN_BYTES) {
            return;
        }
        nanosleep(&pause, NULL);
    }
    fail("%zu bytes pinned, %zu before, %zu at most", pinned_bytes(), base,
         peak);
}

static void sender(int channel, int is_kill)
{
    size_t base, peak;
    side_t side;
    char byte = 1;

    alarm(WATCHDOG_S);
    side_init(&side);
    side_connect(&side, channel);
    post_sends(&side, 0);
    wait_all(&side);
    replace_data(&side);
    base = steady_pinned_bytes();
    post_sends(&side, 1);
    peak = progress_until_failure(&side, base, is_kill);
    close_endpoint(&side);
    check_ends(&side);

    memset(side.data, LATE, ALL_BYTES);
    replace_data(&side);
    memset(side.data, LATE, ALL_BYTES);
    check_let_go(base, peak);
    printf("peer: sender: %zu bytes pinned before, %zu at most, %zu after\n",
           base, peak, pinned_bytes());
    if (!is_kill) {
        must(write(channel, &byte, 1) == 1, "write");
    }
    side_cleanup(&side);
}

int main(int argc, char **argv)
{
    int is_kill = -1;
    int channels[2], status;
    pid_t pid;

    if ((argc == 3) && !strcmp(argv[1], "--what")) {
        is_kill = !strcmp(argv[2], "kill") ? 1 :
                  !strcmp(argv[2], "close") ? 0 : -1;
    }
    if (is_kill < 0) {
        fprintf(stderr, "usage: peer --what kill|close\n");
        return 2;
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, channels) == 0, "socketpair");
    pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        close(channels[0]);
        receiver(channels[1], is_kill);
    }

    close(channels[1]);
    sender(channels[0], is_kill);
    must(waitpid(pid, &status, 0) == pid, "waitpid");
    must(is_kill ? (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL)) :
                   (status == 0), "the receiver ended otherwise");
    printf("peer: %s, OK\n", is_kill ? "kill" : "close");
    return 0;
}
