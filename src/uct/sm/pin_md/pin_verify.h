/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_PIN_VERIFY_H_
#define UCT_PIN_VERIFY_H_

#include "pin_md.h"
#include "pin_table.h"

/**
 * @file pin_verify.h
 *
 * Does a registration still show what its virtual address shows? A testing
 * aid for what stands above the software NIC; see uct_pin_config_t::verify.
 */

BEGIN_C_DECLS

/** Note which thread registers @a region, and when. */
void uct_pin_verify_mark(uct_pin_region_t *region);


/** As @ref uct_pin_md_compare; the region is pinned by this process. */
int uct_pin_verify_compare(uct_pin_region_t *region, size_t page_size,
                           uct_pin_difference_t *difference);


/** As @ref uct_pin_md_history. */
void uct_pin_verify_history(const uct_pin_region_t *region, char *text,
                            size_t max);

END_C_DECLS

#endif
