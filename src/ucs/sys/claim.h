/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_CLAIM_H_
#define UCS_CLAIM_H_

/**
 * @file claim.h
 *
 * The words that a registration cache and a node's budget have in common.
 */

/** What bytes are counted against a budget for. */
typedef enum ucs_claim {
    UCS_CLAIM_HELPER, /**< a registration in advance: fits beside what the
                           others may have */
    UCS_CLAIM_USE,    /**< a use: fits */
    UCS_CLAIM_FORCE   /**< a use that is not to be refused */
} ucs_claim_t;

/** Which ranks are asked to give bytes of a budget back. */
typedef enum ucs_ask {
    UCS_ASK_SHARE, /**< those above their share for what is idle, if this
                        process is below its own */
    UCS_ASK_ALL    /**< all for whatever is idle */
} ucs_ask_t;

#endif
