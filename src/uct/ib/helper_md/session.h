/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_SESSION_H_
#define UCT_HELPER_SESSION_H_

#include <ucs/sys/proc/thread.h>
#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * What all domains of a process share: the helper thread, the report, and the handlers
 * of fork and exit. Domains that are closed and opened again add up.
 */

BEGIN_C_DECLS

typedef struct uct_helper_md uct_helper_md_t;

/** Release of the running UCX, for the report. Before the first domain. */
void uct_helper_session_set_version(const char *version);

/**
 * Begin a session in this process, if there is none; a child leaves its
 * parent's.
 *
 * @return The number of the process, see process.h.
 */
uint32_t uct_helper_session_process(void);

/**
 * Give a domain a job of the process's helper thread, and the process's slot in the
 * node's ledger: sets md->thread, md->job and md->node. The first domain's options decide.
 *
 * @param [in] step  What it runs for @a md.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_helper_session_join(uct_helper_md_t *md, ucs_step_func_t step);

/** The counterpart: the last domain stops the thread, joins it, and leaves the ledger. */
void uct_helper_session_part(uct_helper_md_t *md);

/** @return Bytes that all domains would leave pinned: one price for all of them. */
_Atomic(uint64_t) *uct_helper_session_leave_bytes(void);

/** Drop what all domains hold idle, when the application lacks a shared
 *  resource such as lockable memory. */
void uct_helper_session_yield(void);

/** Add a note to the report. */
void uct_helper_session_note(const char *note);

/**
 * A domain has been decorated. The first one decides where the report goes, and
 * logs one warning if it cannot be written there.
 */
void uct_helper_session_enter(uct_helper_md_t *md);

/**
 * A domain is closing: its job has stopped, its cache exists. The last open
 * domain writes the report.
 */
void uct_helper_session_leave(uct_helper_md_t *md);

END_C_DECLS

#endif
