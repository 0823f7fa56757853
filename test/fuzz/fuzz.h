/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef FUZZ_H_
#define FUZZ_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** libFuzzer's entry of each target. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(_is_true) \
    do { \
        if (!(_is_true)) { \
            abort(); \
        } \
    } while (0)

#endif
