/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "decode.h"
#include "tool.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMPORT_BYTES_MAX   (1u << 30)
#define IMPORT_PAGE_SIZE   4096
#define IMPORT_SECONDS_MAX 4e6
#define IMPORT_LINE        "R|D SECONDS 0xADDRESS LENGTH SIGNATURE"

static void import_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s import FILE -o OUT\n\n"
            "Turn a text trace, gzip'ed or not, into a binary one. One event a "
            "line:\n"
            "  " IMPORT_LINE "  registered, given back\n\n"
            "Options:\n"
            "  -o OUT     the file to write\n"
            "  --help     show this text\n",
            TOOL_NAME);
}

/* @return Zero if this is none. Seconds that a double tells by the nanosecond. */
static int import_parse_event(const char *line, ucs_trace_event_t *event)
{
    int end = 0;
    double seconds;
    char kind;

    memset(event, 0, sizeof(*event));
    if ((sscanf(line, "%c %lf %" SCNx64 " %" SCNu64 " %" SCNx64 " %n", &kind,
                &seconds, &event->address, &event->length, &event->signature,
                &end) != 5) || (line[end] != '\0') ||
        ((kind != 'R') && (kind != 'D')) || !(seconds >= 0) ||
        !(seconds <= IMPORT_SECONDS_MAX) || (event->length == 0) ||
        (event->length > UINT64_MAX - event->address)) {
        return 0;
    }
    event->kind    = (kind == 'R') ? UCS_TRACE_USE : UCS_TRACE_RELEASE;
    event->time_ns = llround(seconds * 1e9);
    return 1;
}

/* The rank that a file's name tells, as in sp.A.rank3.gz, or -1 */
static int32_t import_rank(const char *file)
{
    const char *rank = strstr(basename(file), "rank");

    return ((rank != NULL) && isdigit((unsigned char)rank[4])) ?
                   (int32_t)strtoul(rank + 4, NULL, 10) :
                   -1;
}

/* @return 0, or -1 after a message */
static int import_lines(const char *file, char *text, tool_trace_t *trace)
{
    size_t capacity = 0;
    uint64_t number = 1;
    const char *line;

    for (; (line = strsep(&text, "\n")) != NULL; ++number) {
        if ((line[0] == '#') || (line[strspn(line, " \r")] == '\0')) {
            continue;
        }
        trace->events = tool_grow(trace->events, trace->count, &capacity,
                                  sizeof(*trace->events));
        if (!import_parse_event(line, &trace->events[trace->count++])) {
            tool_message("%s: line %" PRIu64 ": is not " IMPORT_LINE, file,
                         number);
            return -1;
        }
    }
    if (trace->count == 0) {
        tool_message("%s: there is no event in it", file);
        return -1;
    }
    trace->header.start_ns  = trace->events[0].time_ns;
    trace->header.page_size = IMPORT_PAGE_SIZE;
    trace->header.rank      = import_rank(file);
    return 0;
}

static void import_encode(const tool_trace_t *trace, FILE *stream)
{
    uint8_t buffer[UCS_TRACE_RECORD_MAX];
    ucs_trace_encoder_h encoder;
    size_t i;

    if (ucs_trace_encoder_create(&encoder) != UCS_OK) {
        tool_out_of_memory();
    }
    fwrite(buffer, 1, ucs_trace_encode_begin(encoder, &trace->header, buffer),
           stream);
    for (i = 0; (i < trace->count) && !ferror(stream); ++i) {
        fwrite(buffer, 1, ucs_trace_encode(encoder, &trace->events[i], buffer),
               stream);
    }
    fwrite(buffer, 1, ucs_trace_encode_end(encoder, buffer), stream);
    ucs_trace_encoder_destroy(encoder);
}

/* What has been written without an error is kept, nothing else; but OUT may be
 * a device */
static int import_write(const tool_trace_t *trace, const char *out)
{
    FILE *stream = fopen(out, "we");
    struct stat st;
    int failed;

    if (stream != NULL) {
        import_encode(trace, stream);
        failed = ferror(stream);
        if ((fclose(stream) == 0) && !failed) {
            return 0;
        }
    }
    tool_message("%s: cannot be written: %m", out);
    if ((stream != NULL) && (stat(out, &st) == 0) && S_ISREG(st.st_mode)) {
        unlink(out);
    }
    return -1;
}

int tool_import_main(int argc, char **argv)
{
    static const tool_option_t options[] = {{"o", tool_option_text, 0, NULL,
                                             NULL}, {}};
    const char *out                      = NULL;
    tool_trace_t trace                    = {};
    size_t size;
    char *text;
    int status;

    status = tool_options_parse(argc, argv, "", (const tool_options_t[]){
            {options, &out}, {}}, import_usage);
    if (status >= 0) {
        return status;
    }
    if ((out == NULL) || (argc - optind != 1)) {
        tool_message("import needs a FILE and -o OUT (see %s import --help)",
                     TOOL_NAME);
        return TOOL_EXIT_USAGE;
    }

    text   = tool_input_read(argv[optind], IMPORT_BYTES_MAX, &size);
    status = ((text != NULL) &&
              (import_lines(argv[optind], text, &trace) == 0) &&
              (import_write(&trace, out) == 0)) ? TOOL_EXIT_OK :
                                                  TOOL_EXIT_FAILED;
    tool_trace_cleanup(&trace);
    free(text);
    return status;
}
