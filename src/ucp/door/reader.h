/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_DOOR_READER_H_
#define UCP_DOOR_READER_H_

#include <ucs/sys/compiler_def.h>

/**
 * @file reader.h
 *
 * The helper's side of the door: finds it in the process, opens it and connects
 * the helper. Part of the module that the stub loads.
 */

BEGIN_C_DECLS

/**
 * Open the door, if the process has one, and pass its reader to the helper. Any
 * thread, once there is to be a helper.
 *
 * @return Zero if there is none, or it cannot be opened; the helper works
 *         without it then.
 */
int ucp_door_reader_start(void);

END_C_DECLS

#endif
