/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_FIREHOSE_MESSAGE_H_
#define UCP_FIREHOSE_MESSAGE_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/*
 * The bytes of the four messages: a header, and as many entries as it says, each
 * with its key behind it. They are the processes' own layout, for all processes
 * of a job run the same program.
 *
 * A decoder reads within the bytes that it was given whatever they are; what
 * the numbers mean is for its caller to check.
 */

BEGIN_C_DECLS

/** The bucket of a firehose that points nowhere. */
#define UCP_FIREHOSE_NOWHERE UINT64_MAX

typedef enum ucp_firehose_kind {
    UCP_FIREHOSE_HELLO = 1, /**< `firehose`: how many the receiver has here;
                             *   `shift` */
    UCP_FIREHOSE_MOVE,      /**< `firehose`, `epoch`, `bucket` */
    UCP_FIREHOSE_GRANT,     /**< `firehose`, `epoch`, `status`, `key` */
    UCP_FIREHOSE_REVOKE,    /**< `firehose`, `epoch` */
    UCP_FIREHOSE_KIND_LAST
} ucp_firehose_kind_t;

typedef struct ucp_firehose_header {
    uint8_t  kind;
    uint8_t  unused;
    uint16_t count; /**< entries */
} ucp_firehose_header_t;

/** One entry of any message. The fields that its kind does not have are zero. */
typedef struct ucp_firehose_entry {
    const void *key;   /**< inside the message; is not sent */
    uint64_t   bucket; /**< or UCP_FIREHOSE_NOWHERE */
    uint32_t   firehose;
    uint32_t   epoch;
    int32_t    status;
    uint16_t   key_length;
    uint8_t    shift;  /**< log2 of the bucket */
    uint8_t    unused; /**< no byte is sent that was not set */
} ucp_firehose_entry_t;

/** A message that is being written or read. */
typedef struct ucp_firehose_message {
    ucp_firehose_kind_t kind;
    unsigned            count; /**< entries: written, or left to be read */
    char                *bytes;
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

/** Begin to read a message. @return UCS_OK or UCS_ERR_INVALID_PARAM. */
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
