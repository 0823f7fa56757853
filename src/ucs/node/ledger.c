/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "ledger.h"

#include <ucs/sys/mem/own_map.h>
#include <ucs/sys/proc/dead.h>
#include <ucs/sys/hash.h>

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCS_LEDGER_SUFFIX_MAX 64
#define UCS_LEDGER_PID_NS     "/proc/self/ns/pid"

#define UCS_LEDGER_REMOVE     "remove it (ipcrm -M KEY) when no job uses it"
#define UCS_LEDGER_WRONG_SIZE "it has another size; " UCS_LEDGER_REMOVE

/* Tries to attach a segment that may be removed meanwhile: once is rare, and a
 * try takes some microseconds */
#define UCS_LEDGER_TRIES 64

/* An owner word: the process's number (the pid_max of Linux is 2^22 at most) above the
 * page at which it has the ledger */
#define UCS_LEDGER_PID_SHIFT    42
#define UCS_LEDGER_PAGE_SHIFT   12
#define UCS_LEDGER_ADDRESS_BITS (UCS_LEDGER_PID_SHIFT + UCS_LEDGER_PAGE_SHIFT)

/* --- Owners --------------------------------------------------------------- */

/* A number that no process can have: kill() and /proc must not be asked about 0
 * or -1 */
pid_t ucs_ledger_pid(uint64_t owner)
{
    return (pid_t)(owner >> UCS_LEDGER_PID_SHIFT);
}

uint64_t ucs_ledger_self(const ucs_ledger_t *ledger)
{
    return ((uint64_t)getpid() << UCS_LEDGER_PID_SHIFT) |
           ((uintptr_t)ledger >> UCS_LEDGER_PAGE_SHIFT);
}

static int ucs_ledger_owner_is_gone(uint64_t owner)
{
    pid_t pid = ucs_ledger_pid(owner);

    return (pid == 0) || ((kill(pid, 0) != 0) && (errno == ESRCH));
}

/* Who has the ledger elsewhere, or not at all, is another process that has got the
 * number meanwhile, or another program of the same process (exec()) */
int ucs_ledger_is_alive(const ucs_ledger_t *ledger, uint64_t owner)
{
    pid_t pid     = ucs_ledger_pid(owner);
    uintptr_t map = (owner << UCS_LEDGER_PAGE_SHIFT) &
                    ((UINT64_C(1) << UCS_LEDGER_ADDRESS_BITS) - 1);

    return !ucs_ledger_owner_is_gone(owner) && !ucs_pid_is_dead(pid) &&
           !ucs_pid_has_lost(pid, (void*)map, ucs_own_round(sizeof(*ledger)),
                             ledger);
}

/* --- Slots ---------------------------------------------------------------- */

/* Fails if another was faster: the slot may have a new owner. Release [N-OWNER] for the
 * owner, also a dead one, whose last words come before the next owner's; the acquire that
 * the operation has as well orders nothing here. */
int ucs_ledger_leave(ucs_ledger_t *ledger, unsigned slot, uint64_t owner)
{
    return ucs_cas_acq_rel(&ledger->owner[slot], &owner, 0); /* [N-OWNER] */
}

int ucs_ledger_reap_slot(ucs_ledger_t *ledger, unsigned slot)
{
    uint64_t owner = ucs_load_relaxed(&ledger->owner[slot]);

    return (owner != 0) && !ucs_ledger_is_alive(ledger, owner) &&
           ucs_ledger_leave(ledger, slot, owner);
}

void ucs_ledger_reap_gone(ucs_ledger_t *ledger)
{
    uint64_t owner;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        owner = ucs_load_relaxed(&ledger->owner[i]);
        if ((owner != 0) && ucs_ledger_owner_is_gone(owner)) {
            (void)ucs_ledger_leave(ledger, i, owner);
        }
    }
}

unsigned ucs_ledger_reap(ucs_ledger_t *ledger)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        count += ucs_ledger_reap_slot(ledger, i);
    }
    return count;
}

/* The former owner's figures count until this is done: too much for a moment,
 * never too little. Relaxed: a rank that reads a claim of the new owner, which
 * comes later, cannot read less. */
static void ucs_ledger_clear(ucs_ledger_t *ledger, unsigned i)
{
    ucs_ledger_slot_t *slot = &ledger->slots[i];
    unsigned word;

    ucs_store_relaxed(&slot->listens, 0);
    ucs_store_relaxed(&slot->runs, 0);
    ucs_store_relaxed(&slot->cores, 0);
    for (word = 0; word < UCS_LEDGER_WORDS; ++word) {
        ucs_store_relaxed(&slot->cpus[word], 0);
    }
    ucs_store_relaxed(&slot->want, 0);
    ucs_store_relaxed(&slot->answer, ucs_load_relaxed(&slot->bell));
    ucs_store_relaxed(&ledger->demand[i], 0);
    ucs_store_relaxed(&ledger->pinned[i], 0);
    ucs_store_relaxed(&ledger->taken[i],
                      ucs_ledger_rises(ledger, i) * UCS_LEDGER_RISE);
}

static int ucs_ledger_take(ucs_ledger_t *ledger, uint64_t self)
{
    uint64_t owner;
    int i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        owner = 0;
        /* Acquire [N-OWNER]. Nothing has been written that a release could
         * tell of: what a rank reads of the new owner it orders by [N-SUM] */
        if ((ucs_load_relaxed(&ledger->owner[i]) == 0) &&
            ucs_cas_acq_rel(&ledger->owner[i], &owner, self)) {
            ucs_ledger_clear(ledger, i);
            return i;
        }
    }
    return -1;
}

int ucs_ledger_enter(ucs_ledger_t *ledger, uint64_t *owner_p)
{
    uint64_t self = ucs_ledger_self(ledger);
    unsigned i;

    /* Where addresses are not random, the program before an exec() may have had the
     * ledger here, too */
    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        (void)ucs_ledger_leave(ledger, i, self);
    }
    (void)ucs_ledger_reap(ledger);
    *owner_p = self;
    return ucs_ledger_take(ledger, self);
}

/* --- Damage --------------------------------------------------------------- */

/* Words that are right are not written: they are in all ranks' caches. The
 * owner before the head: a process that opens the ledger trusts its head. */
int ucs_ledger_mend(ucs_ledger_t *ledger, unsigned slot, uint64_t owner)
{
    uint64_t other = 0;

    (void)ucs_ledger_reap_slot(ledger, slot);
    /* Acquire [N-OWNER], as when it was taken first */
    if (!ucs_cas_acq_rel(&ledger->owner[slot], &other, owner) &&
        (other != owner)) {
        return 0;
    }

    if (ucs_load_relaxed(&ledger->stamp) != UCS_LEDGER_STAMP) {
        /* Release [N-STAMP]: pairs with ucs_ledger_check_stamp() */
        ucs_store_release(&ledger->stamp, UCS_LEDGER_STAMP);
    }
    return 1;
}

/* One call replaces the mapping: a reading thread sees the old or the new
 * one */
int ucs_ledger_detach(ucs_ledger_t *ledger)
{
    return mmap(ledger, sizeof(*ledger), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == ledger;
}

/* --- Opening -------------------------------------------------------------- */

ucs_status_t ucs_ledger_name(const char *suffix, char *name, size_t max)
{
    int has_suffix = (suffix != NULL) && (*suffix != '\0');
    const char *c;

    for (c = has_suffix ? suffix : ""; *c != '\0'; ++c) {
        if ((!isalnum((unsigned char)*c) && (*c != '-') && (*c != '_')) ||
            (c - suffix >= UCS_LEDGER_SUFFIX_MAX)) {
            return UCS_ERR_INVALID_PARAM;
        }
    }

    snprintf(name, max, "ucx-helper-md-%u.%u%s%s", UCS_LEDGER_VERSION,
             geteuid(), has_suffix ? "." : "", has_suffix ? suffix : "");
    return UCS_OK;
}

void ucs_ledger_name_device(const char *device, char *name, size_t max)
{
    size_t length = strlen(name);

    snprintf(name + length, max - length, "+%s", device);
}

/* test/ledger.sh computes the same */
int ucs_ledger_key(const char *name)
{
    uint64_t hash = ucs_hash_text(name);
    uint32_t key  = hash ^ (hash >> 32);

    return (key == IPC_PRIVATE) ? 1 : (int)key;
}

/* @return NULL, or what is wrong with the segment */
static const char *ucs_ledger_check_segment(const struct shmid_ds *ds)
{
    if ((ds->shm_perm.uid != geteuid()) || (ds->shm_perm.cuid != geteuid())) {
        return "it belongs to another user";
    }
    if (ds->shm_perm.mode & (S_IRWXG | S_IRWXO)) {
        return "others than its owner may use it";
    }
    if (ds->shm_segsz != sizeof(ucs_ledger_t)) {
        return UCS_LEDGER_WRONG_SIZE;
    }
    return NULL;
}

/* Stamp it, or check that a faster process did the same. Each word is decided
 * by itself, so only the stamp has an order: acquire [N-STAMP], also where it
 * fails. */
static const char *ucs_ledger_check_stamp(ucs_ledger_t *ledger, uint64_t hash)
{
    uint64_t stamp = 0, seen = 0, none = 0;
    uint64_t spaces;
    struct stat st;

    if (stat(UCS_LEDGER_PID_NS, &st) != 0) {
        return "there is no /proc";
    }
    spaces = st.st_ino; /* owners are known by process number */
    if (!ucs_cas_acq_rel(&ledger->stamp, &stamp, /* [N-STAMP] */
                         UCS_LEDGER_STAMP) &&
        (stamp != UCS_LEDGER_STAMP)) {
        return ((stamp >> 16) == UCS_LEDGER_MAGIC) ?
                       "it has another version; " UCS_LEDGER_REMOVE :
                       "it is not a ledger; " UCS_LEDGER_REMOVE;
    }
    if (!ucs_cas_relaxed(&ledger->name, &none, hash) && (none != hash)) {
        return "it is the ledger of another name that has the same key";
    }
    if (!ucs_cas_relaxed(&ledger->spaces, &seen, spaces) && (seen != spaces)) {
        return "it is used in another PID namespace";
    }
    return NULL;
}

/* A segment that is removed meanwhile is made anew.
 *
 * @return NULL, or why there is none */
static const char *ucs_ledger_attach(int key, int *id_p,
                                     ucs_ledger_t **ledger_p)
{
    struct shmid_ds ds;
    const char *why;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_TRIES; ++i) {
        *id_p = shmget(key, sizeof(**ledger_p),
                       IPC_CREAT | S_IRUSR | S_IWUSR);
        if (*id_p < 0) {
            return (errno == EINVAL) ? UCS_LEDGER_WRONG_SIZE : strerror(errno);
        }

        if (shmctl(*id_p, IPC_STAT, &ds) == 0) {
            why = ucs_ledger_check_segment(&ds);
            if (why != NULL) {
                return why;
            }

            *ledger_p = shmat(*id_p, NULL, 0);
            if (*ledger_p != (void*)-1) {
                return NULL;
            }
        }
        if ((errno != EINVAL) && (errno != EIDRM)) {
            break;
        }
    }
    return strerror(errno);
}

ucs_status_t ucs_ledger_open(const char *name, ucs_ledger_t **ledger_p,
                             char *error, size_t max)
{
    int key = ucs_ledger_key(name);
    ucs_ledger_t *ledger;
    const char *why;
    int id = -1;

    why = ucs_ledger_attach(key, &id, &ledger);
    if (why == NULL) {
        why = ucs_ledger_check_stamp(ledger, ucs_hash_text(name));
        if (why == NULL) {
            *ledger_p = ledger;
            return UCS_OK;
        }
        ucs_ledger_close(ledger);
    }

    snprintf(error, max,
             UCS_NODE_SUFFIX_ENV
             ": the node's ledger %s (shared memory "
             "with key 0x%08x) is not used: %s; allowed: one of the user's own "
             "that this version of the helper has made, or none yet",
             name, (unsigned)key, why);
    return (id < 0) ? UCS_ERR_IO_ERROR : UCS_ERR_UNSUPPORTED;
}

void ucs_ledger_close(ucs_ledger_t *ledger)
{
    /* As shmdt() does, and also where the mapping was replaced */
    (void)munmap(ledger, sizeof(*ledger));
}

void ucs_ledger_remove_unused(int key)
{
    int id = shmget(key, 0, 0);
    struct shmid_ds ds;

    if ((id >= 0) && (shmctl(id, IPC_STAT, &ds) == 0) && (ds.shm_nattch == 0)) {
        (void)shmctl(id, IPC_RMID, NULL);
    }
}
