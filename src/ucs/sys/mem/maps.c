/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/mem/maps.h>

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The first thread's shows them also when it has ended since it was opened, but
 * nothing if it had ended before; another thread's while that thread lives */
#define UCS_MAPS_FIRST  "/proc/self/maps"
#define UCS_MAPS_OWN    "/proc/thread-self/maps"

#define UCS_MAPS_BUFFER 4096

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

/* The text is fed byte by byte, for a line may be longer than any buffer */
typedef struct ucs_maps_parser {
    unsigned         field; /* number of the field in the line */
    uint64_t         number;
    ucs_maps_vma_t vma;
} ucs_maps_parser_t;

/* start-end perms offset major:minor inode path */
enum {
    UCS_MAPS_FIELD_START,
    UCS_MAPS_FIELD_END,
    UCS_MAPS_FIELD_PERMS,
    UCS_MAPS_FIELD_OFFSET,
    UCS_MAPS_FIELD_DEVICE,
    UCS_MAPS_FIELD_INODE,
    UCS_MAPS_FIELD_PATH
};

static void ucs_maps_perm(ucs_maps_vma_t *vma, char c)
{
    vma->flags |= (c == 'r') ? UCS_MAPS_READABLE :
                  (c == 'w') ? UCS_MAPS_WRITABLE :
                  (c == 'x') ? UCS_MAPS_EXEC :
                  (c == 's') ? UCS_MAPS_SHARED : 0;
}

static void ucs_maps_digit(ucs_maps_parser_t *parser, char c)
{
    unsigned digit = (c >= 'a') ? c - 'a' + 10u : (unsigned)(c - '0');

    parser->number = parser->number * 16 + digit;
    if (parser->field == UCS_MAPS_FIELD_INODE) {
        /* decimal, but only whether it is zero matters */
        parser->vma.is_file |= (digit != 0);
    }
}

static void ucs_maps_field_end(ucs_maps_parser_t *parser)
{
    if (parser->field == UCS_MAPS_FIELD_START) {
        parser->vma.start = parser->number;
    } else if (parser->field == UCS_MAPS_FIELD_END) {
        parser->vma.end = parser->number;
    }
    parser->number = 0;
    ++parser->field;
}

/* @return Nonzero at the end of a line: the mapping is complete */
static int ucs_maps_char(ucs_maps_parser_t *parser, char c)
{
    if (c == '\n') {
        return 1;
    }
    if (parser->field >= UCS_MAPS_FIELD_PATH) {
        return 0;
    }

    if ((c == ' ') || ((c == '-') && (parser->field == UCS_MAPS_FIELD_START))) {
        ucs_maps_field_end(parser);
    } else if (parser->field == UCS_MAPS_FIELD_PERMS) {
        ucs_maps_perm(&parser->vma, c);
    } else if (c != ':') {
        ucs_maps_digit(parser, c);
    }
    return 0;
}

int ucs_maps_each(int fd, ucs_maps_func_t func, void *arg)
{
    off_t offset = 0;
    ucs_maps_parser_t parser;
    char buffer[UCS_MAPS_BUFFER];
    ssize_t length, i;

    memset(&parser, 0, sizeof(parser));
    while (((length = pread(fd, buffer, sizeof(buffer), offset)) > 0) ||
           ((length < 0) && (errno == EINTR))) {
        offset += (length > 0) ? length : 0;
        for (i = 0; i < length; ++i) {
            if (!ucs_maps_char(&parser, buffer[i])) {
                continue;
            }
            if (!func(arg, &parser.vma)) {
                return 0;
            }
            memset(&parser, 0, sizeof(parser));
        }
    }
    return (length < 0) ? -errno : 0;
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
    ucs_own_fd_t own         = UCS_OWN_FD_INIT;
    int ret                  = -1;
    int fd;

    fd = ucs_maps_open(&own);
    if (fd >= 0) {
        ret = ucs_maps_each(fd, ucs_maps_count_one, &number);
        ucs_own_fd_close(&own);
    }
    return (ret < 0) ? -1 : number.count;
}
