/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "cover_int.h"

#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/math.h>

ucs_regcache_field_t *ucs_regcache_cover_field(ucs_regcache_h cache,
                                               uintptr_t address)
{
    const ucs_itree_node_t *mapping = ucs_itree_first(
            &cache->memory.kept.tree, address, address + 1);
    ucs_regcache_field_t *field;

    for (field = cache->memory.fields; mapping != NULL; ++field) {
        if (field == cache->memory.fields + UCS_REGCACHE_FIELDS) {
            return NULL;
        }
        if ((field->at >= mapping->start) && (field->at < mapping->end)) {
            return field;
        }
    }
    return NULL;
}

/* Pieces of one length at multiples of it need no care where covers end */
static void ucs_regcache_cover_measure(ucs_regcache_field_t *field,
                                       const ucs_regcache_request_t *request)
{
    size_t length = request->last - request->first;
    uintptr_t off = (request->first > field->at) ?
                            request->first - field->at :
                            field->at - request->first;

    field->is_uneven |= ((field->asked > 0) && (length != field->longest)) ||
                        (off % length != 0);
    field->longest = ucs_max(field->longest, length);
    field->asked  += length;
}

void ucs_regcache_cover_count(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request)
{
    ucs_regcache_field_t *field = ucs_regcache_cover_field(cache,
                                                           request->first);

    if ((field == NULL) &&
        ucs_extents_covers(&cache->memory.kept, request->first,
                           request->last)) {
        field  = &cache->memory.fields[cache->memory.fields_begun++ %
                                       UCS_REGCACHE_FIELDS];
        *field = (ucs_regcache_field_t){.at = request->first};
    }
    if (field != NULL) {
        ucs_regcache_cover_measure(field, request);
    }
}

size_t ucs_regcache_cover_scatter(ucs_regcache_h cache,
                                  const ucs_regcache_field_t *field)
{
    size_t most;

    if ((field == NULL) || (field->refused >= UCS_REGCACHE_COVER_FAILURES)) {
        return 0;
    }
    most = (field->asked > SIZE_MAX / cache->tuning.cover_scatter) ?
                   SIZE_MAX :
                   field->asked * cache->tuning.cover_scatter;
    return ucs_min(field->covered, most - ucs_min(most, field->covered));
}
