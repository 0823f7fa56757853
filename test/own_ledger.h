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


/** @return Nonzero if it is as ledger.h says, at a quiet moment. */
static inline int own_ledger_is_valid(void)
{
    ucs_ledger_t *ledger;
    char error[256];
    int is_valid;

    if (ucs_ledger_open(own_ledger_name(), &ledger, error, sizeof(error)) !=
        UCS_OK) {
        return 0;
    }
    is_valid = ucs_ledger_is_valid(ledger, UCS_LEDGER_RISE - 1) &&
               ucs_ledger_is_settled(ledger);
    ucs_ledger_close(ledger);
    return is_valid;
}


/** Remove it; by the process that took it, at its end. */
static inline void own_ledger_remove(void)
{
    (void)ucs_ledger_remove(own_ledger_name());
}

#endif
