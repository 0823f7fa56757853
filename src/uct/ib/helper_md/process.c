/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "process.h"
#include "log.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* Stands in for the page before there is one, and where none can be wiped */
static _Atomic(uint32_t) uct_helper_process_plain = 1;
static pthread_once_t uct_helper_process_once     = PTHREAD_ONCE_INIT;
static void (*uct_helper_process_adopt)(void);

/* Numbers given so far, here and in the forefathers */
static uint32_t uct_helper_process_last = 1;

_Atomic(uint32_t) *uct_helper_process_word = &uct_helper_process_plain;


static void uct_helper_process_map(void)
{
    size_t length = sysconf(_SC_PAGESIZE);
    _Atomic(uint32_t) *word;

    word = mmap(NULL, length, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED) {
        return;
    }

    if (madvise(word, length, MADV_WIPEONFORK) != 0) {
        uct_helper_debug("this kernel cannot wipe a page in a child: children "
                         "made without fork handlers are not recognized");
        munmap(word, length);
        return;
    }

    ucs_store_relaxed(word, uct_helper_process_last);
    uct_helper_process_word = word;
}

void uct_helper_process_init(void (*adopt)(void))
{
    uct_helper_process_adopt = adopt;
    pthread_once(&uct_helper_process_once, uct_helper_process_map);
}

uint32_t uct_helper_process_id(void)
{
    uint32_t id;

    for (;;) {
        /* acquire [P-ADOPT]: pairs with the release below */
        id = ucs_load_acquire(uct_helper_process_word);
        if ((id == UCT_HELPER_PROCESS_UNKNOWN) &&
            ucs_cas_acq_rel(uct_helper_process_word, &id,
                            UCT_HELPER_PROCESS_ADOPTING)) {
            uct_helper_process_adopt();
            id = ++uct_helper_process_last;
            /* release [P-ADOPT]: who reads the number finds the house in
             * order */
            ucs_store_release(uct_helper_process_word, id);
        }
        if ((id != UCT_HELPER_PROCESS_UNKNOWN) &&
            (id != UCT_HELPER_PROCESS_ADOPTING)) {
            return id;
        }
        sched_yield();
    }
}

void uct_helper_process_forked(void)
{
    ucs_store_relaxed(uct_helper_process_word, UCT_HELPER_PROCESS_UNKNOWN);
    uct_helper_process_id();
}
