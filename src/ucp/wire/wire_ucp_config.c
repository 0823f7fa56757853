/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/wire/wire_ucp_int.h>

#include <dirent.h>
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

/* Whether a transport of UCX's may be used that maps the peer's memory */
static int ucp_wire_ucp_has_shared_memory(void)
{
    static const char * const names[] = {"all", "shm", "sm", "mm", "posix",
                                         "sysv", "xpmem"};
    const char *transports            = getenv("UCX_TLS");
    int is_named                      = 0;
    unsigned i;

    if (transports == NULL) {
        return 1;
    }
    for (i = 0; i < ucs_static_array_size(names); ++i) {
        is_named |= strstr(transports, names[i]) != NULL;
    }
    return is_named != (*transports == '^');
}

/* Where no transport knows an option UCX says so in a line of warning, so each is
 * set where it applies */
void ucp_wire_ucp_configure(ucp_config_t *config)
{
    /* What is deregistered is to be unpinned, not kept in a cache of UCX's:
     * protocols above this one count what is pinned, and no access by an old key
     * is to find what was left */
    (void)ucp_config_modify(config, "RCACHE_ENABLE", "n");
    if (ucp_wire_ucp_has_ib_cache()) {
        (void)ucp_config_modify(config, "IB_REG_METHODS", "direct");
    }
    /* It tells of a peer's death only if it is asked to, by
     * UCX_POSIX_ERROR_HANDLING and UCX_SYSV_ERROR_HANDLING, which UCP hands to the
     * transports by their common name */
    if (ucp_wire_ucp_has_shared_memory()) {
        (void)ucp_config_modify(config, "MM_ERROR_HANDLING", "y");
    }
    if (getenv("UCX_KEEPALIVE_INTERVAL") == NULL) {
        (void)ucp_config_modify(config, "KEEPALIVE_INTERVAL",
                                UCP_WIRE_KEEPALIVE);
    }
}
