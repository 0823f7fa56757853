/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What `ucx-helper report` reads: reports of several ranks, a zero byte between
 * them, merged and printed in both forms.
 */
#include "fuzz.h"

#include <tools/report/report.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_MAX_REPORTS 4

static void fuzz_report_add(tool_merge_t *merge, const uint8_t *data,
                            size_t size)
{
    int fd = memfd_create("report", MFD_CLOEXEC);
    json_t *report;
    char path[64];

    FUZZ_CHECK((fd >= 0) && (write(fd, data, size) == (ssize_t)size));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    report = tool_report_read(path);
    if (report != NULL) {
        (void)tool_merge_add(merge, report);
    }
    close(fd);
}

static void fuzz_report_print(const tool_merge_t *merge)
{
    FILE *stream = fopen("/dev/null", "w");

    FUZZ_CHECK(stream != NULL);
    FUZZ_CHECK(json_dumpf(merge->total, stream, JSON_REAL_PRECISION(15)) == 0);
    tool_table_print(merge, stream);
    fclose(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    const uint8_t *zero;
    tool_merge_t merge;
    int i;

    tool_merge_init(&merge);
    for (i = 0; (i < FUZZ_MAX_REPORTS) && (data < end); ++i) {
        zero = memchr(data, '\0', end - data);
        zero = (zero != NULL) ? zero : end;
        fuzz_report_add(&merge, data, zero - data);
        data = zero + (zero < end);
    }
    if (json_array_size(merge.ranks) > 0) {
        tool_merge_finish(&merge);
        fuzz_report_print(&merge);
    }
    tool_merge_cleanup(&merge);
    return 0;
}
