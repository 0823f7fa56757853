/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "site.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of a file, and settings; there are some twenty options */
#define UCT_SITE_MAX   16384
#define UCT_SITE_COUNT 64

typedef struct uct_site {
    char   text[UCT_SITE_MAX + 1];
    char   *names[UCT_SITE_COUNT]; /* that were set, in text */
    size_t count;
} uct_site_t;

/* Nothing but a regular file is opened: a pipe might wait. @return NULL, or why not */
static const char *uct_site_load(const char *file, char *text)
{
    const char *why = NULL;
    struct stat st;
    ssize_t got;
    int fd;

    errno = 0;
    fd    = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return strerror(errno);
    }
    got = ((fstat(fd, &st) == 0) && S_ISREG(st.st_mode)) ?
                  read(fd, text, UCT_SITE_MAX + 1) : -1;
    if (got < 0) {
        why = "it is no regular file";
    } else if (got > UCT_SITE_MAX) {
        why = "it is longer than 16 KB";
    } else {
        text[got] = '\0';
    }
    close(fd);
    return why;
}

static char *uct_site_trim(char *text)
{
    size_t length;

    text += strspn(text, " \t\r");
    for (length = strlen(text);
         (length > 0) && isspace((unsigned char)text[length - 1]); --length) {
        text[length - 1] = '\0';
    }
    return text;
}

/* @return NULL, or what is wrong */
static const char *uct_site_line(uct_site_t *site, char *line)
{
    char *mark;

    line = uct_site_trim(line);
    if ((*line == '\0') || (*line == '#') || (*line == ';')) {
        return NULL;
    }
    mark = strchr(line, '=');
    if (mark == NULL) {
        return "is no NAME=VALUE";
    }
    *mark = '\0';
    line  = uct_site_trim(line);
    if (strncmp(line, "UCX_MD_HELPER", strlen("UCX_MD_HELPER")) &&
        strncmp(line, "UCX_MD_PIN", strlen("UCX_MD_PIN"))) {
        return "names no option of the helper's";
    }
    if (getenv(line) == NULL) {
        if ((site->count == UCT_SITE_COUNT) ||
            (setenv(line, uct_site_trim(mark + 1), 1) != 0)) {
            return "is one too many";
        }
        site->names[site->count++] = line;
    }
    return NULL;
}

int uct_site_read(const char *file, int must, int (*is_on)(void),
                  char error[UCT_SITE_ERROR_MAX])
{
    static uct_site_t site;
    const char *why = uct_site_load(file, site.text);
    char *rest      = site.text;
    int number      = 0;
    char *line;

    if (why != NULL) {
        if (!must && (errno == ENOENT)) {
            return 0;
        }
        snprintf(error, UCT_SITE_ERROR_MAX, "%s is no site file: %s", file, why);
        return -1;
    }
    site.count = 0;
    while ((why == NULL) && ((line = strsep(&rest, "\n")) != NULL)) {
        ++number;
        why = uct_site_line(&site, line);
    }
    while (((why != NULL) || !is_on()) && (site.count > 0)) {
        unsetenv(site.names[--site.count]);
    }
    if (why != NULL) {
        snprintf(error, UCT_SITE_ERROR_MAX, "%s:%d: '%s' %s", file, number,
                 uct_site_trim(line), why);
        return -1;
    }
    return 0;
}
