/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "message.h"

#include <string.h>

/* Bytes of an entry without its key */
static const uint8_t ucp_firehose_entry_size[UCP_FIREHOSE_KIND_LAST] = {
    [UCP_FIREHOSE_HELLO]  = 5,
    [UCP_FIREHOSE_MOVE]   = 16,
    [UCP_FIREHOSE_GRANT]  = 11,
    [UCP_FIREHOSE_REVOKE] = 8
};

static void ucp_firehose_write(uint8_t **at, uint64_t number, unsigned length)
{
    for (; length > 0; --length, number >>= 8) {
        *(*at)++ = (uint8_t)number;
    }
}

static uint64_t ucp_firehose_read(const uint8_t **at, unsigned length)
{
    uint64_t number = 0;
    unsigned i;

    for (i = 0; i < length; ++i) {
        number |= (uint64_t)*(*at)++ << (8 * i);
    }
    return number;
}

void ucp_firehose_message_begin(ucp_firehose_message_t *message,
                                ucp_firehose_kind_t kind, void *bytes,
                                size_t size)
{
    message->kind   = kind;
    message->count  = 0;
    message->bytes  = bytes;
    message->length = 0;
    message->size   = size;
}

ucs_status_t ucp_firehose_message_add(ucp_firehose_message_t *message,
                                      const ucp_firehose_entry_t *entry)
{
    uint8_t *at       = message->bytes + message->length;
    size_t key_length = (message->kind == UCP_FIREHOSE_GRANT) ?
                                entry->key_length :
                                0;
    size_t length     = ucp_firehose_entry_size[message->kind] + key_length;

    if ((length > message->size - message->length) ||
        (message->count == UINT16_MAX)) {
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    ucp_firehose_write(&at, entry->firehose, 4);
    if (message->kind == UCP_FIREHOSE_HELLO) {
        ucp_firehose_write(&at, entry->shift, 1);
    } else {
        ucp_firehose_write(&at, entry->epoch, 4);
    }
    if (message->kind == UCP_FIREHOSE_MOVE) {
        ucp_firehose_write(&at, entry->bucket, 8);
    } else if (message->kind == UCP_FIREHOSE_GRANT) {
        ucp_firehose_write(&at, (uint8_t)entry->status, 1);
        ucp_firehose_write(&at, key_length, 2);
        if (key_length > 0) {
            memcpy(at, entry->key, key_length);
        }
    }
    message->length += length;
    ++message->count;
    return UCS_OK;
}

void ucp_firehose_message_header(const ucp_firehose_message_t *message,
                                 uint8_t header[UCP_FIREHOSE_HEADER_SIZE])
{
    ucp_firehose_write(&header, message->kind, 1);
    ucp_firehose_write(&header, UCP_FIREHOSE_VERSION, 1);
    ucp_firehose_write(&header, message->count, 2);
}

ucs_status_t ucp_firehose_message_open(ucp_firehose_message_t *message,
                                       const void *header, size_t header_length,
                                       const void *payload, size_t length)
{
    const uint8_t *at = header;
    unsigned kind, version;

    if (header_length != UCP_FIREHOSE_HEADER_SIZE) {
        return UCS_ERR_INVALID_PARAM;
    }
    kind    = ucp_firehose_read(&at, 1);
    version = ucp_firehose_read(&at, 1);
    if (version != UCP_FIREHOSE_VERSION) {
        return UCS_ERR_UNSUPPORTED;
    }
    if ((kind < UCP_FIREHOSE_HELLO) || (kind >= UCP_FIREHOSE_KIND_LAST)) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_firehose_message_begin(message, (ucp_firehose_kind_t)kind,
                               (void*)payload, length);
    message->count = ucp_firehose_read(&at, 2);
    return UCS_OK;
}

static void ucp_firehose_message_read(ucp_firehose_kind_t kind,
                                      const uint8_t *at,
                                      ucp_firehose_entry_t *entry)
{
    memset(entry, 0, sizeof(*entry));
    entry->firehose = ucp_firehose_read(&at, 4);
    if (kind == UCP_FIREHOSE_HELLO) {
        entry->shift = ucp_firehose_read(&at, 1);
        return;
    }
    entry->epoch = ucp_firehose_read(&at, 4);
    if (kind == UCP_FIREHOSE_MOVE) {
        entry->bucket = ucp_firehose_read(&at, 8);
    } else if (kind == UCP_FIREHOSE_GRANT) {
        entry->status     = (int8_t)ucp_firehose_read(&at, 1);
        entry->key_length = ucp_firehose_read(&at, 2);
        entry->key        = at;
    }
}

ucs_status_t ucp_firehose_message_next(ucp_firehose_message_t *message,
                                       ucp_firehose_entry_t *entry)
{
    size_t left = message->size - message->length;
    size_t size = ucp_firehose_entry_size[message->kind];

    if (message->count == 0) {
        return (left == 0) ? UCS_ERR_NO_ELEM : UCS_ERR_INVALID_PARAM;
    }
    if (left < size) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_firehose_message_read(message->kind, message->bytes + message->length,
                              entry);
    if (left - size < entry->key_length) {
        return UCS_ERR_INVALID_PARAM;
    }
    message->length += size + entry->key_length;
    --message->count;
    return UCS_OK;
}
