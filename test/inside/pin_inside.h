/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef PIN_INSIDE_H_
#define PIN_INSIDE_H_

#include <uct/sm/pin_md/pin_md.h>

/**
 * @file pin_inside.h
 *
 * What tests look at in a domain of the software NIC, and the device that reads and
 * writes what is pinned. Of any open domain, from any thread.
 */

BEGIN_C_DECLS

/** @return Nonzero if the domain pins, also when others decorate it further. */
int uct_pin_md_is_attached(uct_md_h md);

/** @return Nonzero if its table of pins is as pin_md_int.h says; also if not
 *          attached, and in a forked child. */
int uct_pin_md_is_valid(uct_md_h md);

/** @return Bytes that it holds pinned now, or is just pinning or unpinning:
 *          whole pages, counted once for each registration. 0 if not attached,
 *          and in a forked child. */
size_t uct_pin_md_pinned_bytes(uct_md_h md);

/** @return Options in force, valid until it is closed; NULL if not attached. */
const uct_pin_config_t *uct_pin_md_config(uct_md_h md);

/** @return Number of a registration of this domain, never used twice. */
uint64_t uct_pin_md_serial(uct_mem_h memh);

/**
 * Read or write pinned memory as a device would. The domain has been attached
 * with config->verify. From any thread.
 *
 * @param [in] memh     Handle of this domain's mem_reg(), which the caller
 *                      keeps from being undone.
 * @param [in] address  First byte, within the pages that were registered.
 * @param      data     @a length bytes.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if nothing is pinned or config->verify
 *         is off; UCS_ERR_INVALID_PARAM if the range leaves the pages;
 *         UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_pin_md_read(uct_md_h md, uct_mem_h memh, uintptr_t address,
                             void *data, size_t length);
ucs_status_t uct_pin_md_write(uct_md_h md, uct_mem_h memh, uintptr_t address,
                              const void *data, size_t length);

END_C_DECLS

#endif
