/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "alloc_count.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
      __has_feature(memory_sanitizer)
#    define ALLOC_COUNT_SANITIZER 1
#  endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define ALLOC_COUNT_SANITIZER 1
#endif

/* Static TLS: an access must not allocate. Volatile: the compiler takes it that
 * a malloc changes no variable. */
static __thread volatile uint64_t count
        __attribute__((tls_model("initial-exec")));
static __thread volatile int64_t live
        __attribute__((tls_model("initial-exec")));

uint64_t alloc_count()
{
    return count;
}

int64_t alloc_count_live()
{
    return live;
}

bool alloc_count_works()
{
    uint64_t before = count;
    void *volatile p = malloc(1);

    free(p);
    return count > before;
}

#ifdef ALLOC_COUNT_SANITIZER

/* From the sanitizers' allocator_interface.h, which gcc may come without */
extern "C" int __sanitizer_install_malloc_and_free_hooks(
        void (*malloc_hook)(const volatile void *, size_t),
        void (*free_hook)(const volatile void *));

static void on_malloc(const volatile void *, size_t)
{
    count = count + 1;
}

static void on_free(const volatile void *)
{
}

/* Own memory is of that allocator then */
extern "C" void *__real_ucs_own_alloc(size_t size);
extern "C" void __real_ucs_own_free(void *p);

extern "C" void *__wrap_ucs_own_alloc(size_t size)
{
    return __real_ucs_own_alloc(size);
}

extern "C" void __wrap_ucs_own_free(void *p)
{
    __real_ucs_own_free(p);
}

static int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc,
                                                                 on_free);

bool alloc_count_fail_next(unsigned)
{
    return installed < 0; /* never: the hooks cannot refuse */
}

#else

/* The allocation to refuse, as a count; 0: none */
static __thread volatile uint64_t refused
        __attribute__((tls_model("initial-exec")));

bool alloc_count_fail_next(unsigned after)
{
    if (!alloc_count_works()) {
        return false;
    }
    refused = count + 1 + after;
    return true;
}

static bool refuse()
{
    count = count + 1;
    if (count == refused) {
        errno = ENOMEM;
        return true;
    }

    live = live + 1;
    return false;
}

/* All of the family, so that a test of the heap sees both ends of each
 * block or neither. */
#define ALLOC_COUNT_WEAK __attribute__((weak, visibility("default")))

extern "C" {

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

ALLOC_COUNT_WEAK void *malloc(size_t size) noexcept
{
    return refuse() ? nullptr : __libc_malloc(size);
}

ALLOC_COUNT_WEAK void *calloc(size_t number, size_t size) noexcept
{
    return refuse() ? nullptr : __libc_calloc(number, size);
}

ALLOC_COUNT_WEAK void *realloc(void *p, size_t size) noexcept
{
    if (refuse()) {
        return nullptr;
    }
    live = live - (p != nullptr);
    return __libc_realloc(p, size);
}

ALLOC_COUNT_WEAK void *memalign(size_t alignment, size_t size) noexcept
{
    return refuse() ? nullptr : __libc_memalign(alignment, size);
}

ALLOC_COUNT_WEAK void *aligned_alloc(size_t alignment, size_t size) noexcept
{
    return refuse() ? nullptr : __libc_memalign(alignment, size);
}

ALLOC_COUNT_WEAK int posix_memalign(void **p, size_t alignment,
                                    size_t size) noexcept
{
    int saved_errno = errno;
    void *block     = refuse() ? nullptr : __libc_memalign(alignment, size);

    errno = saved_errno;
    if (block == nullptr) {
        return ENOMEM;
    }

    *p = block;
    return 0;
}

ALLOC_COUNT_WEAK void free(void *p) noexcept
{
    live = live - (p != nullptr);
    __libc_free(p);
}

/* The linker puts these in front of own memory (own_memory.h) */
void *__real_ucs_own_alloc(size_t size);
void __real_ucs_own_free(void *p);

void *__wrap_ucs_own_alloc(size_t size)
{
    return refuse() ? nullptr : __real_ucs_own_alloc(size);
}

void __wrap_ucs_own_free(void *p)
{
    live = live - (p != nullptr);
    __real_ucs_own_free(p);
}

} // extern "C"

#endif
