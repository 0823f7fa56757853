/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "monitor_parts.h"

#include <ucs/sys/mem/maps.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#  define UFFD_USER_MODE_ONLY 1
#endif

/* Without EVENT_FORK: a child's memory is not watched, and fork() does not wait
 * for the reader */
#define UCT_HELPER_UFFD_FEATURES \
    (UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | \
     UFFD_FEATURE_EVENT_REMAP)

/* By a system call: ioctl() may be the preloaded stub's, which watches the
 * program's own descriptors */
static int uct_helper_uffd_control(int fd, unsigned long request, void *arg)
{
    return syscall(SYS_ioctl, fd, request, arg);
}

/* Privileges are needed only for faults of the kernel, and there are none. */
int uct_helper_uffd_open(const char **reason_p)
{
    struct uffdio_api api = {
        .api      = UFFD_API,
        .features = UCT_HELPER_UFFD_FEATURES
    };
    int fd;

    fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if ((fd < 0) && (errno == EINVAL)) {
        fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0) {
        *reason_p = (errno == ENOSYS) ? "the kernel has no userfaultfd" :
                    (errno == EPERM)  ? "userfaultfd is not permitted" :
                                        "userfaultfd is refused";
        return -1;
    }

    if (uct_helper_uffd_control(fd, UFFDIO_API, &api) != 0) {
        *reason_p = "userfaultfd does not report unmapped memory";
        close(fd);
        return -1;
    }

    return fd;
}

int uct_helper_uffd_watch(int fd, uintptr_t start, uintptr_t end)
{
    struct uffdio_register range = {
        .range = {.start = start, .len = end - start},
        .mode  = UFFDIO_REGISTER_MODE_WP
    };

    return uct_helper_uffd_control(fd, UFFDIO_REGISTER, &range) == 0;
}

int uct_helper_uffd_unwatch(int fd, uintptr_t start, uintptr_t end)
{
    struct uffdio_range range = {.start = start, .len = end - start};

    return uct_helper_uffd_control(fd, UFFDIO_UNREGISTER, &range) == 0;
}

static int uct_helper_uffd_unwatch_one(void *arg, const ucs_maps_vma_t *vma)
{
    if (ucs_maps_is_anonymous(vma)) {
        (void)uct_helper_uffd_unwatch(*(int*)arg, vma->start, vma->end);
    }
    return 1;
}

/* The reader of kernel events calls this, whose table of descriptors has nothing in
 * it that is kept in the program's */
void uct_helper_uffd_unwatch_all(int fd)
{
    (void)ucs_maps_read(uct_helper_uffd_unwatch_one, &fd);
}
