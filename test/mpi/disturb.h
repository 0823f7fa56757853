/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_MPI_DISTURB_H_
#define TEST_MPI_DISTURB_H_

#include <stddef.h>

/**
 * @file disturb.h
 *
 * What a program does to its buffers between two messages: each way is correct
 * and leaves a buffer that can be written at the same address.
 */

/** A pair of buffers, and what the ways need to know. */
typedef struct disturb {
    unsigned char *send;
    unsigned char *recv;
    size_t        size;   /**< of each, whole pages */
    unsigned      round;
    int           raw;    /**< by system calls, behind the C library */
    int           fd;     /**< of a way that needs one, -1 */
    int           is_reserved; /**< recv: and as much behind it */
} disturb_t;

typedef struct disturb_way {
    const char *name;
    /** NULL: the way is to exchange something else, see disturb.c. */
    void       (*run)(disturb_t *d);
} disturb_way_t;

/** Ends with a NULL. */
extern const disturb_way_t disturb_ways[];

/** Private anonymous memory at @a address, NULL: anywhere. */
void *disturb_map(const disturb_t *d, void *address, size_t size, int flags);

/** The counterpart. */
void disturb_unmap(const disturb_t *d, void *address, size_t size);

#endif
