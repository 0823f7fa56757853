/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "announcer.h"

#include <ucs/sys/hash.h>
#include <ucs/sys/math.h>

#include <string.h>

/* By call site and place; by call site, if @a start is 0 */
ucs_regcache_announcer_t *
ucs_regcache_announcer(ucs_regcache_announced_t *announced, uint32_t label,
                       uintptr_t start)
{
    uint64_t key = (start ^ (((uint64_t)label + 1) << 32)) * UCS_HASH_ROUND_1;
    ucs_regcache_announcer_t *site;

    key ^= key >> 29;
    site = &announced->sites[(key >> 17) % UCS_REGCACHE_ANNOUNCERS];
    if (site->key != key) {
        memset(site, 0, sizeof(*site));
        site->key = key;
    }
    return site;
}

/* Messages may be shorter than what is posted for them, and need no
 * registration at all. What is foreseen too long serves as well, but not if
 * that is by far. Of a use no more is known than its region, in pages. @a end
 * is that of the region, the start if no use came. */
ucs_regcache_announcer_t *ucs_regcache_announced_learn_length(
        ucs_regcache_h cache, const ucs_regcache_announcement_t *announcement,
        uintptr_t end, uint64_t start_ns)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    uintptr_t first    = ucs_regcache_page_down(cache, announcement->start);
    uint64_t page      = cache->config.page_mask + 1;
    uint64_t foreseen  = (ucs_regcache_page_up(cache, announcement->end) -
                         first) / page;
    uint64_t pages     = 0;
    ucs_regcache_announcer_t *site;

    if (end > announcement->start) {
        pages = (ucs_regcache_page_up(cache, end) - first) / page;
    }
    foreseen       = (announcement->end > announcement->start) ? foreseen : 0;
    site           = ucs_regcache_announcer(announced, announcement->label,
                                            announcement->start);
    site->is_wrong = (pages > foreseen) || (2 * pages < foreseen);
    if (!announcement->has_acted) {
        site->trust += (site->trust < 0) ? 0.1f : 0;
    } else if (!site->is_wrong &&
               (announcement->state == UCS_REGCACHE_ANNOUNCED_READY) &&
               (announcement->ready <= start_ns)) {
        site->trust = ucs_min(site->trust + 0.25f, 1.0f);
    } else {
        site->trust = ucs_max(site->trust - 1, -3.0f);
    }
    if (site->posts == 0) {
        announced->is_short = site->is_wrong;
    }
    site->pages[site->posts++ % UCS_REGCACHE_LENGTHS] =
            (uint32_t)ucs_min(pages, UINT32_MAX);
    return site;
}

/* @return How many of the latest are as those before the one @a back posts
 *         ago */
static unsigned
ucs_regcache_announcer_alike(const ucs_regcache_announcer_t *site,
                             unsigned back)
{
    unsigned known = ucs_min(site->posts, UCS_REGCACHE_LENGTHS);
    unsigned alike = 0;

    while ((back + alike + 1 < known) && (alike < UCS_REGCACHE_ALIKE) &&
           (site->pages[(site->posts - 1 - alike) % UCS_REGCACHE_LENGTHS] ==
            site->pages[(site->posts - 2 - alike - back) %
                        UCS_REGCACHE_LENGTHS])) {
        ++alike;
    }
    return alike;
}

/* What followed when the latest ones were as they are now, for the longest
 * time; else the latest. There is one. */
uint32_t
ucs_regcache_announcer_pages(const ucs_regcache_announcer_t *site,
                             unsigned *alike_p)
{
    unsigned known = ucs_min(site->posts, UCS_REGCACHE_LENGTHS);
    unsigned best  = 0;
    unsigned back, alike;

    *alike_p = 0;
    for (back = 0; (back + 1 < known) && (*alike_p < UCS_REGCACHE_ALIKE);
         ++back) {
        alike = ucs_regcache_announcer_alike(site, back);
        if (alike > *alike_p) {
            *alike_p = alike;
            best     = back;
        }
    }
    return site->pages[(site->posts - 1 - best) % UCS_REGCACHE_LENGTHS];
}

void
ucs_regcache_announced_learn(ucs_regcache_h cache,
                             const ucs_regcache_announcement_t *announcement,
                             const ucs_use_t *use)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    float delay = (float)(use->start_ns - announcement->posted);
    ucs_regcache_announcer_t *site;

    announced->longest = ucs_max(announced->longest,
                                 use->address + use->length -
                                         announcement->start);
    site = ucs_regcache_announced_learn_length(cache, announcement,
                                               use->address + use->length,
                                               use->start_ns);
    ucs_predict_delays_add(&site->delays, delay);
    ucs_predict_delays_add(
            &ucs_regcache_announcer(announced, announcement->label, 0)->delays,
            delay);
    ucs_predict_delays_add(&announced->all, delay);
}

/* What is known best of when the use will come */
const ucs_predict_delays_t *
ucs_regcache_announced_delays(ucs_regcache_announced_t *announced,
                              const ucs_regcache_announcement_t *announcement)
{
    const ucs_predict_delays_t *delays;

    delays = &ucs_regcache_announcer(announced, announcement->label,
                                     announcement->start)->delays;
    if (delays->count > 0) {
        return delays;
    }
    delays = &ucs_regcache_announcer(announced, announcement->label, 0)->delays;
    return (delays->count > 0) ? delays : &announced->all;
}
