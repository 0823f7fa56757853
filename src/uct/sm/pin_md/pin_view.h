/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_PIN_VIEW_H_
#define UCT_PIN_VIEW_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/type/status.h>
#include <stddef.h>
#include <stdint.h>

/**
 * @file pin_view.h
 *
 * What a device would see: reads and writes through the registered buffers of
 * a ring. The kernel moves the data between the pinned pages and a pipe, so
 * the address of a buffer only says where in it, and what is mapped there by
 * now does not matter. A testing aid; a ring has one only when asked for.
 */

BEGIN_C_DECLS

struct io_uring_params;

typedef struct uct_pin_view *uct_pin_view_h;


/**
 * Map the queues of a ring. They are not passed on to a forked child, which
 * must not use the view.
 *
 * @param [in]  fd      Descriptor of the ring, which must outlive the view.
 * @param [in]  params  As filled by io_uring_setup().
 * @param [out] view_p  Set on success; owned by the caller.
 *
 * @return 0 or a negative errno.
 */
int uct_pin_view_create(ucs_own_fd_t *own, struct io_uring_params *params,
                        uct_pin_view_h *view_p);


/** Release a view. In a forked child: @ref uct_pin_view_abandon. */
void uct_pin_view_destroy(uct_pin_view_h view);


/** In a forked child: drop its descriptors and nothing else. */
void uct_pin_view_abandon(uct_pin_view_h view);


/** From the pinned pages, or into them. */
typedef enum uct_pin_view_way {
    UCT_PIN_VIEW_READ,
    UCT_PIN_VIEW_WRITE
} uct_pin_view_way_t;


/**
 * Read or write pinned pages. From any thread; calls take turns.
 *
 * @param [in] slot     Buffer of the ring.
 * @param [in] address  First byte, an address as it was when registered.
 * @param      data     @a length bytes, which a write leaves alone.
 * @param [in] length   Bytes; the range lies within the buffer.
 *
 * @return 0 or a negative errno.
 */
int uct_pin_view_copy(uct_pin_view_h view, uct_pin_view_way_t way,
                      uint16_t slot, uintptr_t address, void *data,
                      size_t length);

END_C_DECLS

#endif
