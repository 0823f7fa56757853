/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Limits that a user or a batch system sets, and memory that the program locks:
 * what is there for a program without the helper is there with it.
 */

#include "attack.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MB (1ul << 20)

static void set_limit(int resource, size_t bytes)
{
    const struct rlimit limit = {bytes, bytes};

    if (setrlimit(resource, &limit) != 0) {
        attack_die("setrlimit: %m");
    }
}

static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file          = fopen("/proc/self/statm", "r");

    if ((file == NULL) || (fscanf(file, "%lu", &pages) != 1)) {
        attack_die("no /proc/self/statm");
    }
    fclose(file);
    return pages * ATTACK_PAGE;
}

/* ulimit -v: needs 300 MB and has 340, which an arena of malloc() would take */
ATTACK(address_space, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    unsigned i;
    char *part;

    set_limit(RLIMIT_AS, address_space() + 340 * MB);
    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; i < 12; ++i) {
        part = malloc(25 * MB);
        if (part == NULL) {
            break;
        }
        attack_use(md, part, 25 * MB);
    }
    printf("%u MB\n", i * 25);
}

/* An ordinary user who locks what is mapped from now on and may lock 8 MB */
ATTACK(locked_later, md)
{
    unsigned i;
    char *part;

    set_limit(RLIMIT_MEMLOCK, 8 * MB);
    if ((setgid(65534) != 0) || (setuid(65534) != 0) ||
        (mlockall(MCL_FUTURE) != 0)) {
        printf("not allowed\n");
        return;
    }
    for (i = 0; i < 6; ++i) {
        part = mmap(NULL, MB, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (part == MAP_FAILED) {
            break;
        }
        attack_use(md, part, MB);
        attack_sleep(2);
    }
    printf("%u MB\n", i);
}

/* A buffer may be any of the heap, what lies between the program's blocks
 * included */
ATTACK(heap, md)
{
    uintptr_t start = 0, end = 0;
    char line[256];
    FILE *file;
    unsigned i;

    for (i = 0; i < 6; ++i) {
        if (malloc(64000) == NULL) {
            attack_die("no memory");
        }
        file = fopen("/proc/self/maps", "r");
        while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
            if (strstr(line, "[heap]") != NULL) {
                (void)sscanf(line, "%lx-%lx", &start, &end);
            }
        }
        if (file != NULL) {
            fclose(file);
        }
        attack_use_as_is(md, (char*)start, end - start);
    }
    printf("used\n");
}
