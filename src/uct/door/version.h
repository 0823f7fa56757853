/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_DOOR_VERSION_H_
#define UCT_DOOR_VERSION_H_

#include <ucs/sys/compiler_def.h>

/**
 * @file version.h
 *
 * Which UCX is running, and whether the helper knows its inside.
 */

BEGIN_C_DECLS

/** Room for the text of a release. */
#define UCT_DOOR_VERSION_MAX 32

/** Release of the running UCX. */
typedef struct uct_door_version {
    unsigned major;
    unsigned minor;
    char     text[UCT_DOOR_VERSION_MAX]; /**< for example "1.13.1", or
                                              "unknown" */
} uct_door_version_t;


/**
 * Ask the libucp that is loaded in this process; libuct and libucs do not tell
 * their release.
 *
 * @param [out] version  Always filled; 0.0 if there is no libucp.
 *
 * @return Nonzero if uct_abi.h describes this release.
 */
int uct_door_version_get(uct_door_version_t *version);

END_C_DECLS

#endif
