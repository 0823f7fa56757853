/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_inside.h"

#include <ucp/firehose/firehose_int.h>

static int ucp_firehose_buckets_sums(const ucp_firehose_buckets_t *table)
{
    return (table->pinned == table->num_remote + table->local_only +
                             table->num_victims + table->idle_doomed) &&
           (table->pinned <= table->max_remote + table->max_victims) &&
           (table->num_pins - table->num_unpins == table->pinned) &&
           (ucs_list_length((ucs_list_link_t*)&table->victims) ==
            table->num_victims) &&
           ((table->num_victims == 0) ||
            (table->local_only + table->num_victims <= table->max_victims));
}

/* Outside of a call nothing is being pinned or unpinned */
int ucp_firehose_buckets_is_valid(ucp_firehose_buckets_t *table)
{
    size_t used = 0, indexed = 0, remote = 0, at;
    ucp_firehose_elem_t *elem;
    const ucp_firehose_bucket_t *bucket;
    int is_valid;

    ucs_lock(&table->lock);
    for (at = 0; at <= table->index.mask; ++at) {
        for (elem = table->index.heads[at]; elem != NULL; elem = elem->next) {
            bucket   = (const ucp_firehose_bucket_t*)elem;
            indexed += (bucket->doom == 0);
            used    += (bucket->remote > 0) || (bucket->local > 0);
            remote  += (bucket->remote > 0);
        }
    }
    is_valid = ucp_firehose_buckets_sums(table) &&
               (indexed == table->index.count) &&
               (indexed == used + table->num_victims) &&
               (remote <= table->num_remote) &&
               (used <= table->num_remote + table->local_only);
    ucs_unlock(&table->lock);
    return is_valid;
}

static int ucp_firehose_fires_are_valid(ucp_firehose_peer_t *peer)
{
    size_t in_index = 0, unused = 0, outbox = 0, listed;
    ucp_firehose_fire_t *fire;
    uint32_t i;

    if (peer->state != UCP_FIREHOSE_PEER_READY) {
        return 1;
    }
    for (i = 0; i < peer->used_fires; ++i) {
        fire      = &peer->fires[i];
        in_index += (fire->state == UCP_FIREHOSE_WANTED) ||
                    (fire->state == UCP_FIREHOSE_MOVING) ||
                    (fire->state == UCP_FIREHOSE_READY);
        unused   += (fire->state == UCP_FIREHOSE_READY) && (fire->refs == 0);
        outbox   += (fire->state == UCP_FIREHOSE_WANTED) ||
                    (fire->state == UCP_FIREHOSE_RELEASING);
        if ((fire->refs > 0) && (fire->key == NULL)) {
            return 0;
        }
    }
    listed = ucs_list_length(&peer->outbox);
    return (in_index == peer->index.count) && (outbox == listed) &&
           (unused == ucs_list_length(&peer->unused)) &&
           (peer->used_fires <= peer->num_fires);
}

int ucp_firehose_is_valid(ucx_firehose_h firehose)
{
    int is_valid;
    unsigned node;

    ucp_firehose_lock(firehose);
    is_valid = ucp_firehose_buckets_is_valid(&firehose->buckets);
    for (node = 0; node < firehose->num_nodes; ++node) {
        is_valid &= ucp_firehose_fires_are_valid(&firehose->peers[node]);
    }
    ucp_firehose_unlock(firehose);
    return is_valid;
}
