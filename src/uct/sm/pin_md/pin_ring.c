/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/mem/own_memory.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>

static ucs_status_t uct_pin_ring_refused(const char *what, int error)
{
    if (error == ENOMEM) {
        ucs_warn("pin_md: %s: %s, memory will not be pinned", what,
                 strerror(error));
        return UCS_ERR_NO_MEMORY;
    }

    ucs_warn("pin_md: %s refused: %s%s, memory will not be pinned", what,
             strerror(error),
             (error == EPERM) ? " (kernel.io_uring_disabled or seccomp)" :
             (error == EINVAL) ? " (Linux 5.19 or later is needed)" : "");
    return UCS_ERR_UNSUPPORTED;
}

static ucs_status_t uct_pin_ring_create_table(uct_pin_ring_t *ring)
{
    struct io_uring_rsrc_register table = {
        .nr    = ring->num_slots,
        .flags = IORING_RSRC_REGISTER_SPARSE
    };
    int ret;

    ret = io_uring_register(ucs_own_fd_number(&ring->own),
                            IORING_REGISTER_BUFFERS2, &table, sizeof(table));
    return (ret < 0) ? uct_pin_ring_refused("io_uring buffer table", -ret) :
                       UCS_OK;
}

/* The lowest slot on top: the kernel looks through the used part of the table
 * when it accounts huge pages */
static ucs_status_t uct_pin_ring_init_slots(uct_pin_ring_t *ring)
{
    unsigned i;

    ring->free_slots = ucs_own_alloc(ring->num_slots * sizeof(*ring->free_slots));
    if (ring->free_slots == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < ring->num_slots; ++i) {
        ring->free_slots[i] = ring->num_slots - 1 - i;
    }

    ring->num_free = ring->num_slots;
    return UCS_OK;
}

ucs_status_t uct_pin_ring_init(uct_pin_ring_t *ring, unsigned num_slots,
                               int has_view)
{
    struct io_uring_params params = {};
    ucs_status_t status;
    int ret;

    /* Only the descriptor is wanted: without a view the queues are never
     * mapped, so that nothing of the ring is in the address space that a fork
     * copies */
    ret = io_uring_setup(1, &params);
    if (ret < 0) {
        return uct_pin_ring_refused("io_uring", -ret);
    }
    if (!ucs_own_fd_set(&ring->own, ret)) {
        return uct_pin_ring_refused("io_uring", errno);
    }

    ring->view      = NULL;
    ring->num_slots = num_slots;
    status          = uct_pin_ring_create_table(ring);
    if (status != UCS_OK) {
        goto err_close;
    }

    status = uct_pin_ring_init_slots(ring);
    if (status != UCS_OK) {
        goto err_close;
    }

    ucs_store_relaxed(&ring->busy, 0);
    if (!has_view) {
        return UCS_OK;
    }

    ret = uct_pin_view_create(&ring->own, &params, &ring->view);
    if (ret < 0) {
        status = uct_pin_ring_refused("reading through an io_uring", -ret);
        goto err_free_slots;
    }

    return UCS_OK;

err_free_slots:
    ucs_own_free(ring->free_slots);
err_close:
    ucs_own_fd_close(&ring->own);
    return status;
}

void uct_pin_ring_cleanup(uct_pin_ring_t *ring)
{
    int ret;

    /* Closing the descriptor alone would keep the pins until a forked child
     * has closed its copy, and releases them late even without one */
    ret = io_uring_register(ucs_own_fd_get(&ring->own),
                            IORING_UNREGISTER_BUFFERS, NULL, 0);
    if ((ret < 0) && (ret != -EBADF)) {
        ucs_helper_log_plain(UCS_LOG_LEVEL_DIAG,
                             "pin_md: releasing the buffer table: %s",
                             strerror(-ret));
    }

    if (ring->view != NULL) {
        uct_pin_view_destroy(ring->view);
        ring->view = NULL;
    }
    uct_pin_ring_abandon(ring);
}

void uct_pin_ring_abandon(uct_pin_ring_t *ring)
{
    if (ring->view != NULL) {
        uct_pin_view_abandon(ring->view);
    }
    ucs_own_free(ring->free_slots);
    ucs_own_fd_close(&ring->own);
}

int uct_pin_ring_pin(uct_pin_ring_t *ring, uint16_t slot, void *address,
                     size_t length)
{
    struct iovec iov                  = {address, length};
    uint64_t no_tag                   = 0;
    struct io_uring_rsrc_update2 args = {
        .offset = slot,
        .data   = (uintptr_t)&iov,
        .tags   = (uintptr_t)&no_tag,
        .nr     = 1
    };
    int ret;

    ucs_add_relaxed(&ring->busy, 1);
    do {
        ret = io_uring_register(ucs_own_fd_get(&ring->own),
                                IORING_REGISTER_BUFFERS_UPDATE, &args,
                                sizeof(args));
    } while (ret == -EINTR);
    ucs_sub_relaxed(&ring->busy, 1);

    /* Another file in place of the ring refuses in its own way */
    if ((ret < 0) && (ucs_own_fd_get(&ring->own) < 0)) {
        return -EBADF;
    }
    /* The kernel returns the number of slots that it has updated */
    return (ret == 1) ? 0 : (ret < 0) ? ret : -EIO;
}
