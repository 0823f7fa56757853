/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "paced_codes.h"
#include "../simulator/sim_pattern.h"

#include <ucs/sys/hash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where buffers go if the kernel has no objection, and pages between two */
#define PACED_FIRST_ADDRESS UINT64_C(0x200000000000)
#define PACED_ALIGN         (UINT64_C(1) << 21)

static uint64_t paced_buffer_index(uint64_t address)
{
    return (address - sim_buffer(0)) / (sim_buffer(1) - sim_buffer(0));
}

static uint64_t paced_buffer_offset(uint64_t address)
{
    return (address - sim_buffer(0)) % (sim_buffer(1) - sim_buffer(0));
}

void paced_data_reach(paced_data_t *data, uint64_t address, uint64_t bytes)
{
    uint64_t index = paced_buffer_index(address);
    uint64_t end   = paced_buffer_offset(address) + bytes;
    paced_buffer_t *grown;

    if (index >= data->count) {
        grown = realloc(data->buffers, (index + 1) * sizeof(*grown));
        if (grown == NULL) {
            perror("paced: no memory for a list of buffers");
            exit(2);
        }
        memset(grown + data->count, 0,
               (index + 1 - data->count) * sizeof(*grown));
        data->buffers = grown;
        data->count   = index + 1;
    }
    if (data->buffers[index].bytes < end) {
        data->buffers[index].bytes = end;
    }
}

static void paced_buffer_map(paced_data_t *data, paced_buffer_t *buffer)
{
    uint64_t hint = (data->next_address != 0) ? data->next_address :
                                                PACED_FIRST_ADDRESS;

    buffer->address = mmap((void*)hint, buffer->bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer->address == MAP_FAILED) {
        perror("paced: no memory for a buffer");
        exit(2);
    }
    data->next_address = (hint + buffer->bytes + 2 * PACED_ALIGN - 1) &
                         ~(PACED_ALIGN - 1);
    /* The kernel accounts a pinned huge page whole */
    madvise(buffer->address, buffer->bytes, MADV_NOHUGEPAGE);
    memset(buffer->address, 1, buffer->bytes);
}

void paced_data_brief(paced_data_t *data, uint64_t address)
{
    data->buffers[paced_buffer_index(address)].is_brief = 1;
}

void paced_data_map(paced_data_t *data)
{
    paced_buffer_t *buffer;

    for (buffer = data->buffers; buffer != data->buffers + data->count;
         ++buffer) {
        if ((buffer->bytes > 0) && !buffer->is_brief) {
            paced_buffer_map(data, buffer);
        }
    }
}

void *paced_data_get(paced_data_t *data, uint64_t address)
{
    paced_buffer_t *buffer = &data->buffers[paced_buffer_index(address)];

    if (buffer->address == NULL) {
        paced_buffer_map(data, buffer);
    }
    return buffer->address + paced_buffer_offset(address);
}

void paced_data_unmap(paced_data_t *data, uint64_t address)
{
    paced_buffer_t *buffer = &data->buffers[paced_buffer_index(address)];

    munmap(buffer->address, buffer->bytes);
    buffer->address = NULL;
}

uint64_t paced_stamp(uint32_t sender, uint32_t receiver, uint32_t tag,
                     uint64_t count)
{
    return ucs_hash_mix(ucs_hash_mix(((uint64_t)sender << 32 | receiver) *
                                             UCS_HASH_FACTOR + tag) + count);
}

void paced_stamp_put(void *message, uint64_t bytes, uint64_t stamp)
{
    uint64_t last = ~stamp;

    if (bytes >= 2 * sizeof(stamp)) {
        memcpy(message, &stamp, sizeof(stamp));
        memcpy((char*)message + bytes - sizeof(last), &last, sizeof(last));
    }
}

int paced_stamp_is(const void *message, uint64_t bytes, uint64_t stamp)
{
    uint64_t first, last;

    if (bytes < 2 * sizeof(stamp)) {
        return 1;
    }
    memcpy(&first, message, sizeof(first));
    memcpy(&last, (const char*)message + bytes - sizeof(last), sizeof(last));
    return (first == stamp) && (last == ~stamp);
}
