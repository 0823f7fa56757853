/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <math.h>
#include <stdlib.h>

/* Registrations, one a fragment, at once or kept. In mode cache all are in the
 * cache's list, those in use as well. An unmap event may come on any thread at
 * any time, so it only marks entries under the cache's lock; they are
 * deregistered by the next call that finds them without uses. */

void ucp_pipeline_cache_init(ucp_pipeline_cache_t *cache)
{
    ucs_lock_init(&cache->lock);
    ucs_list_head_init(&cache->list);
    atomic_init(&cache->strike, 0);
}

/* Whether what a buffer had registered that is new stays. Of the buffer nothing
 * is known, but something is of those before it (ucs/predict/newcomers.h): a
 * program that sends each message from new memory had all of it kept in vain. A
 * newcomer is a buffer and not a fragment, or the end of a long message would be
 * dropped because its beginning has not come back yet. */

/* With the cache's lock: those that were unmapped meanwhile will not come back.
 * Events come on any thread, so the account is told here, by a thread with the
 * pipeline's lock. */
static void ucp_pipeline_new_settle(ucp_pipeline_cache_t *cache)
{
    ucp_pipeline_newcomer_t *newcomer;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_NEWCOMERS; ++i) {
        newcomer = &cache->newcomers[i];
        if (newcomer->is_lost) {
            ucs_predict_newcomers_lost(&cache->account, i + 1, newcomer->since,
                                       UCP_PIPELINE_NEW_DECAY);
            *newcomer = (ucp_pipeline_newcomer_t){0};
        }
    }
}

static int ucp_pipeline_new_returns(ucx_pipeline_h self, uintptr_t start,
                                    uintptr_t end)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uint64_t now                = ucp_wire_time(self->wire);
    ucp_pipeline_newcomer_t *newcomer;
    int has_returned = 0;
    unsigned i;

    ucs_lock(&cache->lock);
    ucp_pipeline_new_settle(cache);
    for (i = 0; i < UCS_PREDICT_NEWCOMERS; ++i) {
        newcomer = &cache->newcomers[i];
        if ((newcomer->start < end) && (start < newcomer->end)) {
            ucs_predict_newcomers_return(&cache->account, i + 1,
                                         newcomer->since, now,
                                         UCP_PIPELINE_NEW_DECAY);
            *newcomer    = (ucp_pipeline_newcomer_t){0};
            has_returned = 1;
        }
    }
    ucs_unlock(&cache->lock);
    return has_returned;
}

static int ucp_pipeline_new_stays(ucx_pipeline_h self, uintptr_t start,
                                  uintptr_t end)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uint64_t now                = ucp_wire_time(self->wire);
    double rent                 = ucp_pipeline_tune_rent(self, end - start);
    unsigned number;
    int is_kept;

    if (!(rent > 0) || isinf(rent)) {
        return 1; /* memory has no price, or a registration has none */
    }
    is_kept = ucs_predict_newcomers_add(&cache->account, now, rent,
                                        UCP_PIPELINE_NEW_CREDIT,
                                        UCP_PIPELINE_NEW_DECAY, &number);
    if (number > 0) {
        ucs_lock(&cache->lock);
        cache->newcomers[number - 1] = (ucp_pipeline_newcomer_t){
            .start = start, .end = end, .since = now
        };
        ucs_unlock(&cache->lock);
    }
    return is_kept;
}

static void ucp_pipeline_new_unmapped(ucp_pipeline_cache_t *cache,
                                      uintptr_t start, uintptr_t end)
{
    ucp_pipeline_newcomer_t *newcomer;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_NEWCOMERS; ++i) {
        newcomer = &cache->newcomers[i];
        if ((newcomer->start < end) && (start < newcomer->end)) {
            newcomer->is_lost = 1;
        }
    }
}

static void ucp_pipeline_reg_free(ucx_pipeline_h self, ucp_pipeline_reg_t *reg)
{
    ucp_wire_mem_dereg(self->wire, reg->mem);
    free(reg);
    --self->stats.registered;
}

/* The lock is held. The signal handler that struck ran on the thread that held
 * the lock then, or is ordered before by what let that thread go on. */
static void ucp_pipeline_cache_strike(ucp_pipeline_cache_t *cache)
{
    ucp_pipeline_reg_t *reg;

    if (ucs_load_relaxed(&cache->strike)) {
        ucs_store_relaxed(&cache->strike, 0);
        ucp_pipeline_new_unmapped(cache, 0, UINTPTR_MAX);
        ucs_list_for_each(reg, &cache->list, list) {
            reg->stale = 1;
        }
    }
}

/* Has it been idle for longer than it is worth? */
static int ucp_pipeline_reg_is_due(ucx_pipeline_h self,
                                   const ucp_pipeline_reg_t *reg, uint64_t now)
{
    return (now > reg->idle) &&
           (now - reg->idle >
            ucp_pipeline_tune_rent(self, reg->end - reg->start));
}

/* The next entry without uses that is to go, or NULL */
static ucp_pipeline_reg_t *ucp_pipeline_cache_victim(ucx_pipeline_h self)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uint64_t now                = ucp_wire_time(self->wire);
    ucp_pipeline_reg_t *reg, *victim = NULL;
    int over;

    ucs_lock(&cache->lock);
    ucp_pipeline_cache_strike(cache);
    over = cache->closed || (cache->bytes > self->options.cache_bytes) ||
           (cache->count > UCP_PIPELINE_CACHE_ENTRIES);
    ucs_list_for_each(reg, &cache->list, list) {
        if ((reg->uses == 0) &&
            (reg->stale || over || ucp_pipeline_reg_is_due(self, reg, now))) {
            ucs_list_del(&reg->list);
            --cache->count;
            cache->bytes -= reg->end - reg->start;
            victim        = reg;
            break;
        }
    }
    ucs_unlock(&cache->lock);
    return victim;
}

void ucp_pipeline_cache_sweep(ucx_pipeline_h self)
{
    ucp_pipeline_reg_t *reg;

    while ((reg = ucp_pipeline_cache_victim(self)) != NULL) {
        ucp_pipeline_reg_free(self, reg);
    }
}

void ucp_pipeline_cache_look(ucx_pipeline_h self)
{
    uint64_t now;

    if (self->cache.count == 0) {
        return;
    }
    now = ucp_wire_time(self->wire);
    if (now - self->swept > UCP_PIPELINE_LOOK_NS) {
        self->swept = now;
        ucp_pipeline_cache_sweep(self);
    }
}

/* Bytes from `start` on that one entry without uses has */
size_t ucp_pipeline_cache_has(ucx_pipeline_h self, const char *start)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uintptr_t from              = (uintptr_t)start;
    ucp_pipeline_reg_t *reg;
    size_t length = 0;

    ucs_lock(&cache->lock);
    ucp_pipeline_cache_strike(cache);
    ucs_list_for_each(reg, &cache->list, list) {
        if ((reg->uses == 0) && !reg->stale && (reg->start <= from) &&
            (from < reg->end)) {
            length = reg->end - from;
            break;
        }
    }
    ucs_unlock(&cache->lock);
    return length;
}

void ucp_pipeline_cache_close(ucx_pipeline_h self)
{
    self->cache.closed = 1;
    ucp_pipeline_cache_sweep(self);
}

void ucp_pipeline_unmapped(ucx_pipeline_h self, const void *start,
                           size_t length)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uintptr_t from = (uintptr_t)start, to = from + length;
    ucp_pipeline_reg_t *reg;

    if (ucs_lock_is_mine(&cache->lock)) {
        ucs_store_relaxed(&cache->strike, 1); /* read by this very thread */
        return;
    }
    ucs_lock(&cache->lock);
    ucs_list_for_each(reg, &cache->list, list) {
        if ((reg->start < to) && (from < reg->end)) {
            reg->stale = 1;
        }
    }
    ucp_pipeline_new_unmapped(cache, from, to);
    ucs_unlock(&cache->lock);
}

/* Take an entry that covers the range and has no uses: one that goes as far as
 * `last`, or else the one that goes farthest. Many may send from one, and one
 * message at most is received into it. */
static ucp_pipeline_reg_t *
ucp_pipeline_cache_find(ucx_pipeline_h self, uintptr_t start, uintptr_t end,
                        uintptr_t last, ucp_pipeline_kind_t kind)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    ucp_pipeline_reg_t *reg, *found = NULL;

    ucs_lock(&cache->lock);
    ucp_pipeline_cache_strike(cache);
    ucs_list_for_each(reg, &cache->list, list) {
        if (((reg->uses == 0) || (kind == UCP_PIPELINE_SEND)) && !reg->stale &&
            (reg->start <= start) && (end <= reg->end) &&
            ((found == NULL) || (found->end < reg->end))) {
            found = reg;
            if (reg->end >= last) {
                break;
            }
        }
    }
    if ((found != NULL) && (found->uses++ == 0)) {
        cache->bytes -= found->end - found->start;
        cache->used  += found->end - found->start;
    }
    ucs_unlock(&cache->lock);
    return found;
}

/* One more use by a message that has one already */
void ucp_pipeline_reg_share(ucx_pipeline_h self, ucp_pipeline_reg_t *reg)
{
    ucs_lock(&self->cache.lock);
    ++reg->uses;
    ucs_unlock(&self->cache.lock);
}

/* Fresh, with one use. It is in the list before it is registered, so that an
 * event in between is not missed. */
static ucp_pipeline_reg_t *ucp_pipeline_reg_new(ucx_pipeline_h self,
                                                uintptr_t start, uintptr_t end,
                                                int is_kept)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    ucp_pipeline_reg_t *reg     = calloc(1, sizeof(*reg));
    ucs_status_t status;

    if (reg == NULL) {
        return NULL;
    }
    reg->start = start;
    reg->end   = end;
    reg->uses  = 1;
    reg->stale = !is_kept;
    ucs_lock(&cache->lock);
    ucs_list_add_tail(&cache->list, &reg->list);
    ++cache->count;
    cache->used += end - start;
    ucs_unlock(&cache->lock);
    status = ucp_wire_mem_reg(self->wire, (void*)start, end - start, &reg->mem);
    if (status != UCS_OK) {
        ucs_lock(&cache->lock);
        ucs_list_del(&reg->list);
        --cache->count;
        cache->used -= end - start;
        ucs_unlock(&cache->lock);
        free(reg);
        return NULL;
    }
    return reg;
}

/* Once a message: of what the buffer is that it is from or to */
void ucp_pipeline_reg_decide(ucx_pipeline_request_h req, int is_found)
{
    uintptr_t start     = (uintptr_t)req->buffer, end = start + req->total;
    ucx_pipeline_h self = req->pipeline;

    if ((req->stay == UCP_PIPELINE_UNDECIDED) &&
        (self->options.mode == UCX_PIPELINE_MODE_CACHE)) {
        req->stay = (ucp_pipeline_new_returns(self, start, end) || is_found ||
                     ucp_pipeline_new_stays(self, start, end)) ?
                    UCP_PIPELINE_KEEP : UCP_PIPELINE_DROP;
    }
}

/* What is to be kept is registered in whole segments, as far as the receiver's
 * buffer goes. Of the sender's no more than the fragment: its ends are the
 * receiver's segments, and what lies around belongs to the fragments beside. But
 * at both ends the bytes that went with MATCH are the first fragment's, or the
 * buffer would never be registered as a whole: they may be all of its first
 * segment. */
static void ucp_pipeline_reg_extend(ucx_pipeline_request_h req,
                                    uintptr_t *start_p, uintptr_t *end_p)
{
    uintptr_t mask  = req->pipeline->tune.fragment - 1;
    uintptr_t first = (uintptr_t)req->buffer, last = first + req->total;

    if (req->is_whole) {
        *start_p = first;
        *end_p   = last;
        return;
    }
    if (req->kind == UCP_PIPELINE_RECV) {
        *start_p = ucs_max(*start_p & ~mask, first);
        *end_p   = ucs_min((*end_p + mask) & ~mask, last);
    }
    if (*start_p - first <= UCP_PIPELINE_FIRST) {
        *start_p = first;
    }
}

static ucp_pipeline_reg_t *ucp_pipeline_reg_kept(ucx_pipeline_request_h req,
                                                 size_t offset, size_t end,
                                                 size_t last)
{
    ucx_pipeline_h self = req->pipeline;
    uintptr_t start     = (uintptr_t)req->buffer;
    ucp_pipeline_reg_t *reg;

    if (self->options.mode != UCX_PIPELINE_MODE_CACHE) {
        return NULL;
    }
    ucp_pipeline_cache_sweep(self);
    reg = ucp_pipeline_cache_find(self, start + offset, start + end,
                                  start + last, req->kind);
    if (reg != NULL) {
        ucp_pipeline_reg_decide(req, 1);
        ++self->stats.reused;
    }
    return reg;
}

/* What is kept of the message from `offset` on, and goes farthest */
ucp_pipeline_reg_t *ucp_pipeline_reg_find(ucx_pipeline_request_h req,
                                          size_t offset)
{
    return ucp_pipeline_reg_kept(req, offset, offset + 1, req->total);
}

ucp_pipeline_reg_t *ucp_pipeline_reg_get(ucx_pipeline_request_h req,
                                         size_t offset, size_t length)
{
    ucx_pipeline_h self     = req->pipeline;
    uintptr_t start         = (uintptr_t)req->buffer + offset;
    uintptr_t end           = start + length;
    ucp_pipeline_reg_t *reg = ucp_pipeline_reg_kept(req, offset, offset + length,
                                                    offset + length);

    if (reg != NULL) {
        return reg;
    }
    ucp_pipeline_reg_decide(req, 0);
    if (req->stay == UCP_PIPELINE_KEEP) {
        ucp_pipeline_reg_extend(req, &start, &end);
    }
    reg = ucp_pipeline_reg_new(self, start, end,
                               req->stay == UCP_PIPELINE_KEEP);
    if (reg == NULL) {
        ++self->stats.failed;
        return NULL;
    }
    ++self->stats.registrations;
    if (++self->stats.registered > self->stats.registered_peak) {
        self->stats.registered_peak = self->stats.registered;
    }
    return reg;
}

/* @return How long its key is, 0 if no message can have it */
size_t ucp_pipeline_reg_pack(ucx_pipeline_h self, ucp_pipeline_reg_t *reg,
                             const void **key_p)
{
    size_t room = self->wire->max_header - sizeof(ucp_pipeline_header_t);
    size_t length;

    return ((ucp_wire_mem_pack(self->wire, reg->mem, key_p, &length) ==
             UCS_OK) && (length <= room)) ? length : 0;
}

/* A peer has its key, and what the peer does with it is not known any more: no
 * other message uses it, and it ends with its last use */
void ucp_pipeline_reg_revoke(ucx_pipeline_h self, ucp_pipeline_reg_t *reg)
{
    ucs_lock(&self->cache.lock);
    reg->stale = 1;
    ucs_unlock(&self->cache.lock);
}

void ucp_pipeline_reg_put(ucx_pipeline_h self, ucp_pipeline_reg_t *reg)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uint64_t now                = ucp_wire_time(self->wire);

    ucs_lock(&cache->lock);
    reg->idle = now;
    if (--reg->uses == 0) {
        cache->used  -= reg->end - reg->start;
        cache->bytes += reg->end - reg->start;
    }
    cache->peak    = ucs_max(cache->peak, cache->bytes + cache->used);
    ucs_list_del(&reg->list);
    ucs_list_add_tail(&cache->list, &reg->list);
    ucs_unlock(&cache->lock);
    ucp_pipeline_cache_sweep(self);
}
