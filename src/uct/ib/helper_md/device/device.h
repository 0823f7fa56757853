/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_DEVICE_H_
#define UCT_HELPER_DEVICE_H_

#include <uct/base/uct_abi.h>

/*
 * Registrations of a device's memory (a GPU's): left registered between uses,
 * never watched, copied, walked or evicted, and dropped when UCM reports that
 * the memory was freed, as UCX's own cache does it. They are not in the
 * registration cache, nor in its figures.
 */

BEGIN_C_DECLS

typedef struct uct_helper_device *uct_helper_device_h;

/**
 * @param [in]  md        Domain that registers, and @a lower its operations;
 *                        both must outlive the class.
 * @param [in]  attr      Of the domain.
 * @param [out] device_p  NULL if the domain registers host memory only.
 *
 * @return UCS_OK, UCS_ERR_NO_MEMORY, or UCS_ERR_EXCEEDS_LIMIT: too many
 *         domains.
 */
ucs_status_t uct_helper_device_create(uct_md_h md,
                                      const uct_abi_md_ops_t *lower,
                                      const uct_abi_md_attr_t *attr,
                                      uct_helper_device_h *device_p);

/** Deregister the rest. When this returns, no thread and no event is inside.
 *  Not in a forked child. */
void uct_helper_device_destroy(uct_helper_device_h device);

/** @return Nonzero if UCX's cache of memory types says that the memory is a
 *          device's. Where that cache is off none is, and the registration cache
 *          registers it for each use, as it does other mappings of a driver. Any
 *          thread. */
int uct_helper_device_is_known(const void *address, size_t length);

/**
 * Is a request one for this class? From any thread.
 *
 * @param [in] params  NULL if the request came with flags.
 */
int uct_helper_device_is_mine(uct_helper_device_h device, const void *address,
                              size_t length,
                              const uct_abi_md_mem_reg_params_t *params);

/**
 * Find or make a registration that covers a request, and take a reference. From
 * any thread.
 *
 * @param [in]  params  Handed down as they are, NULL: @a flags are.
 *
 * @return UCS_OK, UCS_ERR_NO_MEMORY, or what the domain below returns.
 */
ucs_status_t uct_helper_device_get(uct_helper_device_h device, void *address,
                                   size_t length, unsigned flags,
                                   const uct_abi_md_mem_reg_params_t *params,
                                   uct_mem_h *memh_p);

/**
 * Give a reference back. From any thread.
 *
 * @param [in] comp  Not NULL: the registration is invalidated when its last
 *                   user has gone, and then this is called.
 *
 * @return UCS_OK; UCS_ERR_NO_ELEM if the handle is not of this class;
 *         UCS_ERR_NO_MEMORY, nothing was done; what the domain below returns.
 */
ucs_status_t uct_helper_device_put(uct_helper_device_h device, uct_mem_h memh,
                                   uct_completion_t *comp);

/** In a child: no class receives events any more. */
void uct_helper_device_forget(void);

END_C_DECLS

#endif
