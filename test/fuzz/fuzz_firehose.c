/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Firehose: what peers send is not to be trusted. Two peers send what the input
 * says while this process puts, gets, flushes and takes memory back; whatever
 * comes, the invariants hold after each step, all operations end, and nothing
 * stays registered.
 */
#include "fuzz.h"

#include "../inside/firehose_inside.h"
#include <ucp/firehose/message.h>

#include <string.h>
#include <sys/mman.h>

#define FUZZ_NODES  3u
#define FUZZ_PAGES  16
#define FUZZ_FLIGHT 64

typedef struct fuzz_wire {
    ucp_wire_t           super;
    unsigned             live; /* registrations and keys */
    unsigned             flight;
    ucp_wire_done_func_t done[FUZZ_FLIGHT];
    void                 *arg[FUZZ_FLIGHT];
    uint8_t              has_failed[FUZZ_NODES];
    unsigned             refuse; /* sends to be refused */
    uint64_t             now;
} fuzz_wire_t;

static fuzz_wire_t fuzz_wire;
static unsigned fuzz_begun, fuzz_ended;

static ucs_status_t
fuzz_am_send(ucp_wire_t *wire, unsigned peer, const void *header,
             size_t header_length, const void *payload, size_t length,
             ucp_wire_done_func_t done, void *arg)
{
    ucp_firehose_message_t message;
    ucp_firehose_entry_t entry;
    ucs_status_t status;

    if (fuzz_wire.has_failed[peer]) {
        return UCS_ERR_CONNECTION_RESET;
    }
    if (fuzz_wire.refuse > 0) {
        --fuzz_wire.refuse;
        return UCS_ERR_NO_MEMORY;
    }
    /* What is sent can be read */
    FUZZ_CHECK((done == NULL) && (length <= wire->max_payload));
    status = ucp_firehose_message_open(&message, header, header_length, payload,
                                       length);
    while (status == UCS_OK) {
        status = ucp_firehose_message_next(&message, &entry);
    }
    FUZZ_CHECK(status == UCS_ERR_NO_ELEM);
    return UCS_OK;
}

static ucs_status_t fuzz_mem_reg(ucp_wire_t *wire, void *address,
                                 size_t length, ucp_wire_mem_t **mem_p)
{
    *mem_p = malloc(1);
    ++fuzz_wire.live;
    return UCS_OK;
}

static void fuzz_mem_dereg(ucp_wire_t *wire, ucp_wire_mem_t *mem)
{
    --fuzz_wire.live;
    free(mem);
}

static ucs_status_t fuzz_mem_pack(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                                  const void **packed_p, size_t *length_p)
{
    *packed_p = mem;
    *length_p = 1;
    return UCS_OK;
}

static ucs_status_t fuzz_key_unpack(ucp_wire_t *wire, unsigned peer,
                                    const void *packed, size_t length,
                                    ucp_wire_key_t **key_p)
{
    if ((length > 16) || (*(const uint8_t*)packed == 0xff)) {
        return UCS_ERR_INVALID_PARAM;
    }
    *key_p = malloc(1);
    ++fuzz_wire.live;
    return UCS_OK;
}

static void fuzz_key_release(ucp_wire_t *wire, ucp_wire_key_t *key)
{
    --fuzz_wire.live;
    free(key);
}

static ucs_status_t fuzz_start(ucp_wire_done_func_t done, void *arg)
{
    if (fuzz_wire.flight == FUZZ_FLIGHT) {
        return UCS_OK;
    }
    fuzz_wire.done[fuzz_wire.flight]  = done;
    fuzz_wire.arg[fuzz_wire.flight++] = arg;
    return UCS_INPROGRESS;
}

static ucs_status_t fuzz_move(ucp_wire_t *wire, unsigned peer, int is_put,
                              ucp_wire_mem_t *mem, void *buffer, size_t length,
                              uint64_t remote, ucp_wire_key_t *key,
                              ucp_wire_done_func_t done, void *arg)
{
    FUZZ_CHECK((mem != NULL) && (key != NULL) && (length > 0));
    return fuzz_start(done, arg);
}

static ucs_status_t fuzz_flush(ucp_wire_t *wire, unsigned peer,
                               ucp_wire_done_func_t done, void *arg)
{
    return fuzz_start(done, arg);
}

/* A microsecond a look */
static uint64_t fuzz_time(ucp_wire_t *wire)
{
    return fuzz_wire.now += 1000;
}

/* The first that was begun ends */
static unsigned fuzz_progress(ucp_wire_t *wire)
{
    ucp_wire_done_func_t done = fuzz_wire.done[0];
    void *arg                 = fuzz_wire.arg[0];

    if (fuzz_wire.flight == 0) {
        return 0;
    }
    --fuzz_wire.flight;
    memmove(fuzz_wire.done, fuzz_wire.done + 1,
            fuzz_wire.flight * sizeof(fuzz_wire.done[0]));
    memmove(fuzz_wire.arg, fuzz_wire.arg + 1,
            fuzz_wire.flight * sizeof(fuzz_wire.arg[0]));
    done(arg, UCS_OK);
    return 1;
}

static void fuzz_destroy(ucp_wire_t *wire)
{
    FUZZ_CHECK((fuzz_wire.live == 0) && (fuzz_wire.flight == 0));
}

static ucp_wire_t *fuzz_make_wire(void)
{
    static const ucp_wire_ops_t ops = {
        .am_send     = fuzz_am_send,
        .mem_reg     = fuzz_mem_reg,
        .mem_dereg   = fuzz_mem_dereg,
        .mem_pack    = fuzz_mem_pack,
        .key_unpack  = fuzz_key_unpack,
        .key_release = fuzz_key_release,
        .move        = fuzz_move,
        .flush       = fuzz_flush,
        .progress    = fuzz_progress,
        .time        = fuzz_time,
        .destroy     = fuzz_destroy
    };

    memset(&fuzz_wire, 0, sizeof(fuzz_wire));
    fuzz_wire.super.ops         = &ops;
    fuzz_wire.super.num_peers   = FUZZ_NODES;
    fuzz_wire.super.max_header  = 128;
    fuzz_wire.super.max_payload = 4096;
    return &fuzz_wire.super;
}

static void fuzz_done(void *arg, ucs_status_t status)
{
    ++fuzz_ended;
}

static void fuzz_begin(ucs_status_t status)
{
    ++fuzz_begun;
    fuzz_ended += status != UCS_INPROGRESS;
}

/* The peers' messages name this by its offset: where it lies changes */
static uint64_t fuzz_memory(void)
{
    static char *memory;

    if (memory == NULL) {
        memory = mmap(NULL, FUZZ_PAGES * 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FUZZ_CHECK(memory != MAP_FAILED);
    }
    return (uintptr_t)memory;
}

/* A message of the peer's: bytes as they are, or moves to this memory */
static void fuzz_message(unsigned peer, const uint8_t *data, size_t length)
{
    ucp_firehose_header_t header = {.kind = UCP_FIREHOSE_MOVE};
    uint8_t bytes[256];
    ucp_firehose_message_t message;
    ucp_firehose_entry_t entry = {0};
    ucp_wire_am_func_t am      = fuzz_wire.super.handlers.am;
    void *arg                  = fuzz_wire.super.handlers.arg;

    if (fuzz_wire.has_failed[peer] || (length < 4)) {
        return;
    }
    if (data[0] != UCP_FIREHOSE_KIND_LAST) {
        am(arg, peer, data, 4, data + 4, length - 4);
        return;
    }
    ucp_firehose_message_begin(&message, UCP_FIREHOSE_MOVE, bytes,
                               sizeof(bytes));
    for (; length >= 4; data += 4, length -= 4) {
        entry.firehose = data[1];
        entry.epoch    = data[2];
        entry.bucket   = (data[3] == 0xff) ?
                                 UCP_FIREHOSE_NOWHERE :
                                 fuzz_memory() + data[3] % FUZZ_PAGES * 4096;
        if (ucp_firehose_message_add(&message, &entry) != UCS_OK) {
            break;
        }
    }
    header.count = message.count;
    am(arg, peer, &header, sizeof(header), bytes, message.length);
}

static void
fuzz_step(ucx_firehose_h firehose, const uint8_t *data, size_t length)
{
    const unsigned peer  = 1 + (data[0] >> 7);
    const uint64_t start = fuzz_memory() + data[1] % FUZZ_PAGES * 4096;
    char *local          = (char*)fuzz_memory() + data[1] * 16;

    switch (data[0] & 0x7f) {
    case 0:
        ucx_firehose_progress(firehose);
        break;
    case 1:
        fuzz_begin(ucx_firehose_put_nb(firehose, peer, local, data[1] * 999,
                                       1 + data[2] * 64, fuzz_done, NULL));
        break;
    case 2:
        fuzz_begin(ucx_firehose_get_nb(firehose, peer, local, data[1] * 999,
                                       1 + data[2] * 64, fuzz_done, NULL));
        break;
    case 3:
        fuzz_begin(ucx_firehose_flush_nb(firehose, peer, fuzz_done, NULL));
        break;
    case 4:
        (void)ucx_firehose_flush_nb(firehose, peer, NULL, NULL);
        break;
    case 5:
        ucp_firehose_unmapped(firehose, start, start + data[2] * 256);
        break;
    case 6:
        ucp_firehose_revoke(firehose, start, start + data[2] * 256);
        break;
    case 7:
        if (!fuzz_wire.has_failed[peer]) {
            fuzz_wire.has_failed[peer] = 1;
            fuzz_wire.super.handlers.failed(fuzz_wire.super.handlers.arg, peer,
                                            UCS_ERR_CONNECTION_RESET);
        }
        break;
    case 8:
        fuzz_wire.refuse = data[1] % 4;
        break;
    default:
        fuzz_message(peer, data + 1, length - 1);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ucx_firehose_params_t params = {
        .field_mask = UCX_FIREHOSE_PARAM_FIELD_VICTIMS,
        .num_nodes  = FUZZ_NODES,
        .memory     = 8 * 4096,
        .victims    = 2 * 4096,
    };
    ucx_firehose_h firehose;
    size_t length;

    fuzz_begun = fuzz_ended = 0;
    FUZZ_CHECK(ucp_firehose_create(&params, fuzz_make_wire(), &firehose) ==
               UCS_OK);
    ucp_firehose_greet(firehose, 1);
    ucp_firehose_greet(firehose, 2);
    for (; size >= 4; data += length, size -= length) {
        length = 4 + data[0] % 64;
        length = (length < size) ? length : size;
        if (length < 4) {
            break;
        }
        fuzz_step(firehose, data + 1, length - 1);
        FUZZ_CHECK(ucp_firehose_is_valid(firehose));
    }
    fuzz_wire.refuse = 0;
    ucp_firehose_stop(firehose);
    while (!ucp_firehose_is_idle(firehose)) {
        ucx_firehose_progress(firehose);
    }
    FUZZ_CHECK(fuzz_begun == fuzz_ended);
    ucp_firehose_destroy(firehose);
    return 0;
}
