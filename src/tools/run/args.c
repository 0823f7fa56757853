/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "args.h"

#include <string.h>


/*
 * Options of launchers that take values: without them the program's own
 * arguments could not be told from the launcher's. An option that is missing
 * here ends the search early, so that less is rewritten, never too much.
 */
typedef struct tool_args_options {
    const char *const *one; /* options with one value */
    const char *const *two; /* options with two values */
} tool_args_options_t;

static const char *const tool_openmpi_one[] = {
    "x", "n", "np", "c", "N", "npernode", "npersocket", "host", "H",
    "hostfile", "machinefile", "default-hostfile", "map-by", "bind-to",
    "rank-by", "wdir", "wd", "path", "prefix", "output-filename", "output",
    "rf", "rankfile", "cpu-list", "cpu-set", "am", "tune", "ppr", "timeout",
    "stdin", "xterm", "app", "report-uri", "ompi-server", "tmpdir",
    "personality", "max-restarts", "runtime-options", "display", NULL
};
static const char *const tool_openmpi_two[] = {"mca", "gmca", "omca", "prtemca",
                                               "pmixmca", "gpmixmca", NULL};

static const char *const tool_hydra_one[] = {
    "genvlist", "envlist", "n", "np", "f", "hosts", "hostfile",
    "machinefile", "host", "ppn", "wdir", "launcher", "launcher-exec",
    "bootstrap", "bootstrap-exec", "bind-to", "map-by", "membind", "iface",
    "rmk", "prepend-pattern", "outfile-pattern", "errfile-pattern",
    "nameserver", "disable-auto-cleanup", "localhost", "path", "perhost",
    "configfile", "topolib", "demux", "ckpointlib", "usize", "arch", NULL
};
static const char *const tool_hydra_two[] = {"genv", "env", NULL};

static const char *const tool_srun_one[] = {
    "n", "N", "c", "p", "t", "w", "x", "A", "J", "o", "e", "i", "D", "m",
    "q", "C", "d", "r", "B", "G", "K", "L", "M", "S", "T", "ntasks", "nodes",
    "cpus-per-task", "partition", "time", "nodelist", "exclude", "account",
    "job-name", "output", "error", "input", "chdir", "export", "mpi", "mem",
    "ntasks-per-node", "distribution", "qos", "constraint", "reservation",
    "cpu-bind", "gpus", "gres", "licenses", "jobid", "signal", NULL
};
static const char *const tool_no_options[] = {NULL};

static const tool_args_options_t tool_args_options[] = {
    [TOOL_LAUNCHER_NONE]    = {tool_no_options, tool_no_options},
    [TOOL_LAUNCHER_OPENMPI] = {tool_openmpi_one, tool_openmpi_two},
    [TOOL_LAUNCHER_HYDRA]   = {tool_hydra_one, tool_hydra_two},
    [TOOL_LAUNCHER_SRUN]    = {tool_srun_one, tool_no_options}
};


static int tool_args_has_word(const char *const *words, const char *word,
                              size_t length)
{
    for (; *words != NULL; ++words) {
        if ((strlen(*words) == length) && !strncmp(word, *words, length)) {
            return 1;
        }
    }
    return 0;
}

/* How many arguments the option at the head of args takes up, itself
 * included; 0 when it is none, so that the program begins here */
static size_t tool_args_option_span(tool_launcher_t launcher, char *const *args)
{
    const tool_args_options_t *options = &tool_args_options[launcher];
    size_t dashes                      = strspn(args[0], "-");
    const char *name                   = args[0] + dashes;
    size_t length                      = strcspn(name, "=");

    if ((dashes == 0) || (*name == '\0')) {
        return 0;
    } else if (tool_args_has_word(options->two, name, length)) {
        /* Hydra takes -genv NAME VALUE and -genv NAME=VALUE */
        return ((launcher == TOOL_LAUNCHER_HYDRA) && (args[1] != NULL) &&
                (strchr(args[1], '=') != NULL)) ? 2 : 3;
    } else if (tool_args_has_word(options->one, name, length)) {
        return (name[length] == '=') ? 1 : 2;
    }
    return 1;
}

void tool_args_begin(tool_args_t *args, tool_launcher_t launcher,
                     char *const *argv)
{
    args->launcher = launcher;
    args->argv     = argv;
    args->count    = 0;
    args->at       = 0;
    args->span     = 0;
    args->kind     = TOOL_ARGS_PART;
    while (argv[args->count] != NULL) {
        ++args->count;
    }
}

int tool_args_next(tool_args_t *args)
{
    size_t left;

    args->at  += args->span;
    left       = args->count - args->at;
    args->span = 1;
    if (left == 0) {
        return 0;
    }

    if ((args->at == 0) || !strcmp(args->argv[args->at], ":")) {
        args->kind = TOOL_ARGS_PART;
    } else if (args->kind != TOOL_ARGS_PROGRAM) {
        args->kind = TOOL_ARGS_OPTION;
        args->span = tool_args_option_span(args->launcher,
                                           args->argv + args->at);
        if (args->span == 0) {
            args->kind = TOOL_ARGS_PROGRAM;
            args->span = 1;
        } else if (args->span > left) {
            args->span = left;
        }
    }
    return 1;
}

int tool_args_is_option(const char *arg, const char *const *names)
{
    size_t dashes = strspn(arg, "-");

    return (dashes >= 1) && (dashes <= 2) &&
           tool_args_has_word(names, arg + dashes, strcspn(arg + dashes, "="));
}

int tool_args_find(tool_args_t *args, const char *const *names)
{
    while (tool_args_next(args)) {
        if ((args->kind == TOOL_ARGS_OPTION) &&
            tool_args_is_option(args->argv[args->at], names)) {
            return 1;
        }
    }
    return 0;
}
