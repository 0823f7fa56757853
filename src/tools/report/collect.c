/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"

#include <tools/options.h>
#include <tools/tool.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


static void tool_report_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s report [--json] FILE|DIR...\n\n"
            "Merge the reports of a job's ranks (json:FILE; of a folder all "
            "*.json in it) into\none table.\n\n"
            "  --json  print one JSON object instead\n"
            "  --help  show this text\n\n"
            "The exit status is 1 when a file could not be used; the others "
            "are merged all\nthe same. See ucx-helper(1).\n",
            TOOL_NAME);
}

int tool_report_list_dir(const char *dir, const char *suffix,
                         tool_list_t *files)
{
    size_t end = strlen(suffix);
    int count  = 0;
    struct dirent **entries;
    size_t length;
    int i, all;

    all = scandir(dir, &entries, NULL, alphasort);
    if (all < 0) {
        tool_message("%s: %m", dir);
        return -1;
    }

    for (i = 0; i < all; ++i) {
        length = strlen(entries[i]->d_name);
        if ((entries[i]->d_name[0] != '.') && (length > end) &&
            !strcmp(entries[i]->d_name + length - end, suffix)) {
            tool_list_addf(files, "%s/%s", dir, entries[i]->d_name);
            ++count;
        }
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

static int tool_report_print(const tool_merge_t *merge, int is_json)
{
    int ret = 0;

    if (is_json) {
        ret = json_dumpf(merge->total, stdout,
                         JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        putchar('\n');
    } else {
        tool_table_print(merge, stdout);
    }

    return ((tool_finish_output() == TOOL_EXIT_OK) && (ret == 0)) ? 0 : -1;
}

int tool_report_main(int argc, char **argv)
{
    static const tool_option_t options[] = {{.name = "json"}, {}};
    tool_list_t files                    = TOOL_LIST_INITIALIZER;
    int is_json                          = 0;
    tool_merge_t merge;
    int status;

    status = tool_options_parse(argc, argv, "", (const tool_options_t[]){
            {options, &is_json}, {}}, tool_report_usage);
    if (status >= 0) {
        return status;
    }
    if (optind == argc) {
        tool_message("no file given (see %s report --help)", TOOL_NAME);
        return TOOL_EXIT_USAGE;
    }

    status = TOOL_EXIT_OK;
    tool_merge_init(&merge);
    if (tool_report_list_args(argv + optind, &files) != 0) {
        status = TOOL_EXIT_FAILED;
    }
    if (tool_report_merge_files(&files, &merge) != 0) {
        status = TOOL_EXIT_FAILED;
    }
    if ((merge.total != NULL) && (tool_report_print(&merge, is_json) != 0)) {
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

void tool_report_remove_dir(const char *dir)
{
    DIR *stream = opendir(dir);
    struct dirent *entry;
    char *folder;

    while ((stream != NULL) && ((entry = readdir(stream)) != NULL)) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
            continue;
        }
        if ((unlinkat(dirfd(stream), entry->d_name, 0) != 0) &&
            (errno == EISDIR)) {
            folder = tool_format("%s/%s", dir, entry->d_name);
            tool_report_remove_dir(folder);
            free(folder);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }

    if (rmdir(dir) != 0) {
        tool_message("cannot remove '%s': %m", dir);
    }
}
