/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The node's ledger: another process has written these bytes over it, from some
 * place on. A rank claims, asks, serves and looks for its place, and neither
 * crashes nor waits for long; what it counted itself is what it gives back.
 */
#include <uct/ib/helper_md/node/node.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_BUDGET (1ul << 20)
#define FUZZ_CHECK(_is_true) \
    do { \
        if (!(_is_true)) { \
            abort(); \
        } \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each look at the clock takes a while, so that all patience ends */
static uint64_t fuzz_node_now(void)
{
    static uint64_t now = 1;

    return now += 1000000;
}

static uint64_t fuzz_node_release(void *arg, uint64_t length)
{
    (void)arg;
    (void)length;
    return 0;
}

static void fuzz_node_live(uct_helper_node_h node, unsigned policy_data)
{
    uct_helper_work_t work    = {policy_data, 1};
    uct_helper_cpus_t allowed = {{policy_data}};
    static uint8_t distances[UCT_HELPER_LEDGER_CPUS];
    uct_helper_node_figures_t figures;
    uct_helper_place_t place;
    uint64_t claimed = 0;
    unsigned how;

    for (how = UCT_HELPER_CLAIM_HELPER; how <= UCT_HELPER_CLAIM_FORCE; ++how) {
        if (uct_helper_node_claim(node, 4096, how)) {
            claimed += 4096;
        }
        for (unsigned whom = 0; whom < 2; ++whom) {
            if (uct_helper_node_ask(node, FUZZ_BUDGET / 2, whom)) {
                claimed += FUZZ_BUDGET / 2;
            }
        }
        uct_helper_node_serve(node);
        uct_helper_node_turn(node, fuzz_node_now() + how * 2000000000ul, &work,
                             &allowed, distances, &place);
        FUZZ_CHECK((place.cpu >= -1) && (place.cpu < UCT_HELPER_LEDGER_CPUS));
    }
    FUZZ_CHECK(claimed >= 4096); /* by force, always */
    uct_helper_node_figures(node, &figures);
    FUZZ_CHECK(figures.ranks <= UCT_HELPER_LEDGER_SLOTS);
    uct_helper_node_unclaim(node, claimed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[128];
    uct_helper_node_params_t params = {
        .name        = name,
        .budget      = FUZZ_BUDGET,
        .ram         = 1ul << 30,
        .patience_ns = 1,
        .now         = fuzz_node_now
    };
    uct_helper_ledger_t *ledger;
    uct_helper_node_h node;
    char error[256];
    size_t place;

    if (size < 4) {
        return 0;
    }
    params.policy = data[3] % UCT_HELPER_CPU_POLICY_LAST;
    place         = ((data[0] << 8) | data[1]) % (sizeof(*ledger) / 8) * 8;
    snprintf(name, sizeof(name), "ucx-helper-md.fuzz.%d", getpid());
    FUZZ_CHECK(uct_helper_ledger_open(name, &ledger, error, sizeof(error)) ==
               UCS_OK);

    /* Before it enters, or after */
    if (data[2] & 1) {
        memcpy((char*)ledger + place, data + 4,
               (size - 4 < sizeof(*ledger) - place) ? size - 4 :
                                                      sizeof(*ledger) - place);
    }
    if (uct_helper_node_open(&params, &node, error, sizeof(error)) == UCS_OK) {
        FUZZ_CHECK(uct_helper_node_join(node, fuzz_node_release, &node) ==
                   UCS_OK);
        uct_helper_node_listen(node, 1);
        if (!(data[2] & 1)) {
            memcpy((char*)ledger + place, data + 4,
                   (size - 4 < sizeof(*ledger) - place) ?
                           size - 4 :
                           sizeof(*ledger) - place);
        }
        fuzz_node_live(node, data[3]);
        uct_helper_node_part(node, &node);
        uct_helper_node_close(node);
    } else {
        FUZZ_CHECK((error[0] != '\0') && (strchr(error, '\n') == NULL));
    }
    uct_helper_ledger_close(ledger);
    uct_helper_ledger_remove(name);
    return 0;
}
