/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_JSON_H_
#define UCT_HELPER_JSON_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <stdio.h>

/**
 * @file json.h
 *
 * A writer for flat JSON objects. Text comes out as valid UTF-8 whatever goes
 * in, numbers with a decimal point whatever the locale, and what JSON cannot
 * express (infinities) as null. Errors stay in the stream's error indicator.
 */

BEGIN_C_DECLS

typedef struct uct_helper_json {
    FILE       *stream;
    unsigned   depth;
    const char *separator; /* before the next member */
} uct_helper_json_t;


/** Begin an object; @a key is NULL for the outermost one. */
void uct_helper_json_begin(uct_helper_json_t *json, const char *key);


/** End the innermost object. */
void uct_helper_json_end(uct_helper_json_t *json);


void uct_helper_json_string(uct_helper_json_t *json, const char *key,
                            const char *value);
void uct_helper_json_integer(uct_helper_json_t *json, const char *key,
                             int64_t value);
void uct_helper_json_count(uct_helper_json_t *json, const char *key,
                           uint64_t value);
void uct_helper_json_number(uct_helper_json_t *json, const char *key,
                            double value);
void uct_helper_json_null(uct_helper_json_t *json, const char *key);


/** Member whose value is an array of @a count strings. */
void uct_helper_json_strings(uct_helper_json_t *json, const char *key,
                             const char *const *values, unsigned count);

END_C_DECLS

#endif
