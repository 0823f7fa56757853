/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "doctor.h"

#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/*
 * The process in which UCX is opened: `ucx-helper run` has put the library in
 * front. Its answers are lines that begin with "probe:"; between them stand those
 * of UCX and of the helper.
 */

/* In the loader's global scope what is preloaded comes first; this program is
 * linked without UCX */
#define TOOL_PROBE_CALL(_name) ((__typeof__(&(_name)))dlsym(RTLD_DEFAULT, #_name))

#define TOOL_PROBE_UCP      "libucp.so.0"
#define TOOL_PROBE_LENGTH   (1u << 20)

/* Registrations are timed of so many pages, in turn; so often, or so long for
 * each domain. Halved: noise of 5 %; doubled: the doctor is slow. */
#define TOOL_PROBE_FEW      4
#define TOOL_PROBE_MANY     1024
#define TOOL_PROBE_ROUNDS   64
#define TOOL_PROBE_NS       UINT64_C(400000000)

/* Before each of them the core reads so many bytes of other memory, and sleeps, as a
 * helper does between two uses: what a registration reads is in no cache of its own
 * then. Halved: less than some cores' second cache; doubled: half as many rounds. */
#define TOOL_PROBE_OTHER    (16u << 20)
#define TOOL_PROBE_LINE     64
#define TOOL_PROBE_REST_NS  1000000

/* A buffer takes that part of the memlock limit: some kernels unpin a second late */
#define TOOL_PROBE_OF_LIMIT 8

/* Kinds of operations that are timed: of few pages and of many */
enum {
    TOOL_PROBE_REG_FEW,
    TOOL_PROBE_DEREG_FEW,
    TOOL_PROBE_REG_MANY,
    TOOL_PROBE_DEREG_MANY,
    TOOL_PROBE_KINDS
};

typedef struct tool_probe_times {
    double   ns[TOOL_PROBE_KINDS][TOOL_PROBE_ROUNDS];
    unsigned count;
} tool_probe_times_t;

static const char *tool_probe_words(ucs_status_t status)
{
    return TOOL_PROBE_CALL(ucs_status_string)(status);
}

static void *tool_probe_map(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        tool_out_of_memory();
    }
    memset(memory, 1, length);
    return memory;
}

/* @return Nonzero if there is a UCX */
static int tool_probe_open(void)
{
    void *handle = dlopen(TOOL_PROBE_UCP, RTLD_NOW | RTLD_GLOBAL);
    Dl_info info;

    if ((handle == NULL) ||
        (dlsym(RTLD_DEFAULT, "ucp_get_version_string") == NULL) ||
        !dladdr(dlsym(RTLD_DEFAULT, "ucp_get_version_string"), &info)) {
        printf("probe: none %s\n", (handle == NULL) ? dlerror() :
                                                      "it is no UCX");
        return 0;
    }
    printf("probe: ucx %s %s\n", TOOL_PROBE_CALL(ucp_get_version_string)(),
           info.dli_fname);
    fflush(stdout); /* UCX writes beside us */
    return 1;
}

/* As a rank would: UCP's options, its domains, a worker, with which UCX tells of
 * variables that it did not use, and one registration, with which the helper thread
 * starts */
static void tool_probe_helper(void)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_RMA
    };
    ucp_mem_map_params_t map = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = TOOL_PROBE_LENGTH
    };
    const ucp_worker_params_t worker_params = {};
    ucp_config_t *config;
    ucp_context_h context;
    ucp_worker_h worker;
    ucs_status_t status;
    ucp_mem_h memh;

    status = TOOL_PROBE_CALL(ucp_config_read)(NULL, NULL, &config);
    if ((status != UCS_OK) || (TOOL_PROBE_CALL(ucp_init_version) == NULL)) {
        return; /* what stands in front of UCP has said why */
    }
    status = TOOL_PROBE_CALL(ucp_init_version)(UCP_API_MAJOR, UCP_API_MINOR,
                                               &params, config, &context);
    if (status == UCS_OK) {
        TOOL_PROBE_CALL(ucp_context_print_info)(context, stdout);
        fflush(stdout);
        status = TOOL_PROBE_CALL(ucp_worker_create)(context, &worker_params,
                                                    &worker);
    }
    if (status == UCS_OK) {
        map.address = tool_probe_map(TOOL_PROBE_LENGTH);
        status      = TOOL_PROBE_CALL(ucp_mem_map)(context, &map, &memh);
    }
    if (status != UCS_OK) {
        printf("probe: failed %s\n", tool_probe_words(status));
    }
}

static void tool_probe_rest(void)
{
    const struct timespec nap = {.tv_nsec = TOOL_PROBE_REST_NS};
    static volatile char *other;
    size_t i;

    if (other == NULL) {
        other = tool_probe_map(TOOL_PROBE_OTHER);
    }
    for (i = 0; i < TOOL_PROBE_OTHER; i += TOOL_PROBE_LINE) {
        (void)other[i];
    }
    nanosleep(&nap, NULL);
}

/* The kinds are that one and the next */
static ucs_status_t tool_probe_once(uct_md_h md, void *memory, size_t length,
                                    tool_probe_times_t *times, int kind)
{
    uint64_t start, end;
    ucs_status_t status;
    uct_mem_h memh;

    tool_probe_rest();
    start  = ucs_clock_now();
    status = TOOL_PROBE_CALL(uct_md_mem_reg)(
            md, memory, length,
            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh);
    if (status == UCS_OK) {
        end = ucs_clock_now();
        times->ns[kind][times->count] = end - start;
        tool_probe_rest();
        start = ucs_clock_now();
        (void)TOOL_PROBE_CALL(uct_md_mem_dereg)(md, memh);
        end = ucs_clock_now();
        times->ns[kind + 1][times->count] = end - start;
    }
    return status;
}

/* Of an operation, and of a page */
static void tool_probe_print(tool_probe_times_t *times, int kind, size_t many)
{
    double few_ns  = tool_median(times->ns[kind], times->count);
    double many_ns = tool_median(times->ns[kind + TOOL_PROBE_REG_MANY],
                                 times->count);
    double page_ns = ucs_max(0, (many_ns - few_ns) / (many - TOOL_PROBE_FEW));

    printf(" %.1f %.2f", ucs_max(0, few_ns - TOOL_PROBE_FEW * page_ns),
           page_ns);
}

static void tool_probe_time(uct_md_h md, const char *name)
{
    tool_probe_times_t times = {};
    struct rlimit limit      = {RLIM_INFINITY, RLIM_INFINITY};
    size_t page              = sysconf(_SC_PAGESIZE);
    uint64_t since           = ucs_clock_now();
    ucs_status_t status      = UCS_OK;
    size_t many;
    void *memory;

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    many   = ucs_min(TOOL_PROBE_MANY,
                     limit.rlim_cur / page / TOOL_PROBE_OF_LIMIT);
    many   = ucs_max(many, 2 * TOOL_PROBE_FEW);
    memory = tool_probe_map(many * page);
    while ((status == UCS_OK) && (times.count < TOOL_PROBE_ROUNDS) &&
           (ucs_clock_now() - since < TOOL_PROBE_NS)) {
        status = tool_probe_once(md, memory, TOOL_PROBE_FEW * page, &times,
                                 TOOL_PROBE_REG_FEW);
        if (status == UCS_OK) {
            status = tool_probe_once(md, memory, many * page, &times,
                                     TOOL_PROBE_REG_MANY);
        }
        times.count += (status == UCS_OK);
    }
    if (times.count == 0) {
        printf("probe: refused %s: %s\n", name, tool_probe_words(status));
        return;
    }
    printf("probe: cost %s", name);
    tool_probe_print(&times, TOOL_PROBE_REG_FEW, many);
    tool_probe_print(&times, TOOL_PROBE_DEREG_FEW, many);
    putchar('\n');
}

/* Those that the helper decorates are timed */
static void tool_probe_domain(uct_component_h component, const char *name,
                              const char *md_name)
{
    const char *pin = getenv(TOOL_ENV_PIN);
    int is_pin      = !strcmp(name, "cma") && (pin != NULL) &&
                      (strchr("yY1", *pin) != NULL);
    uct_md_config_t *config;
    uct_md_h md;

    printf("probe: domain %s\n", md_name);
    if ((is_pin || !strcmp(name, "ib")) &&
        (TOOL_PROBE_CALL(uct_md_config_read)(component, NULL, NULL, &config) ==
         UCS_OK) &&
        (TOOL_PROBE_CALL(uct_md_open)(component, md_name, config, &md) ==
         UCS_OK)) {
        tool_probe_time(md, is_pin ? "pin" : md_name);
    }
}

static void tool_probe_component(uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    unsigned i;

    if (TOOL_PROBE_CALL(uct_component_query)(component, &attr) == UCS_OK) {
        attr.md_resources = tool_calloc(attr.md_resource_count,
                                        sizeof(*attr.md_resources));
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        (void)TOOL_PROBE_CALL(uct_component_query)(component, &attr);
        for (i = 0; i < attr.md_resource_count; ++i) {
            tool_probe_domain(component, attr.name,
                              attr.md_resources[i].md_name);
        }
    }
}

static void tool_probe_cost(void)
{
    uct_component_h *components;
    unsigned count, i;

    if ((TOOL_PROBE_CALL(uct_query_components) != NULL) &&
        (TOOL_PROBE_CALL(uct_query_components)(&components, &count) ==
         UCS_OK)) {
        for (i = 0; i < count; ++i) {
            tool_probe_component(components[i]);
        }
    }
}

int tool_doctor_probe(const char *what)
{
    if (tool_probe_open()) {
        if (!strcmp(what, "cost")) {
            tool_probe_cost();
        } else {
            tool_probe_helper();
        }
    }
    puts("probe: end");
    fflush(stdout);
    _exit(TOOL_EXIT_OK); /* no report, which would be about nothing */
}
