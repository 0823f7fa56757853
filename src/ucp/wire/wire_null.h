/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_WIRE_NULL_H_
#define UCP_WIRE_NULL_H_

#include <ucp/wire/wire.h>

/**
 * @file wire_null.h
 *
 * Wires between ends in one process that cost next to nothing, to measure and to
 * test what lies above: messages arrive at the other end's next progress; puts,
 * gets, flushes and registrations are counted and do nothing at all. One thread.
 */

BEGIN_C_DECLS

typedef struct ucp_wire_null ucp_wire_null_t;

/** @return All ends, or NULL: no memory. Its wires are destroyed before it. */
ucp_wire_null_t *ucp_wire_null_create(unsigned num_nodes);

void ucp_wire_null_destroy(ucp_wire_null_t *null);

/** Get the wire of a node, once for each. */
void ucp_wire_null_open(ucp_wire_null_t *null, unsigned node,
                        const ucp_wire_handlers_t *handlers,
                        ucp_wire_t **wire_p);

/** @return Puts and gets so far, of all ends. */
uint64_t ucp_wire_null_moves(const ucp_wire_null_t *null);

END_C_DECLS

#endif
