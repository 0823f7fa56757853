/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/io/json.h>

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at text, or 0. Overlong forms, surrogates
 * and values above U+10FFFF are not valid. */
static unsigned ucs_json_utf8_length(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code;
    unsigned length, i;

    if (text[0] < 0x80) {
        return 1;
    }
    /* As many as it begins with ones */
    length = __builtin_clz(~((uint32_t)text[0] << 24));
    if ((length < 2) || (length > 4)) {
        return 0;
    }

    code = text[0] & (0x7f >> length);
    for (i = 1; i < length; ++i) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = (code << 6) | (text[i] & 0x3f);
    }

    return ((code < least[length]) || (code > 0x10ffff) ||
            ((code >= 0xd800) && (code < 0xe000))) ? 0 : length;
}

static void ucs_json_text(ucs_json_t *json, const char *value)
{
    const unsigned char *text = (const unsigned char*)value;
    unsigned length;

    fputc('"', json->stream);
    for (; *text != '\0'; text += length) {
        length = ucs_json_utf8_length(text);
        if (length == 0) {
            /* The replacement character, for a byte that is not text */
            fputs("\\ufffd", json->stream);
            length = 1;
        } else if ((*text == '"') || (*text == '\\')) {
            fprintf(json->stream, "\\%c", *text);
        } else if ((*text < 0x20) || (*text == 0x7f)) {
            fprintf(json->stream, "\\u%04x", *text);
        } else {
            fwrite(text, 1, length, json->stream);
        }
    }
    fputc('"', json->stream);
}

static void ucs_json_key(ucs_json_t *json, const char *key)
{
    fprintf(json->stream, "%s\n%*s", json->separator, 2 * json->depth, "");
    ucs_json_text(json, key);
    fputs(": ", json->stream);
    json->separator = ",";
}

void ucs_json_begin(ucs_json_t *json, const char *key)
{
    if (key != NULL) {
        ucs_json_key(json, key);
    } else {
        json->depth = 0;
    }

    fputc('{', json->stream);
    json->separator = "";
    ++json->depth;
}

void ucs_json_end(ucs_json_t *json)
{
    --json->depth;
    fprintf(json->stream, "\n%*s}", 2 * json->depth, "");
    json->separator = ",";
    if (json->depth == 0) {
        fputc('\n', json->stream);
    }
}

void ucs_json_string(ucs_json_t *json, const char *key, const char *value)
{
    ucs_json_key(json, key);
    ucs_json_text(json, value);
}

void ucs_json_print(ucs_json_t *json, const char *key, const char *format, ...)
{
    va_list args;

    ucs_json_key(json, key);
    va_start(args, format);
    vfprintf(json->stream, format, args);
    va_end(args);
}

void ucs_json_number(ucs_json_t *json, const char *key, double value)
{
    char text[64];
    char *point, *rest;

    if (!isfinite(value)) {
        ucs_json_print(json, key, "null");
        return;
    }

    snprintf(text, sizeof(text), "%.12g", value);
    point = text + strspn(text, "-0123456789");
    if ((*point != '\0') && (*point != 'e')) {
        /* The locale's point, which may take several bytes */
        rest   = point + strcspn(point, "0123456789");
        *point = '.';
        memmove(point + 1, rest, strlen(rest) + 1);
    }

    ucs_json_print(json, key, "%s", text);
}

void ucs_json_strings(ucs_json_t *json, const char *key,
                      const char *const *values, unsigned count)
{
    unsigned i;

    ucs_json_key(json, key);
    fputc('[', json->stream);
    for (i = 0; i < count; ++i) {
        if (i > 0) {
            fputs(", ", json->stream);
        }
        ucs_json_text(json, values[i]);
    }
    fputc(']', json->stream);
}
