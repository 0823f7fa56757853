/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Bytes that each rank lends the others of one window, in all (M). Half: more
 *  misses where the ranks' working sets of this rank's memory are larger.
 *  Double: twice as much may be pinned. */
#define FIREHOSE_MPI_MEMORY (64ul << 20)

int firehose_mpi_option(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return (value == NULL) ? otherwise : (strchr("yY1", value[0]) != NULL);
}

/* Bytes, perhaps with K, M or G behind; what is no number is told once */
size_t firehose_mpi_memory(void)
{
    const char *value = getenv("FIREHOSE_MPI_MEMORY"), *at;
    static const char units[] = "kKmMgG";
    unsigned long long number;
    char *end;

    if (value == NULL) {
        return FIREHOSE_MPI_MEMORY;
    }
    number = strtoull(value, &end, 10);
    at     = (*end == '\0') ? NULL : strchr(units, *end);
    if ((end == value) || (*value == '-') || ((*end != '\0') && (at == NULL)) ||
        ((at != NULL) && (end[1] != '\0'))) {
        fprintf(stderr, "firehose: FIREHOSE_MPI_MEMORY=%s: a number of "
                        "bytes, perhaps with k, m or g behind; taken as %lu\n",
                value, FIREHOSE_MPI_MEMORY);
        return FIREHOSE_MPI_MEMORY;
    }
    return number << ((at == NULL) ? 0 : 10 * ((at - units) / 2 + 1));
}
