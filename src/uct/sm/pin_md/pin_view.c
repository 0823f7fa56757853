/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>

/* What an empty pipe of the default size takes at once */
#define UCT_PIN_VIEW_CHUNK (64ul << 10)

struct uct_pin_view {
    /* Protects the queues and the content of the pipe, which is empty between
     * two calls. A leaf. */
    pthread_mutex_t lock;
    struct io_uring ring;
    ucs_own_fd_t    *own;    /* The ring's */
    ucs_own_fd_t    pipe[2]; /* Read end, write end */
};

/* liburing closes the descriptor with the queues, but the ring goes on */
static void uct_pin_view_unmap(uct_pin_view_h view)
{
    view->ring.ring_fd = fcntl(ucs_own_fd_get(view->own), F_DUPFD_CLOEXEC, 0);
    io_uring_queue_exit(&view->ring);
}

static int uct_pin_view_open_pipe(uct_pin_view_h view)
{
    int pipe[2];

    /* Nonblocking, or the kernel would hand each transfer to a worker thread
     * of its own */
    if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        return -errno;
    }
    return (ucs_own_fd_set(&view->pipe[0], pipe[0]) &&
            ucs_own_fd_set(&view->pipe[1], pipe[1])) ? 0 : -EBADF;
}

static void uct_pin_view_close_pipe(uct_pin_view_h view)
{
    ucs_own_fd_close(&view->pipe[0]);
    ucs_own_fd_close(&view->pipe[1]);
}

int uct_pin_view_create(ucs_own_fd_t *own, struct io_uring_params *params,
                        uct_pin_view_h *view_p)
{
    uct_pin_view_h view = ucs_own_alloc(sizeof(*view));
    int ret;

    if (view == NULL) {
        return -ENOMEM;
    }

    view->own = own;
    ucs_own_fd_forget(&view->pipe[0]);
    ucs_own_fd_forget(&view->pipe[1]);
    ret = uct_pin_view_open_pipe(view);
    if (ret < 0) {
        goto err_close;
    }

    ret = io_uring_queue_mmap(ucs_own_fd_number(own), params, &view->ring);
    if (ret < 0) {
        goto err_close;
    }

    /* liburing 2.9 leaves it at 0, and would call descriptor 0 */
    view->ring.enter_ring_fd = ucs_own_fd_number(own);

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
    uct_pin_view_close_pipe(view);
    ucs_own_free(view);
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
    uct_pin_view_close_pipe(view);
    ucs_own_free(view);
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
        io_uring_prep_read_fixed(sqe, ucs_own_fd_number(&view->pipe[0]),
                                 (void*)address, length, 0, slot);
    } else {
        io_uring_prep_write_fixed(sqe, ucs_own_fd_number(&view->pipe[1]),
                                  (void*)address, length, 0, slot);
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
                                   uintptr_t address, char *data, size_t length)
{
    int ret = uct_pin_view_move(view, UCT_PIN_VIEW_READ, slot, address, length);
    int drained;

    if (ret < 0) {
        return ret;
    }

    drained = uct_pin_view_drain(ucs_own_fd_number(&view->pipe[0]), data, ret);
    return (drained < 0) ? drained : ret;
}

static int uct_pin_view_write_chunk(uct_pin_view_h view, uint16_t slot,
                                    uintptr_t address, const char *data,
                                    size_t length)
{
    size_t done = 0;
    ssize_t filled;
    int ret;

    filled = write(ucs_own_fd_number(&view->pipe[1]), data, length);
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

/* The program may have closed any of them, or put a file of its own there */
static int uct_pin_view_check(uct_pin_view_h view)
{
    return ((ucs_own_fd_get(view->own) < 0) ||
            (ucs_own_fd_get(&view->pipe[0]) < 0) ||
            (ucs_own_fd_get(&view->pipe[1]) < 0)) ? -EBADF : 0;
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
        ret   = uct_pin_view_check(view);
        if (ret < 0) {
            break;
        }
        ret   = (way == UCT_PIN_VIEW_READ) ?
                        uct_pin_view_read_chunk(view, slot, address + done,
                                                (char*)data + done, chunk) :
                        uct_pin_view_write_chunk(view, slot, address + done,
                                                 (char*)data + done, chunk);
    }
    pthread_mutex_unlock(&view->lock);
    return (ret < 0) ? ret : 0;
}
