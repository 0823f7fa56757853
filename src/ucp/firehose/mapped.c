/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_int.h"

#include <ucs/sys/sync/atomic.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since Linux 5.14; not in this C library's headers */
#define UCP_FIREHOSE_POPULATE_WRITE 23

size_t ucp_firehose_page_size(void)
{
    return sysconf(_SC_PAGESIZE);
}

/* By the system call, not the function: hooks of memory events stand in front
 * of that, and this changes no mapping */
static int ucp_firehose_populate(uint64_t address, size_t length)
{
    return (int)syscall(SYS_madvise, address, length,
                        UCP_FIREHOSE_POPULATE_WRITE);
}

/* @return Nonzero if the kernel can; an own page shows it, found out once. Two
 *         threads find the same, so that relaxed is enough. */
static int ucp_firehose_can_populate(void)
{
    static _Atomic(int) can; /* 0: unknown, 1: no, 2: yes */
    void *page;
    int known = ucs_load_relaxed(&can);

    if (known == 0) {
        page = mmap(NULL, ucp_firehose_page_size(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return 0;
        }
        known = (ucp_firehose_populate((uintptr_t)page,
                                       ucp_firehose_page_size()) == 0) ?
                        2 :
                        1;
        munmap(page, ucp_firehose_page_size());
        ucs_store_relaxed(&can, known);
    }
    return known == 2;
}

/* Older kernels tell of holes only */
static ucs_status_t ucp_firehose_look_for_holes(uint64_t address, size_t length)
{
    const size_t page = ucp_firehose_page_size();
    unsigned char state;
    size_t at;

    for (at = 0; at < length; at += page) {
        if ((mincore((void*)(address + at), page, &state) != 0) &&
            (errno == ENOMEM)) {
            return UCS_ERR_INVALID_ADDR;
        }
    }
    return UCS_OK;
}

ucs_status_t ucp_firehose_check_mapped(uint64_t address, size_t length)
{
    if (!ucp_firehose_can_populate()) {
        return ucp_firehose_look_for_holes(address, length);
    }
    while (ucp_firehose_populate(address, length) != 0) {
        if ((errno != EAGAIN) && (errno != EINTR)) {
            return UCS_ERR_INVALID_ADDR;
        }
    }
    return UCS_OK;
}
