/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <ucs/sys/hash.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

size_t oracle_page;

void oracle_die(const char *what)
{
    fprintf(stderr, "oracle: %s%s%s\n", what, (errno != 0) ? ": " : "",
            (errno != 0) ? strerror(errno) : "");
    _exit(2);
}

/* Any seed is as good as another */
uint64_t oracle_random(oracle_worker_t *worker)
{
    return ucs_hash_random(&worker->random);
}
