/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "trace_record.h"
#include "report_path.h"
#include "trace_open.h"
#include <ucs/datastruct/dq.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/sys/io/sink.h>
#include <ucs/sys/proc/thread.h>

#include <ucs/sys/clock.h>
#include <ucs/trace/trace.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static_assert(UCS_TRACE_ACCESS_REMOTE == (UCT_MD_MEM_ACCESS_REMOTE_PUT |
                                          UCT_MD_MEM_ACCESS_REMOTE_GET |
                                          UCT_MD_MEM_ACCESS_REMOTE_ATOMIC),
              "as traces have it");

/*
 * The file. A program may close descriptors that it does not know and reuse their
 * numbers, so each call checks that the descriptor is still the trace's.
 */

typedef struct uct_helper_trace_file {
    ucs_own_fd_t own;            /* none: no file is open */
    off_t        offset;         /* where the next write goes */
    char         path[PATH_MAX]; /* for messages, also when closed */
} uct_helper_trace_file_t;

/* Rights of the file, before the umask */
#define UCT_HELPER_TRACE_MODE 0666

/* The next call overwrites all but the first `keep` bytes. A failure closes the file. */
static void uct_helper_trace_file_write(uct_helper_trace_file_t *file,
                                        const void *bytes, size_t size,
                                        size_t keep)
{
    int fd          = ucs_own_fd_get(&file->own);
    const char *why = "the program has closed its descriptor";
    ucs_write_guard_t guard;

    if (ucs_own_fd_number(&file->own) < 0) {
        return;
    }

    ucs_write_hold(&guard);
    if (fd >= 0) {
        why = ucs_sink_write_at(fd, bytes, size, file->offset);
    }
    if (why == NULL) {
        file->offset += keep;
    } else {
        ucs_helper_warn("UCX_MD_HELPER_TRACE: '%s' cannot be written: %s%s; "
                        "the trace ends here",
                        file->path, why,
                        (fd >= 0) ? " (allowed: a regular file)" : "");
        ucs_own_fd_close(&file->own);
    }
    ucs_write_release(&guard);
}

static ucs_status_t uct_helper_trace_file_open(uct_helper_trace_file_t *file,
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

#define UCT_HELPER_TRACE_BUFFER  65536u
#define UCT_HELPER_TRACE_POLL_NS UINT64_C(10000000)

/*
 * The recorder of this process. Producers touch is_on and the ring only; the
 * ring is never freed, as a producer may be late. The rest belongs to the
 * writer: the thread that runs a step, or that has stopped the other.
 */
typedef struct uct_helper_trace {
    ucs_dq_h                ring;
    ucs_thread_h            thread;
    ucs_job_h               job;
    ucs_trace_encoder_h     encoder;
    uct_helper_trace_open_h open;
    uint64_t                lost;     /* of the ring, as last written */
    uint64_t                time_ns;  /* of the latest entry */
    uct_helper_trace_file_t file;
    size_t                  used;     /* bytes in buffer */
    int                     is_child; /* of a process that recorded */
    /* One more record and the end mark fit behind BUFFER */
    uint8_t                 buffer[UCT_HELPER_TRACE_BUFFER +
                                   2 * UCS_TRACE_RECORD_MAX];
} uct_helper_trace_t;

_Atomic(int) uct_helper_trace_is_on;

static uct_helper_trace_t uct_helper_trace = {.file = {.own = UCS_OWN_FD_INIT}};

/* What producers push into the ring */
typedef struct uct_helper_trace_entry {
    uct_mem_h         memh;  /* of a use and its release */
    ucs_trace_event_t event; /* of a release without range and call path */
} uct_helper_trace_entry_t;

UCS_DQ_CHECK_RECORD(uct_helper_trace_entry_t);

/* --- Producers ------------------------------------------------------------ */

static inline void uct_helper_trace_push(uct_mem_h memh, ucs_trace_event_t event)
{
    uct_helper_trace_entry_t entry = {.memh = memh, .event = event};

    (void)ucs_dq_push(uct_helper_trace.ring, &entry);
}

void uct_helper_trace_use(uint64_t time_ns, uint64_t address, size_t length,
                          unsigned access, uint64_t signature, uct_mem_h memh)
{
    uct_helper_trace_push(memh, (ucs_trace_event_t){
            .kind      = UCS_TRACE_USE,
            .access    = access,
            .time_ns   = time_ns,
            .signature = signature,
            .address   = address,
            .length    = length});
}

void uct_helper_trace_release(uint64_t time_ns, uct_mem_h memh)
{
    uct_helper_trace_push(memh, (ucs_trace_event_t){
            .kind    = UCS_TRACE_RELEASE,
            .time_ns = time_ns});
}

void uct_helper_trace_unmap(uint64_t address, size_t length)
{
    uct_helper_trace_push(NULL, (ucs_trace_event_t){
            .kind    = UCS_TRACE_UNMAP,
            .time_ns = ucs_clock_now(),
            .address = address,
            .length  = length});
}

void uct_helper_trace_operation(const ucs_operation_t *operation)
{
    uct_helper_trace_push(NULL, (ucs_trace_event_t){
            .kind      = UCS_TRACE_OPERATION,
            .access    = operation->kind +
                         operation->thread * UCS_TRACE_OPERATION_THREAD,
            .time_ns   = operation->time,
            .signature = operation->label,
            .address   = operation->address,
            .length    = operation->length,
            .id        = operation->id});
}

/* --- Writer --------------------------------------------------------------- */

/* The end mark is written each time and then overwritten, so the file is a
 * whole trace at any time, also if the process is killed. After a failure the
 * rest is dropped. */
static void uct_helper_trace_flush(uct_helper_trace_t *trace)
{
    size_t end;

    if (trace->used > 0) {
        end = ucs_trace_encode_end(trace->encoder, trace->buffer + trace->used);
        uct_helper_trace_file_write(&trace->file, trace->buffer,
                                    trace->used + end, trace->used);
    }
    trace->used = 0;
}

static void uct_helper_trace_put(uct_helper_trace_t *trace,
                                 const ucs_trace_event_t *event)
{
    if (trace->used > UCT_HELPER_TRACE_BUFFER) {
        uct_helper_trace_flush(trace);
    }
    trace->used += ucs_trace_encode(trace->encoder, event,
                                    trace->buffer + trace->used);
}

/* Lost entries may be releases, so all open uses count as released: a use
 * without an end would look like memory that is in use for ever */
static void uct_helper_trace_put_lost(uct_helper_trace_t *trace, uint64_t count)
{
    ucs_trace_event_t event = {
        .kind    = UCS_TRACE_LOST,
        .time_ns = trace->time_ns,
        .length  = count
    };

    uct_helper_trace_put(trace, &event);
    while (uct_helper_trace_open_take_any(trace->open, &event)) {
        event.kind    = UCS_TRACE_RELEASE;
        event.time_ns = trace->time_ns;
        uct_helper_trace_put(trace, &event);
    }
}

static void uct_helper_trace_entry(uct_helper_trace_t *trace,
                                   const uct_helper_trace_entry_t *entry)
{
    ucs_trace_event_t event = entry->event;

    trace->time_ns = event.time_ns;
    switch (event.kind) {
    case UCS_TRACE_USE:
        if (!uct_helper_trace_open_add(trace->open, entry->memh, &event)) {
            uct_helper_trace_put_lost(trace, 2);
            return;
        }
        break;
    case UCS_TRACE_RELEASE:
        if (!uct_helper_trace_open_take(trace->open, entry->memh, &event)) {
            return; /* its use was lost and counted */
        }
        event.kind    = UCS_TRACE_RELEASE;
        event.time_ns = entry->event.time_ns;
        break;
    default:
        /* The format has no empty range, and none that ends beyond */
        if (((event.length == 0) && (event.kind != UCS_TRACE_OPERATION)) ||
            (event.length > UINT64_MAX - event.address)) {
            return;
        }
        break;
    }
    uct_helper_trace_put(trace, &event);
}

static void uct_helper_trace_drain(uct_helper_trace_t *trace)
{
    uint64_t lost = ucs_dq_lost(trace->ring);
    uct_helper_trace_entry_t entry;

    while (ucs_dq_pop(trace->ring, &entry)) {
        uct_helper_trace_entry(trace, &entry);
    }
    /* Entries in the ring are older than those that did not fit. */
    if (lost != trace->lost) {
        uct_helper_trace_put_lost(trace, lost - trace->lost);
        trace->lost = lost;
    }
}

static uint64_t uct_helper_trace_step(void *arg, uint64_t now)
{
    uct_helper_trace_t *trace = arg;

    uct_helper_trace_drain(trace);
    uct_helper_trace_flush(trace);
    return now + UCT_HELPER_TRACE_POLL_NS;
}

/* --- Life ----------------------------------------------------------------- */

static void uct_helper_trace_begin(uct_helper_trace_t *trace)
{
    ucs_trace_header_t header = {
        .start_ns  = ucs_clock_now(),
        .page_size = (uint32_t)sysconf(_SC_PAGESIZE),
        .pid       = (uint32_t)getpid(),
        .rank      = uct_helper_report_rank()
    };

    if (gethostname(header.host, sizeof(header.host) - 1) != 0) {
        header.host[0] = '\0';
    }
    trace->time_ns = header.start_ns;
    trace->lost    = ucs_dq_lost(trace->ring);
    trace->used    = ucs_trace_encode_begin(trace->encoder, &header,
                                            trace->buffer);
    /* Write at once, to see whether the file can be written */
    uct_helper_trace_flush(trace);
}

static void uct_helper_trace_destroy(uct_helper_trace_t *trace)
{
    if (trace->thread != NULL) {
        ucs_thread_destroy(trace->thread);
    }
    if (trace->open != NULL) {
        uct_helper_trace_open_destroy(trace->open);
    }
    ucs_trace_encoder_destroy(trace->encoder);
    trace->thread  = NULL;
    trace->open    = NULL;
    trace->encoder = NULL;
    ucs_own_fd_close(&trace->file.own);
}

/* What there is by then is destroyed by the caller */
static ucs_status_t uct_helper_trace_create(uct_helper_trace_t *trace)
{
    uct_helper_trace_entry_t late; /* since the last recording stopped */
    ucs_status_t status;

    status = (trace->ring != NULL) ?
                     UCS_OK : ucs_dq_create(UCT_HELPER_TRACE_RING, &trace->ring);
    if (status != UCS_OK) {
        return status;
    }
    while (ucs_dq_pop(trace->ring, &late)) {
    }
    status = ucs_trace_encoder_create(&trace->encoder);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_helper_trace_open_create(&trace->open);
    if (status != UCS_OK) {
        return status;
    }
    status = ucs_thread_create(0, &trace->thread);
    if (status != UCS_OK) {
        return status;
    }
    return ucs_thread_add(trace->thread, uct_helper_trace_step, trace,
                          &trace->job);
}

ucs_status_t uct_helper_trace_start(const char *pattern)
{
    uct_helper_trace_t *trace = &uct_helper_trace;
    ucs_status_t status;

    if (trace->thread != NULL) {
        return UCS_OK;
    }
    if (trace->is_child && (strstr(pattern, "%p") == NULL)) {
        ucs_helper_debug("UCX_MD_HELPER_TRACE: '%s' is the parent's file; a "
                         "forked process records only with %%p",
                         pattern);
        return UCS_ERR_BUSY;
    }

    status = uct_helper_trace_file_open(&trace->file, pattern);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_helper_trace_create(trace);
    if (status != UCS_OK) {
        goto err;
    }
    uct_helper_trace_begin(trace);
    status = ucs_job_start(trace->job);
    if (status != UCS_OK) {
        goto err;
    }
    ucs_store_release(&uct_helper_trace_is_on, 1); /* [T-RING] */
    return UCS_OK;

err:
    uct_helper_trace_destroy(trace);
    ucs_helper_warn("UCX_MD_HELPER_TRACE: '%s': %s; there is no trace",
                    trace->file.path, ucs_status_string(status));
    return status;
}

void uct_helper_trace_stop(void)
{
    uct_helper_trace_t *trace = &uct_helper_trace;

    if (trace->thread == NULL) {
        return;
    }
    ucs_store_relaxed(&uct_helper_trace_is_on, 0);
    if (!ucs_thread_end(trace->thread)) {
        return;
    }
    (void)uct_helper_trace_step(trace, 0);
    uct_helper_trace_destroy(trace);
}

void uct_helper_trace_sync(void)
{
    uct_helper_trace_t *trace = &uct_helper_trace;

    if (trace->thread != NULL) {
        ucs_job_run(trace->job);
    }
}

/* --- Fork ----------------------------------------------------------------- */

/* The parent's file goes on in the parent. The child leaves the recorder's
 * memory as it is, and closes nothing: without fork handlers it may share its
 * parent's table of descriptors. */
void uct_helper_trace_forget(void)
{
    uct_helper_trace_t *trace = &uct_helper_trace;

    ucs_store_relaxed(&uct_helper_trace_is_on, 0);
    /* Another thread may have been about to begin */
    if ((trace->thread != NULL) || (ucs_own_fd_number(&trace->file.own) >= 0)) {
        ucs_own_fd_forget(&trace->file.own);
        trace->thread   = NULL;
        trace->open     = NULL;
        trace->encoder  = NULL;
        trace->ring     = NULL;
        trace->is_child = 1;
    }
}
