/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_RUN_H_
#define UCX_HELPER_TOOL_RUN_H_

#include <tools/tool.h>

#include <sys/types.h>

/* What the files of `run` share. */

#define TOOL_ENV_HELPER   "UCX_MD_HELPER"
#define TOOL_ENV_POLICY   "UCX_MD_HELPER_POLICY"
#define TOOL_ENV_REPORT   "UCX_MD_HELPER_REPORT"
#define TOOL_ENV_MAX_SLOWDOWN "UCX_MD_HELPER_MAX_SLOWDOWN"
#define TOOL_ENV_MAX_PINNED   "UCX_MD_HELPER_MAX_PINNED"
#define TOOL_ENV_TRACE    "UCX_MD_HELPER_TRACE"
#define TOOL_ENV_PIN      "UCX_MD_PIN"
#define TOOL_ENV_PIN_COST "UCX_MD_PIN_COST"

/** `--report` value that asks for no report at all. */
#define TOOL_REPORT_NONE "none"

/** What `--pin-cost` may be, in words. */
#define TOOL_PIN_COST_ALLOWED \
    "two times, such as 5us,100ns (ns, us, ms or s; at most 1s and 1ms)"

/*
 * environment.c: what `run` was asked for, and the environment in which it starts
 * the command
 */

/** Kinds of launchers, by how they forward the environment. */
typedef enum tool_launcher {
    TOOL_LAUNCHER_NONE,    /**< A plain program: its children inherit */
    TOOL_LAUNCHER_OPENMPI, /**< Other hosts need `-x NAME` */
    TOOL_LAUNCHER_HYDRA,   /**< All is forwarded unless restricted */
    TOOL_LAUNCHER_SRUN     /**< All is forwarded unless restricted */
} tool_launcher_t;

/** The command line. Options that mirror a variable of the environment are in
 *  that from when they were read. */
typedef struct tool_run {
    union {
        uint64_t    bytes;
        double      share;
    } number;                    /**< of such an option; nobody reads it */
    const char      *pin_cost;   /**< NULL: not given */
    const char      *trace;      /**< folder, NULL: no trace */
    int             software_nic;
    int             pipeline;    /**< its MPI layer as well */
    int             firehose;    /**< its MPI layer as well */
    int             verbose;
    char *const     *command;
    tool_launcher_t launcher;    /**< of the command */
    char            *library;    /**< for LD_PRELOAD */
    char            *report_dir; /**< our own, NULL when ranks report
                                      elsewhere, or not at all */
} tool_run_t;

/**
 * Read a command line: the options of a job, those of a further table, and the
 * command. Then find its launcher and the library.
 *
 * @param [out] run    All zero before.
 * @param [in]  more   The further options.
 *
 * @return 0 to go on, or the status to exit with, after a message.
 */
int tool_run_parse(tool_run_t *run, int argc, char **argv,
                   tool_options_t more, const tool_usage_t *usage);

/** The value of `--pin-cost`, a text. */
int tool_run_parse_pin_cost(void *field, const char *value);

/**
 * Set this process's environment for the command, and make the command line that
 * hands it on.
 *
 * @param [out] command  Must be empty.
 */
void tool_run_prepare(const tool_run_t *run, tool_list_t *command);

/**
 * Make a folder of our own, for reports, in $TMPDIR or /tmp.
 * @return Its path, which the caller frees; NULL with errno set.
 */
char *tool_run_make_dir(void);

/**
 * Set this process's environment for the command.
 *
 * @param names  Receives the variables that ranks need, in order; must be
 *               empty.
 */
void tool_run_set_environment(const tool_run_t *run, tool_list_t *names);

/*
 * detect.c and launcher.c: what has to be done so that a job launcher hands our
 * environment to ranks, also to those on other hosts
 */

/**
 * Tell the kind of launcher by its name, and by what it answers to `--version`
 * when the name leaves it open (mpirun, mpiexec). Must be called before
 * LD_PRELOAD is set.
 *
 * @param version_p  Receives that answer, which the caller frees, or NULL of a
 *                   program that is no launcher by its name; NULL: it is asked only
 *                   if need be.
 */
tool_launcher_t tool_launcher_detect(const char *command, char **version_p);

/** @return A name for messages. */
const char *tool_launcher_name(tool_launcher_t launcher);

/**
 * Make the command line that forwards the variables @a names, whose values
 * are in this process's environment. What the user forwards himself is kept:
 * ours are put first, where the user's win, and a LD_PRELOAD of the user's in
 * the launcher's own options, or in what Slurm exports, gets @a library in front.
 * May change the environment (Open MPI's mca_base_env_list, Slurm's
 * SLURM_EXPORT_ENV).
 *
 * @param argv  The command, NULL-terminated.
 * @param out   Receives the command line; must be empty.
 */
void tool_launcher_adapt(tool_launcher_t launcher, char *const *argv,
                         const tool_list_t *names, const char *library,
                         tool_list_t *out);

/** @return Nonzero when the command line or Slurm names hosts. */
int tool_launcher_names_hosts(tool_launcher_t launcher, char *const *argv);

/* --- library.c: where the libraries that are to be preloaded lie ---------- */

/**
 * Find libucx_helper.so: in $HELPER_MD_LIBDIR when that is set; in the build
 * tree that this program was built in; beside this program, in ../lib or
 * ../lib64; in the folder that configure was told.
 *
 * @param pipeline  Nonzero: libucx_pipeline_mpi.so as well, in front of it.
 * @param firehose  Nonzero: the libucx_firehose_mpi.so of the launcher's MPI
 *                  as well, in front of both. There is one for Open MPI and
 *                  one for Hydra (MPICH) and none for other launchers.
 * @param launcher  Who starts the job.
 *
 * @return What LD_PRELOAD is to hold, which the caller frees; NULL, after a
 *         message that says what could not be found and where it was looked
 *         for, or that LD_PRELOAD could not hold it.
 */
char *tool_library_find(int pipeline, int firehose, tool_launcher_t launcher);

/*
 * job.c: start the command, in place of this process or as its child
 */

/**
 * Replace this process by the command. Returns only on failure, after a
 * message.
 *
 * @return 127 when there is no such command, otherwise 126.
 */
int tool_job_exec(char *const *argv);

/**
 * Call a function, which may become another program, in a process of its own and
 * wait for its end. Signals that ask a job to do something (HUP, INT, QUIT, USR1,
 * USR2, ALRM, TERM, XCPU) are handed on, except those that the terminal's keys
 * send, for these reach the child by themselves. The child starts with the signal
 * mask and dispositions that this process was started with, and is asked to
 * terminate if this process is killed.
 *
 * @param done  Called when it has ended, whatever way, before a signal that
 *              came late is obeyed; NULL: nothing.
 *
 * @return The exit status, of the function what it returned, 128+signal when a
 *         signal ended it.
 */
int tool_job_call(int (*func)(void *arg), void (*done)(void *arg, int status),
                  void *arg);

/** fork(); the child gets a signal when this process ends. */
pid_t tool_job_fork(int signo);

/**
 * Run a program that answers, with nothing to read.
 *
 * @param seconds  It is killed after that time, with what it started, and alone
 *                 when this process ends.
 * @param prepare  Called in its process before; NULL: nothing.
 *
 * @return What it wrote to stdout and stderr, 64 KiB at most, which the caller
 *         frees; empty where it could not be run.
 */
char *tool_job_ask(char *const *argv, unsigned seconds,
                   void (*prepare)(void *arg), void *arg);

#endif
