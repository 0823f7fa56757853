/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_LAUNCHER_H_
#define UCX_HELPER_TOOL_LAUNCHER_H_

#include <tools/tool.h>

/**
 * @file launcher.h
 *
 * What has to be done so that a job launcher hands our environment to ranks,
 * also to those on other hosts.
 */

/** Kinds of launchers, by how they forward the environment. */
typedef enum tool_launcher {
    TOOL_LAUNCHER_NONE,    /**< A plain program: its children inherit */
    TOOL_LAUNCHER_OPENMPI, /**< Other hosts need `-x NAME` */
    TOOL_LAUNCHER_HYDRA,   /**< All is forwarded unless restricted */
    TOOL_LAUNCHER_SRUN     /**< All is forwarded unless restricted */
} tool_launcher_t;

/**
 * Search @a command as execvp does.
 * @return The path, which the caller frees; NULL when there is none.
 */
char *tool_launcher_resolve(const char *command);

/**
 * Tell the kind of launcher by its name behind links, and by what it answers
 * to `--version` when the name leaves it open (mpirun, mpiexec). Must be
 * called before LD_PRELOAD is set.
 */
tool_launcher_t tool_launcher_detect(const char *path);

/** @return A name for messages. */
const char *tool_launcher_name(tool_launcher_t launcher);

/**
 * Make the command line that forwards the variables @a names, whose values
 * are in this process's environment. What the user forwards himself is kept:
 * ours are put first, where the user's win, and a LD_PRELOAD of the user's in
 * the launcher's own options gets @a library in front. May change the
 * environment (Open MPI's mca_base_env_list, Slurm's SLURM_EXPORT_ENV).
 *
 * @param argv  The command, NULL-terminated.
 * @param out   Receives the command line; must be empty.
 */
void tool_launcher_adapt(tool_launcher_t launcher, char *const *argv,
                         const tool_list_t *names, const char *library,
                         tool_list_t *out);

/** @return Nonzero when the command line or Slurm names hosts. */
int tool_launcher_names_hosts(tool_launcher_t launcher, char *const *argv);

#endif
