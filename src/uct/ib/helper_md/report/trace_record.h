/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_TRACE_RECORD_H_
#define UCT_HELPER_TRACE_RECORD_H_

#include <ucs/predict/operation.h>
#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>
#include <uct/api/uct.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Records what a process registers, releases and unmaps, in the format of
 * <ucs/trace/trace.h>, for all of its domains together. Threads that
 * communicate push entries into a lock-less ring; the recorder's thread encodes
 * and writes them. The trace counts what did not fit. The file is a whole trace
 * whenever the writer sleeps. Switched off, it costs a look at a flag in each
 * memory event.
 */

BEGIN_C_DECLS

/** Entries that fit into the ring while the recorder sleeps. */
#define UCT_HELPER_TRACE_RING 65536u

extern _Atomic(int) uct_helper_trace_is_on;

/**
 * Begin to record into @a pattern (%h, %p and %r expand). When the process
 * records already, nothing happens.
 *
 * @return UCS_OK, or after one line of warning the reason why not: the
 *         process then runs without a trace.
 */
ucs_status_t uct_helper_trace_start(const char *pattern);

/** Bring the file up to date, unless that is being done. Not together with start and stop. */
void uct_helper_trace_sync(void);

/** Write what is left, and close the file, at the end of the process (@ref
 *  ucs_thread_end). Idempotent; not together with other calls of start and stop. */
void uct_helper_trace_stop(void);

/**
 * A use of a registration began. Wait-free but for other producers' steps, no
 * allocation; any thread.
 *
 * @param [in] time_ns    When it was asked for, @ref ucs_clock_now.
 * @param [in] signature  Of the call path.
 */
void uct_helper_trace_use(uint64_t time_ns, uint64_t address, size_t length,
                          unsigned access, uint64_t signature, uct_mem_h memh);

/** The use was given back at @a time_ns. As above. */
void uct_helper_trace_release(uint64_t time_ns, uct_mem_h memh);

/** Memory is about to be unmapped. As above; from a memory event. */
void uct_helper_trace_unmap(uint64_t address, size_t length);

/** An operation was heard at UCP's entry points. As above. */
void uct_helper_trace_operation(const ucs_operation_t *operation);

/** In a forked child: file and thread stay the parent's. */
void uct_helper_trace_forget(void);

END_C_DECLS

#endif
