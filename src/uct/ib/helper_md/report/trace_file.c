/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "trace_file.h"
#include "report_path.h"
#include <ucs/sys/io/log.h>
#include <ucs/sys/io/sink.h>
#include <ucs/sys/io/write_safely.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Rights of the file, before the umask */
#define UCT_HELPER_TRACE_MODE 0666


void uct_helper_trace_file_close(uct_helper_trace_file_t *file)
{
    ucs_own_fd_close(&file->own);
}

static ucs_status_t
uct_helper_trace_file_write_all(uct_helper_trace_file_t *file,
                                const char *bytes, size_t size)
{
    int fd      = ucs_own_fd_get(&file->own);
    size_t done = 0;
    ssize_t ret;

    if (fd < 0) {
        ucs_helper_warn("UCX_MD_HELPER_TRACE: '%s' cannot be written: the "
                        "program has closed its descriptor; the trace ends "
                        "here",
                        file->path);
        return UCS_ERR_IO_ERROR;
    }

    while (done < size) {
        ret = pwrite(fd, bytes + done, size - done, file->offset + done);
        if (ret > 0) {
            done += ret;
        } else if ((ret == 0) || (errno != EINTR)) {
            ucs_helper_warn("UCX_MD_HELPER_TRACE: '%s' cannot be written: %s "
                            "(allowed: a regular file); the trace ends here",
                            file->path,
                            (ret == 0) ? "no progress" : strerror(errno));
            return UCS_ERR_IO_ERROR;
        }
    }
    return UCS_OK;
}

void uct_helper_trace_file_write(uct_helper_trace_file_t *file,
                                 const void *bytes, size_t size, size_t keep)
{
    ucs_write_guard_t guard;
    ucs_status_t status;

    if (ucs_own_fd_number(&file->own) < 0) {
        return;
    }

    ucs_write_hold(&guard);
    status = uct_helper_trace_file_write_all(file, bytes, size);
    ucs_write_release(&guard);
    if (status == UCS_OK) {
        file->offset += keep;
    } else {
        uct_helper_trace_file_close(file);
    }
}

ucs_status_t uct_helper_trace_file_open(uct_helper_trace_file_t *file,
                                        const char *pattern)
{
    ucs_status_t status = uct_helper_report_expand(pattern, file->path,
                                                   sizeof(file->path));
    const char *why;
    int fd;

    if (status != UCS_OK) {
        ucs_helper_warn("UCX_MD_HELPER_TRACE: '%s' is too long, allowed: a "
                        "path of less than %d bytes; there is no trace",
                        pattern, PATH_MAX);
        return status;
    }

    fd = ucs_sink_open(file->path, UCT_HELPER_TRACE_MODE, &why);
    if ((fd >= 0) && !ucs_own_fd_set(&file->own, fd)) {
        why = strerror(errno);
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        ucs_helper_warn("UCX_MD_HELPER_TRACE: '%s' cannot be written: %s; "
                        "allowed: " UCS_SINK_ALLOWED "; there is no "
                        "trace",
                        file->path, why);
        return UCS_ERR_IO_ERROR;
    }

    file->offset = 0;
    return UCS_OK;
}
