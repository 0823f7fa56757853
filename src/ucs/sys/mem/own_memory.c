/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/mem/own_memory.h>

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/sync/lock.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A sanitizer only watches blocks of its own allocator */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define UCS_OWN_IS_SANITIZED 1
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
          __has_feature(memory_sanitizer)
#    define UCS_OWN_IS_SANITIZED 1
#  endif
#endif
#ifndef UCS_OWN_IS_SANITIZED
#  define UCS_OWN_IS_SANITIZED 0
#endif

/* Blocks of 128 bytes to 4 KB are cut from pieces of so many bytes; larger ones
 * have pages of their own */
#define UCS_OWN_BLOCK_SHIFT 7
#define UCS_OWN_CLASSES     6
#define UCS_OWN_PIECE       (64ul << 10)

/* In front of each block; a free block's link to the next follows it */
typedef struct ucs_own_head {
    size_t   length; /* of its pages, with this header; 0: a block of a class */
    unsigned index;  /* of that class */
} ucs_own_head_t;

typedef struct ucs_own_class {
    ucs_lock_t     lock;  /* protects the list; a leaf, held for some loads and
                             stores */
    ucs_own_head_t *free;
} ucs_own_class_t;

/* The linker's, of this program or library */
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

/* Unlocks the tables that a library is mapped with, after
 * mlockall(MCL_FUTURE) */
__attribute__((constructor)) static void ucs_own_unlock_tables(void)
{
    uintptr_t mask  = sysconf(_SC_PAGESIZE) - 1;
    uintptr_t start = ((uintptr_t)__bss_start + mask) & ~mask;
    uintptr_t end   = (uintptr_t)_end & ~mask;

    if (end > start) {
        (void)syscall(SYS_munlock, start, end - start);
    }
}

#if UCS_OWN_IS_SANITIZED

void *ucs_own_alloc(size_t size)
{
    size_t length = (size + UCS_OWN_ALIGN - 1) & ~(size_t)(UCS_OWN_ALIGN - 1);
    void *memory  = (length < size) ? NULL :
                                      aligned_alloc(UCS_OWN_ALIGN, length);

    return (memory == NULL) ? NULL : memset(memory, 0, length);
}

void ucs_own_free(void *memory)
{
    free(memory);
}

#else

/* In a page that the kernel wipes in a child, so that locks are free there and
 * lists empty */
static _Atomic(ucs_own_class_t*) ucs_own_page;

/* relaxed: nothing but the kernel has written there before */
static ucs_own_class_t *ucs_own_classes(void)
{
    size_t length            = UCS_OWN_CLASSES * sizeof(ucs_own_class_t);
    ucs_own_class_t *classes = ucs_load_relaxed(&ucs_own_page);
    ucs_own_class_t *page;

    if (classes != NULL) {
        return classes;
    }
    page = ucs_own_map(length);
    if (page == NULL) {
        return NULL;
    }
    (void)syscall(SYS_madvise, page, length, MADV_WIPEONFORK);
    if (ucs_cas_relaxed(&ucs_own_page, &classes, page)) {
        return page;
    }
    ucs_own_unmap(page, length);
    return classes;
}

static ucs_own_head_t **ucs_own_next(ucs_own_head_t *head)
{
    return (ucs_own_head_t**)((char*)head + UCS_OWN_ALIGN);
}

static void ucs_own_push(ucs_own_class_t *class, ucs_own_head_t *first,
                         ucs_own_head_t *last)
{
    ucs_lock(&class->lock);
    *ucs_own_next(last) = class->free;
    class->free         = first;
    ucs_unlock(&class->lock);
}

/* @return A block of a new piece, the others of which are free */
static ucs_own_head_t *ucs_own_cut(ucs_own_class_t *class, unsigned index)
{
    size_t size = (size_t)1 << (UCS_OWN_BLOCK_SHIFT + index);
    char *piece = ucs_own_map(UCS_OWN_PIECE);
    size_t offset;

    if (piece == NULL) {
        return NULL;
    }
    for (offset = size; offset < UCS_OWN_PIECE - size; offset += size) {
        *ucs_own_next((ucs_own_head_t*)(piece + offset)) =
                (ucs_own_head_t*)(piece + offset + size);
    }
    ucs_own_push(class, (ucs_own_head_t*)(piece + size),
                 (ucs_own_head_t*)(piece + offset));
    return (ucs_own_head_t*)piece;
}

static ucs_own_head_t *ucs_own_take(unsigned index)
{
    ucs_own_class_t *classes = ucs_own_classes();
    ucs_own_head_t *head;

    if (classes == NULL) {
        return NULL;
    }
    ucs_lock(&classes[index].lock);
    head = classes[index].free;
    if (head != NULL) {
        classes[index].free = *ucs_own_next(head);
    }
    ucs_unlock(&classes[index].lock);
    if (head == NULL) {
        head = ucs_own_cut(&classes[index], index);
    }
    if (head != NULL) {
        head->index = index;
        memset((char*)head + UCS_OWN_ALIGN, 0,
               ((size_t)1 << (UCS_OWN_BLOCK_SHIFT + index)) - UCS_OWN_ALIGN);
    }
    return head;
}

void *ucs_own_alloc(size_t size)
{
    unsigned index = 0;
    ucs_own_head_t *head;

    if (size > SIZE_MAX - UCS_OWN_ALIGN) {
        return NULL;
    }
    size += UCS_OWN_ALIGN;
    while ((index < UCS_OWN_CLASSES) &&
           (size > ((size_t)1 << (UCS_OWN_BLOCK_SHIFT + index)))) {
        ++index;
    }
    if (index < UCS_OWN_CLASSES) {
        head = ucs_own_take(index);
    } else {
        head = ucs_own_map(size);
        if (head != NULL) {
            head->length = size;
        }
    }
    return (head == NULL) ? NULL : (char*)head + UCS_OWN_ALIGN;
}

void ucs_own_free(void *memory)
{
    ucs_own_class_t *classes = ucs_own_classes();
    ucs_own_head_t *head;

    if (memory == NULL) {
        return;
    }
    head = (ucs_own_head_t*)((char*)memory - UCS_OWN_ALIGN);
    if (head->length > 0) {
        ucs_own_unmap(head, head->length);
    } else if (classes != NULL) {
        ucs_own_push(&classes[head->index], head, head);
    }
}

#endif
