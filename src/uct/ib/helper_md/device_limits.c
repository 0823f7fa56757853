/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "device_limits.h"

#include <ucs/sys/io/own_fd.h>

#include <dlfcn.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define UCT_HELPER_LIMITS_VERBS  "libibverbs.so.1"
#define UCT_HELPER_LIMITS_STATUS "/proc/thread-self/status"

/* The beginning of struct ibv_device_attr, which is part of the library's interface
 * and cannot change, and room for the rest of it */
typedef struct uct_helper_limits_attr {
    char     fw_ver[64];
    uint64_t node_guid;
    uint64_t sys_image_guid;
    uint64_t max_mr_size;
    uint64_t page_size_cap;
    uint32_t vendor_id;
    uint32_t vendor_part_id;
    uint32_t hw_ver;
    int      max_qp;
    int      max_qp_wr;
    unsigned device_cap_flags;
    int      max_sge;
    int      max_sge_rd;
    int      max_cq;
    int      max_cqe;
    int      max_mr;
    char     rest[512];
} uct_helper_limits_attr_t;

/* What is called of the library; devices and contexts are its own */
typedef struct uct_helper_limits_calls {
    void       **(*get_device_list)(int *count);
    void       (*free_device_list)(void **list);
    const char *(*get_device_name)(void *device);
    void       *(*open_device)(void *device);
    int        (*close_device)(void *context);
    int        (*query_device)(void *context, uct_helper_limits_attr_t *attr);
} uct_helper_limits_calls_t;

/* @return Zero if one is missing */
static int uct_helper_limits_find_calls(void *library,
                                        uct_helper_limits_calls_t *calls)
{
    calls->get_device_list  = dlsym(library, "ibv_get_device_list");
    calls->free_device_list = dlsym(library, "ibv_free_device_list");
    calls->get_device_name  = dlsym(library, "ibv_get_device_name");
    calls->open_device      = dlsym(library, "ibv_open_device");
    calls->close_device     = dlsym(library, "ibv_close_device");
    calls->query_device     = dlsym(library, "ibv_query_device");
    return (calls->get_device_list != NULL) &&
           (calls->free_device_list != NULL) &&
           (calls->get_device_name != NULL) && (calls->open_device != NULL) &&
           (calls->close_device != NULL) && (calls->query_device != NULL);
}

void uct_helper_limits_verbs(const char *device, uct_helper_limits_t *limits)
{
    void *library = dlopen(UCT_HELPER_LIMITS_VERBS, RTLD_NOW | RTLD_NOLOAD);
    uct_helper_limits_attr_t attr = {.max_mr = 0};
    uct_helper_limits_calls_t calls;
    void **list, *context;
    int i;

    *limits = (uct_helper_limits_t){.regions = UINT64_MAX};
    if (library == NULL) {
        return;
    }
    if (uct_helper_limits_find_calls(library, &calls) &&
        ((list = calls.get_device_list(NULL)) != NULL)) {
        for (i = 0; list[i] != NULL; ++i) {
            if (strcmp(calls.get_device_name(list[i]), device) ||
                ((context = calls.open_device(list[i])) == NULL)) {
                continue;
            }
            if ((calls.query_device(context, &attr) == 0) && (attr.max_mr > 0)) {
                limits->regions    = (uint64_t)attr.max_mr;
                limits->max_length = attr.max_mr_size;
            }
            (void)calls.close_device(context);
        }
        calls.free_device_list(list);
    }
    dlclose(library);
}

/* @return Nonzero if the system does not count what this process locks */
static int uct_helper_limits_may_lock(void)
{
    char text[4096];
    const char *line;

    if (ucs_own_fd_read_text(UCT_HELPER_LIMITS_STATUS, text, sizeof(text)) <= 0) {
        return 0;
    }
    line = strstr(text, "\nCapEff:");
    return (line != NULL) &&
           ((strtoull(line + strlen("\nCapEff:"), NULL, 16) >> CAP_IPC_LOCK) & 1);
}

uint64_t uct_helper_limits_memlock(void)
{
    struct rlimit limit;

    return ((getrlimit(RLIMIT_MEMLOCK, &limit) != 0) ||
            (limit.rlim_cur == RLIM_INFINITY) || uct_helper_limits_may_lock()) ?
                   UINT64_MAX :
                   limit.rlim_cur;
}
