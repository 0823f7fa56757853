/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "report.h"
#include "report_path.h"
#include <ucs/sys/io/log.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/sys/io/sink.h>
#include <ucs/sys/io/stream.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double uct_helper_report_price(const uct_helper_figures_t *figures)
{
    const ucs_regcache_stats_t *stats = &figures->stats;
    double elapsed_ns                 = figures->elapsed_seconds * 1e9;
    double each                       = stats->region_bytes;

    return ucs_regcache_j(
            stats->lost_ns, elapsed_ns,
            stats->pinned_byte_ns + each * stats->region_ns,
            (stats->leave_pinned_peak_bytes +
             each * stats->leave_pinned_regions_peak) * elapsed_ns,
            figures->max_slowdown);
}

/* Names have no commas, so a name is in the list if it stands between two */
static int uct_helper_report_has_name(const char *names, const char *name)
{
    char all[UCT_HELPER_REPORT_NAMES_MAX + 2];
    char one[UCT_HELPER_REPORT_NAMES_MAX + 2];

    snprintf(all, sizeof(all), ",%s,", names);
    snprintf(one, sizeof(one), ",%s,", name);
    return strstr(all, one) != NULL;
}

void uct_helper_report_add_domain(uct_helper_figures_t *figures,
                                  const char *name)
{
    size_t used = strlen(figures->lower_domain);

    if (!uct_helper_report_has_name(figures->lower_domain, name)) {
        snprintf(figures->lower_domain + used,
                 sizeof(figures->lower_domain) - used, "%s%s",
                 (used > 0) ? "," : "", name);
    }
}

void uct_helper_report_add_quota(uct_helper_figures_t *figures,
                                 const ucs_node_figures_t *quota)
{
    if (!figures->has_quota ||
        (quota->peak_bytes > figures->quota.peak_bytes)) {
        figures->quota = *quota;
    }
    figures->has_quota = 1;
}

void uct_helper_report_add_note(uct_helper_figures_t *figures,
                                const char *format, ...)
{
    char note[UCT_HELPER_REPORT_NOTE_MAX];
    va_list args;
    unsigned i;

    va_start(args, format);
    vsnprintf(note, sizeof(note), format, args);
    va_end(args);
    for (i = 0; i < figures->num_notes; ++i) {
        if (!strcmp(figures->notes[i], note)) {
            return;
        }
    }

    if (figures->num_notes < UCT_HELPER_REPORT_NOTES_MAX) {
        strcpy(figures->notes[figures->num_notes++], note);
    }
}

/* Of less the memory that is held tells nothing */
#define UCT_HELPER_WANTED_NOTE 0.05

void uct_helper_report_note_node(uct_helper_figures_t *figures)
{
    const ucs_node_figures_t *node = &figures->node;

    if (figures->has_node && (node->rests > 0)) {
        uct_helper_report_add_note(
                figures,
                "the helper rested %.1f of %.1f s, while no core was idle",
                node->rest_ns * 1e-9, figures->elapsed_seconds);
    }
    if (figures->has_node && (node->wanted >= UCT_HELPER_WANTED_NOTE)) {
        uct_helper_report_add_note(
                figures,
                "ranks waited for processors, and for %.0f %% of what the helper "
                "did: more stays registered",
                100 * node->wanted);
    }
}

/* A report's file and the temporary one that is renamed to it. /dev/null needs
 * neither: no descriptor is kept. */
typedef struct uct_helper_report_file {
    char         path[PATH_MAX];
    char         tmp[PATH_MAX];
    ucs_own_fd_t own;
} uct_helper_report_file_t;

static const char *uct_helper_report_open_tmp(uct_helper_report_file_t *file)
{
    int length = snprintf(file->tmp, sizeof(file->tmp), "%s.%d.tmp", file->path,
                          getpid());
    int fd;

    if (length >= (int)sizeof(file->tmp)) {
        return strerror(ENAMETOOLONG);
    }

    /* An earlier process of our number may have left it unfinished */
    unlink(file->tmp);
    fd = open(file->tmp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    return ucs_own_fd_set(&file->own, fd) ? NULL : strerror(errno);
}

/* @return NULL, or why not */
static const char *uct_helper_report_open(const uct_helper_report_dest_t *dest,
                                          uct_helper_report_file_t *file)
{
    const char *why = NULL;

    if (uct_helper_report_expand(dest->path, file->path,
                                 sizeof(file->path)) != UCS_OK) {
        return strerror(ENAMETOOLONG);
    }

    ucs_own_fd_forget(&file->own);
    switch (ucs_sink_look(file->path, &why)) {
    case UCS_SINK_NULL:
        return NULL;
    case UCS_SINK_FILE:
        return uct_helper_report_open_tmp(file);
    default:
        return why;
    }
}

ucs_status_t uct_helper_report_check(const uct_helper_report_dest_t *dest,
                                     char *error, size_t max)
{
    uct_helper_report_file_t file;
    const char *why;

    if ((dest->kind == UCT_HELPER_REPORT_NONE) || (dest->stream > 0)) {
        return UCS_OK;
    }

    why = uct_helper_report_open(dest, &file);
    if (why != NULL) {
        snprintf(error, max,
                 "UCX_MD_HELPER_REPORT: '%s%s' cannot be written: %s; allowed: "
                 "stderr, /dev/stdout, /dev/null, or " UCS_SINK_ALLOWED
                 "; there will be no report",
                 (dest->kind == UCT_HELPER_REPORT_JSON) ? "json:" : "",
                 dest->path, why);
        return UCS_ERR_IO_ERROR;
    }

    if (ucs_own_fd_number(&file.own) >= 0) {
        ucs_own_fd_close(&file.own);
        unlink(file.tmp);
    }
    return UCS_OK;
}

/* @return The whole text, for the caller to free; NULL if there is no memory */
static char *uct_helper_report_compose(const uct_helper_report_dest_t *dest,
                                       const uct_helper_figures_t *figures,
                                       size_t *length_p)
{
    char *text   = NULL;
    FILE *stream = open_memstream(&text, length_p);
    int failed;

    if (stream == NULL) {
        return NULL;
    }

    if (dest->kind == UCT_HELPER_REPORT_JSON) {
        uct_helper_report_print_json(stream, figures);
    } else {
        uct_helper_report_print_text(stream, figures);
    }
    failed = (fflush(stream) != 0) || ferror(stream);
    if ((fclose(stream) != 0) || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* No message if a stream cannot be written: it would not arrive either */
static ucs_status_t
uct_helper_report_write_stream(const uct_helper_report_dest_t *dest,
                               const uct_helper_figures_t *figures)
{
    size_t length;
    char *text = uct_helper_report_compose(dest, figures, &length);
    int done;

    done = (text != NULL) && ucs_stream_is_output(dest->stream) &&
           ucs_sink_write(dest->stream, text, length);
    free(text);
    return done ? UCS_OK : UCS_ERR_IO_ERROR;
}

/* @return NULL, or why not */
static const char *
uct_helper_report_fill(const uct_helper_report_dest_t *dest,
                       const uct_helper_figures_t *figures,
                       uct_helper_report_file_t *file)
{
    size_t length;
    char *text = uct_helper_report_compose(dest, figures, &length);
    const char *why;

    why = (text == NULL) ? strerror(ENOMEM) :
                           ucs_sink_write_at(ucs_own_fd_get(&file->own), text,
                                             length, 0);
    free(text);
    ucs_own_fd_close(&file->own);
    if ((why == NULL) && (rename(file->tmp, file->path) != 0)) {
        why = strerror(errno);
    }
    return why;
}

static ucs_status_t
uct_helper_report_write_file(const uct_helper_report_dest_t *dest,
                             const uct_helper_figures_t *figures)
{
    uct_helper_report_file_t file;
    const char *why;

    why = uct_helper_report_open(dest, &file);
    if ((why == NULL) && (ucs_own_fd_number(&file.own) >= 0)) {
        why = uct_helper_report_fill(dest, figures, &file);
        if (why != NULL) {
            unlink(file.tmp);
        }
    }

    if (why != NULL) {
        ucs_helper_warn("UCX_MD_HELPER_REPORT: '%s' cannot be written: %s",
                        dest->path, why);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

ucs_status_t uct_helper_report_write(const uct_helper_report_dest_t *dest,
                                     const uct_helper_figures_t *figures)
{
    ucs_write_guard_t guard;
    ucs_status_t status;

    if (dest->kind == UCT_HELPER_REPORT_NONE) {
        return UCS_OK;
    }

    ucs_write_hold(&guard);
    status = (dest->stream > 0) ?
                     uct_helper_report_write_stream(dest, figures) :
                     uct_helper_report_write_file(dest, figures);
    ucs_write_release(&guard);
    return status;
}
