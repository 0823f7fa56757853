/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <stddef.h>

/* What the oracle loads for a buffer in .bss and unloads again */

char oracle_bss_buffer[64 << 10];
const size_t oracle_bss_length = sizeof(oracle_bss_buffer);
