/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_WIRE_UCP_H_
#define UCP_WIRE_UCP_H_

#include <ucp/wire/wire.h>

/*
 * A wire over UCP's public functions: a context and a worker of its own, one
 * endpoint for each peer, with error handling of the kind "peer". Addresses
 * are exchanged by the caller.
 */

BEGIN_C_DECLS

/**
 * Create a wire without connections.
 *
 * @param [in]  self       Number of this process.
 * @param [in]  num_peers  Above self.
 * @param [out] wire_p     End it by @ref ucp_wire_destroy.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (self), or what UCP says.
 */
ucs_status_t ucp_wire_ucp_create(unsigned self, unsigned num_peers,
                                 ucp_wire_t **wire_p);

/** Get this process's address, to be handed to all peers; it lives as long as the
 *  wire. */
void ucp_wire_ucp_address(ucp_wire_t *wire, const void **address_p,
                          size_t *length_p);

/**
 * Connect to a peer, which may be `self`, once, before anything is sent to it. All are
 * to be connected before the first progress, for a handler may want to answer.
 *
 * @param [in] address  What @ref ucp_wire_ucp_address gave there. UCP trusts it.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_ALREADY_EXISTS, or what UCP says.
 */
ucs_status_t ucp_wire_ucp_connect(ucp_wire_t *wire, unsigned peer,
                                  const void *address);

END_C_DECLS

#endif
