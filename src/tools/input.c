/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "input.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

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
