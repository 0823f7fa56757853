/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_PIN_COST_H_
#define UCT_PIN_COST_H_

#include "pin_md.h"
#include "pin_table.h"

#include <ucs/datastruct/linear_func.h>

BEGIN_C_DECLS

/**
 * @return Nonzero if this kernel still holds a page pinned when its
 *         deregistration has returned, by `VmPin` of this process, which no
 *         other thread should be pinning in. Needs a free slot.
 */
int uct_pin_cost_is_lazy(uct_pin_table_t *table);


/**
 * Time what a pin costs on this machine, on pages that are resident, and add
 * the modelled cost of @a config: the least of @a tries (1 or more). Needs a
 * free slot.
 *
 * @return Seconds as a function of bytes; the modelled cost alone if the pages
 *         cannot be had.
 */
ucs_linear_func_t uct_pin_cost_measure(uct_pin_table_t *table,
                                       const uct_pin_config_t *config,
                                       unsigned tries);


/** Keep the caller busy for the MODELLED cost of registering @a num_pages. */
void uct_pin_cost_wait(const uct_pin_config_t *config, size_t num_pages);


/** The same for deregistering: a third of it. */
void uct_pin_cost_wait_dereg(const uct_pin_config_t *config, size_t num_pages);

END_C_DECLS

#endif
