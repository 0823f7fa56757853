/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "walk.h"
#include "saturate.h"

#include <ucs/sys/math.h>

#include <math.h>

/* Steps that may be left out between two that are seen, and steps back to one that
 * is repeated */
#define WALK_LEFT_OUT 8
#define WALK_REPEATED 8

/* Steps among which one is the first of a walk that comes again */
#define WALK_AGAIN 4

/* Of the mean of the time between steps that the latest has, and how much longer
 * than the mean it may count as: a program that pauses walks no slower for it */
#define WALK_WEIGHT 0.125
#define WALK_PAUSE  4

/* @return How many strides behind the latest step an address lies; 0: it is the
 *         same, WALK_LEFT_OUT + 1: it is no step */
static intptr_t walk_distance(const ucs_predict_walk_t *walk, uintptr_t address,
                              size_t length)
{
    intptr_t offset = (intptr_t)(address - walk->at);
    intptr_t steps;

    if ((walk->length != length) || (offset % walk->stride != 0)) {
        return WALK_LEFT_OUT + 1;
    }
    steps = offset / walk->stride;
    return ((steps >= -WALK_REPEATED) && (steps > -(intptr_t)walk->steps)) ?
                   ucs_min(steps, WALK_LEFT_OUT + 1) :
                   WALK_LEFT_OUT + 1;
}

static void walk_step(ucs_predict_walk_t *walk, intptr_t steps, uint64_t now_ns)
{
    double took_ns = (double)ucs_predict_sat_sub(now_ns, walk->time_ns) /
                     (double)steps;

    took_ns         = ucs_min(took_ns, WALK_PAUSE * walk->step_ns);
    walk->step_ns  += WALK_WEIGHT * (took_ns - walk->step_ns);
    walk->step_ns   = ucs_max(walk->step_ns, 1);
    walk->at       += (uintptr_t)(steps * walk->stride);
    walk->steps    += (walk->steps < UINT32_MAX / 2) ? (uint32_t)steps : 0;
    walk->jump      = (uint32_t)steps;
    walk->time_ns   = now_ns;
    walk->is_over   = 0;
}

/* A walk begins again where it began, or some steps behind that, for the first ones may
 * come in another order. As long as these may be repeated, it must have paused.
 * @return Steps, the first one included; 0: it does not. */
static uint32_t walk_again(const ucs_predict_walk_t *walk, uintptr_t address,
                           size_t length, uint64_t now_ns)
{
    intptr_t offset = (intptr_t)(address - walk->from);
    intptr_t steps;

    if ((walk->length != length) || (offset % walk->stride != 0) ||
        ((walk->steps <= WALK_REPEATED + WALK_AGAIN) &&
         ((double)ucs_predict_sat_sub(now_ns, walk->time_ns) <=
          WALK_PAUSE * walk->step_ns))) {
        return 0;
    }
    steps = offset / walk->stride;
    return ((steps >= 0) && (steps < WALK_AGAIN)) ? (uint32_t)steps + 1 : 0;
}

/* What it has walked is expected of it, however little it was */
static ucs_predict_walk_t *
walks_find_again(ucs_predict_walks_t *walks, uintptr_t address, size_t length,
                 uint64_t now_ns)
{
    ucs_predict_walk_t *walk;
    uint32_t steps;

    for (walk = walks->walks; walk != walks->walks + UCS_PREDICT_WALKS;
         ++walk) {
        steps = walk_again(walk, address, length, now_ns);
        if (steps > 0) {
            walk->at      = address;
            walk->before  = walk->steps;
            walk->steps   = steps;
            walk->jump    = steps;
            walk->time_ns = now_ns;
            walk->is_over = 0;
            return walk;
        }
    }
    return NULL;
}

/* The walk that it goes on with is the one of which the fewest steps were left
 * out */
static ucs_predict_walk_t *walks_find(ucs_predict_walks_t *walks,
                                      uintptr_t address, size_t length,
                                      uint64_t now_ns)
{
    ucs_predict_walk_t *found = NULL;
    intptr_t least            = WALK_LEFT_OUT + 1;
    ucs_predict_walk_t *walk;
    intptr_t steps;

    for (walk = walks->walks; walk != walks->walks + UCS_PREDICT_WALKS;
         ++walk) {
        if (walk->length == 0) {
            continue;
        }
        steps = walk_distance(walk, address, length);
        if (((steps > 0) ? steps : -steps) <
            ((least > 0) ? least : -least)) {
            found = walk;
            least = steps;
        }
    }
    if ((found != NULL) && (least > 0)) {
        walk_step(found, least, now_ns);
    }
    return found;
}

/* The first step may have been a while ago */
static double walk_first_ns(const ucs_predict_walk_use_t *first,
                            const ucs_predict_walk_use_t *second, uint64_t now_ns)
{
    double mean   = (double)ucs_predict_sat_sub(now_ns, first->time_ns) / 2;
    double latest = (double)ucs_predict_sat_sub(now_ns, second->time_ns);

    return ucs_max(ucs_min(mean, WALK_PAUSE * latest), 1);
}

/* In place of the one that has stood still for longest. What walks through an array
 * again does so from its other end on: until it goes on, one that is alike is
 * over. */
static ucs_predict_walk_t *walks_begin(ucs_predict_walks_t *walks,
                                       uintptr_t address,
                                       const ucs_predict_walk_use_t *first,
                                       const ucs_predict_walk_use_t *second,
                                       uint64_t now_ns)
{
    intptr_t stride            = (intptr_t)(address - second->at);
    ucs_predict_walk_t *oldest = walks->walks;
    ucs_predict_walk_t *walk;

    for (walk = walks->walks; walk != walks->walks + UCS_PREDICT_WALKS;
         ++walk) {
        walk->is_over |= (walk->length == second->length) &&
                         (walk->stride == stride);
        if (walk->time_ns < oldest->time_ns) {
            oldest = walk;
        }
    }
    *oldest = (ucs_predict_walk_t){
            .from    = first->at,
            .at      = address,
            .length  = second->length,
            .stride  = stride,
            .steps   = 3,
            .jump    = 3,
            .time_ns = now_ns,
            .step_ns = walk_first_ns(first, second, now_ns)};
    return oldest;
}

static ucs_predict_walk_use_t *walks_latest(ucs_predict_walks_t *walks,
                                            uintptr_t address, size_t length)
{
    unsigned i;

    for (i = 0; i < UCS_PREDICT_WALK_USES; ++i) {
        if ((walks->uses[i].at == address) &&
            (walks->uses[i].length == length)) {
            return &walks->uses[i];
        }
    }
    return NULL;
}

/* Two among the latest uses, such that this one is as far from the later as that
 * is from the earlier. @return NULL if there are none. */
static ucs_predict_walk_t *walks_discover(ucs_predict_walks_t *walks,
                                          uintptr_t address, size_t length,
                                          uint64_t now_ns)
{
    const ucs_predict_walk_use_t *first, *second;

    for (second = walks->uses; second != walks->uses + UCS_PREDICT_WALK_USES;
         ++second) {
        if (second->length != length) {
            continue;
        }
        first = walks_latest(walks, 2 * second->at - address, length);
        if ((first != NULL) && (first->time_ns <= second->time_ns)) {
            return walks_begin(walks, address, first, second, now_ns);
        }
    }
    return NULL;
}

ucs_predict_walk_t *ucs_predict_walks_use(ucs_predict_walks_t *walks,
                                          uintptr_t address, size_t length,
                                          uint64_t now_ns)
{
    ucs_predict_walk_t *walk    = walks_find_again(walks, address, length, now_ns);
    ucs_predict_walk_use_t *use = NULL;

    if (walk == NULL) {
        walk = walks_find(walks, address, length, now_ns);
    }
    if (walk == NULL) {
        use = walks_latest(walks, address, length);
    }
    if (use != NULL) {
        use->time_ns = now_ns;
    } else if (walk == NULL) {
        walk = walks_discover(walks, address, length, now_ns);
    }
    if ((use == NULL) && (walk == NULL)) {
        walks->uses[walks->next++ % UCS_PREDICT_WALK_USES] =
                (ucs_predict_walk_use_t){address, length, now_ns};
    }
    return walk;
}

unsigned ucs_predict_walk_window(const ucs_predict_walk_t *walk,
                                 const ucs_predict_tuning_t *tuning,
                                 double rent_ns, double most_bytes)
{
    double most = 2 * tuning->walk_rent * rent_ns / walk->step_ns;

    /* Of pieces that come once a round each, three in as many rounds lie at equal
     * distances by chance: what takes a round for a step is no walk */
    if ((ucs_max(walk->steps, walk->before) < tuning->walk_least) || (most < 1)) {
        return 0;
    }
    most = ucs_min(most, most_bytes / (double)ucs_predict_walk_stride(walk));
    most = ucs_min(most, (walk->steps <= walk->before) ?
                                 1.0 + ucs_predict_walk_left(walk) :
                                 (double)walk->steps);
    return (most > 1) ? (unsigned)most : 1;
}

unsigned ucs_predict_walk_lead(const ucs_predict_walk_t *walk,
                               double register_ns)
{
    double steps = 2 * register_ns / walk->step_ns;

    return (steps < (double)(UINT32_MAX / 2)) ? walk->jump + (unsigned)steps :
                                                UINT32_MAX / 2;
}

/* Each step may be the last one, or it is just slow: the chance that it takes longer than
 * t, but comes, is taken to be as small as step_ns / t. After t without a step it then
 * comes within the next ns with the chance step_ns / t^2, which is worth waiting for
 * until it falls below 1 / rent_ns. */
double ucs_predict_walk_still(const ucs_predict_walk_t *walk, double rent_ns)
{
    return sqrt(walk->step_ns * rent_ns);
}
