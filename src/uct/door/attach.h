/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_DOOR_ATTACH_H_
#define UCT_DOOR_ATTACH_H_

#include <uct/api/uct.h>

/**
 * @file attach.h
 *
 * The way in for every door: opens a memory domain as uct_md_open() does, and
 * puts on it what the options ask for. Nothing ever fails because something
 * cannot be attached: then the domain is opened as without the helper, and one
 * log line says why.
 */

BEGIN_C_DECLS

/** Same as uct_md_open(). */
typedef ucs_status_t (*uct_door_md_open_func_t)(uct_component_h component,
                                                const char *md_name,
                                                const uct_md_config_t *config,
                                                uct_md_h *md_p);


/**
 * Open a memory domain and decorate it.
 *
 * Components "ib" and, with UCX_MD_PIN, "cma" are decorated. UCX's own
 * registration cache inside the IB domain is switched off by setting
 * REG_METHODS to "direct" in @a config, unless the user has set it.
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
                              uct_door_md_open_func_t real_open);


/** The process's first thread has left without ending the process. May be
 *  called more than once, from any thread. */
void uct_door_leader_left(void);

END_C_DECLS

#endif
