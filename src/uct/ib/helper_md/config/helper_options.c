/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "helper_options.h"

#include <ucs/sys/preprocessor.h>

#include <stddef.h>

/* Any known UCX can load this, whatever headers it was built with */
#undef UCS_CONFIG_TYPE_STRING
#define UCS_CONFIG_TYPE_STRING UCT_ABI_CONFIG_STRING

ucs_config_field_t uct_helper_options_table[] = {
    {"HELPER", "n",
     "Keep registered only the memory that is about to be communicated: a\n"
     "helper thread predicts when each buffer is needed next, registers it\n"
     "just before, and deregisters it in between. y or n.",
     offsetof(uct_helper_options_t, helper), UCS_CONFIG_TYPE_STRING},

    {"HELPER_POLICY", "predict",
     "What becomes of a registration after its use:\n"
     "  predict      - deregister, register again before the use that the\n"
     "                 order of communications predicts\n"
     "  paper        - likewise, before the shortest period has passed\n"
     "  rent         - keep for as long as that costs what registering again\n"
     "                 would, then deregister; predicts nothing\n"
     "  leave_pinned - keep until the memory is unmapped\n"
     "  on_demand    - deregister at once\n"
     "  lru          - keep, evict the least recently used at a ceiling\n"
     "  overlap      - register when a receive is posted, while the partner\n"
     "                 does so, and keep; what is given up at a ceiling is\n"
     "                 registered again",
     offsetof(uct_helper_options_t, policy), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MAX_SLOWDOWN", "0.5%",
     "Under predict and rent: what all of the memory that would be left\n"
     "pinned is worth, as a share of the run time. The job loses at most that\n"
     "share in expectation, and only where all of the memory is saved. More\n"
     "saves memory, less saves time; from 0.001% to 100%.",
     offsetof(uct_helper_options_t, max_slowdown), UCS_CONFIG_TYPE_STRING},

    {"HELPER_REGION_BYTES", "2k",
     "Under predict and rent: what each registration holds in NIC and driver\n"
     "memory beside its pages. It has the same price as these, so many small\n"
     "registrations are dearer than a large one. At most 1g.",
     offsetof(uct_helper_options_t, region_bytes), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MIN_SIZE", "16k",
     "Shorter buffers are registered once and kept.",
     offsetof(uct_helper_options_t, min_size), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MAX_PINNED", "inf",
     "Ceiling of registered memory per domain, kept before a registration by\n"
     "deregistering what is idle; passed only if all else is in use.",
     offsetof(uct_helper_options_t, max_pinned), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MAX_REGIONS", "auto",
     "Registrations that a device may have of all ranks of the user on a node\n"
     "together, shared by need and kept likewise: a number, auto (what the device\n"
     "allows, and what it is found to allow when it refuses one), or inf.",
     offsetof(uct_helper_options_t, max_regions), UCS_CONFIG_TYPE_STRING},

    {"HELPER_NODE_MAX_PINNED", "inf",
     "Budget of registered memory for all ranks of the user on a node, shared\n"
     "by need: each may have its part, and what others do not need.",
     offsetof(uct_helper_options_t, node_max_pinned), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MONITOR", "auto",
     "What tells of memory that goes away:\n"
     "  auto - UCX's hooks of mmap(), munmap(), madvise() and the like, and\n"
     "         the kernel (userfaultfd) where it can, which sees raw system\n"
     "         calls, too\n"
     "  ucm  - the hooks alone",
     offsetof(uct_helper_options_t, monitor), UCS_CONFIG_TYPE_STRING},

    {"HELPER_REPORT", "",
     "Where to write what was pinned and saved when the process ends: empty\n"
     "(nowhere), stderr, FILE, or json:FILE. In FILE, %h stands for the host,\n"
     "%p for the process id, %r for the rank.",
     offsetof(uct_helper_options_t, report), UCS_CONFIG_TYPE_STRING},

    {"HELPER_TRACE", "",
     "Where to record what is registered, given back and unmapped, for\n"
     "'ucx-helper replay': empty (nowhere) or FILE, in which %h, %p and %r\n"
     "stand for the same.",
     offsetof(uct_helper_options_t, trace), UCS_CONFIG_TYPE_STRING},

    {"HELPER_CPU", "auto",
     "Processors of the helper thread: auto (near the device, not on the one\n"
     "that the main thread alone is bound to), a list such as 0-3,8, or empty\n"
     "(as the thread that starts it).",
     offsetof(uct_helper_options_t, cpu), UCS_CONFIG_TYPE_STRING},

    {"HELPER_CPU_POLICY", "idle",
     "Which ranks of a node have a helper, and what processor time it takes:\n"
     "  idle         - all; only what nobody else wants, on any core\n"
     "  conservative - one for each idle core, those that need most memory\n"
     "  aggressive   - all; they share idle cores, or those of the ranks",
     offsetof(uct_helper_options_t, cpu_policy), UCS_CONFIG_TYPE_STRING},

    {"HELPER_COALESCE", "local",
     "Register neighbours together, and what lies ahead of them or of a walk in\n"
     "the same mapping, so that the pieces of a range cost few registrations:\n"
     "  off    - each piece by itself\n"
     "  local  - uses that give others no access\n"
     "  remote - all; a remote key may then grant more of the mapping than\n"
     "           the program mapped",
     offsetof(uct_helper_options_t, coalesce), UCS_CONFIG_TYPE_STRING},

    {"HELPER_LOG", "warn",
     "Log level of the helper: error, warn, info or debug.",
     offsetof(uct_helper_options_t, log), UCS_CONFIG_TYPE_STRING},

    {"HELPER_SYSLOG", "none",
     "Lines that go to the system's log as well: none, error, warn, info or\n"
     "debug.",
     offsetof(uct_helper_options_t, syslog), UCS_CONFIG_TYPE_STRING},

    {"PIN", "n",
     "Software NIC: UCX's cma domain registers (pins) memory for real, by\n"
     "io_uring, so that a job on one machine without RDMA hardware pays a\n"
     "real registration cost. y or n.",
     offsetof(uct_helper_options_t, pin), UCS_CONFIG_TYPE_STRING},

    {"PIN_COST", "",
     "MODELLED cost added to each registration of the software NIC, as\n"
     "BASE,PER_PAGE, for example 5us,100ns; empty: none.",
     offsetof(uct_helper_options_t, pin_cost), UCS_CONFIG_TYPE_STRING},

    {"PIN_REG_COST", "",
     "What the software NIC tells UCX that a registration costs, for example\n"
     "180ns, which is what UCX reckons a hit in the IB domain's own cache to\n"
     "cost; empty: what it measured, and PIN_COST.",
     offsetof(uct_helper_options_t, pin_reg_cost), UCS_CONFIG_TYPE_STRING},

    {"PIN_MAX_REGIONS", "inf",
     "Registrations that the software NIC allows all processes of the user on a\n"
     "node together. Beyond that it refuses, as a device does.",
     offsetof(uct_helper_options_t, pin_max_regions), UCS_CONFIG_TYPE_STRING},

    {"PIN_VERIFY", "n",
     "Testing aid of the software NIC: compare, at the end of each use, what\n"
     "is seen through the registration with what the virtual address shows;\n"
     "abort with one line at a difference.",
     offsetof(uct_helper_options_t, pin_verify), UCS_CONFIG_TYPE_STRING},

    {NULL}
};

const uct_abi_config_t uct_helper_options = {
    .name   = "Helper memory domain",
    .prefix = UCT_HELPER_TABLE_PREFIX,
    .fields = uct_helper_options_table,
    .size   = sizeof(uct_helper_options_t)
};

__attribute__((constructor)) static void uct_helper_options_list(void)
{
    uct_abi_config_list(&uct_helper_options);
}

__attribute__((destructor)) static void uct_helper_options_unlist(void)
{
    uct_abi_config_unlist();
}
