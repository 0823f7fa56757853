/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef OWN_PROC_H_
#define OWN_PROC_H_

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/**
 * @file own_proc.h
 *
 * What /proc tells a process of itself.
 */

/** @return A userfaultfd of this process below @a end, -1 if there is none. */
static inline int own_proc_userfaultfd(int end)
{
    char path[64], target[64];
    ssize_t length;
    int fd;

    for (fd = 0; fd < end; ++fd) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target) - 1);
        if (length > 0) {
            target[length] = '\0';
            if (strstr(target, "userfaultfd") != NULL) {
                return fd;
            }
        }
    }
    return -1;
}

/** Whether the thread of this number, which may have ended, has the name. */
static inline int own_proc_is_named(const char *thread, const char *name)
{
    char path[64], found[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", thread);
    file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    if (fgets(found, sizeof(found), file) != NULL) {
        found[strcspn(found, "\n")] = '\0';
    }
    fclose(file);
    return strcmp(found, name) == 0;
}

/** @return How many threads of this process have the name, -1 if nobody tells;
 *          in @a thread_p, if it is not NULL and there are any, one of them. */
static inline int own_proc_threads(const char *name, pid_t *thread_p)
{
    DIR *dir  = opendir("/proc/self/task");
    int count = 0;
    struct dirent *entry;

    if (dir == NULL) {
        return -1;
    }
    while ((entry = readdir(dir)) != NULL) {
        if ((entry->d_name[0] != '.') &&
            own_proc_is_named(entry->d_name, name)) {
            if (thread_p != NULL) {
                *thread_p = atoi(entry->d_name);
            }
            ++count;
        }
    }
    closedir(dir);
    return count;
}

/** @return Lines of /proc/self/maps, 0 if nobody tells. */
static inline unsigned own_proc_mappings(void)
{
    FILE *file     = fopen("/proc/self/maps", "r");
    unsigned count = 0;
    int c;

    while ((file != NULL) && ((c = getc(file)) != EOF)) {
        count += (c == '\n');
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

/** @return Descriptors that this process has open, 0 if nobody tells. */
static inline unsigned own_proc_descriptors(void)
{
    DIR *dir       = opendir("/proc/self/fd");
    unsigned count = 0;

    while ((dir != NULL) && (readdir(dir) != NULL)) {
        ++count;
    }
    if (dir != NULL) {
        closedir(dir);
        count -= 3; /* ".", "..", and that of the folder */
    }
    return count;
}

#endif
