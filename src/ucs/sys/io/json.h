/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_JSON_H_
#define UCS_JSON_H_

#include <stdio.h>

/*
 * A writer for flat JSON objects. Text is always valid UTF-8, numbers have a
 * decimal point in any locale, infinities become null. Errors stay in the
 * stream's error indicator.
 */

typedef struct ucs_json {
    FILE       *stream;
    unsigned   depth;
    const char *separator; /* before the next member */
} ucs_json_t;

/** Begin an object; @a key is NULL for the outermost one. */
void ucs_json_begin(ucs_json_t *json, const char *key);

/** End the innermost object. */
void ucs_json_end(ucs_json_t *json);

/** Each writes one member of the innermost object. A string is not NULL; a
 *  number that is not finite becomes null; what is printed stands as it is. */
void ucs_json_string(ucs_json_t *json, const char *key, const char *value);
void ucs_json_number(ucs_json_t *json, const char *key, double value);
void ucs_json_print(ucs_json_t *json, const char *key, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/** Member whose value is an array of @a count strings. */
void ucs_json_strings(ucs_json_t *json, const char *key,
                      const char *const *values, unsigned count);

#endif
