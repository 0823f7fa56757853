/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_PIN_MD_H_
#define UCT_PIN_MD_H_

#include <uct/api/uct.h>

/*
 * The software NIC: a decorator that makes a memory domain pin for real.
 *
 * UCX's `cma` domain copies through virtual addresses and needs no
 * registration. Under this decorator it asks UCP for one on both sides of a
 * large message, and each registration takes a long-term pin of the pages with
 * an io_uring registered buffer. So a job on one machine without RDMA hardware
 * pays a real registration cost and shows real `VmPin` in /proc/self/status.
 * The data still move through virtual addresses: a correct result over this
 * domain says nothing about stale registrations.
 *
 * Differences from a verbs device that a user can meet:
 * - io_uring charges pinned pages of processes without CAP_IPC_LOCK to
 *   RLIMIT_MEMLOCK *of the user*, all processes together; verbs charges them
 *   per process.
 * - The kernel charges a whole huge page to `VmPin` when a part of it is
 *   pinned; what the domain counts is the part.
 * - Older kernels (6.1, for one) release a page up to a second after its
 *   deregistration. Memory then counts against the memlock limit for that
 *   long.
 */

BEGIN_C_DECLS

/** The io_uring limit on registered buffers of one table. */
#define UCT_PIN_MD_MAX_REGIONS 16384

/** Options of one domain. */
typedef struct uct_pin_config {
    /**
     * MODELLED cost added to each registration, in nanoseconds, not below 0.
     * It stands for a NIC whose registration is dearer than io_uring's: the
     * caller is kept busy for base + pages * per_page after the real pin, and
     * for a third of that after the real unpin. Whatever reports times taken
     * with a nonzero cost must label them as modelled.
     */
    double   cost_base_ns;

    double   cost_per_page_ns; /**< likewise */

    /** Regions that may be registered at once, as a device's limit on memory
     *  regions. 0 or more than @ref UCT_PIN_MD_MAX_REGIONS: that many. */
    unsigned max_regions;

    /**
     * At the end of each use (mem_dereg()), @ref uct_pin_md_compare. A
     * registration that outlived its mapping shows as a difference, and the
     * process is aborted (@ref uct_pin_md_stale). Equal data prove nothing.
     */
    int      verify;

    /**
     * What query() says that a registration costs, in nanoseconds, not below 0;
     * 0: what was measured at the start, with the modelled cost. UCX chooses its
     * protocols by that figure, and what is measured differs from run to run.
     */
    double   told_ns;

    /** Regions that all processes of the user on this node may have registered at
     *  once, as a device shared by them; 0: any number. */
    uint64_t node_regions;
} uct_pin_config_t;

/** First difference between a registration and its virtual address. */
typedef struct uct_pin_difference {
    uintptr_t     address; /**< of the first byte that differs */
    unsigned char seen;    /**< that byte through the registration */
    unsigned char shown;   /**< and through the virtual address */
} uct_pin_difference_t;

/**
 * Decorate an open memory domain. Its operation table is replaced by a private
 * copy; closing the domain through that copy undoes everything, and then
 * closes the domain below. Other decorators may be put on top.
 *
 * mem_reg() then fails like a verbs device does, with the message at error
 * level, or at debug level under UCT_MD_MEM_FLAG_HIDE_ERRORS:
 * - UCS_ERR_NO_MEMORY: max_regions or node_regions reached, or RLIMIT_MEMLOCK
 *   exceeded.
 * - UCS_ERR_IO_ERROR: a page is missing or not writable.
 * - UCS_ERR_INVALID_PARAM: no length, or the range wraps.
 *
 * Registrations and deregistrations may come from any thread at any time. One
 * does not wait for another of a larger size class.
 *
 * A forked child keeps the domain, but pins nothing: its registrations succeed
 * without a pin, and its deregistrations leave the parent's pins alone.
 *
 * @param [in] md      Domain that no other thread uses yet. Stays UCX's.
 * @param [in] config  Options, copied.
 *
 * @return UCS_OK
 * @return UCS_ERR_INVALID_PARAM   A cost is negative or not a number.
 * @return UCS_ERR_ALREADY_EXISTS  The domain is decorated already.
 * @return UCS_ERR_UNSUPPORTED     io_uring is refused or too old, or this UCX
 *                                 is not known. One line of warning has been
 *                                 logged.
 * @return UCS_ERR_EXCEEDS_LIMIT   Too many decorated domains in the process.
 * @return UCS_ERR_NO_MEMORY       No memory for the domain or its rings.
 * @return UCS_ERR_IO_ERROR        The processes' registrations cannot be counted,
 *                                 which one line of warning has said why.
 *         After any error the domain is as it was.
 */
ucs_status_t uct_pin_md_attach(uct_md_h md, const uct_pin_config_t *config);

/* Of any open domain, from any thread */

/**
 * From now on another decorator decides when a use ends, and calls
 * @ref uct_pin_md_compare and @ref uct_pin_md_stale itself: mem_dereg() does
 * not compare any more. Before the domain is used.
 */
void uct_pin_md_delegate_verify(uct_md_h md);

/**
 * Compare what is seen through a registration with what the virtual address
 * shows: all pages that can be read. The caller keeps the registration from
 * being undone. Bytes that somebody writes meanwhile do not count: a difference
 * must last.
 *
 * @param [in]  memh        Handle of this domain's mem_reg().
 * @param [out] difference  The first one, set if there is one.
 *
 * @return Nonzero if they differ. 0 if they are equal, and always without
 *         config->verify or in a forked child.
 */
int uct_pin_md_compare(uct_md_h md, uct_mem_h memh,
                       uct_pin_difference_t *difference);

/** A difference was found where there must be none: one line on the error level, then
 *  abort(). */
void uct_pin_md_stale(uct_md_h md, uct_mem_h memh,
                      const uct_pin_difference_t *difference);

END_C_DECLS

#endif
