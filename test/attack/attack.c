/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "attack.h"
#include "../cma.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucs/config/global_opts.h>
#include <unistd.h>

#define USES_OFTEN  20
#define USES_GAP_MS 2

static const attack_t *attack_list;

void attack_add(attack_t *attack)
{
    attack->next = attack_list;
    attack_list  = attack;
}

void attack_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "attack: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

ucs_status_t attack_try(uct_md_h md, void *address, size_t length)
{
    ucs_status_t status;
    uct_mem_h memh;

    status = uct_md_mem_reg(md, address, length,
                            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS,
                            &memh);
    return (status == UCS_OK) ? uct_md_mem_dereg(md, memh) : status;
}

void attack_use_as_is(uct_md_h md, void *address, size_t length)
{
    ucs_status_t status = attack_try(md, address, length);

    if (status != UCS_OK) {
        attack_die("registering %zu bytes failed: %s", length,
                   ucs_status_string(status));
    }
}

void attack_use(uct_md_h md, void *address, size_t length)
{
    static unsigned char content;

    memset(address, __atomic_add_fetch(&content, 1, __ATOMIC_RELAXED), length);
    attack_use_as_is(md, address, length);
}

void attack_use_often(uct_md_h md, void *address, size_t length)
{
    int i;

    for (i = 0; i < USES_OFTEN; ++i) {
        attack_use(md, address, length);
        attack_sleep(USES_GAP_MS);
    }
}

static void *attack_use_main(void *arg)
{
    char *buffer = attack_map(ATTACK_SIZE);
    int i;

    for (i = 0; i < 5; ++i) {
        attack_use(arg, buffer, ATTACK_SIZE);
    }
    munmap(buffer, ATTACK_SIZE);
    return NULL;
}

void attack_use_in_a_thread(uct_md_h md)
{
    pthread_t id;

    if ((pthread_create(&id, NULL, attack_use_main, md) != 0) ||
        (pthread_join(id, NULL) != 0)) {
        attack_die("no thread");
    }
}

static void *attack_mapped(void *address, size_t length)
{
    if (address == MAP_FAILED) {
        attack_die("mapping %zu bytes failed: %m", length);
    }
    return address;
}

void *attack_map(size_t length)
{
    return attack_mapped(mmap(NULL, length, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), length);
}

void *attack_map_raw(size_t length)
{
    return attack_mapped((void*)syscall(SYS_mmap, NULL, length,
                                        PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                         length);
}

void attack_sleep(unsigned milliseconds)
{
    struct timespec time = {milliseconds / 1000,
                            (milliseconds % 1000) * 1000000l};

    nanosleep(&time, NULL);
}

double attack_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

uct_md_h attack_open(void)
{
    uct_md_h md = cma_open();

    if (md == NULL) {
        attack_die("the domain does not open");
    }
    return md;
}

static const attack_t *attack_find(const char *name)
{
    const attack_t *attack = attack_list;

    while ((attack != NULL) && (strcmp(attack->name, name) != 0)) {
        attack = attack->next;
    }
    return attack;
}

int main(int argc, char **argv)
{
    const attack_t *attack;
    uct_md_h md = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0); /* children write, too */
    attack = (argc == 2) ? attack_find(argv[1]) : NULL;
    if (attack == NULL) {
        fprintf(stderr, "usage: attack NAME\n");
        return 2;
    }

    if (!attack->opens) {
        md = attack_open();
    }
    attack->run(md);
    if (!attack->opens) {
        uct_md_close(md);
    }
    puts("to the end");
    return 0;
}
