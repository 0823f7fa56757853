/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options of the layer, by the environment */

#define MPI_LAYER_ENV "HELPER_MD_PIPELINE_"

typedef struct mpi_layer_size_option {
    const char *name;
    size_t     *value;
    size_t     min, max;
    const char *allowed;
} mpi_layer_size_option_t;

static int mpi_layer_option_refuse(const char *name, const char *value,
                                   const char *allowed)
{
    fprintf(stderr, MPI_PIPELINE_LINE "%s%s='%s' is not allowed; allowed: %s; "
                    "all stays with the MPI\n", MPI_LAYER_ENV, name, value,
            allowed);
    return 0;
}

static const char *mpi_layer_option_get(const char *name)
{
    char variable[64];
    const char *value;

    snprintf(variable, sizeof(variable), "%s%s", MPI_LAYER_ENV, name);
    value = getenv(variable);
    return ((value == NULL) || (*value == '\0')) ? NULL : value;
}

/* A whole number with an optional K, M or G */
static int mpi_layer_option_parse(const char *text, size_t *value)
{
    static const char units[] = "KMG";
    const char *unit;
    unsigned long number;
    unsigned shift = 0;
    char *end;

    if ((*text < '0') || (*text > '9')) {
        return 0;
    }
    errno  = 0;
    number = strtoul(text, &end, 10);
    if (*end != '\0') {
        unit = strchr(units, *end & ~0x20);
        if ((unit == NULL) || (end[1] != '\0')) {
            return 0;
        }
        shift = 10 * (unsigned)(unit - units + 1);
    }
    *value = number << shift;
    return (errno == 0) && ((*value >> shift) == number);
}

static int mpi_layer_option_size(const mpi_layer_size_option_t *option)
{
    const char *text = mpi_layer_option_get(option->name);
    size_t value;

    if (text == NULL) {
        return 1;
    }
    if (!mpi_layer_option_parse(text, &value) || (value < option->min) ||
        (value > option->max)) {
        return mpi_layer_option_refuse(option->name, text, option->allowed);
    }
    *option->value = value;
    return 1;
}

static int mpi_layer_option_mode(ucx_pipeline_mode_t *mode)
{
    static const char *const names[] = {"pipeline", "cache", "copy"};
    const char *text                 = mpi_layer_option_get("MODE");
    unsigned i;

    if (text == NULL) {
        return 1;
    }
    for (i = 0; i < sizeof(names) / sizeof(*names); ++i) {
        if (!strcmp(text, names[i])) {
            *mode = (ucx_pipeline_mode_t)i;
            return 1;
        }
    }
    return mpi_layer_option_refuse("MODE", text, "pipeline, cache or copy");
}

static int mpi_layer_option_verbose(void)
{
    const char *text = mpi_layer_option_get("VERBOSE");

    if ((text != NULL) && strcmp(text, "y") && strcmp(text, "n")) {
        return mpi_layer_option_refuse("VERBOSE", text, "y or n");
    }
    mpi_layer.verbose = (text != NULL) && !strcmp(text, "y");
    return 1;
}

int mpi_layer_options_read(mpi_layer_options_t *options)
{
    ucx_pipeline_options_t *pipeline = &options->pipeline;
    size_t depth;
    const mpi_layer_size_option_t sizes[] = {
        {"MIN_SIZE", &options->min_bytes, 65537, SIZE_MAX,
         "bytes above 64K, with an optional K, M or G"},
        {"EAGER", &pipeline->eager, 128, 65536, "bytes from 128 to 64K"},
        {"RDMA_OFFSET", &pipeline->rdma_offset, 0, SIZE_MAX,
         "bytes, with an optional K, M or G"},
        {"FRAGMENT", &pipeline->fragment, 4096, (size_t)1 << 40,
         "a power of two of bytes from 4K on"},
        {"DEPTH", &depth, 1, 1024, "1 to 1024"},
        {"CACHE_BYTES", &pipeline->cache_bytes, 0, SIZE_MAX,
         "bytes, with an optional K, M or G"}
    };
    unsigned i;

    ucx_pipeline_options_init(pipeline);
    options->min_bytes = MPI_LAYER_MIN_BYTES;
    depth              = pipeline->depth;
    for (i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
        if (!mpi_layer_option_size(&sizes[i])) {
            return 0;
        }
    }
    pipeline->depth = (unsigned)depth;
    if ((pipeline->fragment & (pipeline->fragment - 1)) != 0) {
        return mpi_layer_option_refuse("FRAGMENT",
                                       mpi_layer_option_get("FRAGMENT"),
                                       sizes[3].allowed);
    }
    return mpi_layer_option_mode(&pipeline->mode) && mpi_layer_option_verbose();
}
