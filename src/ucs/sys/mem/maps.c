/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/mem/maps.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The first thread's shows them also when it has ended since it was opened, but
 * nothing if it had ended before; another thread's while that thread lives */
#define UCS_MAPS_FIRST  "/proc/self/maps"
#define UCS_MAPS_OWN    "/proc/thread-self/maps"

#define UCS_MAPS_BUFFER 4096

/* The beginning of a line, up to the path, which may be longer than any buffer;
 * and how far behind it is looked at where there is nothing */
#define UCS_MAPS_LINE  120
#define UCS_MAPS_ZEROS 8

/* ABI of PROCMAP_QUERY (include/uapi/linux/fs.h of Linux 6.11), which the
 * headers of an older kernel lack */
typedef struct ucs_maps_query_arg {
    uint64_t size;
    uint64_t query_flags;
    uint64_t query_addr;
    uint64_t vma_start;
    uint64_t vma_end;
    uint64_t vma_flags;
    uint64_t vma_page_size;
    uint64_t vma_offset;
    uint64_t inode;
    uint32_t dev_major;
    uint32_t dev_minor;
    uint32_t vma_name_size;
    uint32_t build_id_size;
    uint64_t vma_name_addr;
    uint64_t build_id_addr;
} ucs_maps_query_arg_t;

#define UCS_MAPS_QUERY _IOWR('f', 17, ucs_maps_query_arg_t)

int ucs_maps_has_text(int fd)
{
    char c;

    return pread(fd, &c, 1, 0) == 1;
}

int ucs_maps_open(ucs_own_fd_t *own)
{
    int fd = ucs_own_fd_open(own, UCS_MAPS_FIRST);

    if ((fd >= 0) && ucs_maps_has_text(fd)) {
        return fd;
    }
    ucs_own_fd_close(own);
    return ucs_own_fd_open(own, UCS_MAPS_OWN);
}

int ucs_maps_query(int fd, uintptr_t address, unsigned flags,
                   ucs_maps_vma_t *vma)
{
    ucs_maps_query_arg_t query;

    memset(&query, 0, sizeof(query));
    query.size        = sizeof(query);
    query.query_flags = flags;
    query.query_addr  = address;
    if (ioctl(fd, UCS_MAPS_QUERY, &query) != 0) {
        return -errno;
    }

    vma->start   = query.vma_start;
    vma->end     = query.vma_end;
    vma->flags   = query.vma_flags;
    vma->is_file = (query.inode != 0);
    return 0;
}

/* start-end perms offset major:minor inode. Zeros follow: a program may have put
 * a file of its own in place of ours, and its text may end anywhere. */
static void ucs_maps_parse(const char *line, ucs_maps_vma_t *vma)
{
    char *at;

    vma->start = strtoul(line, &at, 16);
    vma->end   = strtoul(at + 1, &at, 16);
    vma->flags = ((at[1] == 'r') ? UCS_MAPS_READABLE : 0) |
                 ((at[2] == 'w') ? UCS_MAPS_WRITABLE : 0) |
                 ((at[3] == 'x') ? UCS_MAPS_EXEC : 0) |
                 ((at[4] == 's') ? UCS_MAPS_SHARED : 0);
    (void)strtoul(at + 5, &at, 16);
    (void)strtoul(at, &at, 16);
    (void)strtoul(at + 1, &at, 16);
    vma->is_file = (strtoul(at, NULL, 10) != 0);
}

int ucs_maps_each(ucs_own_fd_t *own, ucs_maps_func_t func, void *arg)
{
    int fd = ucs_own_fd_number(own);
    char buffer[UCS_MAPS_BUFFER], line[UCS_MAPS_LINE + UCS_MAPS_ZEROS] = {0};
    unsigned used = 0;
    off_t offset  = 0;
    ucs_maps_vma_t vma;
    ssize_t length, i;

    while (((length = pread(fd, buffer, sizeof(buffer), offset)) > 0) ||
           ((length < 0) && (errno == EINTR))) {
        offset += (length > 0) ? length : 0;
        for (i = 0; i < length; ++i) {
            if (buffer[i] == '\n') {
                ucs_maps_parse(line, &vma);
                if (!func(arg, &vma)) {
                    length = 0;
                    goto out;
                }
                memset(line, 0, used);
                used = 0;
            } else if (used < UCS_MAPS_LINE) {
                line[used++] = buffer[i];
            }
        }
    }

out:
    return (length < 0)             ? -errno :
           (ucs_own_fd_get(own) < 0) ? -EBADF : 0;
}

int ucs_maps_read(ucs_maps_func_t func, void *arg)
{
    ucs_own_fd_t own = UCS_OWN_FD_INIT;
    int ret          = -ENOENT;

    if (ucs_maps_open(&own) >= 0) {
        ret = ucs_maps_each(&own, func, arg);
        ucs_own_fd_close(&own);
    }
    return ret;
}

/* What is counted */
typedef struct ucs_maps_number {
    uintptr_t start, end;
    long      count;
} ucs_maps_number_t;

static int ucs_maps_count_one(void *arg, const ucs_maps_vma_t *vma)
{
    ucs_maps_number_t *number = arg;

    number->count += (vma->start < number->end) && (vma->end > number->start);
    return 1;
}

long ucs_maps_count(uintptr_t start, uintptr_t end)
{
    ucs_maps_number_t number = {.start = start, .end = end};

    return (ucs_maps_read(ucs_maps_count_one, &number) < 0) ? -1 : number.count;
}
