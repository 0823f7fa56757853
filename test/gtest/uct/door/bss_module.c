/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* A library whose buffer the loader maps and unmaps with calls of its own */
__attribute__((visibility("default"))) char test_bss_buffer[1 << 20];
