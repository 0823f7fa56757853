/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The node's ledger: another process has written these bytes over it, from some
 * place on. A rank claims, asks, serves, mends it and looks for a core, and
 * neither crashes nor waits for long; what it counted itself is what it gives back.
 */
#include "fuzz.h"

#include "../own_ledger.h"

#include <ucs/node/node.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FUZZ_BUDGET (1ul << 20)

/* Each look at the clock takes a while, so that all patience ends */
static uint64_t fuzz_node_now(void)
{
    static uint64_t now = 1;

    return now += 1000000;
}

static uint64_t fuzz_node_release(void *arg, uint64_t length)
{
    return 0;
}

static void fuzz_node_live(ucs_node_h node, unsigned cpu)
{
    ucs_node_figures_t figures;
    uint64_t claimed = 0;
    cpu_set_t cpus;
    unsigned how;

    for (how = UCS_CLAIM_HELPER; how <= UCS_CLAIM_FORCE; ++how) {
        if (ucs_node_claim(node, 4096, how)) {
            claimed += 4096;
        }
        for (unsigned whom = 0; whom < 2; ++whom) {
            if (ucs_node_ask(node, FUZZ_BUDGET / 2, whom)) {
                claimed += FUZZ_BUDGET / 2;
            }
        }
        ucs_node_serve(node);
        ucs_node_mend(node, fuzz_node_now() + how * 2000000000ul);
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        ucs_node_set_runs(node, ucs_node_find_core(node, &cpus));
        FUZZ_CHECK(CPU_COUNT(&cpus) <= 1);
    }
    FUZZ_CHECK(claimed >= 4096); /* by force, always */
    ucs_node_figures(node, &figures);
    FUZZ_CHECK(figures.ranks <= UCS_LEDGER_SLOTS);
    ucs_node_unclaim(node, claimed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[128];
    ucs_node_params_t params = {
        .name        = name,
        .budget      = FUZZ_BUDGET,
        .ram         = 1ul << 30,
        .patience_ns = 1,
        .now         = fuzz_node_now
    };
    ucs_ledger_t *ledger;
    ucs_node_h node;
    char error[256];
    size_t place;

    if (size < 4) {
        return 0;
    }
    place = ((data[0] << 8) | data[1]) % (sizeof(*ledger) / 8) * 8;
    snprintf(name, sizeof(name), "ucx-helper-md.fuzz.%d", getpid());
    FUZZ_CHECK(ucs_ledger_open(name, &ledger, error, sizeof(error)) == UCS_OK);

    /* Before it enters, or after */
    if (data[2] & 1) {
        memcpy((char*)ledger + place, data + 4,
               (size - 4 < sizeof(*ledger) - place) ? size - 4 :
                                                      sizeof(*ledger) - place);
    }
    if (ucs_node_open(&params, &node, error, sizeof(error)) == UCS_OK) {
        FUZZ_CHECK(ucs_node_join(node, fuzz_node_release, &node) == UCS_OK);
        ucs_node_listen(node, 1);
        if (!(data[2] & 1)) {
            memcpy((char*)ledger + place, data + 4,
                   (size - 4 < sizeof(*ledger) - place) ?
                           size - 4 :
                           sizeof(*ledger) - place);
        }
        fuzz_node_live(node, data[3]);
        ucs_node_part(node, &node);
        ucs_node_close(node);
    } else {
        FUZZ_CHECK((error[0] != '\0') && (strchr(error, '\n') == NULL));
    }
    ucs_ledger_close(ledger);
    ucs_ledger_remove(name);
    return 0;
}
