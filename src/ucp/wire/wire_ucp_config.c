/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/wire/wire_ucp_int.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cache of UCX's InfiniBand domains, up to 1.15 */
static int ucp_wire_ucp_has_ib_cache(void)
{
    unsigned major, minor, release, count = 0;
    DIR *devices;

    ucp_get_version(&major, &minor, &release);
    devices = ((major == 1) && (minor < 16)) ?
                      opendir("/sys/class/infiniband") :
                      NULL;
    if (devices == NULL) {
        return 0;
    }
    while ((count < 3) && (readdir(devices) != NULL)) {
        ++count; /* the first two are . and .. */
    }
    closedir(devices);
    return count == 3;
}

int ucp_wire_ucp_maps(const char *transports, size_t length)
{
    static const char * const groups[] = {",all,", ",shm,", ",sm,", ",mm,"};
    static const char * const each[]   = {",posix,", ",sysv,", ",xpmem,"};
    int is_negated = (length > 0) && (*transports == '^');
    unsigned num_groups = 0, num_each = 0, i;
    char list[1024];

    snprintf(list, sizeof(list), ",%.*s,", (int)length - is_negated,
             transports + is_negated);
    for (i = 0; i < ucs_static_array_size(groups); ++i) {
        num_groups += strstr(list, groups[i]) != NULL;
    }
    for (i = 0; i < ucs_static_array_size(each); ++i) {
        num_each += strstr(list, each[i]) != NULL;
    }
    return is_negated ? (num_groups == 0) && (num_each < 2) :
                        (num_groups + num_each > 0);
}

/* By UCX_TLS, which nothing but the text of the configuration tells */
static int ucp_wire_ucp_has_shared_memory(const ucp_config_t *config)
{
    static const char name[] = "UCX_TLS=";
    char *text = NULL, *found;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    int has      = 1;

    if (stream == NULL) {
        return 1;
    }
    ucp_config_print(config, stream, NULL, UCS_CONFIG_PRINT_CONFIG);
    fclose(stream);
    found = (text == NULL) ? NULL : strstr(text, name);
    if (found != NULL) {
        found += strlen(name);
        has    = ucp_wire_ucp_maps(found, strcspn(found, "\n"));
    }
    free(text);
    return has;
}

/* Where no transport knows an option UCX says so in a line of warning, so each is
 * set where it applies */
ucs_status_t ucp_wire_ucp_configure(ucp_config_t *config,
                                    const char * const *option)
{
    /* What is deregistered is to be unpinned, not kept in a cache of UCX's:
     * protocols above this one count what is pinned, and no access by an old key
     * is to find what was left */
    (void)ucp_config_modify(config, "RCACHE_ENABLE", "n");
    if (ucp_wire_ucp_has_ib_cache()) {
        (void)ucp_config_modify(config, "IB_REG_METHODS", "direct");
    }
    for (; (option != NULL) && (option[0] != NULL); option += 2) {
        if (ucp_config_modify(config, option[0], option[1]) != UCS_OK) {
            return UCS_ERR_INVALID_PARAM;
        }
    }
    /* It tells of a peer's death only if it is asked to, by
     * UCX_POSIX_ERROR_HANDLING and UCX_SYSV_ERROR_HANDLING, which UCP hands to the
     * transports by their common name */
    if (ucp_wire_ucp_has_shared_memory(config)) {
        (void)ucp_config_modify(config, "MM_ERROR_HANDLING", "y");
    }
    return UCS_OK;
}
