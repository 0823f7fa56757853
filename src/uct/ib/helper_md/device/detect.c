/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "detect.h"

#include <ucs/sys/io/log.h>
#include <uct/base/uct_abi.h>

#include <pthread.h>
#include <string.h>

/* Domains that detect one type each: CUDA, ROCm, ZE, Gaudi, and room for
 * more */
#define UCT_HELPER_DETECT_MAX 8

/* ucs_memory_info_t grew in 1.22; the type is its first field */
#define UCT_HELPER_DETECT_INFO_MAX 128

#define UCT_HELPER_DETECT_UNKNOWN "unknown"

/* Exported by libucs, declared in headers that not every libucx-dev ships */
ucs_status_t ucs_memtype_cache_lookup(const void *address, size_t size,
                                      void *info);
extern const char *ucs_memory_type_names[];

static pthread_mutex_t uct_helper_detect_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned uct_helper_detect_users;
static uct_md_h uct_helper_detect_mds[UCT_HELPER_DETECT_MAX];
static unsigned uct_helper_detect_num_mds;


/* The value of "unknown" differs between releases; it is the last name before
 * the NULL */
int uct_helper_detect_is_unknown(ucs_memory_type_t type)
{
    return (ucs_memory_type_names[type] == NULL) ||
           !strcmp(ucs_memory_type_names[type], UCT_HELPER_DETECT_UNKNOWN);
}

static void uct_helper_detect_open_md(uct_component_h component,
                                      const char *md_name)
{
    uct_abi_md_attr_t attr;
    uct_md_config_t *config;
    ucs_status_t status;
    uct_md_h md;

    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK) {
        return;
    }

    status = uct_md_open(component, md_name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return;
    }

    if ((uct_helper_detect_num_mds < UCT_HELPER_DETECT_MAX) &&
        (uct_abi_md_query(uct_abi_md(md)->ops, md, &attr) == UCS_OK) &&
        (attr.detect_mem_types & ~UCS_BIT(UCS_MEMORY_TYPE_HOST))) {
        uct_helper_detect_mds[uct_helper_detect_num_mds++] = md;
    } else {
        uct_md_close(md);
    }
}

/* Only components with a single domain: those that detect types have one, and a
 * network's many domains take long to open */
static void uct_helper_detect_open_component(uct_component_h component)
{
    uct_md_resource_desc_t resource[UCT_HELPER_DETECT_MAX];
    uct_component_attr_t attr;

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if ((uct_component_query(component, &attr) != UCS_OK) ||
        (attr.md_resource_count != 1)) {
        return;
    }

    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = resource;
    if (uct_component_query(component, &attr) == UCS_OK) {
        uct_helper_detect_open_md(component, resource[0].md_name);
    }
}

void uct_helper_detect_open(void)
{
    uct_component_h *components;
    unsigned count, i;

    pthread_mutex_lock(&uct_helper_detect_lock);
    if ((uct_helper_detect_users++ == 0) &&
        (uct_query_components(&components, &count) == UCS_OK)) {
        ucs_helper_log_hush(1);
        for (i = 0; i < count; ++i) {
            /* IB domains do not detect types and take long to open */
            if (strcmp(uct_abi_component_name(components[i]), "ib")) {
                uct_helper_detect_open_component(components[i]);
            }
        }
        ucs_helper_log_hush(0);
        uct_release_component_list(components);
    }
    pthread_mutex_unlock(&uct_helper_detect_lock);
}

void uct_helper_detect_close(void)
{
    pthread_mutex_lock(&uct_helper_detect_lock);
    if (--uct_helper_detect_users == 0) {
        while (uct_helper_detect_num_mds > 0) {
            uct_md_close(uct_helper_detect_mds[--uct_helper_detect_num_mds]);
        }
    }
    pthread_mutex_unlock(&uct_helper_detect_lock);
}

int uct_helper_detect_is_device(const void *address, size_t length)
{
    union {
        ucs_memory_type_t type;
        char              room[UCT_HELPER_DETECT_INFO_MAX];
    } info = {.type = UCS_MEMORY_TYPE_HOST};
    ucs_memory_type_t type;
    ucs_status_t status;
    unsigned i;

    status = ucs_memtype_cache_lookup(address, length, &info);
    if (status == UCS_ERR_NO_ELEM) {
        return 0;
    }

    if ((status == UCS_OK) && !uct_helper_detect_is_unknown(info.type)) {
        return info.type != UCS_MEMORY_TYPE_HOST;
    }

    for (i = 0; i < uct_helper_detect_num_mds; ++i) {
        if (uct_md_detect_memory_type(uct_helper_detect_mds[i], address,
                                      length, &type) == UCS_OK) {
            return type != UCS_MEMORY_TYPE_HOST;
        }
    }

    /* Without the cache nothing says that it is a device's. With it, a device's
     * library has allocated it. */
    return status == UCS_OK;
}
