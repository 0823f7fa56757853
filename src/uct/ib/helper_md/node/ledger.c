/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "ledger.h"

#include <uct/ib/helper_md/write_safely.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCT_HELPER_LEDGER_SUFFIX_MAX 64
#define UCT_HELPER_LEDGER_PID_NS     "/proc/self/ns/pid"

/* The pid_max of Linux is 2^22 at most */
#define UCT_HELPER_LEDGER_PID_SHIFT  32


/*
 * Who is who
 */

/* The fields of /proc/PID/stat behind the name, which may hold anything:
 * state (3), number of threads (20), start time (22) */
static int uct_helper_ledger_parse(const char *stat, char *state_p,
                                   long *threads_p, uint64_t *start_p)
{
    const char *rest = strrchr(stat, ')');
    unsigned long long start;

    if ((rest == NULL) ||
        (sscanf(rest + 1,
                " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                "%*d %*d %ld %*d %llu",
                state_p, threads_p, &start) != 3)) {
        return 0;
    }

    *start_p = start;
    return 1;
}

/* A program may leave /proc behind (chroot(), another mount over it): then
 * nobody is there, and that says nothing of anybody */
static int uct_helper_ledger_sees_processes(void)
{
    return access("/proc/self/stat", F_OK) == 0;
}

/* The owner word of a process that runs, 0 of one that does not. Between its
 * death and its burial a process is a zombie; so is one whose first thread alone
 * has ended.
 *
 * @return Zero if it cannot be told, for want of descriptors or the like. */
static int uct_helper_ledger_identify(pid_t pid, uint64_t *owner_p)
{
    char path[32], stat[1024];
    uint64_t start;
    size_t length;
    long threads;
    char state;
    FILE *file;

    *owner_p = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return ((errno == ENOENT) || (errno == ESRCH)) &&
               uct_helper_ledger_sees_processes();
    }

    length       = fread(stat, 1, sizeof(stat) - 1, file);
    stat[length] = '\0';
    fclose(file);
    if (length == 0) {
        return 1; /* gone since it was opened */
    }
    if (!uct_helper_ledger_parse(stat, &state, &threads, &start)) {
        return 0;
    }

    if (((state != 'Z') && (state != 'X')) || (threads > 1)) {
        *owner_p = ((uint64_t)pid << UCT_HELPER_LEDGER_PID_SHIFT) |
                   (uint32_t)start;
    }
    return 1;
}

uint64_t uct_helper_ledger_self(void)
{
    uint64_t owner;

    (void)uct_helper_ledger_identify(getpid(), &owner);
    return owner;
}

/* A number that no process can have is nobody's: kill() and /proc must not be
 * asked about 0 or -1 */
static int uct_helper_ledger_owner_is_gone(uint64_t owner)
{
    uint64_t pid = owner >> UCT_HELPER_LEDGER_PID_SHIFT;

    return (pid == 0) || (pid > INT32_MAX) ||
           ((kill((pid_t)pid, 0) != 0) && (errno == ESRCH));
}

/* Who cannot be told dead is alive */
static int uct_helper_ledger_owner_is_alive(uint64_t owner)
{
    uint64_t pid = owner >> UCT_HELPER_LEDGER_PID_SHIFT;
    uint64_t now;

    if (uct_helper_ledger_owner_is_gone(owner)) {
        return 0;
    }

    return !uct_helper_ledger_identify((pid_t)pid, &now) || (now == owner);
}

int uct_helper_ledger_is_alive(uct_helper_ledger_t *ledger, unsigned slot)
{
    uint64_t owner = ucs_load_relaxed(&ledger->owner[slot]);

    return (owner != 0) && uct_helper_ledger_owner_is_alive(owner);
}

/*
 * Slots
 */

int uct_helper_ledger_reap_slot(uct_helper_ledger_t *ledger, unsigned slot)
{
    uint64_t owner = ucs_load_relaxed(&ledger->owner[slot]);

    /* Fails if another was faster: the slot may have a new owner */
    return (owner != 0) && !uct_helper_ledger_owner_is_alive(owner) &&
           ucs_cas_acq_rel(&ledger->owner[slot], &owner, 0);
}

void uct_helper_ledger_reap_gone(uct_helper_ledger_t *ledger)
{
    uint64_t owner;
    unsigned i;

    for (i = 0; i < UCT_HELPER_LEDGER_SLOTS; ++i) {
        owner = ucs_load_relaxed(&ledger->owner[i]);
        if ((owner != 0) && uct_helper_ledger_owner_is_gone(owner)) {
            (void)ucs_cas_acq_rel(&ledger->owner[i], &owner, 0);
        }
    }
}

unsigned uct_helper_ledger_reap(uct_helper_ledger_t *ledger)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < UCT_HELPER_LEDGER_SLOTS; ++i) {
        count += uct_helper_ledger_reap_slot(ledger, i);
    }
    return count;
}

/* What the owner before left counts until this has been done: too much is
 * counted for a moment, never too little */
static void uct_helper_ledger_clear(uct_helper_ledger_t *ledger, unsigned i)
{
    uct_helper_ledger_slot_t *slot = &ledger->slots[i];
    unsigned word;

    ucs_store_relaxed(&slot->state, 0);
    ucs_store_relaxed(&slot->want, 0);
    ucs_store_relaxed(&slot->answer, ucs_load_relaxed(&slot->bell));
    ucs_store_relaxed(&slot->cores, 0);
    ucs_store_relaxed(&slot->cpu, 0);
    ucs_store_relaxed(&slot->step_ns, 0);
    ucs_store_relaxed(&slot->load, 0);
    for (word = 0; word < UCT_HELPER_LEDGER_WORDS; ++word) {
        ucs_store_relaxed(&slot->cpus[word], 0);
    }
    ucs_store_relaxed(&ledger->demand[i], 0);
    ucs_store_seq_cst(&ledger->pinned[i], 0);
    ucs_store_seq_cst(&ledger->taken[i], uct_helper_ledger_rises(ledger, i) *
                                                 UCT_HELPER_LEDGER_RISE);
}

static int uct_helper_ledger_take(uct_helper_ledger_t *ledger, uint64_t self)
{
    uint64_t owner;
    int i;

    for (i = 0; i < UCT_HELPER_LEDGER_SLOTS; ++i) {
        owner = 0;
        if ((ucs_load_relaxed(&ledger->owner[i]) == 0) &&
            ucs_cas_acq_rel(&ledger->owner[i], &owner, self)) {
            uct_helper_ledger_clear(ledger, i);
            return i;
        }
    }
    return -1;
}

int uct_helper_ledger_enter(uct_helper_ledger_t *ledger, uint64_t *owner_p)
{
    uint64_t self = uct_helper_ledger_self();

    if (self == 0) {
        return -1;
    }

    uct_helper_ledger_reap(ledger);
    *owner_p = self;
    return uct_helper_ledger_take(ledger, self);
}

void uct_helper_ledger_leave(uct_helper_ledger_t *ledger, int slot,
                             uint64_t owner)
{
    (void)ucs_cas_acq_rel(&ledger->owner[slot], &owner, 0);
}

/*
 * Opening
 */

ucs_status_t uct_helper_ledger_name(const char *suffix, char *name, size_t max)
{
    const char *c;

    if ((suffix == NULL) || (*suffix == '\0')) {
        snprintf(name, max, "/ucx-helper-md-%u.%u", UCT_HELPER_LEDGER_VERSION,
                 geteuid());
        return UCS_OK;
    }

    for (c = suffix; *c != '\0'; ++c) {
        if ((!isalnum((unsigned char)*c) && (*c != '-') && (*c != '_')) ||
            (c - suffix >= UCT_HELPER_LEDGER_SUFFIX_MAX)) {
            return UCS_ERR_INVALID_PARAM;
        }
    }

    snprintf(name, max, "/ucx-helper-md-%u.%u.%s", UCT_HELPER_LEDGER_VERSION,
             geteuid(), suffix);
    return UCS_OK;
}

static ucs_status_t uct_helper_ledger_fail(ucs_status_t status,
                                           const char *name, const char *why,
                                           char *error, size_t max)
{
    snprintf(error, max,
             UCT_HELPER_NODE_SUFFIX_ENV ": the node's ledger /dev/shm%s is not "
             "used: %s; allowed: a regular file of the user's own that nobody "
             "else may use, or none yet", name, why);
    return status;
}

/* @return NULL, or what is wrong with the file */
static const char *uct_helper_ledger_check_file(int fd, off_t *size_p)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return "it cannot be examined";
    }

    *size_p = st.st_size;
    if (!S_ISREG(st.st_mode)) {
        return "it is not a regular file";
    }
    if (st.st_uid != geteuid()) {
        return "it belongs to another user";
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        return "others than its owner may use it";
    }
    if ((st.st_size != 0) && (st.st_size != sizeof(uct_helper_ledger_t))) {
        return "it has another size; remove it when no job uses it";
    }
    return NULL;
}

/* Stamp it, or see that who was faster did so alike */
static const char *uct_helper_ledger_check_stamp(uct_helper_ledger_t *ledger)
{
    uint64_t stamp  = 0;
    uint64_t pid_ns = 0;
    struct stat st;

    if (stat(UCT_HELPER_LEDGER_PID_NS, &st) != 0) {
        return "there is no /proc";
    }
    if (!ucs_cas_acq_rel(&ledger->stamp, &stamp, UCT_HELPER_LEDGER_STAMP) &&
        (stamp != UCT_HELPER_LEDGER_STAMP)) {
        return ((stamp >> 16) == UCT_HELPER_LEDGER_MAGIC) ?
                       "it has another version; remove it when no job uses it" :
                       "it is not a ledger; remove it when no job uses it";
    }
    if (!ucs_cas_acq_rel(&ledger->pid_ns, &pid_ns, st.st_ino) &&
        (pid_ns != st.st_ino)) {
        return "it is used in another PID namespace";
    }
    return NULL;
}

/* Before a page is touched: a write to a full file system would be a SIGBUS.
 * All make the file the same size, so it does not matter who was first. */
static int uct_helper_ledger_fill(int fd, off_t size)
{
    uct_helper_write_guard_t guard;
    int ret = 0;

    uct_helper_write_hold(&guard);
    if ((size == 0) && (ftruncate(fd, sizeof(uct_helper_ledger_t)) != 0)) {
        ret = errno;
    }
    if (ret == 0) {
        ret = posix_fallocate(fd, 0, sizeof(uct_helper_ledger_t));
    }
    uct_helper_write_release(&guard);
    return ret;
}

/* @return NULL, or what is wrong with the file */
static const char *uct_helper_ledger_map(int fd, off_t size,
                                         uct_helper_ledger_t **ledger_p)
{
    int ret = uct_helper_ledger_fill(fd, size);

    if (ret != 0) {
        return strerror(ret);
    }

    *ledger_p = mmap(NULL, sizeof(**ledger_p), PROT_READ | PROT_WRITE,
                     MAP_SHARED, fd, 0);
    return (*ledger_p == MAP_FAILED) ? strerror(errno) : NULL;
}

ucs_status_t uct_helper_ledger_open(const char *name,
                                    uct_helper_ledger_t **ledger_p, char *error,
                                    size_t max)
{
    ucs_status_t status = UCS_ERR_UNSUPPORTED;
    uct_helper_ledger_t *ledger;
    const char *why;
    off_t size;
    int fd;

    /* shm_open() follows no link and leaves nothing to children */
    fd = shm_open(name, O_RDWR | O_CREAT, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        why = (errno == ELOOP)  ? "it is a symbolic link" :
              (errno == EINVAL) ? "it is a folder" : /* for EISDIR, in glibc */
                                  strerror(errno);
        return uct_helper_ledger_fail(UCS_ERR_IO_ERROR, name, why, error, max);
    }

    why = uct_helper_ledger_check_file(fd, &size);
    if (why != NULL) {
        goto out_close;
    }

    why = uct_helper_ledger_map(fd, size, &ledger);
    if (why != NULL) {
        status = UCS_ERR_IO_ERROR;
        goto out_close;
    }

    why = uct_helper_ledger_check_stamp(ledger);
    if (why != NULL) {
        uct_helper_ledger_close(ledger);
        goto out_close;
    }

    *ledger_p = ledger;
out_close:
    close(fd);
    return (why == NULL) ? UCS_OK :
                           uct_helper_ledger_fail(status, name, why, error,
                                                  max);
}

void uct_helper_ledger_close(uct_helper_ledger_t *ledger)
{
    munmap(ledger, sizeof(*ledger));
}
