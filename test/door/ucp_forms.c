/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Two processes over UCP alone, in each form of its functions: ucp_forms OUT.
 * Each writes what came of each call into OUT.RANK, which is the same however
 * often it runs, and what it called into OUT.RANK.calls.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define MAX_BYTES  (1ul << 20)
#define FOLLOWED   4096 /* receives of so many bytes have their end told */
#define WATCHDOG_S 60

enum { SEND, RECEIVE, RECEIVED, PUT, GET, ATOMIC, MAP, UNMAP, KINDS };

enum { SEND_NB, SEND_NBR, SEND_NBX, SYNC_NB, SYNC_NBX, SEND_FORMS };

enum { RECV_NB, RECV_NBR, RECV_NBX, RECV_NBX_CB, MSG_NB, MSG_NBX_CB,
       RECV_FORMS };

typedef struct {
    int          is_over;
    ucs_status_t status;
    size_t       length;
} end_t;

static const char *const kind_names[KINDS] = {"send", "receive", "received",
                                              "put", "get", "atomic", "map",
                                              "unmap"};
static unsigned long called[KINDS];
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static int rank, channel;
static FILE *out;
static char *data, *room; /* MAX_BYTES each */
static char *own_request; /* where nbr's request may begin */
static ucp_rkey_h rkey;
static uint64_t remote;

#define CHECK(_call) check(_call, #_call)

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "ucp_forms: rank %d: %s: %s\n", rank, what, why);
    _exit(1);
}

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fail(what, ucs_status_string(status));
    }
}

static void transfer(int is_write, void *bytes, size_t count)
{
    ssize_t done = is_write ? send(channel, bytes, count, 0) :
                              recv(channel, bytes, count, MSG_WAITALL);

    if (done != (ssize_t)count) {
        fail("channel", "the other side is gone");
    }
}

/* Progress goes on meanwhile, for the other side may need it */
static void barrier(void)
{
    char byte = 0;

    transfer(1, &byte, 1);
    while (recv(channel, &byte, 1, MSG_DONTWAIT) != 1) {
        ucp_worker_progress(worker);
    }
}

static void fill(char *bytes, size_t count, unsigned salt)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        bytes[i] = (char)((i * 31) + (i >> 12) + salt);
    }
}

static uint32_t sum_of(const char *bytes, size_t count)
{
    uint32_t sum = 2166136261u;
    size_t i;

    for (i = 0; i < count; ++i) {
        sum = (sum ^ (unsigned char)bytes[i]) * 16777619u;
    }
    return sum;
}

/* --- ends ----------------------------------------------------------------- */

static void sent_nb(void *request, ucs_status_t status)
{
}

static void received_nb(void *request, ucs_status_t status,
                        ucp_tag_recv_info_t *info)
{
}

static void received_nbx(void *request, ucs_status_t status,
                         const ucp_tag_recv_info_t *info, void *arg)
{
    end_t *end = arg;

    end->is_over = 1;
    end->status  = status;
    end->length  = info->length;
}

static void received_am(void *request, ucs_status_t status, size_t length,
                        void *arg)
{
    end_t *end = arg;

    end->is_over = 1;
    end->status  = status;
    end->length  = length;
}

static ucs_status_t finish(ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    if (request != own_request) {
        ucp_request_free(request);
    }
    return status;
}

/* --- tagged messages ------------------------------------------------------ */

static ucs_status_t send_in(int form, size_t bytes, ucp_tag_t tag)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucp_datatype_t type       = ucp_dt_make_contig(1);
    ucs_status_t status;

    ++called[SEND];
    switch (form) {
    case SEND_NB:
        return finish(ucp_tag_send_nb(ep, data, bytes, type, tag, sent_nb));
    case SEND_NBR:
        status = ucp_tag_send_nbr(ep, data, bytes, type, tag, own_request);
        return (status == UCS_INPROGRESS) ? finish(own_request) : status;
    case SEND_NBX:
        return finish(ucp_tag_send_nbx(ep, data, bytes, tag, &param));
    case SYNC_NB:
        return finish(ucp_tag_send_sync_nb(ep, data, bytes, type, tag,
                                           sent_nb));
    default:
        return finish(ucp_tag_send_sync_nbx(ep, data, bytes, tag, &param));
    }
}

static ucp_tag_message_h probe(ucp_tag_t tag)
{
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;

    while ((message = ucp_tag_probe_nb(worker, tag, UINT64_MAX, 1, &info)) ==
           NULL) {
        ucp_worker_progress(worker);
    }
    return message;
}

static ucs_status_t receive_in(int form, size_t bytes, ucp_tag_t tag)
{
    ucp_datatype_t type       = ucp_dt_make_contig(1);
    end_t end                 = {.is_over = 0};
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv      = received_nbx,
        .user_data    = &end
    };
    ucp_request_param_t plain = {.op_attr_mask = 0};
    ucs_status_ptr_t request;
    ucs_status_t status;

    ++called[RECEIVE];
    called[RECEIVED] += (bytes >= FOLLOWED);
    switch (form) {
    case RECV_NB:
        return finish(ucp_tag_recv_nb(worker, room, bytes, type, tag,
                                      UINT64_MAX, received_nb));
    case RECV_NBR:
        CHECK(ucp_tag_recv_nbr(worker, room, bytes, type, tag, UINT64_MAX,
                               own_request));
        return finish(own_request);
    case RECV_NBX:
        return finish(ucp_tag_recv_nbx(worker, room, bytes, tag, UINT64_MAX,
                                       &plain));
    case MSG_NB:
        return finish(ucp_tag_msg_recv_nb(worker, room, bytes, type, probe(tag),
                                          received_nb));
    case RECV_NBX_CB:
        request = ucp_tag_recv_nbx(worker, room, bytes, tag, UINT64_MAX,
                                   &param);
        break;
    default:
        request = ucp_tag_msg_recv_nbx(worker, room, bytes, probe(tag), &param);
    }

    status = finish(request);
    if (UCS_PTR_IS_PTR(request) &&
        (!end.is_over || (end.status != status))) {
        fail("completion function", "not called as it should be");
    }
    return status;
}

static void exchange(int send_form, int recv_form, size_t bytes)
{
    static ucp_tag_t tag;
    ucs_status_t status;

    ++tag;
    if (rank == 0) {
        fill(data, bytes, (unsigned)tag);
        status = send_in(send_form, bytes, tag);
        fprintf(out, "sent %d %zu: %d\n", send_form, bytes, status);
    } else {
        memset(room, 0, bytes);
        status = receive_in(recv_form, bytes, tag);
        fprintf(out, "received %d %zu: %d, %08x\n", recv_form, bytes, status,
                sum_of(room, bytes));
    }
    rank = !rank; /* and back */
    if (rank == 0) {
        fill(data, bytes, (unsigned)tag + 1);
        status = send_in(send_form, bytes, tag);
    } else {
        status = receive_in(recv_form, bytes, tag);
    }
    rank = !rank;
    fprintf(out, "back: %d, %08x\n", status, sum_of(room, bytes));
}

static void tagged_messages(void)
{
    static const size_t sizes[] = {0, 8, 5000, 100000, MAX_BYTES};
    unsigned i;
    int s, r;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (s = 0; s < SEND_FORMS; ++s) {
            for (r = 0; r < RECV_FORMS; ++r) {
                exchange(s, r, sizes[i]);
            }
        }
    }
}

/* What comes is longer than what was posted */
static void truncations(void)
{
    static const size_t sizes[] = {64, 20000, MAX_BYTES};
    unsigned i;
    int r;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (r = 0; r < RECV_FORMS; ++r) {
            if (rank == 0) {
                fprintf(out, "too long %zu: %d\n", sizes[i],
                        send_in(SEND_NBX, sizes[i], 77));
            } else {
                fprintf(out, "truncated %d %zu: %d\n", r, sizes[i],
                        receive_in(r, sizes[i] / 2, 77));
            }
        }
    }
    barrier();
}

/* What never comes */
static void cancels(void)
{
    end_t end                 = {.is_over = 0};
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv      = received_nbx,
        .user_data    = &end
    };
    void *request;

    called[RECEIVE]  += 2;
    called[RECEIVED] += 2;
    request = ucp_tag_recv_nbx(worker, room, 9000, 99, UINT64_MAX, &param);
    ucp_request_cancel(worker, request);
    while (!end.is_over) {
        ucp_worker_progress(worker);
    }
    fprintf(out, "cancelled: %d %d\n", end.status, finish(request));
    request = ucp_tag_recv_nb(worker, room, 9000, ucp_dt_make_contig(1), 99,
                              UINT64_MAX, received_nb);
    ucp_request_cancel(worker, request);
    fprintf(out, "cancelled: %d\n", finish(request));
}

/* --- active messages ------------------------------------------------------ */

static end_t am_end;
static void *am_request;
static int am_came;

static ucs_status_t am_handler(void *arg, const void *header,
                               size_t header_length, void *bytes, size_t length,
                               const ucp_am_recv_param_t *info)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = received_am,
        .user_data    = &am_end
    };

    am_came        = 1;
    am_end.is_over = 0;
    if (!(info->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        memcpy(room, bytes, length);
        am_end = (end_t){1, UCS_OK, length};
        return UCS_OK;
    }

    /* From inside progress: the program's all the same */
    ++called[RECEIVE];
    ++called[RECEIVED];
    am_request = ucp_am_recv_data_nbx(worker, bytes, room, length, &param);
    if (!UCS_PTR_IS_PTR(am_request)) {
        am_end = (end_t){1, UCS_PTR_STATUS(am_request), length};
    }
    return UCS_INPROGRESS;
}

static void active_messages(void)
{
    static const size_t sizes[] = {8, MAX_BYTES};
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id         = 1,
        .cb         = am_handler
    };
    ucp_request_param_t param      = {.op_attr_mask = 0};
    unsigned i;

    CHECK(ucp_worker_set_am_recv_handler(worker, &handler));
    barrier();
    for (i = 0; i < 2; ++i) {
        if (rank == 0) {
            fill(data, sizes[i], i);
            ++called[SEND];
            fprintf(out, "active %zu: %d\n", sizes[i],
                    finish(ucp_am_send_nbx(ep, 1, "head", 4, data, sizes[i],
                                           &param)));
        } else {
            while (!am_came || !am_end.is_over) {
                ucp_worker_progress(worker);
            }
            am_came = 0;
            if (UCS_PTR_IS_PTR(am_request)) {
                ucp_request_free(am_request);
            }
            am_request = NULL;
            fprintf(out, "active came %zu: %d, %08x\n", am_end.length,
                    am_end.status, sum_of(room, sizes[i]));
        }
        barrier();
    }
}

/* --- remote memory -------------------------------------------------------- */

static ucp_mem_h map_room(void)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = room,
        .length     = MAX_BYTES
    };
    uint64_t address            = (uintptr_t)room;
    void *packed, *other;
    ucp_mem_h memh;
    size_t length;

    ++called[MAP];
    CHECK(ucp_mem_map(context, &params, &memh));
    CHECK(ucp_rkey_pack(context, memh, &packed, &length));
    transfer(1, &address, sizeof(address));
    transfer(1, &length, sizeof(length));
    transfer(1, packed, length);
    ucp_rkey_buffer_release(packed);
    transfer(0, &remote, sizeof(remote));
    transfer(0, &length, sizeof(length));
    other = malloc(length);
    transfer(0, other, length);
    CHECK(ucp_ep_rkey_unpack(ep, other, &rkey));
    free(other);
    return memh;
}

static void flush(void)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    check(finish(ucp_ep_flush_nbx(ep, &param)), "flush");
}

static void puts_and_gets(void)
{
    ucp_request_param_t param  = {.op_attr_mask = 0};
    ucp_request_param_t atomic = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
        .datatype     = ucp_dt_make_contig(8)
    };
    uint64_t *one              = (uint64_t*)data;
    ucs_status_t status;
    uint64_t result = 0;

    fill(data, MAX_BYTES, 40 + rank);
    barrier();
    called[PUT] += 3;
    check(finish(ucp_put_nbx(ep, data, 60000, remote, rkey, &param)), "put");
    check(finish(ucp_put_nb(ep, data + 60000, 60000, remote + 60000, rkey,
                            sent_nb)), "put_nb");
    status = ucp_put_nbi(ep, data + 120000, 8, remote + 120000, rkey);
    flush();
    barrier();
    fprintf(out, "put: %d, %08x\n", status != UCS_OK && status != UCS_INPROGRESS,
            sum_of(room, 120008));
    barrier();

    called[GET] += 3;
    check(finish(ucp_get_nbx(ep, data, 60000, remote, rkey, &param)), "get");
    check(finish(ucp_get_nb(ep, data + 200000, 60000, remote + 60000, rkey,
                            sent_nb)), "get_nb");
    status = ucp_get_nbi(ep, data + 300000, 8, remote + 120000, rkey);
    flush();
    fprintf(out, "got: %d, %08x\n", status != UCS_OK && status != UCS_INPROGRESS,
            sum_of(data, 300008));
    barrier();

    memset(room, 0, 64);
    barrier();
    called[ATOMIC] += 3;
    *one = 5;
    check(finish(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, one, 1, remote, rkey,
                                   &atomic)), "atomic_op");
    flush();
    CHECK(ucp_atomic_post(ep, UCP_ATOMIC_POST_OP_ADD, 7, 8, remote, rkey));
    flush();
    check(finish(ucp_atomic_fetch_nb(ep, UCP_ATOMIC_FETCH_OP_FADD, 1, &result,
                                     8, remote, rkey, sent_nb)), "fetch");
    barrier();
    fprintf(out, "atomic: %lu, %lu\n", (unsigned long)result,
            (unsigned long)*(uint64_t*)room);
    barrier();
}

/* --- the two sides -------------------------------------------------------- */

static void connect_worker(void)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
    };
    ucp_address_t *address;
    size_t length;
    void *other;

    CHECK(ucp_worker_get_address(worker, &address, &length));
    transfer(1, &length, sizeof(length));
    transfer(1, address, length);
    ucp_worker_release_address(worker, address);
    transfer(0, &length, sizeof(length));
    other = malloc(length);
    transfer(0, other, length);
    params.address = other;
    CHECK(ucp_ep_create(worker, &params, &ep));
    free(other);
}

static void open_ucp(void)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA |
                      UCP_FEATURE_AMO64
    };
    const ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};

    CHECK(ucp_init(&params, NULL, &context));
    CHECK(ucp_worker_create(context, &worker_params, &worker));
    CHECK(ucp_context_query(context, &attr));
    own_request = (char*)malloc(attr.request_size + 64) + attr.request_size;
    data        = malloc(MAX_BYTES);
    room        = malloc(MAX_BYTES);
    memset(data, 0, MAX_BYTES);
    memset(room, 0, MAX_BYTES);
}

static void close_ucp(ucp_mem_h memh)
{
    barrier();
    ucp_rkey_destroy(rkey);
    ++called[UNMAP];
    CHECK(ucp_mem_unmap(context, memh));
    (void)finish(ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH));
    barrier();
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

static void run_side(const char *name)
{
    char path[4096];
    ucp_mem_h memh;
    int kind;

    alarm(WATCHDOG_S);
    snprintf(path, sizeof(path), "%s.%d", name, rank);
    out = fopen(path, "w");
    if (out == NULL) {
        fail(path, "cannot be written");
    }
    open_ucp();
    connect_worker();
    tagged_messages();
    truncations();
    cancels();
    active_messages();
    memh = map_room();
    puts_and_gets();
    close_ucp(memh);
    fclose(out);

    snprintf(path, sizeof(path), "%s.%d.calls", name, rank);
    out = fopen(path, "w");
    for (kind = 0; (out != NULL) && (kind < KINDS); ++kind) {
        fprintf(out, "%s %lu\n", kind_names[kind], called[kind]);
    }
    if ((out == NULL) || fclose(out)) {
        fail(path, "cannot be written");
    }
}

int main(int argc, char **argv)
{
    int pair[2], status = 0;
    pid_t pid;

    if ((argc != 2) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
        fprintf(stderr, "usage: ucp_forms OUT\n");
        return 2;
    }

    pid     = fork();
    rank    = (pid == 0);
    channel = pair[rank];
    close(pair[!rank]);
    run_side(argv[1]);
    if ((pid > 0) && ((waitpid(pid, &status, 0) != pid) || (status != 0))) {
        return 1;
    }
    return 0;
}
