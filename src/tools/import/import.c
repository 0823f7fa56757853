/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "import_random.h"

#include <tools/input.h>
#include <tools/options.h>
#include <tools/tool.h>
#include <tools/units.h>

#include <ucs/predict/operation.h>
#include <ucs/trace/trace.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define IMPORT_LINE_MAX   256
#define IMPORT_PAGE_SIZE  4096
#define IMPORT_SUFFIX     ".trace"
#define IMPORT_NSEC       UINT64_C(1000000000)
#define IMPORT_SECONDS_MAX (UINT64_MAX / IMPORT_NSEC / 2)

#define IMPORT_USES     10000
#define IMPORT_USES_MAX 10000000

typedef struct import_command {
    const char *out;
    int        is_random;
    uint64_t   seed;
    uint64_t   uses;
} import_command_t;


static void import_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s import FILE... -o OUT\n"
            "       %s import --random SEED [--uses N] -o OUT\n\n"
            "Turn text traces, gzip'ed or not, into binary ones. One event a "
            "line:\n"
            "  R|D SECONDS 0xADDRESS LENGTH SIGNATURE  registered, given back\n"
            "  P|S SECONDS 0xADDRESS LENGTH [LABEL]    receive posted, send "
            "begun;\n"
            "                                          (nil) 0: no contiguous "
            "data\n"
            "Or make a trace in which nothing can be foreseen.\n\n"
            "Options:\n"
            "  -o OUT         the file to write; with several FILEs, or if it "
            "is one,\n"
            "                 a folder, which gets NAME%s for each\n"
            "  --random SEED  draw buffers, places, gaps; the same seed, the "
            "same trace\n"
            "  --uses N       so many [%u]\n"
            "  --help         show this text\n",
            TOOL_NAME, TOOL_NAME, IMPORT_SUFFIX, IMPORT_USES);
}

/* Seconds with up to nine decimals, exactly */
static const char *import_parse_time(const char *text, uint64_t *ns_p)
{
    uint64_t unit = IMPORT_NSEC;
    uint64_t ns;
    char *end;

    if (!isdigit((unsigned char)*text)) {
        return NULL;
    }
    errno = 0;
    ns    = strtoull(text, &end, 10);
    if ((errno != 0) || (ns > IMPORT_SECONDS_MAX)) {
        return NULL;
    }
    ns *= IMPORT_NSEC;
    if (*end == '.') {
        for (++end; isdigit((unsigned char)*end); ++end) {
            unit /= 10;
            ns   += unit * (*end - '0');
        }
    }
    *ns_p = ns;
    return end;
}

static const char *import_parse_number(const char *text, int base,
                                       uint64_t *value_p)
{
    char *end;

    text += strspn(text, " ");
    if (!isxdigit((unsigned char)*text)) {
        return NULL;
    }
    errno    = 0;
    *value_p = strtoull(text, &end, base);
    return (errno == 0) ? end : NULL;
}

/* The class of a size, in powers of two */
static uint64_t import_size_class(uint64_t length)
{
    return (length == 0) ? 0 : 64 - __builtin_clzll(length);
}

/* The label of an operation in which no call site is told is its kind and the
 * class of its size, as far as they go */
static const char *import_parse_operation(const char *p,
                                          ucs_trace_event_t *event, char kind)
{
    uint64_t label = 0;

    event->kind   = UCS_TRACE_OPERATION;
    event->access = (kind == 'P') ? UCS_OPERATION_RECEIVE : UCS_OPERATION_SEND;
    p += strspn(p, " ");
    if (!strncmp(p, "(nil)", 5)) {
        p += 5;
    } else {
        p = import_parse_number(p, 16, &event->address);
    }
    p = (p != NULL) ? import_parse_number(p, 10, &event->length) : NULL;
    if ((p == NULL) || (event->length > UINT64_MAX - event->address)) {
        return "address and length are no range: a hexadecimal number or "
               "(nil), and a decimal one";
    }
    if (p[strspn(p, " \r\n")] != '\0') {
        p = import_parse_number(p, 16, &label);
    }
    if ((p == NULL) || (label > UINT32_MAX) ||
        (p[strspn(p, " \r\n")] != '\0')) {
        return "the label is no hexadecimal number of 32 bits at the end";
    }
    event->signature = (label != 0) ? label :
                                      1 + event->access +
                                      256 * import_size_class(event->length);
    return NULL;
}

/* @return NULL, or what is wrong */
static const char *import_parse_event(const char *line,
                                      ucs_trace_event_t *event)
{
    const char *p = line + 2;

    memset(event, 0, sizeof(*event));
    if ((line[0] == '\0') || (strchr("RDPS", line[0]) == NULL) ||
        (line[1] != ' ')) {
        return "does not begin with 'R ', 'D ', 'P ' or 'S '";
    }
    event->kind = (line[0] == 'R') ? UCS_TRACE_USE : UCS_TRACE_RELEASE;

    p = import_parse_time(p + strspn(p, " "), &event->time_ns);
    if (p == NULL) {
        return "the time is no decimal number of seconds";
    }
    if ((line[0] == 'P') || (line[0] == 'S')) {
        return import_parse_operation(p, event, line[0]);
    }
    p = import_parse_number(p, 16, &event->address);
    if (p == NULL) {
        return "the address is no hexadecimal number of 64 bits";
    }
    p = import_parse_number(p, 10, &event->length);
    if ((p == NULL) || (event->length == 0) ||
        (event->length > UINT64_MAX - event->address)) {
        return "the length is no decimal number above 0 within the address "
               "space";
    }
    p = import_parse_number(p, 16, &event->signature);
    if ((p == NULL) || (p[strspn(p, " \r\n")] != '\0')) {
        return "the signature is no hexadecimal number of 64 bits at the end";
    }
    return NULL;
}

/* The rank that a file's name tells, as in sp.A.rank3.gz, or -1 */
static int32_t import_rank(const char *file)
{
    const char *name = strrchr(file, '/');
    const char *rank = strstr((name != NULL) ? name : file, "rank");

    return ((rank != NULL) && isdigit((unsigned char)rank[4])) ?
                   (int32_t)strtoul(rank + 4, NULL, 10) :
                   -1;
}

/* @return 0, or -1 after a message */
static int import_bad_line(const char *file, uint64_t line, const char *what)
{
    tool_message("%s: line %" PRIu64 ": %s", file, line, what);
    return -1;
}

static int import_lines(const char *file, gzFile in, ucs_trace_t *trace)
{
    size_t capacity = 0;
    uint64_t number = 1;
    char line[IMPORT_LINE_MAX];
    const char *text;
    int error;

    for (; gzgets(in, line, sizeof(line)) != NULL; ++number) {
        if ((strchr(line, '\n') == NULL) && !gzeof(in)) {
            return import_bad_line(file, number, "is too long");
        }
        if ((line[0] == '#') || (line[strspn(line, " \r\n")] == '\0')) {
            continue;
        }
        trace->events = tool_grow(trace->events, trace->count, &capacity,
                                  sizeof(*trace->events));
        text          = import_parse_event(line,
                                           &trace->events[trace->count++]);
        if (text != NULL) {
            return import_bad_line(file, number, text);
        }
    }

    text = gzerror(in, &error);
    if (error != Z_OK) {
        return import_bad_line(file, number, (error == Z_ERRNO) ?
                                                     strerror(errno) : text);
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

static void import_encode(const ucs_trace_t *trace, FILE *stream)
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
static int import_write(const ucs_trace_t *trace, const char *out)
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

static int import_file(const char *file, const char *out)
{
    gzFile in         = tool_input_open_gz(file);
    ucs_trace_t trace = {};
    int ret;

    if (in == NULL) {
        return -1;
    }
    ret = import_lines(file, in, &trace);
    gzclose(in);
    if (ret == 0) {
        ret = import_write(&trace, out);
    }
    ucs_trace_cleanup(&trace);
    return ret;
}

/* NAME.gz goes to OUT/NAME.trace; the caller frees it */
static char *import_path(const char *file, const char *folder)
{
    const char *slash = strrchr(file, '/');
    const char *name  = (slash != NULL) ? slash + 1 : file;
    size_t length     = strlen(name);

    if ((length > 3) && !strcmp(name + length - 3, ".gz")) {
        length -= 3;
    }
    return tool_format("%s/%.*s" IMPORT_SUFFIX, folder, (int)length, name);
}

static int import_files(char *const *files, int count, const char *out)
{
    struct stat st;
    int is_folder = (stat(out, &st) == 0) && S_ISDIR(st.st_mode);
    int status    = TOOL_EXIT_OK;
    char *path;
    int i;

    if ((count > 1) && !is_folder) {
        tool_message("-o '%s': with several files this must be a folder that "
                     "exists", out);
        return TOOL_EXIT_USAGE;
    }
    for (i = 0; i < count; ++i) {
        path = is_folder ? import_path(files[i], out) : tool_strdup(out);
        if (import_file(files[i], path) != 0) {
            status = TOOL_EXIT_FAILED;
        }
        free(path);
    }
    return status;
}

static int import_random(const import_command_t *command)
{
    ucs_trace_t trace;
    int ret;

    import_random_make(command->seed, command->uses, &trace);
    ret = import_write(&trace, command->out);
    ucs_trace_cleanup(&trace);
    return (ret == 0) ? TOOL_EXIT_OK : TOOL_EXIT_FAILED;
}

static int import_number(const char *value, uint64_t min, uint64_t max,
                         uint64_t *number_p)
{
    return ((tool_units_parse_count(value, number_p) == 0) &&
            (*number_p >= min) && (*number_p <= max)) ? 0 : -1;
}

static int import_parse_random(void *field, const char *value)
{
    import_command_t *command = field;

    command->is_random = 1;
    return import_number(value, 0, UINT32_MAX, &command->seed);
}

static int import_parse_uses(void *field, const char *value)
{
    return import_number(value, 1, IMPORT_USES_MAX, field);
}

static const tool_option_t import_options[] = {
    {"o", tool_option_text, offsetof(import_command_t, out), NULL, NULL},
    {"random", import_parse_random, 0, "a whole number from 0 to 4294967295",
     NULL},
    {"uses", import_parse_uses, offsetof(import_command_t, uses),
     "a whole number from 1 to 10000000", NULL},
    {}
};

int tool_import_main(int argc, char **argv)
{
    import_command_t command = {.uses = IMPORT_USES};
    int status;

    status = tool_options_parse(argc, argv, (const tool_options_t[]){
            {import_options, &command}, {}}, import_usage);
    if (status >= 0) {
        return status;
    }
    if ((command.out == NULL) || (command.is_random != (optind == argc))) {
        tool_message("import needs a FILE, or --random, and -o OUT (see %s "
                     "import --help)", TOOL_NAME);
        return TOOL_EXIT_USAGE;
    }
    return command.is_random ? import_random(&command) :
                               import_files(argv + optind, argc - optind,
                                            command.out);
}
