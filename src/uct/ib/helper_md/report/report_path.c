/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "report_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int uct_helper_report_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "PMIX_RANK", "SLURM_PROCID"};
    const char *text;
    unsigned i;
    char *end;
    long rank;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        text = getenv(names[i]);
        if ((text == NULL) || (*text == '\0')) {
            continue;
        }

        rank = strtol(text, &end, 10);
        if ((*end == '\0') && (rank >= 0) && (rank <= INT_MAX)) {
            return rank;
        }
    }

    return -1;
}

static const char *uct_helper_report_item(char letter, char *item, size_t max)
{
    int rank;

    switch (letter) {
    case 'h':
        item[max - 1] = '\0';
        return (gethostname(item, max - 1) == 0) ? item : "localhost";
    case 'p':
        snprintf(item, max, "%d", getpid());
        return item;
    case 'r':
        rank = uct_helper_report_rank();
        if (rank < 0) {
            return "x";
        }
        snprintf(item, max, "%d", rank);
        return item;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

ucs_status_t uct_helper_report_expand(const char *pattern, char *path,
                                      size_t max)
{
    size_t length  = 0;
    char single[2] = "";
    char buffer[HOST_NAME_MAX + 2];
    const char *item;

    for (; *pattern != '\0'; ++pattern) {
        item = (*pattern != '%') ? NULL :
               uct_helper_report_item(pattern[1], buffer, sizeof(buffer));
        if (item != NULL) {
            ++pattern;
        } else {
            single[0] = *pattern;
            item      = single;
        }

        if (length + strlen(item) >= max) {
            return UCS_ERR_EXCEEDS_LIMIT;
        }
        strcpy(path + length, item);
        length += strlen(item);
    }

    path[length] = '\0';
    return UCS_OK;
}
