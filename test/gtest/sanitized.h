/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SANITIZED_H_
#define SANITIZED_H_

/* How many of @a all rounds that differ by their seed alone, in one thread: a
 * sanitizer makes one take up to 60 times as long, and the one that looks for
 * races finds none there */
constexpr unsigned seeds_of(unsigned all)
{
#if defined(__SANITIZE_THREAD__)
    return all / 20;
#elif defined(__SANITIZE_ADDRESS__)
    return all / 4;
#else
    return all;
#endif
}

/* For what a sanitizer's own allocator and threads hide */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#  define SKIP_IF_SANITIZED() GTEST_SKIP() << "a sanitizer has its own memory"
#else
#  define SKIP_IF_SANITIZED() ((void)0)
#endif

#endif
