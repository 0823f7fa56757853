/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "doctor.h"

#include <tools/tool.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const tool_doctor_levels[] = {
    [TOOL_DOCTOR_OK]        = "ok",
    [TOOL_DOCTOR_ATTENTION] = "attention",
    [TOOL_DOCTOR_STOPS]     = "stops the helper"
};

typedef struct tool_doctor_command {
    tool_run_t run;
    int        is_json;
    int        is_probe; /* the process that opens UCX */
    const char *file;    /* for an issue, or NULL */
} tool_doctor_command_t;

void tool_doctor_say(tool_doctor_t *doctor, tool_doctor_level_t level,
                     const char *name, const char *cure, char *text)
{
    size_t i;

    tool_string_sanitize(text);
    for (i = 0; i < doctor->count; ++i) {
        if (!strcmp(doctor->lines[i].text, text)) { /* of several domains */
            free(text);
            return;
        }
    }
    doctor->lines = tool_grow(doctor->lines, doctor->count, &doctor->capacity,
                              sizeof(*doctor->lines));
    doctor->lines[doctor->count++] = (tool_doctor_line_t){
        level, name, text, (level == TOOL_DOCTOR_OK) ? NULL : cure
    };
}

void tool_doctor_cleanup(tool_doctor_t *doctor)
{
    size_t i;

    for (i = 0; i < doctor->count; ++i) {
        free(doctor->lines[i].text);
    }
    free(doctor->lines);
}

static size_t tool_doctor_count(const tool_doctor_t *doctor,
                                tool_doctor_level_t level)
{
    size_t count = 0;
    size_t i;

    for (i = 0; i < doctor->count; ++i) {
        count += doctor->lines[i].level == level;
    }
    return count;
}

/* Lines of this level and above */
static void tool_doctor_print(const tool_doctor_t *doctor,
                              tool_doctor_level_t level, FILE *stream)
{
    const tool_doctor_line_t *line;

    for (line = doctor->lines; line < doctor->lines + doctor->count; ++line) {
        if (line->level < level) {
            continue;
        }
        fprintf(stream, "%-16s  %s: %s\n", tool_doctor_levels[line->level],
                line->name, line->text);
        if (line->cure != NULL) {
            fprintf(stream, "%-16s  -> %s\n", "", line->cure);
        }
    }
}

static void tool_doctor_print_json(const tool_doctor_t *doctor)
{
    json_t *lines  = json_array();
    json_t *object = json_pack(
            "{s:i,s:I,s:I,s:o}", "version", 1, "attention",
            (json_int_t)tool_doctor_count(doctor, TOOL_DOCTOR_ATTENTION),
            "stops", (json_int_t)tool_doctor_count(doctor, TOOL_DOCTOR_STOPS),
            "lines", lines);
    size_t i;

    for (i = 0; i < doctor->count; ++i) {
        json_array_append_new(lines, json_pack(
                "{s:s,s:s,s:s,s:s?}",
                "level", tool_doctor_levels[doctor->lines[i].level],
                "name", doctor->lines[i].name, "text", doctor->lines[i].text,
                "cure", doctor->lines[i].cure));
    }
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

/*
 * The file for an issue
 */

/* A path of the system's tells nothing of who uses it */
static int tool_doctor_is_public(const char *path)
{
    static const char *const roots[] = {"/usr/", "/lib", "/dev/", "/proc/",
                                        "/sys/", "/etc/", "/opt/", NULL};
    int i;

    for (i = 0; (roots[i] != NULL) &&
                strncmp(path, roots[i], strlen(roots[i])); ++i) {
    }
    return roots[i] != NULL;
}

/* Names of host and user stand in paths alone: what UCX puts in front of a line is
 * left out */
static void tool_doctor_write_scrubbed(const char *text, FILE *stream)
{
    int begins = 1; /* a word, or what stands behind a mark */

    for (; *text != '\0'; ++text) {
        if (begins && (*text == '/') && !tool_doctor_is_public(text)) {
            text += strcspn(text, " '\",;)\n") - 1;
            fputs("<path>", stream);
        } else {
            fputc(*text, stream);
        }
        begins = strchr(" '\"=:(,;\n", *text) != NULL;
    }
}

/* @return 0, or -1 after a message */
static int tool_doctor_write(const tool_doctor_t *doctor, const char *file)
{
    char *text = NULL;
    size_t size;
    FILE *stream;
    int ret;

    stream = open_memstream(&text, &size);
    if (stream == NULL) {
        tool_out_of_memory();
    }
    fprintf(stream, "%s %s\n", TOOL_NAME, PACKAGE_VERSION);
    tool_doctor_print(doctor, TOOL_DOCTOR_OK, stream);
    fclose(stream);

    stream = fopen(file, "w");
    if (stream != NULL) {
        tool_doctor_write_scrubbed(text, stream);
    }
    ret = ((stream == NULL) || (fclose(stream) != 0)) ? -1 : 0;
    if (ret != 0) {
        tool_message("--report: '%s' cannot be written: %m", file);
    }
    free(text);
    return ret;
}

/*
 * The command
 */

static void tool_doctor_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s doctor [option]... [LAUNCHER]\n\n"
            "Look at this machine and say what keeps the helper from working, "
            "and what to do.\nLAUNCHER is the MPI's, mpirun. The exit status is "
            "1 when something stops the\nhelper.\n\n"
            "  --json                   print one JSON object\n"
            "  --report FILE            write a file for an issue, without "
            "names and paths of\n"
            "                           yours\n"
            "  --software-nic           for jobs with this option of run\n"
            "  --pin-cost BASE,PERPAGE  likewise\n"
            "  --help                   show this text\n",
            TOOL_NAME);
}

#define TOOL_DOCTOR_OPTION(_field) offsetof(tool_doctor_command_t, _field), \
    NULL, NULL

static const tool_option_t tool_doctor_options[] = {
    {"json", NULL, TOOL_DOCTOR_OPTION(is_json)},
    {"report", tool_option_text, TOOL_DOCTOR_OPTION(file)},
    {"software-nic", NULL, TOOL_DOCTOR_OPTION(run.software_nic)},
    {"pin-cost", tool_option_text,
     TOOL_DOCTOR_OPTION(run.values[TOOL_SETTING_PIN_COST])},
    {"probe", NULL, TOOL_DOCTOR_OPTION(is_probe)},
    {}
};

static void tool_doctor_look(tool_doctor_t *doctor, const char *launcher)
{
    tool_doctor_machine(doctor);
    if (launcher != NULL) {
        tool_doctor_mpi(doctor, launcher);
    }
    if (doctor->run->library == NULL) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "door",
                        "reinstall, or set HELPER_MD_LIBDIR to a folder with "
                        "the library",
                        tool_strdup("libucx_helper.so cannot be preloaded, for "
                                    "the reason that stands above"));
    } else {
        tool_doctor_say(doctor, TOOL_DOCTOR_OK, "door", NULL,
                        tool_format("preloads %s", doctor->run->library));
        tool_doctor_ucx(doctor);
    }
}

int tool_doctor_main(int argc, char **argv)
{
    tool_doctor_command_t command = {};
    tool_doctor_t doctor          = {.run = &command.run};
    const char **cost             = &command.run.values[TOOL_SETTING_PIN_COST];
    int status;

    status = tool_options_parse(argc, argv, "", (const tool_options_t[]){
            {tool_doctor_options, &command}, {}}, tool_doctor_usage);
    if (status >= 0) {
        return status;
    }
    if ((*cost != NULL) &&
        (tool_setting_check(&tool_settings[TOOL_SETTING_PIN_COST], *cost))) {
        return TOOL_EXIT_USAGE;
    }
    if (command.is_probe) {
        return tool_doctor_probe(argv[argc - 1]);
    }

    command.run.library = tool_library_find(0, 0, TOOL_LAUNCHER_NONE);
    tool_doctor_look(&doctor, (optind < argc) ? argv[optind] : "mpirun");
    if (command.is_json) {
        tool_doctor_print_json(&doctor);
    } else {
        tool_doctor_print(&doctor, TOOL_DOCTOR_OK, stdout);
    }
    status = tool_finish_output();
    if (((command.file != NULL) &&
         (tool_doctor_write(&doctor, command.file) != 0)) ||
        (tool_doctor_count(&doctor, TOOL_DOCTOR_STOPS) > 0)) {
        status = TOOL_EXIT_FAILED;
    }
    tool_doctor_cleanup(&doctor);
    free(command.run.library);
    return status;
}

void tool_doctor_short(const tool_run_t *run)
{
    tool_doctor_t doctor = {.run = run};

    tool_doctor_look(&doctor, (run->launcher != TOOL_LAUNCHER_NONE) ?
                                      run->command[0] : NULL);
    if (tool_doctor_count(&doctor, TOOL_DOCTOR_OK) < doctor.count) {
        tool_message("ucx-helper doctor finds here:");
        tool_doctor_print(&doctor, TOOL_DOCTOR_ATTENTION, stderr);
    }
    tool_doctor_cleanup(&doctor);
}
