/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * Operations, pieces and epochs. They come and go with each transfer, so that
 * those that are over are kept for the next ones: what hits allocates nothing.
 */

typedef union ucp_firehose_item {
    ucs_list_link_t      link; /* of those that are over; all begin with one */
    ucp_firehose_op_t    op;
    ucp_firehose_piece_t piece;
    ucp_firehose_epoch_t epoch;
} ucp_firehose_item_t;

void *ucp_firehose_item_get(ucx_firehose_h firehose)
{
    ucp_firehose_item_t *item;

    if (firehose->num_spare == 0) {
        return calloc(1, sizeof(*item));
    }
    --firehose->num_spare;
    item = ucs_list_extract_head(&firehose->spare, ucp_firehose_item_t, link);
    return memset(item, 0, sizeof(*item));
}

void ucp_firehose_item_put(ucx_firehose_h firehose, void *pointer)
{
    ucp_firehose_item_t *item = pointer;

    if (firehose->num_spare >= UCP_FIREHOSE_SPARE_ITEMS) {
        free(item);
        return;
    }
    ++firehose->num_spare;
    ucs_list_add_head(&firehose->spare, &item->link);
}

void ucp_firehose_items_cleanup(ucx_firehose_h firehose)
{
    if (firehose->hit != NULL) {
        ucp_firehose_item_put(firehose, firehose->hit->op);
        ucp_firehose_item_put(firehose, firehose->hit);
    }
    while (!ucs_list_is_empty(&firehose->spare)) {
        free(ucs_list_extract_head(&firehose->spare, ucp_firehose_item_t,
                                   link));
    }
}
