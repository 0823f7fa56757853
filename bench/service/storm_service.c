/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * A service as inference and training run it over UCX: it maps the pieces of
 * one range one by one (ucp_mem_map), packs a key of each, a second process
 * reads through some of the keys and compares, and the pieces are unmapped in
 * random order. With gaps every second piece is not mapped, and the second
 * process tries to read from such by the key of the one before. One JSON line:
 * what was asked for, times, errors.
 */

#include "../bench_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define READ_MAX 4096 /* bytes of a piece that are read remotely */
#define KEY_MAX  1024 /* bytes of a packed key or a worker's address */
#define ALIGN    512  /* pieces begin at multiples, as tensors do */
#define GAP_OFFSET 4096 /* bytes behind a piece: in no page of it */

typedef struct options {
    size_t      bytes;
    size_t      pieces;
    size_t      reads;
    const char *order;
    int         is_touched;
    int         is_even;  /* all pieces are of one length */
    int         has_gaps; /* every second one is not mapped */
} options_t;

typedef struct piece {
    char      *start;
    size_t    length;
    ucp_mem_h memh;
} piece_t;

/* What the reader is told of a piece */
typedef struct offer {
    uint64_t address;
    uint64_t length;
    uint64_t seed;
    uint64_t gap; /* an address that was not mapped, or 0 */
    char     key[KEY_MAX];
} offer_t;

/* What the reader has seen */
typedef struct seen {
    uint64_t errors;       /* reads of something else than was written */
    uint64_t gaps_refused; /* reads of gaps that failed */
} seen_t;

/* What the process holds at a time */
typedef struct held {
    unsigned      mappings;  /* lines of /proc/self/maps */
    unsigned long pinned_kb; /* VmPin of /proc/self/status */
} held_t;

typedef struct side {
    ucp_context_h context;
    ucp_worker_h  worker;
    int           fd;
} side_t;

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
    fprintf(stderr, "storm_service: %s: %s\n", what, why);
    exit(1);
}

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        die(what, ucs_status_string(status));
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

static void send_all(int fd, const void *data, size_t length)
{
    if (send(fd, data, length, MSG_NOSIGNAL) != (ssize_t)length) {
        die("send", strerror(errno));
    }
}

/* The other side may need this one's progress to answer */
static void receive(side_t *side, void *data, size_t length)
{
    ssize_t ret;

    do {
        (void)ucp_worker_progress(side->worker);
        ret = recv(side->fd, data, length, MSG_DONTWAIT);
    } while ((ret < 0) && ((errno == EAGAIN) || (errno == EINTR)));
    if (ret != (ssize_t)length) {
        die("recv", "the other process has ended");
    }
}

static void side_init(side_t *side, int fd)
{
    const ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA
    };
    const ucp_worker_params_t worker_params = {.field_mask = 0};

    side->fd = fd;
    check(ucp_init(&params, NULL, &side->context), "ucp_init");
    check(ucp_worker_create(side->context, &worker_params, &side->worker),
          "ucp_worker_create");
}

static ucs_status_t side_wait(side_t *side, void *request)
{
    ucs_status_t status = UCS_OK;

    if (UCS_PTR_IS_ERR(request)) {
        return UCS_PTR_STATUS(request);
    }
    if (request == NULL) {
        return UCS_OK;
    }
    do {
        (void)ucp_worker_progress(side->worker);
        status = ucp_request_check_status(request);
    } while (status == UCS_INPROGRESS);
    ucp_request_free(request);
    return status;
}

static void side_finish(side_t *side, void *request)
{
    check(side_wait(side, request), "request");
}

static void fill(char *data, size_t length, uint64_t seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        data[i] = (char)(next_random(&seed) + i);
    }
}

/*
 * The reader
 */

/* @return 1 if what was read is not what the service has written */
static uint64_t read_piece(side_t *side, ucp_ep_h ep, const offer_t *offer)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    char seen[READ_MAX], expected[READ_MAX];
    ucp_rkey_h rkey;

    memset(seen, 0, sizeof(seen));
    check(ucp_ep_rkey_unpack(ep, offer->key, &rkey), "ucp_ep_rkey_unpack");
    side_finish(side, ucp_get_nbx(ep, seen, offer->length, offer->address, rkey,
                                  &param));
    ucp_rkey_destroy(rkey);
    fill(expected, offer->length, offer->seed);
    return !!memcmp(seen, expected, offer->length);
}

static void reader_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    /* The read fails as well */
}

static ucp_ep_h reader_connect(side_t *side, const void *address, int may_fail)
{
    ucp_ep_params_t params = {
        .field_mask  = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address     = address,
        .err_mode    = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = reader_failed}
    };
    ucp_ep_h ep;

    if (may_fail) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                             UCP_EP_PARAM_FIELD_ERR_HANDLER;
    }
    check(ucp_ep_create(side->worker, &params, &ep), "ucp_ep_create");
    return ep;
}

static void reader_close(side_t *side, ucp_ep_h ep, int is_failed)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = is_failed ? UCP_EP_CLOSE_FLAG_FORCE : 0
    };

    (void)side_wait(side, ucp_ep_close_nbx(ep, &param));
}

/* A refusal takes the connection along, so each has one of its own.
 * @return 1 if the gap is refused */
static uint64_t read_gap(side_t *side, const void *address,
                         const offer_t *offer)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    ucp_ep_h ep                     = reader_connect(side, address, 1);
    char seen[1];
    ucp_rkey_h rkey;
    ucs_status_t status;

    check(ucp_ep_rkey_unpack(ep, offer->key, &rkey), "ucp_ep_rkey_unpack");
    status = side_wait(side, ucp_get_nbx(ep, seen, sizeof(seen), offer->gap,
                                         rkey, &param));
    ucp_rkey_destroy(rkey);
    reader_close(side, ep, status != UCS_OK);
    return status != UCS_OK;
}

static int reader_main(int fd, const options_t *options)
{
    seen_t seen = {.errors = 0};
    char address[KEY_MAX];
    offer_t offer;
    side_t side;
    ucp_ep_h ep;
    size_t i;

    side_init(&side, fd);
    receive(&side, address, sizeof(address));
    ep = reader_connect(&side, address, 0);
    for (i = 0; i < options->reads; ++i) {
        receive(&side, &offer, sizeof(offer));
        seen.errors += read_piece(&side, ep, &offer);
        if (offer.gap != 0) {
            seen.gaps_refused += read_gap(&side, address, &offer);
        }
    }
    reader_close(&side, ep, 0);
    send_all(fd, &seen, sizeof(seen));
    receive(&side, &offer, 1);
    ucp_worker_destroy(side.worker);
    ucp_cleanup(side.context);
    return 0;
}

/*
 * The service
 */

/* Half to one and a half of the mean of what is left; the last takes all of
 * that, and is no longer than others */
static void cut(piece_t *pieces, char *data, const options_t *options)
{
    uint64_t state = 1;
    size_t at      = 0;
    size_t mean, i;

    for (i = 0; i < options->pieces; ++i) {
        mean             = (options->bytes - at) / (options->pieces - i);
        pieces[i].start  = data + at;
        pieces[i].length = (options->is_even || (i == options->pieces - 1)) ?
                                   mean :
                                   mean / 2 + next_random(&state) % mean;
        pieces[i].length = (pieces[i].length + ALIGN - 1) / ALIGN * ALIGN;
        at              += pieces[i].length;
    }
    if (at > options->bytes) {
        die("pieces", "too many for so few bytes");
    }
    pieces[i - 1].length += options->bytes - at;
}

/* @return How many are left */
static size_t leave_gaps(piece_t *pieces, size_t count)
{
    size_t i;

    for (i = 0; 2 * i + 1 < count; ++i) {
        pieces[i] = pieces[2 * i];
    }
    return i;
}

static void shuffle(piece_t *pieces, size_t count)
{
    uint64_t state = 2;
    piece_t piece;
    size_t i, j;

    for (i = count; i > 1; --i) {
        j             = next_random(&state) % i;
        piece         = pieces[j];
        pieces[j]     = pieces[i - 1];
        pieces[i - 1] = piece;
    }
}

static void arrange(piece_t *pieces, size_t count, const options_t *options)
{
    size_t i, last = count - 1;
    piece_t piece;

    if (!strcmp(options->order, "random")) {
        shuffle(pieces, count);
    } else if (!strcmp(options->order, "down")) {
        for (i = 0; i < last - i; ++i) {
            piece            = pieces[i];
            pieces[i]        = pieces[last - i];
            pieces[last - i] = piece;
        }
    }
}

/* The key of each is packed at once, as NIXL and MPI's windows do */
static double map_all(side_t *side, piece_t *pieces, size_t count)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH
    };
    uint64_t start = bench_now();
    size_t length, i;
    void *key;

    for (i = 0; i < count; ++i) {
        params.address = pieces[i].start;
        params.length  = pieces[i].length;
        check(ucp_mem_map(side->context, &params, &pieces[i].memh),
              "ucp_mem_map");
        check(ucp_rkey_pack(side->context, pieces[i].memh, &key, &length),
              "ucp_rkey_pack");
        ucp_rkey_buffer_release(key);
    }
    return (bench_now() - start) * 1e-9;
}

static double unmap_all(side_t *side, piece_t *pieces, size_t count)
{
    uint64_t start = bench_now();
    size_t i;

    for (i = 0; i < count; ++i) {
        check(ucp_mem_unmap(side->context, pieces[i].memh), "ucp_mem_unmap");
    }
    return (bench_now() - start) * 1e-9;
}

/* Written after it was registered: what is read is not a copy of before */
static void
offer_piece(side_t *side, const piece_t *piece, uint64_t seed, int has_gap)
{
    offer_t offer = {.address = (uintptr_t)piece->start,
                     .length  = piece->length,
                     .seed    = seed};
    size_t length;
    void *key;

    if (has_gap) {
        /* the middle of the piece behind, which is in no page of this one */
        offer.gap = offer.address + offer.length + GAP_OFFSET;
    }

    if (offer.length > READ_MAX) {
        offer.address += offer.length - READ_MAX; /* up to its end */
        offer.length   = READ_MAX;
    }
    fill((char*)offer.address, offer.length, seed);
    check(ucp_rkey_pack(side->context, piece->memh, &key, &length),
          "ucp_rkey_pack");
    if (length > KEY_MAX) {
        die("ucp_rkey_pack", "a longer key than expected");
    }
    memcpy(offer.key, key, length);
    ucp_rkey_buffer_release(key);
    send_all(side->fd, &offer, sizeof(offer));
}

static seen_t serve(side_t *side, piece_t *pieces, size_t count,
                    const options_t *options)
{
    char address[KEY_MAX] = "";
    seen_t seen;
    ucp_address_t *own;
    size_t length, i;

    check(ucp_worker_get_address(side->worker, &own, &length),
          "ucp_worker_get_address");
    if (length > KEY_MAX) {
        die("ucp_worker_get_address", "longer than expected");
    }
    memcpy(address, own, length);
    ucp_worker_release_address(side->worker, own);
    send_all(side->fd, address, sizeof(address));
    for (i = 0; i < options->reads; ++i) {
        (void)ucp_worker_progress(side->worker);
        offer_piece(side, &pieces[i * count / options->reads], i,
                    options->has_gaps);
    }
    receive(side, &seen, sizeof(seen));
    send_all(side->fd, "", 1);
    return seen;
}

static held_t look(void)
{
    held_t held = {.mappings = 0};
    FILE *file;
    char *line  = NULL;
    size_t size = 0;

    file = fopen("/proc/self/maps", "r");
    while ((file != NULL) && (getline(&line, &size, file) >= 0)) {
        ++held.mappings;
    }
    if (file != NULL) {
        fclose(file);
    }
    file = fopen("/proc/self/status", "r");
    while ((file != NULL) && (getline(&line, &size, file) >= 0)) {
        (void)sscanf(line, "VmPin: %lu", &held.pinned_kb);
    }
    if (file != NULL) {
        fclose(file);
    }
    free(line);
    return held;
}

/* Bytes of the pages that the pieces touch, each page once */
static size_t pages_of(const piece_t *pieces, size_t count)
{
    size_t page   = sysconf(_SC_PAGESIZE);
    size_t length = 0;
    uintptr_t end = 0; /* behind the last page that is counted */
    uintptr_t first, last;
    size_t i;

    for (i = 0; i < count; ++i) {
        first   = (uintptr_t)pieces[i].start / page * page;
        last    = ((uintptr_t)pieces[i].start + pieces[i].length + page - 1) /
                  page * page;
        first   = (first < end) ? end : first;
        length += (last > first) ? last - first : 0;
        end     = last;
    }
    return length;
}

static char *get_memory(const options_t *options)
{
    char *data = bench_map(options->bytes, MAP_PRIVATE | MAP_NORESERVE);

    if (options->is_touched) {
        memset(data, 1, options->bytes);
    }
    return data;
}

static void print_held(const char *name, const held_t *held)
{
    printf(",\"mappings_%s\":%u,\"pinned_bytes_%s\":%lu", name,
           held->mappings, name, held->pinned_kb << 10);
}

static uint64_t service(int fd, const options_t *options)
{
    piece_t *pieces = calloc(options->pieces, sizeof(*pieces));
    size_t count    = options->pieces;
    double mapped, unmapped, released, closed;
    held_t before, during, after;
    uint64_t start;
    size_t pages;
    seen_t seen;
    side_t side;
    char *data;

    if (pieces == NULL) {
        die("memory", strerror(errno));
    }
    side_init(&side, fd);
    data = get_memory(options); /* as services do: UCP is there before */
    cut(pieces, data, options);
    if (options->has_gaps) {
        count = leave_gaps(pieces, count);
    }
    pages = pages_of(pieces, count);
    arrange(pieces, count, options);
    before = look();
    mapped = map_all(&side, pieces, count);
    during = look();
    seen   = serve(&side, pieces, count, options);
    shuffle(pieces, count);
    unmapped = unmap_all(&side, pieces, count);
    start    = bench_now();
    munmap(data, options->bytes);
    released = (bench_now() - start) * 1e-9;
    after    = look();
    start    = bench_now();
    ucp_worker_destroy(side.worker);
    ucp_cleanup(side.context);
    closed = (bench_now() - start) * 1e-9;
    printf("{\"bench\":\"storm\",\"pid\":%d,\"bytes\":%zu,\"asked\":%zu,"
           "\"asked_bytes\":%zu,\"reads\":%zu,\"errors\":%lu,"
           "\"gaps_refused\":%lu,\"order\":\"%s\",\"map_seconds\":%.6f,"
           "\"unmap_seconds\":%.6f,\"munmap_seconds\":%.6f,"
           "\"close_seconds\":%.6f",
           getpid(), options->bytes, count, pages, options->reads, seen.errors,
           seen.gaps_refused, options->order, mapped, unmapped, released,
           closed);
    print_held("before", &before);
    print_held("during", &during);
    print_held("after", &after);
    printf("}\n");
    free(pieces);
    return seen.errors;
}

static options_t parse_options(char **argv)
{
    options_t options            = {.bytes      = 2ul << 30,
                                    .pieces     = 1265,
                                    .reads      = 64,
                                    .order      = "up",
                                    .is_touched = 1};
    size_t length                = 0;
    const bench_option_t table[] = {
        {"bytes", BENCH_SIZE, &options.bytes, 1, 1e15, "SIZE     of the range [2g]"},
        {"pieces", BENCH_SIZE, &options.pieces, 1, 1e9,
         "N        that it is mapped in [1265]"},
        {"piece", BENCH_SIZE, &length, 1, 1e15, "SIZE     instead: all of this length"},
        {"order", BENCH_TEXT, &options.order, 0, 0, "ORDER    up, down or random [up]"},
        {"reads", BENCH_SIZE, &options.reads, 1, 1e9,
         "N        by the second process [64]"},
        {"untouched", BENCH_FLAG, &options.is_touched, 0, 0,
         "         no page is in memory when it is mapped"},
        {"gaps", BENCH_FLAG, &options.has_gaps, 1, 1,
         "         every second piece is not mapped, and the second\n"
         "                          process tries to read there"},
        {0}
    };

    bench_options_or_exit("storm_service [options]", table, argv, NULL);
    if (length > 0) {
        options.pieces  = options.bytes / length;
        options.is_even = 1;
    }
    if ((options.pieces == 0) || (options.pieces > options.bytes / ALIGN)) {
        die("pieces", "too many, or none");
    }
    return options;
}

int main(int argc, char **argv)
{
    options_t options = parse_options(argv);
    int fds[2], status;
    uint64_t errors;
    pid_t reader;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0) {
        die("socketpair", strerror(errno));
    }
    reader = fork(); /* before UCX is there */
    if (reader == 0) {
        close(fds[0]);
        return reader_main(fds[1], &options);
    }
    close(fds[1]);
    errors = service(fds[0], &options);
    if ((waitpid(reader, &status, 0) != reader) || (status != 0)) {
        die("reader", "failed");
    }
    return errors > 0;
}
