/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "report.h"

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before each metric's name */
#define TOOL_REPORT_METRIC "ucx_helper_"

typedef struct tool_report_command {
    int        is_json;
    int        is_line;
    const char *prometheus; /* file, or NULL */
} tool_report_command_t;

static const tool_usage_t tool_report_usage = {
    "FILE|DIR...",
    "Merge the reports of a job's ranks (json:FILE; of a folder all *.json in it) "
    "into one table.\v"
    "The exit status is 1 when a file could not be used; the others are merged all "
    "the same. See ucx-helper(1)."
};

int tool_report_list_dir(const char *dir, const char *suffix,
                         tool_list_t *files)
{
    size_t end = strlen(suffix);
    int count  = 0;
    struct dirent **entries;
    struct stat st;
    size_t length;
    char *path;
    int i, all;

    all = scandir(dir, &entries, NULL, alphasort);
    if (all < 0) {
        tool_message("%s: %m", dir);
        return -1;
    }

    for (i = 0; i < all; ++i) {
        length = strlen(entries[i]->d_name);
        path   = tool_format("%s/%s", dir, entries[i]->d_name);
        if ((entries[i]->d_name[0] != '.') && (length > end) &&
            !strcmp(entries[i]->d_name + length - end, suffix) &&
            (stat(path, &st) == 0) && S_ISREG(st.st_mode)) { /* a pipe would wait */
            tool_list_add(files, path);
            ++count;
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return count;
}

/* @return 0, or -1 when a file could not be used */
static int tool_report_merge_files(const tool_list_t *files,
                                   tool_merge_t *merge)
{
    int ret = 0;
    json_t *report;
    size_t i;

    for (i = 0; i < files->count; ++i) {
        report = tool_report_read(files->items[i]);
        if ((report == NULL) || (tool_merge_add(merge, report) != 0)) {
            ret = -1;
        }
    }

    if (json_array_size(merge->ranks) > 0) {
        tool_merge_finish(merge);
    }
    return ret;
}

static int tool_report_list_args(char *const *args, tool_list_t *files)
{
    int ret = 0;
    struct stat st;
    int count;

    for (; *args != NULL; ++args) {
        if ((stat(*args, &st) != 0) || !S_ISDIR(st.st_mode)) {
            tool_list_add(files, *args);
            continue;
        }

        count = tool_report_list_dir(*args, ".json", files);
        if (count == 0) {
            tool_message("%s: no *.json in this folder", *args);
        }
        if (count <= 0) {
            ret = -1;
        }
    }
    return ret;
}

/* What the collector reads while a file is written must be whole: it is renamed. Keys are
 * names of metrics as they are. */
static int tool_report_export(const json_t *total, const char *file)
{
    char *tmp    = tool_format("%s.%d.tmp", file, getpid());
    FILE *stream = fopen(tmp, "w");
    int ret      = -1;
    const char *key;
    json_t *value;

    if (stream != NULL) {
        json_object_foreach((json_t*)total, key, value) {
            if (json_is_number(value) && strcmp(key, "version")) {
                fprintf(stream, "# TYPE " TOOL_REPORT_METRIC "%s gauge\n"
                        TOOL_REPORT_METRIC "%s %.15g\n", key, key,
                        json_number_value(value));
            }
        }
        ret = ferror(stream);
        ret = (fclose(stream) || ret || rename(tmp, file)) ? -1 : 0;
    }
    if (ret != 0) {
        tool_message("--prometheus: '%s' cannot be written: %m", file);
        unlink(tmp);
    }
    free(tmp);
    return ret;
}

static int tool_report_print(const tool_merge_t *merge,
                             const tool_report_command_t *command)
{
    size_t flags = JSON_REAL_PRECISION(15);
    int ret      = 0;

    if (command->prometheus != NULL) {
        ret = tool_report_export(merge->total, command->prometheus);
    }
    if (command->is_line) {
        json_object_del(merge->total, "ranks");
    }
    if (command->is_line || command->is_json) {
        flags |= command->is_line ? JSON_COMPACT : JSON_INDENT(2);
        ret   |= json_dumpf(merge->total, stdout, flags);
        putchar('\n');
    } else if (command->prometheus == NULL) {
        tool_table_print(merge, stdout);
    }

    return ((tool_finish_output() == TOOL_EXIT_OK) && (ret == 0)) ? 0 : -1;
}

#define TOOL_REPORT_OFFSET(_field) offsetof(tool_report_command_t, _field)

static const tool_option_t tool_report_options[] = {
    {"json", NULL, TOOL_REPORT_OFFSET(is_json), NULL,
     " print one JSON object instead", NULL},
    {"line", NULL, TOOL_REPORT_OFFSET(is_line), NULL,
     " likewise on one line, of the job without its ranks", NULL},
    {"prometheus", tool_option_text, TOOL_REPORT_OFFSET(prometheus), NULL,
     "FILE write its numbers for the node exporter, and no table", NULL},
    {}
};

int tool_report_main(int argc, char **argv)
{
    tool_report_command_t command = {};
    tool_list_t files             = TOOL_LIST_INITIALIZER;
    tool_merge_t merge;
    int first, status;

    first = tool_options_parse(argc, argv, 0, (const tool_options_t[]){
            {tool_report_options, &command}, {}}, &tool_report_usage);
    if (first == argc) {
        tool_message("no file given (see %s report --help)", TOOL_NAME);
        return TOOL_EXIT_USAGE;
    }

    status = TOOL_EXIT_OK;
    tool_merge_init(&merge);
    if (tool_report_list_args(argv + first, &files) != 0) {
        status = TOOL_EXIT_FAILED;
    }
    if (tool_report_merge_files(&files, &merge) != 0) {
        status = TOOL_EXIT_FAILED;
    }
    if ((merge.total != NULL) && (tool_report_print(&merge, &command) != 0)) {
        status = TOOL_EXIT_FAILED;
    }

    tool_merge_cleanup(&merge);
    tool_list_cleanup(&files);
    return status;
}

void tool_report_collect(const char *dir, tool_merge_t *merge)
{
    tool_list_t files = TOOL_LIST_INITIALIZER;

    tool_merge_init(merge);
    tool_report_list_dir(dir, ".json", &files);
    tool_report_merge_files(&files, merge);
    if (merge->total == NULL) {
        tool_message("no rank has written a report: UCX was not used or opened "
                     "none of the helper's domains, the helper was off, or "
                     "the ranks ran elsewhere");
    }
    tool_list_cleanup(&files);
}

size_t tool_report_finish_run(const char *dir, int other_hosts)
{
    static const char hint[] = "with ranks on other hosts, use --report "
                               "json:/shared/%h.%p.json and 'ucx-helper "
                               "report /shared'";
    tool_merge_t merge;
    size_t ranks;

    tool_report_collect(dir, &merge);
    ranks = json_array_size(merge.ranks);
    if (merge.total != NULL) {
        tool_table_print(&merge, stderr);
    }
    if ((merge.total == NULL) || other_hosts) {
        tool_message("%s", hint);
    }
    tool_merge_cleanup(&merge);
    return ranks;
}

static int tool_report_remove(const char *path, const struct stat *st, int type,
                              struct FTW *place)
{
    return remove(path);
}

void tool_report_remove_dir(const char *dir)
{
    if (nftw(dir, tool_report_remove, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        tool_message("cannot remove '%s': %m", dir);
    }
}
