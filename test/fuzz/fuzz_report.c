/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What `ucx-helper report` reads: reports of several ranks, a zero byte between
 * them, merged and printed in both forms.
 */
#include <tools/report/report.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_MAX_REPORTS 4
#define FUZZ_CHECK(_is_true) \
    do { \
        if (!(_is_true)) { \
            abort(); \
        } \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_report_add(tool_merge_t *merge, const uint8_t *data,
                            size_t size)
{
    int fd = memfd_create("report", MFD_CLOEXEC);
    tool_report_t report;
    char path[64];

    FUZZ_CHECK((fd >= 0) && (write(fd, data, size) == (ssize_t)size));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (tool_report_read(path, &report) == 0) {
        FUZZ_CHECK(report.uses == report.on_time + report.late +
                                  report.missed + report.cold);
        (void)tool_merge_add(merge, &report);
    }
    close(fd);
}

static void fuzz_report_print(const tool_merge_t *merge)
{
    FILE *stream = fopen("/dev/null", "w");
    json_t *object;

    FUZZ_CHECK(stream != NULL);
    object = tool_merge_to_json(merge);
    FUZZ_CHECK(object != NULL);
    FUZZ_CHECK(json_dumpf(object, stream, JSON_REAL_PRECISION(15)) == 0);
    json_decref(object);
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
    if (merge.count > 0) {
        tool_merge_finish(&merge);
        fuzz_report_print(&merge);
    }
    tool_merge_cleanup(&merge);
    return 0;
}
