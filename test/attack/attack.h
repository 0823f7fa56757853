/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_ATTACK_H_
#define TEST_ATTACK_H_

#include "../newer_kernel.h"

#include <stddef.h>
#include <uct/api/uct.h>

/**
 * @file attack.h
 *
 * Programs that do to their memory what a program may do, while it is
 * communicated. Each is correct, knows of no helper, and writes the same with
 * it and without.
 */

#define ATTACK_PAGE 4096ul
#define ATTACK_SIZE (1ul << 20)

/** A program: writes what has come out, or calls @ref attack_die. */
typedef void (*attack_func_t)(uct_md_h md);

typedef struct attack {
    const char          *name;
    attack_func_t       run;
    int                 opens; /**< it opens the domain itself, and is given NULL */
    const struct attack *next;
} attack_t;

/** A program of this name: what follows is its body, to which @a _md is given. */
#define ATTACK(_name, _md) ATTACK_DEFINE(_name, _md, 0)

/** The same of one that runs before the domain is opened, and is given NULL. */
#define ATTACK_BEFORE(_name, _md) ATTACK_DEFINE(_name, _md, 1)

#define ATTACK_DEFINE(_name, _md, _opens) \
    static void run_##_name(uct_md_h _md); \
    __attribute__((constructor)) static void add_##_name(void) \
    { \
        static attack_t attack = {#_name, run_##_name, _opens, NULL}; \
        attack_add(&attack); \
    } \
    static void run_##_name(uct_md_h _md)

/** Before main(): puts it into the list. */
void attack_add(attack_t *attack);

/** Ends the program with exit code 1: something that has nothing to do with the
 *  helper has failed, or all the same what is tested. */
__attribute__((noreturn, format(printf, 1, 2)))
void attack_die(const char *format, ...);

/** @return The domain that is attacked, opened once more. */
uct_md_h attack_open(void);

/** @return What registering the range, and giving it back, came to. */
ucs_status_t attack_try(uct_md_h md, void *address, size_t length);

/** Fills the range with something new, and communicates it: a registration that
 *  is not of these pages is found by the software NIC. */
void attack_use(uct_md_h md, void *address, size_t length);

/** The same without writing: the caller has, or the contents matter. */
void attack_use_as_is(uct_md_h md, void *address, size_t length);

/** So often, and with so much time between, that each policy has come to a
 *  decision on what is to be kept. */
void attack_use_often(uct_md_h md, void *address, size_t length);

/** A new thread uses new memory some times and has ended. */
void attack_use_in_a_thread(uct_md_h md);

/** Private anonymous memory. */
void *attack_map(size_t length);

/** The same by a raw system call. */
void *attack_map_raw(size_t length);

/** Time for the helper. */
void attack_sleep(unsigned milliseconds);

/** Monotonic clock, in seconds. */
double attack_now(void);

#endif
