/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "pin_view.h"

#include <ucs/sys/math.h>

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* What an empty pipe of the default size takes at once */
#define UCT_PIN_VIEW_CHUNK (64ul << 10)

struct uct_pin_view {
    /* Protects the queues and the content of the pipe, which is empty between
     * two calls. A leaf. */
    pthread_mutex_t lock;
    struct io_uring ring;
    int             pipe[2]; /* Read end, write end */
};


/* liburing closes the descriptor with the queues, but the ring goes on */
static void uct_pin_view_unmap(uct_pin_view_h view)
{
    view->ring.ring_fd = fcntl(view->ring.ring_fd, F_DUPFD_CLOEXEC, 0);
    io_uring_queue_exit(&view->ring);
}

int uct_pin_view_create(int fd, struct io_uring_params *params,
                        uct_pin_view_h *view_p)
{
    uct_pin_view_h view = calloc(1, sizeof(*view));
    int ret;

    if (view == NULL) {
        return -ENOMEM;
    }

    /* Nonblocking, or the kernel would hand each transfer to a worker thread
     * of its own */
    if (pipe2(view->pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        ret = -errno;
        goto err_free;
    }

    ret = io_uring_queue_mmap(fd, params, &view->ring);
    if (ret < 0) {
        goto err_close;
    }

    /* liburing 2.9 leaves it at 0, and would call descriptor 0 */
    view->ring.enter_ring_fd = fd;

    ret = io_uring_ring_dontfork(&view->ring);
    if (ret < 0) {
        goto err_unmap;
    }

    pthread_mutex_init(&view->lock, NULL);
    *view_p = view;
    return 0;

err_unmap:
    uct_pin_view_unmap(view);
err_close:
    close(view->pipe[0]);
    close(view->pipe[1]);
err_free:
    free(view);
    return ret;
}

void uct_pin_view_destroy(uct_pin_view_h view)
{
    uct_pin_view_unmap(view);
    pthread_mutex_destroy(&view->lock);
    uct_pin_view_abandon(view);
}

void uct_pin_view_abandon(uct_pin_view_h view)
{
    close(view->pipe[0]);
    close(view->pipe[1]);
    free(view);
}

/* One transfer between the buffer and the pipe. Under the lock.
 * @return Bytes moved or a negative errno. */
static int uct_pin_view_move(uct_pin_view_h view, uct_pin_view_way_t way,
                             uint16_t slot, uintptr_t address, size_t length)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&view->ring);
    struct io_uring_cqe *cqe;
    int ret;

    if (sqe == NULL) {
        return -EBUSY;
    }

    if (way == UCT_PIN_VIEW_WRITE) {
        io_uring_prep_read_fixed(sqe, view->pipe[0], (void*)address, length,
                                 0, slot);
    } else {
        io_uring_prep_write_fixed(sqe, view->pipe[1], (void*)address, length,
                                  0, slot);
    }
    do {
        ret = io_uring_submit_and_wait(&view->ring, 1);
    } while (ret == -EINTR);
    if (ret < 0) {
        return ret;
    }

    do {
        ret = io_uring_wait_cqe(&view->ring, &cqe);
    } while (ret == -EINTR);
    if (ret < 0) {
        return ret;
    }

    ret = cqe->res;
    io_uring_cqe_seen(&view->ring, cqe);
    return (ret == 0) ? -EIO : ret;
}

/* Take exactly @a length bytes out of the pipe */
static int uct_pin_view_drain(int fd, char *data, size_t length)
{
    ssize_t ret;

    while (length > 0) {
        ret = read(fd, data, length);
        if ((ret < 0) && (errno == EINTR)) {
            continue;
        }
        if (ret <= 0) {
            return (ret < 0) ? -errno : -EIO;
        }
        data   += ret;
        length -= ret;
    }
    return 0;
}

static int uct_pin_view_read_chunk(uct_pin_view_h view, uint16_t slot,
                                   uintptr_t address, char *data,
                                   size_t length)
{
    int ret = uct_pin_view_move(view, UCT_PIN_VIEW_READ, slot, address, length);
    int drained;

    if (ret < 0) {
        return ret;
    }

    drained = uct_pin_view_drain(view->pipe[0], data, ret);
    return (drained < 0) ? drained : ret;
}

static int uct_pin_view_write_chunk(uct_pin_view_h view, uint16_t slot,
                                    uintptr_t address, const char *data,
                                    size_t length)
{
    size_t done = 0;
    ssize_t filled;
    int ret;

    filled = write(view->pipe[1], data, length);
    if (filled <= 0) {
        return (filled < 0) ? -errno : -EIO;
    }

    while (done < (size_t)filled) {
        ret = uct_pin_view_move(view, UCT_PIN_VIEW_WRITE, slot, address + done,
                                filled - done);
        if (ret < 0) {
            return ret;
        }
        done += ret;
    }
    return filled;
}

int uct_pin_view_copy(uct_pin_view_h view, uct_pin_view_way_t way,
                      uint16_t slot, uintptr_t address, void *data,
                      size_t length)
{
    int ret = 0;
    size_t done, chunk;

    pthread_mutex_lock(&view->lock);
    for (done = 0; (done < length) && (ret >= 0); done += (ret > 0) ? ret : 0) {
        chunk = ucs_min(length - done, UCT_PIN_VIEW_CHUNK);
        ret   = (way == UCT_PIN_VIEW_READ) ?
                        uct_pin_view_read_chunk(view, slot, address + done,
                                                (char*)data + done, chunk) :
                        uct_pin_view_write_chunk(view, slot, address + done,
                                                 (char*)data + done, chunk);
    }
    pthread_mutex_unlock(&view->lock);
    return (ret < 0) ? ret : 0;
}
