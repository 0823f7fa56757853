/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_DOOR_ATTACH_H_
#define UCT_DOOR_ATTACH_H_

#include <uct/base/uct_abi.h>

/*
 * Entry point of both doors: opens a memory domain as uct_md_open() does, and
 * attaches what the options ask for. If that fails, the domain is opened as
 * without the helper, and one log line says why.
 */

/**
 * Open a memory domain and decorate it.
 *
 * Components "ib" and, with UCX_MD_PIN, "cma" are decorated. UCX's own
 * registration cache inside the IB domain (up to 1.15) is switched off by
 * setting REG_METHODS to "direct" in @a config, unless the user has set it.
 *
 * @param [in] config     From uct_md_config_read(). Its REG_METHODS may be
 *                        changed although it is const: only there can it be set
 *                        before the domain is open.
 * @param [in] real_open  uct_md_open() of the running UCX.
 *
 * @return What @a real_open returns.
 */
ucs_status_t uct_door_md_open(uct_component_h component, const char *md_name,
                              const uct_md_config_t *config, uct_md_h *md_p,
                              uct_abi_md_open_func_t real_open);

/**
 * UCP has read its options: switch its registration cache off, if there will be
 * a helper and the user has not set the option (environment or ucx.conf).
 *
 * @param [in] config  From ucp_config_read().
 */
void uct_door_ucp_config(void *config);

/** @return Nonzero if environment or ucx.conf ask for the helper or the
 *          software NIC, and this UCX is known. */
int uct_door_is_asked_for(void);

/**
 * Entry point of a plugin: from now on @ref uct_door_md_open opens domains of
 * @a component, if the environment or ucx.conf asks for the helper or the
 * software NIC. Called by a plugin's constructor, under UCX's lock of its
 * modules.
 *
 * @param [in] component  Its name, as "ib".
 *
 * @return Nonzero if so.
 */
int uct_door_plug(const char *component);

/** The process's first thread has left without ending the process. May be
 *  called more than once, from any thread. */
void uct_door_leader_left(void);

/* ucp_cache.c: UCP's registration cache above the domain, which hides registrations.
 * In use from 1.14 on, and in 1.13 with UCX_PROTO_ENABLE=y. */

/**
 * Switch it off in the options that UCP has just read, if they have UCX's
 * default. Not thread-safe, as UCP's options are not.
 *
 * @param [in] config  From ucp_config_read().
 */
void uct_door_ucp_cache_disable(void *config);

/** A helper has been attached: if the cache is on, say once a process, in one
 *  line, what to set. */
void uct_door_ucp_cache_report(void);

#endif
