/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "leader.h"
#include "module.h"
#include "site.h"

#include <ucp/door/slot.h>
#include <ucs/sys/sync/atomic.h>

#include <errno.h>
#include <limits.h>
#include <strings.h>
#include <sys/auxv.h>

/*
 * The preloaded stub. LD_PRELOAD reaches every process of a job, shells and
 * launchers included, so this needs libc only. It loads the helper proper where the
 * options ask for it and the process has UCX: before the program begins if that is linked
 * with UCX, else when it opens a memory domain.
 */

#define UCT_PRELOAD_INFO_TOOL "ucx_info"
#define UCT_PRELOAD_UCS       "libucs.so.0"
#define UCT_PRELOAD_UCT       "libuct.so.0"
#define UCT_PRELOAD_UCP       "libucp.so.0"
#define UCT_PRELOAD_VERBS     "libibverbs.so.1"

/* ibv_is_fork_initialized(): the kernel copies registered pages for a child
 * (IBV_FORK_UNNEEDED) */
#define UCT_PRELOAD_FORK_UNNEEDED 2

/* UCS_ERR_UNSUPPORTED, for a function that UCX lacks */
#define UCT_PRELOAD_ERR_UNSUPPORTED (-22)

typedef int (*uct_preload_open_func_t)(void *component, const char *md_name,
                                       const void *config, void **md_p);

typedef int (*uct_preload_door_func_t)(void *component, const char *md_name,
                                       const void *config, void **md_p,
                                       uct_preload_open_func_t real_open);

typedef void (*uct_preload_ucp_config_func_t)(void *config);

int uct_md_open(void *component, const char *md_name, const void *config,
                void **md_p);

int ucp_config_read(const char *env_prefix, const char *filename,
                    void **config_p);

int ibv_fork_init(void);

/* Lets the helper change UCP's options; set once it is loaded */
static _Atomic(uct_preload_ucp_config_func_t) uct_preload_ucp_config;

/* Empty, or what is wrong with the site's settings, without which nothing is switched
 * on. Written before main(). */
static char uct_preload_site_error[UCT_SITE_ERROR_MAX];

/* UCX's words for "no"; the helper judges any other text */
static int uct_preload_option_is_on(const char *name)
{
    const char *value = secure_getenv(name);

    return (uct_preload_site_error[0] == '\0') && (value != NULL) &&
           (*value != '\0') && strcasecmp(value, "n") &&
           strcasecmp(value, "no") && strcasecmp(value, "off") &&
           strcmp(value, "0");
}

static int uct_preload_is_on(void)
{
    return uct_preload_option_is_on("UCX_MD_HELPER") ||
           uct_preload_option_is_on("UCX_MD_PIN");
}

/* Once, in a process that uses UCX, unless the job has opted out */
static void uct_preload_complain(void)
{
    static _Atomic int said;
    const char *value = getenv("UCX_MD_HELPER");

    if ((uct_preload_site_error[0] != '\0') && !ucs_load_relaxed(&said) &&
        ((value == NULL) || (strchr("nN0", *value) == NULL))) {
        fprintf(stderr, "ucx-helper-md: %s; the helper stays off\n",
                uct_preload_site_error);
    }
    ucs_store_relaxed(&said, 1);
}

/* UCX would warn of our switches as unknown, so remove those that say "no". A site
 * file must not switch on the program's children then, which have opted out as well. */
static void uct_preload_drop_switches(void)
{
    if ((getenv("UCX_MD_HELPER") != NULL) || (getenv("UCX_MD_PIN") != NULL)) {
        (void)setenv(UCT_SITE_ENV, "", 1);
        unsetenv("UCX_MD_HELPER");
        unsetenv("UCX_MD_PIN");
    }
}

static uct_preload_door_func_t uct_preload_load(void)
{
    /* Installed, and in a build tree */
    static const char *const places[] = {"ucx-helper/", "", NULL};
    char path[PATH_MAX];
    void *handle, *door;

    (void)uct_module_find(places, places, path, sizeof(path));
    door = uct_module_load(path, "uct_door_md_open", &handle);
    if (door == NULL) {
        return NULL;
    }

    ucs_store_relaxed(&uct_preload_ucp_config,
                      dlsym(handle, "uct_door_ucp_config"));
    uct_leader_on_leave(dlsym(handle, "uct_door_leader_left"));
    return door;
}

/* Several threads may initialize UCX. Loading twice yields the same module, so
 * a race at worst prints a line twice. */
static uct_preload_door_func_t uct_preload_door(void)
{
    static _Atomic(uct_preload_door_func_t) door;
    static _Atomic int tried;

    /* [R-DOOR] The acquire pairs with the release below. */
    if (!ucs_load_acquire(&tried)) {
        ucs_store_relaxed(&door, uct_preload_load());
        /* [R-DOOR] The release pairs with the acquire above. */
        ucs_store_release(&tried, 1);
    }

    return ucs_load_relaxed(&door);
}

__attribute__((visibility("default"))) int
uct_md_open(void *component, const char *md_name, const void *config,
            void **md_p)
{
    /* Looked up once: that takes the loader's lock */
    static _Atomic(uct_preload_open_func_t) found;
    uct_preload_open_func_t real = ucs_load_relaxed(&found);
    uct_preload_door_func_t door;

    if (real == NULL) {
        real = (uct_preload_open_func_t)ucp_door_find(
                UCT_PRELOAD_UCT, "uct_md_open", __builtin_return_address(0));
        ucs_store_relaxed(&found, real);
    }
    if (real == NULL) {
        return UCT_PRELOAD_ERR_UNSUPPORTED;
    }

    if (!uct_preload_is_on()) {
        uct_preload_complain();
        uct_preload_drop_switches();
        return real(component, md_name, config, md_p);
    }

    uct_leader_watch();
    door = uct_preload_door();
    if (door == NULL) {
        return real(component, md_name, config, md_p);
    }

    return door(component, md_name, config, md_p, real);
}

/* UCP reads its options here, among them whether it has a registration cache,
 * which would hide registrations from a helper */
__attribute__((visibility("default"))) int
ucp_config_read(const char *env_prefix, const char *filename, void **config_p)
{
    __typeof__(&ucp_config_read) real = (__typeof__(real))ucp_door_find(
            UCT_PRELOAD_UCP, "ucp_config_read", __builtin_return_address(0));
    uct_preload_ucp_config_func_t change;
    int status;

    if (real == NULL) {
        return UCT_PRELOAD_ERR_UNSUPPORTED;
    }

    ucp_door_slots_find(__builtin_return_address(0));
    status = real(env_prefix, filename, config_p);
    if ((status != 0) || !uct_preload_option_is_on("UCX_MD_HELPER")) {
        return status;
    }

    uct_leader_watch();
    if (uct_preload_door() != NULL) {
        change = ucs_load_relaxed(&uct_preload_ucp_config);
        if (change != NULL) {
            change(*config_p);
        }
    }

    return status;
}

/* UCX asks for fork support as it opens a domain. From then on rdma-core marks
 * registered pages with MADV_DONTFORK, also where the kernel (5.12 and later)
 * does not need it. A child then lacks all data on such pages. The helper
 * registers more than the program does, so it leaves the marks out where it
 * can. */
__attribute__((visibility("default"))) int ibv_fork_init(void)
{
    const void *caller = __builtin_return_address(0);
    int (*real)(void), (*status)(void);

    real   = (int (*)(void))ucp_door_find(UCT_PRELOAD_VERBS, "ibv_fork_init",
                                          caller);
    status = (int (*)(void))ucp_door_find(UCT_PRELOAD_VERBS,
                                          "ibv_is_fork_initialized", caller);
    if (real == NULL) {
        return ENOSYS;
    }

    if (uct_preload_option_is_on("UCX_MD_HELPER") && (status != NULL) &&
        (status() == UCT_PRELOAD_FORK_UNNEEDED)) {
        return 0;
    }

    return real();
}

/* The module is loaded before the program begins, if that is linked with UCX. Later a
 * thread may be in a callback of dl_iterate_phdr(), with a lock that dlopen() waits for
 * while it holds another; if that thread then ended the program or opened a domain, both
 * would wait for ever. ucx_info lists the options that exist when it starts, whether it
 * asks for the helper or not. */
__attribute__((constructor)) static void uct_preload_init(void)
{
    const char *site = getenv(UCT_SITE_ENV);
    void *ucs;

    /* Not where the helper can do nothing, as in a program with more rights than its
     * user */
    if (!getauxval(AT_SECURE)) {
        (void)uct_site_read((site != NULL) ? site : UCT_SITE_FILE,
                            (site != NULL) && (*site != '\0'),
                            uct_preload_is_on, uct_preload_site_error);
    }
    if (uct_preload_is_on()) {
        uct_leader_watch();
    } else if (strcmp(program_invocation_short_name, UCT_PRELOAD_INFO_TOOL)) {
        return;
    }

    ucs = dlopen(UCT_PRELOAD_UCS, RTLD_LAZY | RTLD_NOLOAD);
    if (ucs != NULL) {
        dlclose(ucs);
        uct_preload_door();
    }
}
