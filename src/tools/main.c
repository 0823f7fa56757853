/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct tool_command {
    const char          *name;
    const char          *summary;
    tool_command_func_t func;
} tool_command_t;

static const tool_command_t tool_commands[] = {
    {"run", "run a program or an MPI job with the helper", tool_run_main},
    {"try", "run a job a few times and say what it would gain", tool_try_main},
    {"doctor", "say what keeps the helper from working here", tool_doctor_main},
    {"report", "merge the reports of a job's ranks into one table",
     tool_report_main},
    {"replay", "run the policies over recorded traces", tool_replay_main},
    {"plot", "draw what the policies pin over time", tool_plot_main},
    {NULL, NULL, NULL}
};

static void tool_usage(FILE *stream)
{
    const tool_command_t *command;

    fprintf(stream, "Usage: %s COMMAND [option]...\n\nCommands:\n", TOOL_NAME);
    for (command = tool_commands; command->name != NULL; ++command) {
        fprintf(stream, "  %-8s %s\n", command->name, command->summary);
    }
    fprintf(stream,
            "\nOptions:\n"
            "  --help     show this text ('%s COMMAND --help' for a command)\n"
            "  --version  show the version\n\n"
            "See ucx-helper(1) and ucx-helper-md(7).\n",
            TOOL_NAME);
}

/* Where the caller closed stdin, stdout or stderr, what is opened next would take its
 * place. A command that is run finds it closed, as it would without this program. */
static void tool_hold_streams(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while ((fd >= 0) && (fd <= STDERR_FILENO));
    close(fd);
}

int main(int argc, char **argv)
{
    const tool_command_t *command;

    tool_hold_streams();
    if (argc < 2) {
        tool_usage(stderr);
        return TOOL_EXIT_USAGE;
    }

    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
        !strcmp(argv[1], "help")) {
        tool_usage(stdout);
        return tool_finish_output();
    }

    if (!strcmp(argv[1], "--version")) {
        printf("%s %s\n", TOOL_NAME, PACKAGE_VERSION);
        return tool_finish_output();
    }

    for (command = tool_commands; command->name != NULL; ++command) {
        if (!strcmp(argv[1], command->name)) {
            return command->func(argc - 1, argv + 1);
        }
    }

    tool_message("unknown command '%s' (see %s --help)", argv[1], TOOL_NAME);
    return TOOL_EXIT_USAGE;
}
