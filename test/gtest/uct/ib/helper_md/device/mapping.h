/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef MAPPING_H_
#define MAPPING_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

struct mapping_t {
    std::string flags;              /* of VmFlags, each behind a space */
    bool        is_watched = false; /* by userfaultfd */
    unsigned    kb_present = ~0u;   /* ~0u: there is no such mapping */
};

/** @return What the kernel says of the mapping that the address lies in. */
static inline mapping_t mapping_of(const void *address)
{
    std::ifstream file("/proc/self/smaps");
    bool is_inside = false;
    mapping_t mapping;
    std::string line;
    uintptr_t start, end;

    while (std::getline(file, line)) {
        if (sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) ==
            2) {
            is_inside = (start <= (uintptr_t)address) &&
                        (end > (uintptr_t)address);
        } else if (is_inside) {
            (void)sscanf(line.c_str(), "Rss: %u kB", &mapping.kb_present);
            if (line.compare(0, 8, "VmFlags:") == 0) {
                mapping.flags      = line;
                mapping.is_watched = (line.find(" uw") != std::string::npos) ||
                                     (line.find(" um") != std::string::npos);
                break; /* its last line */
            }
        }
    }
    return mapping;
}

#endif
