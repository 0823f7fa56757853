/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#define TOOL_PRELOAD      "LD_PRELOAD"
#define TOOL_OMPI_LIST    "mca_base_env_list"
#define TOOL_SLURM_EXPORT "SLURM_EXPORT_ENV"

/* What the walk stands on */
typedef enum tool_args_kind {
    TOOL_ARGS_PART,   /* the launcher's name, or `:`: a part begins */
    TOOL_ARGS_OPTION, /* an option of the launcher with its values */
    TOOL_ARGS_PROGRAM /* the program or one of its arguments */
} tool_args_kind_t;

/* A walk over a launcher's command line that tells the launcher's own options
 * from the program and its arguments. A job may have several parts, which `:`
 * separates (all launchers split there, whatever stands around it). */
typedef struct tool_args {
    char *const      *argv;
    size_t           at;   /* index in argv */
    size_t           span; /* arguments that belong together from there */
    tool_args_kind_t kind;
    size_t           count;
    tool_launcher_t  launcher;
} tool_args_t;

/* Options of launchers that take values: without them the program's own
 * arguments could not be told from the launcher's. An option that is missing
 * here ends the search early, so that less is rewritten, never too much. */
typedef struct tool_args_options {
    const char *one; /* options with one value, words */
    const char *two; /* options with two values */
} tool_args_options_t;

static const char tool_openmpi_one[] =
    "x n np c N npernode npersocket host H hostfile machinefile "
    "default-hostfile map-by bind-to rank-by wdir wd path prefix "
    "output-filename output rf rankfile cpu-list cpu-set am tune ppr timeout "
    "stdin xterm app report-uri ompi-server tmpdir personality max-restarts "
    "runtime-options display";
static const char tool_hydra_one[] =
    "genvlist envlist n np f hosts hostfile machinefile host ppn wdir launcher "
    "launcher-exec bootstrap bootstrap-exec bind-to map-by membind iface rmk "
    "prepend-pattern outfile-pattern errfile-pattern nameserver "
    "disable-auto-cleanup localhost path perhost configfile topolib demux "
    "ckpointlib usize arch";
static const char tool_srun_one[] =
    "n N c p t w x A J o e i D m q C d r B G K L M S T ntasks nodes "
    "cpus-per-task partition time nodelist exclude account job-name output "
    "error input chdir export mpi mem ntasks-per-node ntasks-per-core "
    "ntasks-per-socket mem-per-cpu mem-per-gpu gpus-per-node gpus-per-task "
    "gpus-per-socket cpus-per-gpu gpu-bind gpu-freq cpu-freq threads-per-core "
    "cores-per-socket sockets-per-node distribution qos constraint reservation "
    "cpu-bind mem-bind hint gpus gres licenses jobid signal comment dependency "
    "relative clusters tmp network open-mode het-group prolog epilog "
    "task-prolog task-epilog";

static const tool_args_options_t tool_args_options[] = {
    [TOOL_LAUNCHER_NONE]    = {"", ""},
    [TOOL_LAUNCHER_OPENMPI] = {tool_openmpi_one,
                               "mca gmca omca prtemca pmixmca gpmixmca"},
    [TOOL_LAUNCHER_HYDRA]   = {tool_hydra_one, "genv env"},
    [TOOL_LAUNCHER_SRUN]    = {tool_srun_one, ""}
};

static int tool_args_has_word(const char *words, const char *word, size_t length)
{
    size_t span;

    for (; *words != '\0'; words += span + strspn(words + span, " ")) {
        span = strcspn(words, " ");
        if ((span == length) && !strncmp(words, word, length)) {
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

static void tool_args_begin(tool_args_t *args, tool_launcher_t launcher,
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

/* @return Zero at the end */
static int tool_args_next(tool_args_t *args)
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

/* Is it an option (one dash or two, perhaps `=value`) of these names? */
static int tool_args_is_option(const char *arg, const char *names)
{
    size_t dashes = strspn(arg, "-");

    return (dashes >= 1) && (dashes <= 2) &&
           tool_args_has_word(names, arg + dashes, strcspn(arg + dashes, "="));
}

/* Go on to the next launcher's option of these names; zero if none */
static int tool_args_find(tool_args_t *args, const char *names)
{
    while (tool_args_next(args)) {
        if ((args->kind == TOOL_ARGS_OPTION) &&
            tool_args_is_option(args->argv[args->at], names)) {
            return 1;
        }
    }
    return 0;
}

/* --- Launchers ------------------------------------------------------------ */

/* Add `NAME=VALUE` or something else; a LD_PRELOAD gets the library in front, and
 * then the return value is nonzero */
static int tool_launcher_add_setting(const char *setting, const char *library,
                                     tool_list_t *out)
{
    static const char prefix[] = TOOL_PRELOAD "=";

    if (strncmp(setting, prefix, strlen(prefix))) {
        tool_list_add(out, setting);
        return 0;
    }
    tool_list_addf(out, "%s%s:%s", prefix, library, setting + strlen(prefix));
    return 1;
}

/* Copy one option; a LD_PRELOAD that it sets gets the library in front */
static void tool_launcher_copy_option(const tool_args_t *args,
                                      const char *library, tool_list_t *out)
{
    char *const *argv = args->argv + args->at;
    int sets          = tool_args_is_option(argv[0], "x genv env");
    size_t i;

    for (i = 0; i < args->span; ++i) {
        if (sets && (i == 1)) {
            (void)tool_launcher_add_setting(argv[i], library, out);
        } else if (sets && (i == 2) && !strcmp(argv[1], TOOL_PRELOAD)) {
            tool_list_addf(out, "%s:%s", library, argv[i]);
        } else {
            tool_list_add(out, argv[i]);
        }
    }
}

/* Copy the command; insert extra after its name, and where each further part
 * begins when in_all_parts */
static void tool_launcher_copy(tool_launcher_t launcher, char *const *argv,
                               const tool_list_t *extra, int in_all_parts,
                               const char *library, tool_list_t *out)
{
    tool_args_t args;
    size_t i;

    tool_args_begin(&args, launcher, argv);
    while (tool_args_next(&args)) {
        if (args.kind == TOOL_ARGS_OPTION) {
            tool_launcher_copy_option(&args, library, out);
            continue;
        }

        tool_list_add(out, argv[args.at]);
        if ((args.at == 0) || (in_all_parts && (args.kind == TOOL_ARGS_PART))) {
            for (i = 0; i < extra->count; ++i) {
                tool_list_add(out, extra->items[i]);
            }
        }
    }
}

/* The names after the list that is there */
static char *tool_launcher_append(const char *list, const char *separator,
                                  const tool_list_t *names)
{
    char *ours   = tool_list_join(names, separator);
    char *joined = tool_format("%s%s%s", list, (*list != '\0') ? separator : "",
                               ours);

    free(ours);
    return joined;
}

/* Extend the parameter where the user set it, on the command line (of which
 * out is the copy) or in the environment; zero when it is not set */
static int
tool_openmpi_extend_env_list(char *const *argv, const tool_list_t *names,
                             tool_list_t *out)
{
    const char *variable = "OMPI_MCA_" TOOL_OMPI_LIST;
    const char *list     = getenv(variable);
    char *joined;
    tool_args_t args;

    tool_args_begin(&args, TOOL_LAUNCHER_OPENMPI, argv);
    while (tool_args_find(&args, "mca gmca omca prtemca")) {
        if ((args.span == 3) && !strcmp(argv[args.at + 1], TOOL_OMPI_LIST)) {
            tool_list_put(out, args.at + 2,
                          tool_launcher_append(argv[args.at + 2], ";",
                                               names));
            return 1;
        }
    }

    if ((list == NULL) || (*list == '\0')) {
        return 0;
    }

    joined = tool_launcher_append(list, ";", names);
    setenv(variable, joined, 1);
    free(joined);
    return 1;
}

static void tool_openmpi_adapt(char *const *argv, const tool_list_t *names,
                               const char *library, tool_list_t *out)
{
    tool_list_t extra = TOOL_LIST_INITIALIZER;
    size_t i;

    /* Open MPI refuses -x beside the parameter: use the one that is in use */
    tool_launcher_copy(TOOL_LAUNCHER_OPENMPI, argv, &extra, 1, library, out);
    if (tool_openmpi_extend_env_list(argv, names, out)) {
        return;
    }

    tool_list_cleanup(out);
    for (i = 0; i < names->count; ++i) {
        tool_list_add(&extra, "-x");
        tool_list_add(&extra, names->items[i]);
    }
    tool_launcher_copy(TOOL_LAUNCHER_OPENMPI, argv, &extra, 1, library, out);
    tool_list_cleanup(&extra);
}

static void tool_hydra_adapt(char *const *argv, const tool_list_t *names,
                             const char *library, tool_list_t *out)
{
    tool_list_t extra = TOOL_LIST_INITIALIZER;
    tool_args_t args;
    size_t i;

    tool_args_begin(&args, TOOL_LAUNCHER_HYDRA, argv);
    if (tool_args_find(&args, "genvnone genvlist envnone envlist")) {
        for (i = 0; i < names->count; ++i) {
            tool_list_add(&extra, "-genv");
            tool_list_add(&extra, names->items[i]);
            tool_list_add(&extra, getenv(names->items[i]));
        }
    }

    /* -genv counts for all parts of the job, so it is inserted once */
    tool_launcher_copy(TOOL_LAUNCHER_HYDRA, argv, &extra, 0, library, out);
    tool_list_cleanup(&extra);
}

/* The list of srun's --export with the names added; NULL where it is none */
static char *tool_srun_extend(const char *list, const tool_list_t *names,
                              const char *library)
{
    tool_list_t parts = TOOL_LIST_INITIALIZER;
    int has_all       = 0;
    int has_preload   = 0;
    char *text, *rest, *part;
    size_t i;

    if (!strcasecmp(list, "NONE") || !strcasecmp(list, "NIL")) {
        tool_message("srun exports no variables (%s): its tasks run without "
                     "the helper",
                     list);
        return NULL;
    }

    text = rest = tool_strdup(list);
    while ((part = strsep(&rest, ",")) != NULL) {
        has_all     |= !strcasecmp(part, "ALL");
        has_preload |= tool_launcher_add_setting(part, library, &parts);
    }
    free(text);
    for (i = 0; !has_all && (i < names->count); ++i) {
        if (!has_preload || strcmp(names->items[i], TOOL_PRELOAD)) {
            tool_list_add(&parts, names->items[i]);
        }
    }
    text = tool_list_join(&parts, ",");
    tool_list_cleanup(&parts);
    return text;
}

static void tool_srun_extend_option(const tool_args_t *args,
                                    const tool_list_t *names,
                                    const char *library, tool_list_t *out)
{
    size_t value_at  = args->at + args->span - 1;
    const char *list = args->argv[value_at];
    char *changed;

    if (args->span == 1) {
        list = strchr(list, '=');
        if (list == NULL) {
            return; /* srun will complain that the value is missing */
        }
        ++list;
    }

    changed = tool_srun_extend(list, names, library);
    if (changed != NULL) {
        tool_list_put(out, value_at,
                      tool_format("%s%s", (args->span == 1) ? "--export=" : "",
                                  changed));
        free(changed);
    }
}

static void tool_srun_adapt(char *const *argv, const tool_list_t *names,
                            const char *library, tool_list_t *out)
{
    const char *list = getenv(TOOL_SLURM_EXPORT);
    tool_list_t none = TOOL_LIST_INITIALIZER;
    char *changed    = NULL;
    tool_args_t args;

    tool_launcher_copy(TOOL_LAUNCHER_SRUN, argv, &none, 0, library, out);
    tool_args_begin(&args, TOOL_LAUNCHER_SRUN, argv);
    while (tool_args_find(&args, "export")) { /* one for each part */
        tool_srun_extend_option(&args, names, library, out);
        list = NULL;
    }
    if (list != NULL) {
        changed = tool_srun_extend(list, names, library);
    }
    if (changed != NULL) {
        setenv(TOOL_SLURM_EXPORT, changed, 1);
    }
    free(changed);
}

void tool_launcher_adapt(tool_launcher_t launcher, char *const *argv,
                         const tool_list_t *names, const char *library,
                         tool_list_t *out)
{
    switch (launcher) {
    case TOOL_LAUNCHER_OPENMPI:
        tool_openmpi_adapt(argv, names, library, out);
        break;
    case TOOL_LAUNCHER_HYDRA:
        tool_hydra_adapt(argv, names, library, out);
        break;
    case TOOL_LAUNCHER_SRUN:
        tool_srun_adapt(argv, names, library, out);
        break;
    case TOOL_LAUNCHER_NONE:
        for (; *argv != NULL; ++argv) {
            tool_list_add(out, *argv);
        }
        break;
    }
}

int tool_launcher_names_hosts(tool_launcher_t launcher, char *const *argv)
{
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    tool_args_t args;

    if (launcher == TOOL_LAUNCHER_NONE) {
        return 0;
    } else if ((nodes != NULL) && (atoi(nodes) > 1)) {
        return 1;
    }

    tool_args_begin(&args, launcher, argv);
    return tool_args_find(&args, "host H hostfile hosts f machinefile nodelist");
}
