/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "options.h"

#include <stdlib.h>
#include <unistd.h>


uint64_t options_number(const char *text, options_usage_func_t usage)
{
    char *end;
    uint64_t value = strtoull(text, &end, 0);

    if ((*end == 'k') || (*end == 'm')) {
        value <<= (*end == 'k') ? 10 : 20;
        end++;
    }
    if ((end == text) || (*end != '\0')) {
        usage();
    }
    return value;
}

void options_check(int argc, size_t least, size_t min_size, size_t max_size,
                   size_t most, options_usage_func_t usage)
{
    if ((optind != argc) || (min_size < least) || (min_size > max_size) ||
        (max_size > most)) {
        usage();
    }
}
