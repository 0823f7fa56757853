/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_NODE_PROCESS_H_
#define UCT_HELPER_NODE_PROCESS_H_

#include "config/helper_config.h"
#include <ucs/node/node.h>

#include <sched.h>

/*
 * The slot of this process in the node's ledger, shared by its domains.
 */

BEGIN_C_DECLS

/** Processors that the main thread, which stands for the application, is bound to; none
 *  if that is not known. */
void uct_helper_application_cpus(cpu_set_t *cpus);

/**
 * Enter the ledger, or share an earlier domain's entry.
 *
 * @param [in] config  The first domain's is used.
 *
 * @return NULL, after one line, if the ledger cannot be used; the line is a
 *         warning if an option needs the ledger.
 */
ucs_node_h uct_helper_node_open(const uct_helper_config_t *config);

/** Release it; the last domain leaves the ledger. NULL is ignored. */
void uct_helper_node_close(ucs_node_h node);

/** In a child: forget the parent's entry. Takes no lock. */
void uct_helper_node_forget(void);

/** Figures of this process, kept after it has left.
 *  @return Zero if it never entered. */
int uct_helper_node_process_figures(ucs_node_figures_t *figures);

END_C_DECLS

#endif
