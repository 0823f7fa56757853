/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Two areas of memory see the same calls at the same places; one of them is
 * communicated from as well. After each call both must consist of the same
 * mappings, and the calls must have come out the same: with a helper a
 * program's memory is what it would be without.
 */

#define ORACLE_TWIN_PAGES 32
#define ORACLE_TWIN_STEPS 40

/* Far from all that the kernel places by itself, and from each other, so that
 * nothing else touches them and holes in them stay holes */
#define ORACLE_TWIN_BASE  UINT64_C(0x300000000000)
#define ORACLE_TWIN_APART (UINT64_C(1) << 32)

#define ORACLE_TWIN_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)
#define ORACLE_TWIN_RW    (PROT_READ | PROT_WRITE)

/* One in so many rounds plants a border that the other area has not got */
#define ORACLE_TWIN_PLANT 8

typedef enum oracle_twin_state {
    ORACLE_TWIN_HOLE,
    ORACLE_TWIN_NONE,
    ORACLE_TWIN_USABLE
} oracle_twin_state_t;

typedef struct oracle_twin {
    oracle_worker_t     *worker;
    char                *areas[2];   /* the first is communicated from */
    oracle_twin_state_t pages[ORACLE_TWIN_PAGES];
    unsigned            first, count; /* of the pages of this step */
    unsigned            to;           /* where they move */
    const char          *what;
} oracle_twin_t;

/* What is done to both areas; the last one plants a fault */
typedef enum oracle_twin_call {
    ORACLE_TWIN_MAP,
    ORACLE_TWIN_RESERVE,
    ORACLE_TWIN_UNMAP,
    ORACLE_TWIN_COMMIT,
    ORACLE_TWIN_DECOMMIT,
    ORACLE_TWIN_DISCARD,
    ORACLE_TWIN_MOVE,
    ORACLE_TWIN_TOUCH,
    ORACLE_TWIN_SPLIT /* the mapping, behind everybody's back */
} oracle_twin_call_t;

static const struct {
    const char          *name;
    oracle_twin_state_t needs; /* of all pages, at least */
    int                 makes; /* of them, negative: leaves them */
} oracle_twin_calls[] = {
    [ORACLE_TWIN_MAP]      = {"mmap", ORACLE_TWIN_HOLE, ORACLE_TWIN_USABLE},
    [ORACLE_TWIN_RESERVE]  = {"mmap of no access", ORACLE_TWIN_HOLE,
                              ORACLE_TWIN_NONE},
    [ORACLE_TWIN_UNMAP]    = {"munmap", ORACLE_TWIN_HOLE, ORACLE_TWIN_HOLE},
    [ORACLE_TWIN_COMMIT]   = {"mprotect", ORACLE_TWIN_NONE,
                              ORACLE_TWIN_USABLE},
    [ORACLE_TWIN_DECOMMIT] = {"mprotect to no access", ORACLE_TWIN_NONE,
                              ORACLE_TWIN_NONE},
    [ORACLE_TWIN_DISCARD]  = {"madvise", ORACLE_TWIN_NONE, -1},
    [ORACLE_TWIN_MOVE]     = {"mremap", ORACLE_TWIN_HOLE, -1},
    [ORACLE_TWIN_TOUCH]    = {"use", ORACLE_TWIN_USABLE, -1}
};

static char *oracle_twin_at(const oracle_twin_t *twin, char *area)
{
    return area + twin->first * oracle_page;
}

static size_t oracle_twin_length(const oracle_twin_t *twin)
{
    return twin->count * oracle_page;
}

/* @return 0 or an errno */
static int oracle_twin_one(const oracle_twin_t *twin, oracle_twin_call_t call,
                           char *area)
{
    size_t length = oracle_twin_length(twin);
    char *at      = oracle_twin_at(twin, area);
    int is_good   = 0;

    switch (call) {
    case ORACLE_TWIN_MAP:
    case ORACLE_TWIN_RESERVE:
        is_good = mmap(at, length,
                       (call == ORACLE_TWIN_MAP) ? ORACLE_TWIN_RW : PROT_NONE,
                       ORACLE_TWIN_FLAGS | MAP_FIXED, -1, 0) != MAP_FAILED;
        break;
    case ORACLE_TWIN_UNMAP:
        is_good = syscall(SYS_munmap, at, length) == 0;
        break;
    case ORACLE_TWIN_COMMIT:
        is_good = syscall(SYS_mprotect, at, length, ORACLE_TWIN_RW) == 0;
        break;
    case ORACLE_TWIN_DECOMMIT:
        is_good = mprotect(at, length, PROT_NONE) == 0;
        break;
    case ORACLE_TWIN_DISCARD:
        is_good = madvise(at, length, MADV_DONTNEED) == 0;
        break;
    case ORACLE_TWIN_MOVE:
        is_good = mremap(at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
                         area + twin->to * oracle_page) != MAP_FAILED;
        break;
    case ORACLE_TWIN_TOUCH:
        memset(at, 1, length);
        return 0;
    case ORACLE_TWIN_SPLIT:
        is_good = madvise(at, oracle_page, MADV_DONTFORK) == 0;
        break;
    }
    return is_good ? 0 : errno;
}

/* Both must say the same */
static void oracle_twin_both(oracle_twin_t *twin, oracle_twin_call_t call)
{
    int ours   = oracle_twin_one(twin, call, twin->areas[0]);
    int theirs = oracle_twin_one(twin, call, twin->areas[1]);

    twin->what = oracle_twin_calls[call].name;
    if (ours != theirs) {
        ++twin->worker->stale;
        fprintf(stderr, "oracle: seed %" PRIu64 " epoch %u thread %u: %s of "
                "pages %u to %u: %s, and without the helper %s\n",
                twin->worker->options->seed, twin->worker->epoch,
                twin->worker->index, twin->what, twin->first,
                twin->first + twin->count, strerror(ours), strerror(theirs));
    }
}

static void oracle_twin_become(oracle_twin_t *twin, unsigned first,
                               oracle_twin_state_t state)
{
    unsigned i;

    for (i = 0; i < twin->count; ++i) {
        twin->pages[first + i] = state;
    }
}

static int oracle_twin_are(const oracle_twin_t *twin, oracle_twin_state_t state)
{
    unsigned i;

    for (i = 0; i < twin->count; ++i) {
        if (twin->pages[twin->first + i] < state) {
            return 0;
        }
    }
    return 1;
}

/* Do something with each mapping of an area, in pages relative to it */
static void oracle_twin_each(const char *area,
                             void (*visit)(void *arg, size_t from, size_t to,
                                           const char *perms),
                             void *arg)
{
    uintptr_t start = (uintptr_t)area;
    uintptr_t end   = start + ORACLE_TWIN_PAGES * oracle_page;
    uintptr_t from, to;
    char line[512], perms[5];
    FILE *maps;

    maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) {
        oracle_die("/proc/self/maps");
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        if ((sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, perms) ==
             3) && (from < end) && (to > start)) {
            visit(arg, (from - start) / oracle_page, (to - start) / oracle_page,
                  perms);
        }
    }
    fclose(maps);
}

static void oracle_twin_learn_one(void *arg, size_t from, size_t to,
                                  const char *perms)
{
    oracle_twin_t *twin = arg;

    for (; from < to; ++from) {
        twin->pages[from] = (perms[1] == 'w') ? ORACLE_TWIN_USABLE :
                                                ORACLE_TWIN_NONE;
    }
}

static void oracle_twin_learn(oracle_twin_t *twin)
{
    memset(twin->pages, 0, sizeof(twin->pages)); /* ORACLE_TWIN_HOLE */
    oracle_twin_each(twin->areas[1], oracle_twin_learn_one, twin);
}

static void oracle_twin_step(oracle_twin_t *twin)
{
    /* Some more often than others, communication most of all */
    static const unsigned char often[] = {
        ORACLE_TWIN_MAP, ORACLE_TWIN_MAP, ORACLE_TWIN_RESERVE,
        ORACLE_TWIN_UNMAP, ORACLE_TWIN_COMMIT, ORACLE_TWIN_COMMIT,
        ORACLE_TWIN_DECOMMIT, ORACLE_TWIN_DISCARD, ORACLE_TWIN_MOVE,
        ORACLE_TWIN_TOUCH, ORACLE_TWIN_TOUCH, ORACLE_TWIN_TOUCH
    };
    oracle_worker_t *worker = twin->worker;
    oracle_twin_call_t call;

    twin->first = oracle_below(worker, ORACLE_TWIN_PAGES);
    twin->count = 1 + oracle_below(worker, ORACLE_TWIN_PAGES - twin->first);
    twin->to    = oracle_below(worker, ORACLE_TWIN_PAGES - twin->count + 1);
    call        = often[oracle_below(worker, sizeof(often))];
    if (!oracle_twin_are(twin, oracle_twin_calls[call].needs)) {
        return;
    }
    oracle_twin_both(twin, call);
    if (oracle_twin_calls[call].makes >= 0) {
        oracle_twin_become(twin, twin->first, oracle_twin_calls[call].makes);
    } else if (call == ORACLE_TWIN_MOVE) {
        /* Several mappings may move at once, with what is between them left
         * out, or some of them if it fails: what came of it is read where no
         * helper was */
        oracle_twin_learn(twin);
    } else if (call == ORACLE_TWIN_TOUCH) {
        oracle_use(worker, NULL, oracle_twin_at(twin, twin->areas[0]),
                   oracle_twin_length(twin));
    }
}

/*
 * Comparison
 */

#define ORACLE_TWIN_TEXT 1024

static void oracle_twin_print_one(void *arg, size_t from, size_t to,
                                  const char *perms)
{
    char *text    = arg;
    size_t length = strlen(text);

    snprintf(text + length, ORACLE_TWIN_TEXT - length, " %zu-%zu%s", from, to,
             perms);
}

/* The mappings of an area as text */
static void oracle_twin_describe(const char *area, char *text)
{
    *text = '\0';
    oracle_twin_each(area, oracle_twin_print_one, text);
}

/* What there is of each page: its rights, empty in a hole, and whether a
 * mapping begins there */
typedef struct oracle_twin_view {
    char perms[ORACLE_TWIN_PAGES][5];
    int  begins[ORACLE_TWIN_PAGES];
} oracle_twin_view_t;

static void oracle_twin_view_one(void *arg, size_t from, size_t to,
                                 const char *perms)
{
    oracle_twin_view_t *view = arg;

    view->begins[from] = 1;
    for (; from < to; ++from) {
        memcpy(view->perms[from], perms, sizeof(view->perms[from]));
    }
}

/* The flags that smaps tells of the mappings before and after a page: each has
 * room for ORACLE_TWIN_TEXT bytes */
static void oracle_twin_flags(const char *area, unsigned page, char *before,
                              char *after)
{
    uintptr_t edge = (uintptr_t)area + page * oracle_page;
    uintptr_t from = 0, to = 0;
    uintptr_t new_from, new_to;
    char line[ORACLE_TWIN_TEXT];
    FILE *smaps;

    *before = *after = '\0';
    smaps   = fopen("/proc/self/smaps", "re");
    if (smaps == NULL) {
        oracle_die("/proc/self/smaps");
    }
    while (fgets(line, sizeof(line), smaps) != NULL) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &new_from, &new_to) ==
            2) {
            from = new_from;
            to   = new_to;
        } else if (!strncmp(line, "VmFlags:", 8)) {
            if (to == edge) {
                strcpy(before, line);
            } else if (from == edge) {
                strcpy(after, line);
            }
        }
    }
    fclose(smaps);
}

/* A mapping begins here in the area with the helper alone. If the helper has
 * marked one side, the flags tell. If they are alike, the kernel has left the
 * neighbours apart although it might have joined them: it does so when two
 * threads touch new memory in both at once, for each side then has an anon_vma
 * of its own. One in half a million programs had that, and two in a million had
 * it in the other area. */
static int oracle_twin_is_marked(const oracle_twin_t *twin, unsigned page)
{
    char before[ORACLE_TWIN_TEXT], after[ORACLE_TWIN_TEXT];

    oracle_twin_flags(twin->areas[0], page, before, after);
    return strcmp(before, after) != 0;
}

/* The same rights everywhere, and no mapping more for the helper's marks: a
 * process may have only so many. */
static int oracle_twin_is_same(const oracle_twin_t *twin)
{
    oracle_twin_view_t ours = {0}, theirs = {0};
    unsigned i;

    oracle_twin_each(twin->areas[0], oracle_twin_view_one, &ours);
    oracle_twin_each(twin->areas[1], oracle_twin_view_one, &theirs);
    for (i = 0; i < ORACLE_TWIN_PAGES; ++i) {
        if (strcmp(ours.perms[i], theirs.perms[i]) ||
            (ours.begins[i] && !theirs.begins[i] &&
             ((i == 0) || oracle_twin_is_marked(twin, i)))) {
            return 0;
        }
    }
    return 1;
}

/* @return Nonzero if the helper has split no mapping */
static int oracle_twin_compare(const oracle_twin_t *twin, int is_loud)
{
    char ours[ORACLE_TWIN_TEXT], theirs[ORACLE_TWIN_TEXT];

    if (oracle_twin_is_same(twin)) {
        return 1;
    }

    oracle_twin_describe(twin->areas[0], ours);
    oracle_twin_describe(twin->areas[1], theirs);
    if (is_loud) {
        fprintf(stderr, "oracle: seed %" PRIu64 " epoch %u thread %u: after %s "
                "of pages %u to %u (to %u) mappings%s, and without the helper"
                "%s\n", twin->worker->options->seed, twin->worker->epoch,
                twin->worker->index, twin->what, twin->first,
                twin->first + twin->count, twin->to, ours, theirs);
    }
    return 0;
}

static void oracle_twin_open(oracle_twin_t *twin)
{
    uintptr_t base = ORACLE_TWIN_BASE +
                     twin->worker->index * 4 * ORACLE_TWIN_APART;
    unsigned i;

    for (i = 0; i < 2; ++i) {
        twin->areas[i] = mmap((void*)(base + i * 2 * ORACLE_TWIN_APART),
                              ORACLE_TWIN_PAGES * oracle_page, PROT_NONE,
                              ORACLE_TWIN_FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
        if (twin->areas[i] == MAP_FAILED) {
            oracle_die("mmap");
        }
    }
    twin->first = 0;
    twin->count = ORACLE_TWIN_PAGES;
    oracle_twin_become(twin, 0, ORACLE_TWIN_NONE);
}

static void oracle_twin_plant(oracle_twin_t *twin)
{
    twin->first = oracle_below(twin->worker, ORACLE_TWIN_PAGES);
    twin->count = 1;
    if (!oracle_twin_are(twin, ORACLE_TWIN_NONE) ||
        (oracle_twin_one(twin, ORACLE_TWIN_SPLIT, twin->areas[0]) != 0)) {
        return;
    }

    /* A mapping of one page has been marked as a whole */
    ++twin->worker->planted;
    if (oracle_twin_compare(twin, 0)) {
        madvise(oracle_twin_at(twin, twin->areas[0]), oracle_page, MADV_DOFORK);
        --twin->worker->planted;
    } else {
        ++twin->worker->found;
    }
}

void oracle_twin(oracle_worker_t *worker)
{
    oracle_twin_t twin = {.worker = worker};
    unsigned i;

    oracle_twin_open(&twin);
    for (i = 0; i < ORACLE_TWIN_STEPS; ++i) {
        oracle_twin_step(&twin);
        if (!oracle_twin_compare(&twin, 1)) {
            ++worker->stale;
            break;
        }
    }
    if ((i == ORACLE_TWIN_STEPS) &&
        (oracle_below(worker, ORACLE_TWIN_PLANT) == 0)) {
        oracle_twin_plant(&twin);
    }
    for (i = 0; i < 2; ++i) {
        munmap(twin.areas[i], ORACLE_TWIN_PAGES * oracle_page);
    }
}
