/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * A library that brings functions of UCX and verbs under a name of its own, as those in
 * a Python wheel do. Each has a caller, which calls what stands before it; what is
 * returned is negated, so that the call is no jump.
 */

#define EXPORT __attribute__((visibility("default")))

EXPORT int ucp_config_read(const char *prefix, const char *file, void **config_p)
{
    return 71;
}

EXPORT int uct_md_open(void *component, const char *name, const void *config,
                       void **md_p)
{
    return 72;
}

EXPORT int ibv_fork_init(void)
{
    return 73;
}

EXPORT int test_read_config(int (*entry)(const char*, const char*, void**))
{
    return -entry((const char*)0, (const char*)0, (void**)0);
}

EXPORT int test_open_md(int (*entry)(void*, const char*, const void*, void**))
{
    return -entry((void*)0, (const char*)0, (const void*)0, (void**)0);
}

EXPORT int test_init_fork(int (*entry)(void))
{
    return -entry();
}
