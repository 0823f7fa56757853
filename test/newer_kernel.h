/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef NEWER_KERNEL_H_
#define NEWER_KERNEL_H_

#include <sys/mman.h>

/** Of kernels that are newer than the C library. */
#ifndef MADV_COLD
#  define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#  define MADV_PAGEOUT 21
#endif
#ifndef MADV_DONTNEED_LOCKED
#  define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#  define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL
#  define MADV_GUARD_INSTALL 102
#  define MADV_GUARD_REMOVE  103
#endif
#ifndef MREMAP_DONTUNMAP
#  define MREMAP_DONTUNMAP 4
#endif

#endif
