/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_MESSAGE_H_
#define UCP_FIREHOSE_MESSAGE_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file message.h
 *
 * The bytes of the four messages. All numbers are little-endian.
 *
 *   header   u8 kind, u8 version, u16 number of entries
 *   HELLO    u32 firehoses that the receiver has here, u8 log2 of the bucket
 *   MOVE     u32 firehose, u32 epoch, u64 bucket (or nowhere)
 *   GRANT    u32 firehose, u32 epoch, i8 status, u16 length, key
 *   REVOKE   u32 firehose, u32 epoch
 *
 * A decoder reads within the bytes that it was given whatever they are; what
 * the numbers mean is for its caller to check.
 */

BEGIN_C_DECLS

#define UCP_FIREHOSE_VERSION     1
#define UCP_FIREHOSE_HEADER_SIZE 4

/** The bucket of a firehose that points nowhere. */
#define UCP_FIREHOSE_NOWHERE UINT64_MAX

typedef enum ucp_firehose_kind {
    UCP_FIREHOSE_HELLO = 1,
    UCP_FIREHOSE_MOVE,
    UCP_FIREHOSE_GRANT,
    UCP_FIREHOSE_REVOKE,
    UCP_FIREHOSE_KIND_LAST
} ucp_firehose_kind_t;

/** One entry of any message; each kind has some of the fields. */
typedef struct ucp_firehose_entry {
    uint32_t     firehose; /**< HELLO: how many */
    uint32_t     epoch;
    uint64_t     bucket;
    ucs_status_t status;
    const void   *key; /**< inside the message */
    uint16_t     key_length;
    uint8_t      shift;
} ucp_firehose_entry_t;

/** A message that is being written or read. */
typedef struct ucp_firehose_message {
    ucp_firehose_kind_t kind;
    unsigned            count; /**< entries: written, or left to be read */
    uint8_t             *bytes;
    size_t              length; /**< bytes: written, or read */
    size_t              size;   /**< bytes: room, or all there are */
} ucp_firehose_message_t;

/** Begin to write a message into @a bytes, which hold @a size. */
void ucp_firehose_message_begin(ucp_firehose_message_t *message,
                                ucp_firehose_kind_t kind, void *bytes,
                                size_t size);

/** @return UCS_OK or UCS_ERR_BUFFER_TOO_SMALL: nothing was written. */
ucs_status_t ucp_firehose_message_add(ucp_firehose_message_t *message,
                                      const ucp_firehose_entry_t *entry);

/** Write the header of what has been added. */
void ucp_firehose_message_header(const ucp_firehose_message_t *message,
                                 uint8_t header[UCP_FIREHOSE_HEADER_SIZE]);

/**
 * Begin to read a message.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED: another version; or
 *         UCS_ERR_INVALID_PARAM.
 */
ucs_status_t ucp_firehose_message_open(ucp_firehose_message_t *message,
                                       const void *header, size_t header_length,
                                       const void *payload, size_t length);

/**
 * Read the next entry; @a entry->key points into the payload.
 *
 * @return UCS_OK; UCS_ERR_NO_ELEM: all entries have been read, and no byte is
 *         left; UCS_ERR_INVALID_PARAM: it is cut short, or too long.
 */
ucs_status_t ucp_firehose_message_next(ucp_firehose_message_t *message,
                                       ucp_firehose_entry_t *entry);

END_C_DECLS

#endif
