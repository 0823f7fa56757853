/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_ADDRESS_SPACE_H_
#define TEST_ADDRESS_SPACE_H_

#include <cstdio>
#include <cstring>

/** A size of /proc/self/status, as VmSize and VmPin, bytes. */
static inline size_t address_space(const char *name)
{
    char line[128];
    size_t kb  = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while ((file != nullptr) && (fgets(line, sizeof(line), file) != nullptr)) {
        if (!strncmp(line, name, strlen(name))) {
            (void)sscanf(line + strlen(name), ": %zu", &kb);
        }
    }
    if (file != nullptr) {
        fclose(file);
    }
    return kb << 10;
}

#endif
