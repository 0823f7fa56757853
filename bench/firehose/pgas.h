/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What the paper's programs put by: some processes of one machine, and three
 * ways to reach memory that nobody pinned in advance, over the same wire.
 */
#ifndef BENCH_FIREHOSE_PGAS_H_
#define BENCH_FIREHOSE_PGAS_H_

#include <ucp/firehose/firehose_core.h>
#include <ucp/wire/wire.h>

#include <stdatomic.h>

#define PGAS_MAX     8
#define PGAS_ADDRESS 4096
#define PGAS_PAGE    4096

typedef enum pgas_way {
    PGAS_FIREHOSE,
    PGAS_RENDEZVOUS,       /**< asks before each put; the target keeps pins */
    PGAS_RENDEZVOUS_UNPIN, /**< and unpins after each put */
    PGAS_WAY_LAST
} pgas_way_t;

/** What one process found; sums. */
typedef struct pgas_result {
    uint64_t puts;
    uint64_t hits, misses; /**< PGAS_FIREHOSE only */
    uint64_t joined;       /**< puts that waited for a firehose under way */
    uint64_t pins;
    double   seconds;
    double   extra[2];     /**< as a program likes */
} pgas_result_t;

/** Between the processes. */
typedef struct pgas_shared {
    _Atomic unsigned arrived;
    _Atomic unsigned failed;
    _Atomic int      is_over; /**< as a program likes */
    uint8_t          address[PGAS_MAX][PGAS_ADDRESS];
    uint64_t         memory[PGAS_MAX];
    pgas_result_t    result[PGAS_MAX];
} pgas_shared_t;

typedef struct pgas_options {
    pgas_way_t way;
    unsigned   nodes;
    size_t     lent;      /**< M in bytes */
    size_t     victims;   /**< MAXVICTIM in bytes; 0: the default */
    size_t     pin_base;  /**< ns that a pin takes more: MODELLED */
    size_t     size;      /**< as a program likes */
    size_t     rounds;
    size_t     sample;    /**< of so many puts one is waited for */
    size_t     working_set;
} pgas_options_t;

typedef struct pgas {
    const pgas_options_t *options;
    pgas_shared_t        *shared;
    unsigned             self;
    char                 *memory; /**< what others reach, and local sources */
    size_t               length;
    ucp_wire_t           *wire;
    ucx_firehose_h       firehose;
    struct rendezvous    *rendezvous;
    uint64_t             sampled; /**< puts so far */
    pgas_result_t        *result;
} pgas_t;

/** Put to another process, without waiting but for a sample. Dies on errors. */
void pgas_put(pgas_t *pgas, unsigned node, const void *local, size_t offset,
              size_t length);
/** All that was put is there. */
void pgas_flush(pgas_t *pgas);
unsigned pgas_progress(pgas_t *pgas);
/** All processes arrive, with progress meanwhile. */
void pgas_barrier(pgas_t *pgas);
void pgas_die(const pgas_t *pgas, const char *what, ucs_status_t status);

/* rendezvous.c; the same for the other two ways */
struct rendezvous *rendezvous_create(pgas_t *pgas);
void rendezvous_put(struct rendezvous *rendezvous, unsigned node,
                    const void *local, uint64_t remote, size_t length);
void rendezvous_wait(struct rendezvous *rendezvous);
void rendezvous_destroy(struct rendezvous *rendezvous, pgas_result_t *result);
const ucp_wire_handlers_t *rendezvous_handlers(struct rendezvous *rendezvous);

/* programs.c */
void program_cannon(pgas_t *pgas);
void program_bitonic(pgas_t *pgas);
void program_random(pgas_t *pgas);
void program_overhead(pgas_t *pgas);

#endif
