/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_DOOR_ATTACH_H_
#define UCT_DOOR_ATTACH_H_

#include <uct/base/uct_abi.h>

/**
 * @file attach.h
 *
 * The way in for every door: opens a memory domain as uct_md_open() does, and
 * puts on it what the options ask for. Nothing ever fails because something
 * cannot be attached: then the domain is opened as without the helper, and one
 * log line says why.
 */

BEGIN_C_DECLS


/**
 * Open a memory domain and decorate it.
 *
 * Components "ib" and, with UCX_MD_PIN, "cma" are decorated. UCX's own
 * registration cache inside the IB domain (up to 1.15) is switched off by
 * setting REG_METHODS to "direct" in @a config, unless the user has set it.
 *
 * @param [in] config     Must come from uct_md_config_read(). Its REG_METHODS
 *                        may be changed although it is const: there is no
 *                        other way to reach it before the domain is open.
 * @param [in] real_open  uct_md_open() of the running UCX.
 *
 * @return What @a real_open returns.
 */
ucs_status_t uct_door_md_open(uct_component_h component, const char *md_name,
                              const uct_md_config_t *config, uct_md_h *md_p,
                              uct_abi_md_open_func_t real_open);


/**
 * UCP has read its options: switch its own registration cache off, if a helper
 * will come and the user has not said otherwise (environment or ucx.conf).
 *
 * @param [in] config  From ucp_config_read().
 */
void uct_door_ucp_config(void *config);


/** @return Nonzero if environment or ucx.conf ask for the helper or for the
 *          software NIC, and they can be had with this UCX. */
int uct_door_is_asked_for(void);


/**
 * Way in for a plugin: from now on domains of @a component are opened by
 * @ref uct_door_md_open, if the environment or ucx.conf asks for anything.
 * Called by a plugin's constructor, under UCX's lock of its modules.
 *
 * @param [in] component  Its name, as "ib".
 *
 * @return Nonzero if they are.
 */
int uct_door_plug(const char *component);


/** The process's first thread has left without ending the process. May be
 *  called more than once, from any thread. */
void uct_door_leader_left(void);

END_C_DECLS

#endif
