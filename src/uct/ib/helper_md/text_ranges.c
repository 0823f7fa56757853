/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "text_ranges.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

static const char *const uct_helper_ucx_prefixes[] = {"libucp", "libuct",
                                                      "libucs", "libucm", NULL};

static int uct_helper_text_is_ucx(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name  = (slash == NULL) ? path : slash + 1;
    const char *const *prefix;
    size_t length;

    for (prefix = uct_helper_ucx_prefixes; *prefix != NULL; ++prefix) {
        length = strlen(*prefix);
        if (!strncmp(name, *prefix, length) &&
            ((name[length] == '.') || (name[length] == '_'))) {
            return 1;
        }
    }

    return 0;
}

/* Linked into the program itself, as in the unit tests, the helper's code
 * cannot be told from the program's; then it counts as the program's. */
static int uct_helper_text_is_own(const struct dl_phdr_info *info)
{
    uintptr_t self = (uintptr_t)uct_helper_text_is_own;
    const ElfW(Phdr) *phdr;
    unsigned i;

    if (info->dlpi_name[0] == '\0') {
        return 0;
    }

    for (i = 0; i < info->dlpi_phnum; ++i) {
        phdr = &info->dlpi_phdr[i];
        if ((phdr->p_type == PT_LOAD) &&
            ((self - (info->dlpi_addr + phdr->p_vaddr)) < phdr->p_memsz)) {
            return 1;
        }
    }

    return 0;
}

static int uct_helper_text_add(struct dl_phdr_info *info, size_t size,
                               void *arg)
{
    uct_helper_text_ranges_t *ranges = arg;
    const ElfW(Phdr) *phdr;
    unsigned i;

    (void)size;
    ranges->loads = info->dlpi_adds;
    if (!uct_helper_text_is_ucx(info->dlpi_name) &&
        !uct_helper_text_is_own(info)) {
        return 0;
    }

    for (i = 0; i < info->dlpi_phnum; ++i) {
        phdr = &info->dlpi_phdr[i];
        if ((phdr->p_type != PT_LOAD) || !(phdr->p_flags & PF_X) ||
            (ranges->count == UCT_HELPER_TEXT_RANGES_MAX)) {
            continue;
        }

        ranges->range[ranges->count].start = info->dlpi_addr + phdr->p_vaddr;
        ranges->range[ranges->count].end   = info->dlpi_addr + phdr->p_vaddr +
                                             phdr->p_memsz;
        ++ranges->count;
    }

    return 0;
}

/* The count is the same for all libraries, so the first one is enough */
static int uct_helper_text_loads(struct dl_phdr_info *info, size_t size,
                                 void *arg)
{
    (void)size;
    *(unsigned long long*)arg = info->dlpi_adds;
    return 1;
}

static int uct_helper_text_compare(const void *left, const void *right)
{
    uintptr_t a = *(const uintptr_t*)left;
    uintptr_t b = *(const uintptr_t*)right;

    return (a > b) - (a < b);
}

void uct_helper_text_ranges_update(uct_helper_text_ranges_t *ranges)
{
    unsigned long long loads = 0;

    dl_iterate_phdr(uct_helper_text_loads, &loads);
    if (loads == ranges->loads) {
        return;
    }

    ranges->count = 0;
    dl_iterate_phdr(uct_helper_text_add, ranges);
    qsort(ranges->range, ranges->count, sizeof(ranges->range[0]),
          uct_helper_text_compare);
}

int uct_helper_text_ranges_have(const uct_helper_text_ranges_t *ranges,
                                uintptr_t address)
{
    unsigned low  = 0;
    unsigned high = ranges->count;
    unsigned middle;

    while (low < high) {
        middle = (low + high) / 2;
        if (address < ranges->range[middle].start) {
            high = middle;
        } else if (address >= ranges->range[middle].end) {
            low = middle + 1;
        } else {
            return 1;
        }
    }

    return 0;
}
