/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tell.h"

#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_map.h>

#include <errno.h>

/* Before glibc 2.34 a program without threads may lack these; then its only
 * thread keeps its ring */
#pragma weak pthread_key_create
#pragma weak pthread_setspecific

static _Atomic(ucp_door_state_t*) ucp_door_state;

_Atomic(ucs_operation_wants_t*) ucp_door_wants;

__thread ucp_door_thread_t ucp_door_thread
        __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* --- Opening -------------------------------------------------------------- */

ucp_door_state_t *ucp_door_get(void)
{
    return ucs_load_acquire(&ucp_door_state); /* [O-STATE] as ucp_door_make() */
}

static void ucp_door_thread_ends(void *arg)
{
    ucp_door_thread.ring    = NULL;
    ucp_door_thread.is_over = 1;
    ucp_door_ring_leave(arg);
}

static ucp_door_state_t *ucp_door_make(void)
{
    ucp_door_state_t *other = NULL;
    ucp_door_state_t *state;

    state = ucs_own_map_at(0, sizeof(*state));
    if (state == NULL) {
        return NULL;
    }

    state->has_key = (pthread_key_create != NULL) &&
                     (pthread_setspecific != NULL) &&
                     (pthread_key_create(&state->key,
                                         ucp_door_thread_ends) == 0);
    /* [O-STATE] The release pairs with the acquire in ucp_door_get(): the state
     * is whole. */
    if (!ucs_cas_acq_rel(&ucp_door_state, &other, state)) {
        ucs_own_unmap(state, sizeof(*state));
        return other;
    }

    return state;
}

static unsigned ucp_door_drain(ucs_operation_t *into, unsigned max)
{
    return ucp_door_rings_drain(&ucp_door_get()->rings, into, max);
}

static uint64_t ucp_door_lost(void)
{
    return ucp_door_rings_lost(&ucp_door_get()->rings);
}

static void ucp_door_adopt(void)
{
    ucp_door_rings_adopt(&ucp_door_get()->rings, ucp_door_thread.ring);
}

__attribute__((visibility("default"))) const ucp_door_reader_t *
ucp_door_open(const ucp_door_listener_t *listener)
{
    static const ucp_door_reader_t reader = {UCP_DOOR_VERSION, ucp_door_drain,
                                             ucp_door_lost, ucp_door_adopt};
    ucp_door_state_t *state;

    if (listener->version != UCP_DOOR_VERSION) {
        return NULL;
    }

    state = ucp_door_get();
    if ((state == NULL) && ((state = ucp_door_make()) == NULL)) {
        return NULL;
    }

    /* [O-WANTS] The release pairs with the acquire in ucp_door_passes(). */
    ucs_store_release(&ucp_door_wants, listener->wants);
    /* [O-LISTEN] The release pairs with the acquire in ucp_door_listens(). */
    ucs_store_release(&state->listener, listener);
    ucp_door_slots_open();
    return &reader;
}

static const ucp_door_listener_t *ucp_door_listens(ucp_door_state_t *state)
{
    return ucs_load_acquire(&state->listener); /* [O-LISTEN] */
}

/* --- Telling -------------------------------------------------------------- */

static uint64_t ucp_door_now(ucp_door_state_t *state)
{
    const ucp_door_listener_t *listener = ucp_door_listens(state);
    uint64_t ns;

    return ucs_likely(ucs_clock_try_read(listener->clock, &ns)) ?
                   ns : listener->now();
}

static UCS_F_NOINLINE ucp_door_ring_t *ucp_door_ring_new(ucp_door_state_t *state)
{
    ucp_door_thread_t *thread = &ucp_door_thread;

    if (!thread->is_over) {
        thread->ring    = ucp_door_rings_take(&state->rings);
        thread->is_over = (thread->ring == NULL);
        if (state->has_key && (thread->ring != NULL)) {
            (void)pthread_setspecific(state->key, thread->ring);
        }
    }

    return thread->ring;
}

ucp_door_ring_t *ucp_door_ring(ucp_door_state_t *state)
{
    ucp_door_ring_t *ring = ucp_door_thread.ring;

    if (ucs_unlikely(ring == NULL)) {
        ring = ucp_door_ring_new(state);
        if (ring == NULL) {
            ucs_add_relaxed(&state->rings.unheard, 1);
        }
    }

    return ring;
}

void ucp_door_tell(ucp_door_state_t *state, ucp_door_ring_t *ring,
                   ucs_operation_kind_t kind, ucp_door_data_t data,
                   ucp_door_site_t site, uint32_t id)
{
    uint64_t now               = ucp_door_now(state);
    ucs_operation_t *operation = ucp_door_ring_room(ring);

    ++ucp_door_thread.heard;
    if (operation == NULL) {
        return;
    }
    operation->time    = now;
    operation->address = data.address;
    operation->length  = data.length;
    operation->id      = id;
    operation->kind    = kind;
    operation->thread  = ring->number;
    operation->label   = ucp_door_label(site, kind, data.length);
    ucp_door_ring_fill(ring);
}

void ucp_door_tell_end(ucp_door_ticket_t ticket)
{
    ucp_door_state_t *state = ucp_door_get();
    ucs_operation_t *operation;
    ucp_door_ring_t *ring;

    if ((ticket != 0) && ((ring = ucp_door_ring(state)) != NULL) &&
        ((operation = ucp_door_ring_room(ring)) != NULL)) {
        *operation = (ucs_operation_t){
            .time   = ucp_door_now(state),
            .id     = (uint32_t)ticket,
            .kind   = UCS_OPERATION_RECEIVED,
            .thread = (uint32_t)(ticket >> 32)
        };
        ucp_door_ring_fill(ring);
    }
}

void ucp_door_posted(ucp_door_data_t data)
{
    int saved = errno;

    ucp_door_listens(ucp_door_get())->posted(data.address, data.length);
    errno = saved;
}

ucp_door_data_t ucp_door_data(const void *buffer, size_t count,
                              ucp_datatype_t datatype)
{
    ucp_door_data_t data = {0, 0};

    /* UCX refuses a size that overflows */
    if (((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG) &&
        (buffer != NULL) &&
        !__builtin_mul_overflow(count, datatype >> UCP_DATATYPE_SHIFT,
                                &data.length)) {
        data.address = (uintptr_t)buffer;
    } else {
        data.length = 0;
    }

    return data;
}

ucp_door_data_t ucp_door_param_data(const void *buffer, size_t count,
                                    const ucp_request_param_t *param)
{
    uint32_t mask = param->op_attr_mask;

    if (((mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) &&
         (param->memory_type != UCS_MEMORY_TYPE_HOST) &&
         (param->memory_type != UCS_MEMORY_TYPE_UNKNOWN)) ||
        ((mask & UCP_OP_ATTR_FIELD_MEMH) && (param->memh != NULL))) {
        return (ucp_door_data_t){0, 0};
    }

    return ucp_door_data(buffer, count,
                         (mask & UCP_OP_ATTR_FIELD_DATATYPE) ?
                         param->datatype : ucp_dt_make_contig(1));
}

unsigned ucp_door_enter(ucs_operation_kind_t kind, ucp_door_data_t data,
                        ucp_door_site_t site)
{
    ucp_door_state_t *state = ucp_door_get();
    unsigned place          = ucp_door_thread.place;
    ucp_door_ring_t *ring;

    if (place == UCP_DOOR_IN_UCP) {
        return place;
    }

    ucp_door_thread.place = UCP_DOOR_IN_UCP;
    if (ucp_door_is_wanted(kind, data.length) &&
        ((ring = ucp_door_ring(state)) != NULL)) {
        ucp_door_tell(state, ring, kind, data, site, 0);
    }

    return place;
}

/* --- Idle steps ----------------------------------------------------------- */

/* A wait's first step takes longer than an empty one: it hears what the program
 * did since the last step. If the latest such step found nothing to do, the
 * next waits get theirs later; now and then one comes early, more rarely the
 * longer nothing is found. */
static int ucp_door_idle_is_early(const ucp_door_thread_t *thread)
{
    return thread->is_worth || (thread->told == thread->heard) ||
           (thread->waits >= thread->rest);
}

/* @return The shortest wait before a step, ns */
static uint64_t ucp_door_idle_after(const ucp_door_thread_t *thread)
{
    uint64_t after = UCP_DOOR_IDLE_SHARE * thread->idle_ns;

    return (!thread->is_first || ucp_door_idle_is_early(thread)) ?
                   after :
                   ucs_max(after, UCP_DOOR_FIRST_SHARE * thread->first_ns);
}

/* @return The shortest step, with @a before for the earlier ones; 0: none */
static uint64_t ucp_door_shortest(uint64_t before, uint64_t took)
{
    return (before == 0) ? took : ucs_min(before, took);
}

/* Note whether an early first step found something to do */
static void ucp_door_idle_tried(ucp_door_thread_t *thread, int was_used)
{
    if (was_used) {
        thread->rest = 0;
    } else if (thread->waits >= thread->rest) {
        thread->rest  = ucs_min(ucs_max(2 * thread->rest, UCP_DOOR_FIRST_TRIES),
                                UCP_DOOR_FIRST_TRIES_MAX);
        thread->waits = 0;
    }
}

/* After a step, which may have heard operations */
static void ucp_door_idle_heard(ucp_door_thread_t *thread, uint64_t took,
                                int was_used)
{
    if (thread->told == thread->heard) {
        thread->is_worth |= was_used;
        return;
    }
    thread->told     = thread->heard;
    thread->is_worth = was_used;
    if (!thread->is_first) {
        return;
    }
    ucp_door_idle_tried(thread, was_used);
    if (!was_used) {
        thread->first_ns = ucp_door_shortest(thread->first_ns, took);
    }
}

static void ucp_door_idle_took(ucp_door_thread_t *thread, uint64_t took,
                               ucs_idle_outcome_t outcome)
{
    thread->idle_ns  = ucp_door_shortest(thread->idle_ns, took);
    thread->spare_ns = (thread->spare_ns > took) ? thread->spare_ns - took : 0;
    if (outcome != UCS_IDLE_NOT_TAKEN) {
        ucp_door_idle_heard(thread, took, outcome == UCS_IDLE_USED);
        thread->is_first = 0;
    }
}

void ucp_door_idle(void)
{
    ucp_door_state_t *state   = ucp_door_get();
    ucp_door_thread_t *thread = &ucp_door_thread;
    int saved                 = errno;
    uint64_t now              = ucp_door_now(state);
    ucs_idle_outcome_t outcome;
    uint64_t waited;

    if (thread->empty == UCP_DOOR_IDLE_CALLS) {
        /* The time of a wait's first calls is unknown, and short */
        thread->spare_ns = 0;
        thread->is_first = 1;
        ++thread->waits;
        thread->idle_at  = now;
        return;
    }
    waited = now - thread->idle_at;
    if (waited < ucp_door_idle_after(thread)) {
        return;
    }
    thread->spare_ns += waited;

    /* Do not hear what the step calls */
    ucp_door_thread.place = UCP_DOOR_IN_UCP;
    outcome = ucp_door_listens(state)->idle_step(thread->spare_ns);
    ucp_door_leave(UCP_DOOR_OUTSIDE);
    thread->idle_at = ucp_door_now(state);
    ucp_door_idle_took(thread, thread->idle_at - now, outcome);
    errno = saved;
}
