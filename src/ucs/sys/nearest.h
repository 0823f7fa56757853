/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_NEAREST_H_
#define UCS_NEAREST_H_

#include <stddef.h>

/**
 * @file nearest.h
 *
 * The nearest word to a mistyped one, for options, their values and the tool's
 * commands. Pure; needs libc alone.
 */

#ifdef __cplusplus
extern "C" {
#endif

/** Size of a hint that @ref ucs_nearest_hint writes. */
#define UCS_NEAREST_HINT_MAX 96

/** A search; @a word is the nearest so far, NULL if none is near. */
typedef struct ucs_nearest {
    const char *text;  /**< what was typed; must outlive the search */
    size_t     length; /**< of it, in bytes */
    const char *word;
    unsigned   distance;
} ucs_nearest_t;


/** Begin a search for the word nearest to @a length bytes of @a text. */
void ucs_nearest_begin(ucs_nearest_t *nearest, const char *text, size_t length);


/**
 * Try @a word, which must outlive the search. It is near if one or two edits (a
 * letter too many, missing, wrong, or two swapped; case does not count), at
 * most a third of it, make the text. The first of equals wins.
 */
void ucs_nearest_try(ucs_nearest_t *nearest, const char *word);


/** Try all of @a words, NULL-terminated. @return The nearest, or NULL. */
const char *ucs_nearest_of(const char *text, size_t length,
                           const char *const *words);


/** Write "; did you mean 'WORD'?", or nothing if @a word is NULL. @return
 *  @a hint. */
const char *ucs_nearest_hint(const char *word, const char *prefix, char *hint);

#ifdef __cplusplus
}
#endif

#endif
