/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef OWN_LEDGER_H_
#define OWN_LEDGER_H_

#include <ucs/node/ledger.h>
#include <uct/ib/helper_md/node_process.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/**
 * @file own_ledger.h
 *
 * A node ledger of the test's own, so that no job that runs beside decides it.
 */

/** Take one, for this process and its children. */
static inline void own_ledger_take(const char *test)
{
    char suffix[64];

    snprintf(suffix, sizeof(suffix), "%s-%d", test, (int)getpid());
    setenv(UCS_NODE_SUFFIX_ENV, suffix, 1);
}


/** Its name, in memory of the function's own. */
static inline const char *own_ledger_name(void)
{
    static char name[128];

    ucs_ledger_name(getenv(UCS_NODE_SUFFIX_ENV), name, sizeof(name));
    return name;
}


/** Remove it; by the process that took it, at its end. */
static inline void own_ledger_remove(void)
{
    (void)ucs_ledger_remove(own_ledger_name());
}

#endif
