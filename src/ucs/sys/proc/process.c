/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/proc/process.h>
#include <ucs/sys/sync/give_way.h>
#include <ucs/sys/io/log.h>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Used before there is a page, and where the kernel cannot wipe one */
static _Atomic(uint32_t) ucs_process_plain = 1;
static pthread_once_t ucs_process_once     = PTHREAD_ONCE_INIT;
static void (*ucs_process_adopt)(void);

/* Numbers given so far, here and in the process's ancestors */
static uint32_t ucs_process_last = 1;

_Atomic(uint32_t) *ucs_process_word = &ucs_process_plain;

static void ucs_process_map(void)
{
    size_t length = sysconf(_SC_PAGESIZE);
    _Atomic(uint32_t) *word;

    word = mmap(NULL, length, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED) {
        return;
    }

    if (madvise(word, length, MADV_WIPEONFORK) != 0) {
        ucs_helper_debug("this kernel cannot wipe a page in a child: children "
                         "made without fork handlers are not recognized");
        munmap(word, length);
        return;
    }

    ucs_store_relaxed(word, ucs_process_last);
    ucs_process_word = word;
}

void ucs_process_init(void (*adopt)(void))
{
    ucs_process_adopt = adopt;
    pthread_once(&ucs_process_once, ucs_process_map);
}

uint32_t ucs_process_id(void)
{
    uint32_t id;

    for (;;) {
        /* acquire [P-ADOPT]: pairs with the release below */
        id = ucs_load_acquire(ucs_process_word);
        /* acquire [P-ADOPT]: if another thread has been faster, likewise */
        if ((id == UCS_PROCESS_UNKNOWN) &&
            ucs_cas_acq_rel(ucs_process_word, &id, UCS_PROCESS_ADOPTING)) {
            ucs_process_adopt();
            id = ++ucs_process_last;
            /* release [P-ADOPT]: a thread that reads the number sees the result
             * of adopt; pairs with the acquires above */
            ucs_store_release(ucs_process_word, id);
        }
        if ((id != UCS_PROCESS_UNKNOWN) && (id != UCS_PROCESS_ADOPTING)) {
            return id;
        }
        ucs_give_way();
    }
}

void ucs_process_forked(void)
{
    ucs_store_relaxed(ucs_process_word, UCS_PROCESS_UNKNOWN);
    ucs_process_id();
}
