/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/nearest.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Longer than any of our options */
#define UCS_NEAREST_WORD_MAX 48

/* More edits make another word */
#define UCS_NEAREST_SLIPS 2

/* At most a third of a word may be wrong, or all short ones would be near each
 * other */
#define UCS_NEAREST_PART 3


static unsigned ucs_nearest_min(unsigned a, unsigned b)
{
    return (a < b) ? a : b;
}

static int ucs_nearest_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits between a and b, a swap of neighbours being one: rows of the table by
 * letters of a, of which the last three are kept */
static unsigned ucs_nearest_distance(const char *a, size_t a_length,
                                     const char *b, size_t b_length)
{
    unsigned rows[3][UCS_NEAREST_WORD_MAX + 1];
    unsigned *row, *above, *above2;
    size_t i, j;

    for (j = 0; j <= b_length; ++j) {
        rows[0][j] = j;
    }
    for (i = 1; i <= a_length; ++i) {
        row    = rows[i % 3];
        above  = rows[(i + 2) % 3];
        above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (j = 1; j <= b_length; ++j) {
            row[j] = ucs_nearest_min(above[j], row[j - 1]) + 1;
            row[j] = ucs_nearest_min(
                    row[j],
                    above[j - 1] + !ucs_nearest_same(a[i - 1], b[j - 1]));
            if ((i > 1) && (j > 1) && ucs_nearest_same(a[i - 1], b[j - 2]) &&
                ucs_nearest_same(a[i - 2], b[j - 1])) {
                row[j] = ucs_nearest_min(row[j], above2[j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

void ucs_nearest_begin(ucs_nearest_t *nearest, const char *text, size_t length)
{
    nearest->text     = text;
    nearest->length   = length;
    nearest->word     = NULL;
    nearest->distance = UCS_NEAREST_SLIPS + 1;
}

void ucs_nearest_try(ucs_nearest_t *nearest, const char *word)
{
    size_t length  = strlen(word);
    size_t longest = (length > nearest->length) ? length : nearest->length;
    unsigned distance;

    if (longest > UCS_NEAREST_WORD_MAX) {
        return;
    }
    distance = ucs_nearest_distance(nearest->text, nearest->length, word,
                                    length);
    if ((distance < nearest->distance) &&
        (distance * UCS_NEAREST_PART <= longest)) {
        nearest->word     = word;
        nearest->distance = distance;
    }
}

const char *ucs_nearest_of(const char *text, size_t length,
                           const char *const *words)
{
    ucs_nearest_t nearest;

    ucs_nearest_begin(&nearest, text, length);
    for (; *words != NULL; ++words) {
        ucs_nearest_try(&nearest, *words);
    }
    return nearest.word;
}

const char *ucs_nearest_hint(const char *word, const char *prefix, char *hint)
{
    hint[0] = '\0';
    if (word != NULL) {
        snprintf(hint, UCS_NEAREST_HINT_MAX, "; did you mean '%s%s'?", prefix,
                 word);
    }
    return hint;
}
