/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "message.h"

#include <string.h>

/* What of an entry is sent: all behind the pointer to its key */
#define UCP_FIREHOSE_ENTRY_START offsetof(ucp_firehose_entry_t, bucket)
#define UCP_FIREHOSE_ENTRY_SIZE \
    (sizeof(ucp_firehose_entry_t) - UCP_FIREHOSE_ENTRY_START)

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
    char *at      = message->bytes + message->length;
    size_t length = UCP_FIREHOSE_ENTRY_SIZE + entry->key_length;

    if ((length > message->size - message->length) ||
        (message->count == UINT16_MAX)) {
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    memcpy(at, (const char*)entry + UCP_FIREHOSE_ENTRY_START,
           UCP_FIREHOSE_ENTRY_SIZE);
    if (entry->key_length > 0) {
        memcpy(at + UCP_FIREHOSE_ENTRY_SIZE, entry->key, entry->key_length);
    }
    message->length += length;
    ++message->count;
    return UCS_OK;
}

ucs_status_t ucp_firehose_message_open(ucp_firehose_message_t *message,
                                       const void *header, size_t header_length,
                                       const void *payload, size_t length)
{
    ucp_firehose_header_t first;

    if (header_length != sizeof(first)) {
        return UCS_ERR_INVALID_PARAM;
    }
    memcpy(&first, header, sizeof(first));
    if ((first.kind < UCP_FIREHOSE_HELLO) ||
        (first.kind >= UCP_FIREHOSE_KIND_LAST)) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_firehose_message_begin(message, (ucp_firehose_kind_t)first.kind,
                               (void*)payload, length);
    message->count = first.count;
    return UCS_OK;
}

ucs_status_t ucp_firehose_message_next(ucp_firehose_message_t *message,
                                       ucp_firehose_entry_t *entry)
{
    const char *at = message->bytes + message->length;
    size_t left    = message->size - message->length;

    if (message->count == 0) {
        return (left == 0) ? UCS_ERR_NO_ELEM : UCS_ERR_INVALID_PARAM;
    }
    if (left < UCP_FIREHOSE_ENTRY_SIZE) {
        return UCS_ERR_INVALID_PARAM;
    }
    memcpy((char*)entry + UCP_FIREHOSE_ENTRY_START, at,
           UCP_FIREHOSE_ENTRY_SIZE);
    if (left - UCP_FIREHOSE_ENTRY_SIZE < entry->key_length) {
        return UCS_ERR_INVALID_PARAM;
    }
    entry->key       = at + UCP_FIREHOSE_ENTRY_SIZE;
    message->length += UCP_FIREHOSE_ENTRY_SIZE + entry->key_length;
    --message->count;
    return UCS_OK;
}
