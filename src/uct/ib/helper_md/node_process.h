/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_NODE_PROCESS_H_
#define UCT_HELPER_NODE_PROCESS_H_

#include "config/helper_config.h"

/**
 * @file node_process.h
 *
 * The one slot of this process in the node's ledger, for all its domains.
 */

BEGIN_C_DECLS

/**
 * Enter, or share what an earlier domain entered.
 *
 * @param [in] config  What the first domain says holds.
 *
 * @return NULL if the ledger cannot be used, after one line, which is a warning
 *         if an option needs the ledger.
 */
ucs_node_h uct_helper_node_open(const uct_helper_config_t *config);


/** Give it back; the last one leaves. NULL is nothing. */
void uct_helper_node_close(ucs_node_h node);


/** In a child: what the parent entered is the parent's. Trusts no lock. */
void uct_helper_node_forget(void);


/** Figures of this process, kept after it has left.
 *  @return Zero if it never entered. */
int uct_helper_node_process_figures(ucs_node_figures_t *figures);

END_C_DECLS

#endif
