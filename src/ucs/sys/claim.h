/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_CLAIM_H_
#define UCS_CLAIM_H_

/* Types that a registration cache and a node's budget share. */

/** Purpose of a claim on a budget. */
typedef enum ucs_claim {
    UCS_CLAIM_HELPER, /**< a registration in advance: only within the share */
    UCS_CLAIM_USE,    /**< a use: only within the budget */
    UCS_CLAIM_FORCE   /**< a use that must not be refused */
} ucs_claim_t;

/** Which ranks are asked to deregister idle memory. */
typedef enum ucs_ask {
    UCS_ASK_SHARE, /**< those above their share, if this process is below its
                        own */
    UCS_ASK_ALL    /**< all */
} ucs_ask_t;

#endif
