/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/stat.h>
#include <zlib.h>

void tool_out_of_memory(void)
{
    fputs(TOOL_NAME ": out of memory\n", stderr);
    exit(TOOL_EXIT_FAILED);
}

void tool_string_sanitize(char *str)
{
    unsigned char *p;

    for (p = (unsigned char*)str; *p != '\0'; ++p) {
        if ((*p < ' ') || (*p == 0x7f)) {
            *p = '?';
        }
    }
}

static char *tool_vformat(const char *fmt, va_list ap)
{
    char *text;

    if (vasprintf(&text, fmt, ap) < 0) {
        tool_out_of_memory();
    }
    return text;
}

void tool_message(const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    text = tool_vformat(fmt, ap);
    va_end(ap);

    tool_string_sanitize(text);
    fprintf(stderr, "%s: %s\n", TOOL_NAME, text);
    free(text);
}

char *tool_format(const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    text = tool_vformat(fmt, ap);
    va_end(ap);
    return text;
}

int tool_finish_output(void)
{
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        tool_message("cannot write the output: %m");
        return TOOL_EXIT_FAILED;
    }
    return TOOL_EXIT_OK;
}

void *tool_realloc(void *ptr, size_t size)
{
    ptr = realloc(ptr, size);
    if (ptr == NULL) {
        tool_out_of_memory();
    }
    return ptr;
}

void *tool_calloc(size_t count, size_t size)
{
    void *ptr = calloc((count > 0) ? count : 1, size);

    if (ptr == NULL) {
        tool_out_of_memory();
    }
    return ptr;
}

void *tool_grow(void *items, size_t count, size_t *capacity_p, size_t size)
{
    if (count < *capacity_p) {
        return items;
    }
    *capacity_p = 2 * *capacity_p + 64;
    return tool_realloc(items, *capacity_p * size);
}

static int tool_compare(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

double tool_median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), tool_compare);
    return numbers[count / 2];
}

char *tool_strdup(const char *str)
{
    return tool_format("%s", str);
}

void tool_list_addf(tool_list_t *list, const char *fmt, ...)
{
    va_list ap;

    list->items = tool_realloc(list->items,
                               (list->count + 2) * sizeof(*list->items));
    va_start(ap, fmt);
    list->items[list->count++] = tool_vformat(fmt, ap);
    va_end(ap);
    list->items[list->count] = NULL;
}

void tool_list_add(tool_list_t *list, const char *str)
{
    tool_list_addf(list, "%s", str);
}

void tool_list_put(tool_list_t *list, size_t index, char *str)
{
    free(list->items[index]);
    list->items[index] = str;
}

int tool_list_has(const tool_list_t *list, const char *str)
{
    size_t i;

    for (i = 0; i < list->count; ++i) {
        if (!strcmp(list->items[i], str)) {
            return 1;
        }
    }
    return 0;
}

void tool_list_add_unique(tool_list_t *list, const char *str)
{
    if (!tool_list_has(list, str)) {
        tool_list_add(list, str);
    }
}

char *tool_list_join(const tool_list_t *list, const char *separator)
{
    char *joined = tool_strdup("");
    char *longer;
    size_t i;

    for (i = 0; i < list->count; ++i) {
        longer = tool_format("%s%s%s", joined, (i > 0) ? separator : "",
                             list->items[i]);
        free(joined);
        joined = longer;
    }
    return joined;
}

static int tool_list_compare(const void *a, const void *b)
{
    return strcmp(*(char *const*)a, *(char *const*)b);
}

void tool_list_sort(tool_list_t *list)
{
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof(*list->items),
              tool_list_compare);
    }
}

void tool_list_cleanup(tool_list_t *list)
{
    size_t i;

    for (i = 0; i < list->count; ++i) {
        free(list->items[i]);
    }
    free(list->items);
    list->items = NULL;
    list->count = 0;
}

#define TOOL_INPUT_CHUNK (1u << 16)

/* What is no file is not opened, for that may act on a device */
static gzFile tool_input_open(const char *file)
{
    gzFile in = NULL;
    struct stat st;

    if ((stat(file, &st) == 0) && !S_ISREG(st.st_mode) &&
        !S_ISFIFO(st.st_mode)) {
        tool_message("%s: is a %s; allowed: a regular file or a pipe", file,
                     S_ISDIR(st.st_mode)  ? "folder" :
                     S_ISSOCK(st.st_mode) ? "socket" :
                                            "device");
        return NULL;
    }

    in = gzopen(file, "rbe");
    if (in == NULL) {
        tool_message("%s: cannot be read: %m", file);
    }
    return in;
}

char *tool_input_read(const char *file, size_t max, size_t *size_p)
{
    gzFile in       = tool_input_open(file);
    size_t capacity = TOOL_INPUT_CHUNK + 1;
    size_t size     = 0;
    const char *reason;
    char *text;
    int got, error;

    if (in == NULL) {
        return NULL;
    }

    text = tool_realloc(NULL, capacity);
    while ((size <= max) &&
           ((got = gzread(in, text + size, TOOL_INPUT_CHUNK)) > 0)) {
        size += got;
        if (capacity - size <= TOOL_INPUT_CHUNK) {
            capacity *= 2;
            text      = tool_realloc(text, capacity);
        }
    }

    /* The end of a file that is cut short is an error that is only told here */
    reason = gzerror(in, &error);
    if (error != Z_OK) {
        tool_message("%s: cannot be read: %s", file,
                     (error == Z_ERRNO) ? strerror(errno) : reason);
    } else if (size > max) {
        tool_message("%s: too large, more than %zu bytes", file, max);
    }
    (void)gzclose(in);
    if ((error != Z_OK) || (size > max)) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    *size_p    = size;
    return text;
}
