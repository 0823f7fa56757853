/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "helper_options.h"
#include "values.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define UCT_HELPER_SIZES "bytes with an optional k, m, g or t, or inf"

/* The configuration that holds a field. UCX's ucs_container_of() dereferences
 * NULL, which a sanitizer reports. */
#define UCT_HELPER_CONFIG_OF(_value_p, _field) \
    ((uct_helper_config_t*)((char*)(_value_p) - \
                            offsetof(uct_helper_config_t, _field)))

/* Where the value of an option lies */
#define UCT_HELPER_VALUE(_value) offsetof(uct_helper_config_t, _value)

static const char *const uct_helper_monitor_words[] = {
    [UCT_HELPER_MONITOR_AUTO] = "auto",
    [UCT_HELPER_MONITOR_UCM]  = "ucm",
    NULL
};

static const char *const uct_helper_auto_words[] = {"auto", NULL};
static const char *const uct_helper_no_words[]   = {NULL};

static const char *const uct_helper_cpu_policy_words[] = {
    [UCT_HELPER_CPU_POLICY_IDLE]         = "idle",
    [UCT_HELPER_CPU_POLICY_CONSERVATIVE] = "conservative",
    [UCT_HELPER_CPU_POLICY_AGGRESSIVE]   = "aggressive",
    NULL
};

static const char *const uct_helper_coalesce_words[] = {
    [UCS_REGCACHE_COVER_OFF]    = "off",
    [UCS_REGCACHE_COVER_LOCAL]  = "local",
    [UCS_REGCACHE_COVER_REMOTE] = "remote",
    NULL
};

static const char *const uct_helper_log_words[] = {"error", "warn", "info",
                                                   "debug", NULL};

static const char *const uct_helper_syslog_words[] = {"error", "warn", "info",
                                                      "debug", "none", NULL};

static const ucs_log_level_t uct_helper_log_levels[] = {
        UCS_LOG_LEVEL_ERROR, UCS_LOG_LEVEL_WARN, UCS_LOG_LEVEL_INFO,
        UCS_LOG_LEVEL_DEBUG, UCS_LOG_LEVEL_FATAL};

/* UCX's readers of sizes, numbers and times accept a sign and ignore trailing
 * text: -1 or 1x would be no ceiling. So these are read here. */
#define UCT_HELPER_READER(_name) \
    static int uct_helper_read_##_name(const char *text, void *value_p, \
                                       const void *words) \
    { \
        return uct_helper_value_##_name(text, value_p); \
    }

UCT_HELPER_READER(size)
UCT_HELPER_READER(share)
UCT_HELPER_READER(report)
UCT_HELPER_READER(told)

static int
uct_helper_read_count(const char *text, void *value_p, const void *words)
{
    unsigned long count;
    unsigned is_auto;

    if (ucs_config_sscanf_enum(text, &is_auto, words)) {
        count = UCT_HELPER_REGIONS_AUTO;
    } else if (!uct_helper_value_count(text, &count) || (count == 0)) {
        return 0;
    }

    *(unsigned long*)value_p = count;
    return 1;
}

static int
uct_helper_read_region(const char *text, void *value_p, const void *words)
{
    size_t bytes;

    if (!uct_helper_value_size(text, &bytes) ||
        (bytes > UCS_REGCACHE_REGION_BYTES_MAX)) {
        return 0;
    }

    *(size_t*)value_p = bytes;
    return 1;
}

static int
uct_helper_read_trace(const char *text, void *value_p, const void *words)
{
    if (strlen(text) >= PATH_MAX) {
        return 0;
    }

    strcpy(value_p, text);
    return 1;
}

static int
uct_helper_read_log(const char *text, void *value_p, const void *words)
{
    unsigned index;

    if (!ucs_config_sscanf_enum(text, &index, words)) {
        return 0;
    }

    *(ucs_log_level_t*)value_p = uct_helper_log_levels[index];
    return 1;
}

/* This reader and the next fill further fields */
static int
uct_helper_read_cpu(const char *text, void *value_p, const void *words)
{
    uct_helper_config_t *config = UCT_HELPER_CONFIG_OF(value_p, cpu_mode);
    unsigned is_auto;

    if (*text == '\0') {
        config->cpu_mode = UCT_HELPER_CPU_INHERIT;
    } else if (ucs_config_sscanf_enum(text, &is_auto, words)) {
        config->cpu_mode = UCT_HELPER_CPU_AUTO;
    } else if (uct_helper_value_cpus(text, &config->cpus)) {
        config->cpu_mode = UCT_HELPER_CPU_LIST;
    } else {
        return 0;
    }

    return 1;
}

static int
uct_helper_read_cost(const char *text, void *value_p, const void *words)
{
    uct_helper_config_t *config = UCT_HELPER_CONFIG_OF(value_p, pin_base_ns);

    return uct_helper_value_cost(text, &config->pin_base_ns,
                                 &config->pin_per_page_ns);
}

const uct_helper_option_t uct_helper_options_table[] = {
    {{"HELPER", "n",
      "Keep registered only the memory that is about to be communicated: a\n"
      "helper thread predicts when each buffer is needed next, registers it\n"
      "just before, and deregisters it in between. y or n."},
     ucs_config_sscanf_on_off, NULL, UCT_HELPER_VALUE(helper), "y or n"},

    {{"HELPER_POLICY", "predict",
      "What becomes of a registration after its use:\n"
      "  predict      - keep for a while, deregister, or register again just\n"
      "                 before the next use: whatever has cost least so far\n"
      "  paper        - deregister, and register again before the shortest\n"
      "                 period of the call site has passed\n"
      "  rent         - keep for as long as that costs what registering again\n"
      "                 would, then deregister; predicts nothing\n"
      "  leave_pinned - keep until the memory is unmapped\n"
      "  on_demand    - deregister at once\n"
      "  lru          - keep, evict the least recently used at a ceiling\n"
      "  overlap      - register when a receive is posted, while the partner\n"
      "                 does so, and keep; what is given up at a ceiling is\n"
      "                 registered again"},
     ucs_config_sscanf_enum, ucs_regcache_policy_names,
     UCT_HELPER_VALUE(policy),
     "predict, paper, rent, leave_pinned, on_demand, lru "
     "or overlap"},

    {{"HELPER_MAX_SLOWDOWN", "0.5%",
      "Under predict and rent: what all of the memory that would be left\n"
      "pinned is worth, as a share of the run time. In expectation a rank's own\n"
      "uses lose at most that share; a job whose ranks wait for each other may\n"
      "lose more. More saves memory, less saves time; from 0.001% to 100%."},
     uct_helper_read_share, NULL, UCT_HELPER_VALUE(max_slowdown),
     "a share from 0.001% to 100%, such as 0.5% or 0.005"},

    {{"HELPER_REGION_BYTES", "2k",
      "Under predict and rent: what each registration holds in NIC and driver\n"
      "memory beside its pages. It has the same price as these, so many small\n"
      "registrations are dearer than a large one. At most 1g."},
     uct_helper_read_region, NULL, UCT_HELPER_VALUE(region_bytes),
     "bytes with an optional k, m or g, at most 1g"},

    {{"HELPER_MIN_SIZE", "16k",
      "Shorter buffers are registered once and kept."},
     uct_helper_read_size, NULL, UCT_HELPER_VALUE(min_size), UCT_HELPER_SIZES},

    {{"HELPER_MAX_PINNED", "inf",
      "Ceiling of registered memory of each rank on each device, kept before a\n"
      "registration by deregistering what is idle; passed only if all else is in\n"
      "use."},
     uct_helper_read_size, NULL, UCT_HELPER_VALUE(max_pinned),
     UCT_HELPER_SIZES},

    {{"HELPER_MAX_REGIONS", "auto",
      "Registrations that a device may have of all ranks of the user on a node\n"
      "together, shared by need and kept likewise: a number, auto (what the device\n"
      "allows, and what it is found to allow when it refuses one), or inf."},
     uct_helper_read_count, uct_helper_auto_words,
     UCT_HELPER_VALUE(max_regions), "a number above 0, auto or inf"},

    {{"HELPER_NODE_MAX_PINNED", "inf",
      "Budget of registered memory for all ranks of the user on a node, shared\n"
      "by need: each may have its part, and what others do not need."},
     uct_helper_read_size, NULL, UCT_HELPER_VALUE(node_max_pinned),
     UCT_HELPER_SIZES},

    {{"HELPER_MONITOR", "auto",
      "What tells of memory that goes away:\n"
      "  auto - UCX's hooks of mmap(), munmap(), madvise() and the like, and\n"
      "         the kernel (userfaultfd) where it can, which sees raw system\n"
      "         calls, too\n"
      "  ucm  - the hooks alone"},
     ucs_config_sscanf_enum, uct_helper_monitor_words,
     UCT_HELPER_VALUE(monitor), "auto or ucm"},

    {{"HELPER_REPORT", "",
      "Where to write what was pinned and saved when the process ends: empty\n"
      "(nowhere), stderr, FILE, or json:FILE. In FILE, %h stands for the host,\n"
      "%p for the process id, %r for the rank."},
     uct_helper_read_report, NULL, UCT_HELPER_VALUE(report),
     "stderr, FILE or json:FILE, where a FILE that begins with "
     "a word and ':' is written ./FILE"},

    {{"HELPER_TRACE", "",
      "Where to record what is registered, given back and unmapped, for\n"
      "'ucx-helper replay': empty (nowhere) or FILE, in which %h, %p and %r\n"
      "stand for the same."},
     uct_helper_read_trace, NULL, UCT_HELPER_VALUE(trace),
     "FILE of less than 4096 bytes, or nothing"},

    {{"HELPER_CPU", "auto",
      "Processors of the helper thread: auto (those that no other rank is bound to,\n"
      "near the device if there are such), a list such as 0-3,8, or empty (as the\n"
      "thread that starts it)."},
     uct_helper_read_cpu, uct_helper_auto_words, UCT_HELPER_VALUE(cpu_mode),
     "auto, a list such as 0-3,8, or nothing"},

    {{"HELPER_CPU_POLICY", "idle",
      "Which ranks of a node have a helper, and what processor time it takes:\n"
      "  idle         - all; only what nobody else wants, on any core\n"
      "  conservative - one for each idle core, those that need most memory\n"
      "  aggressive   - all; they share idle cores, or those of the ranks"},
     ucs_config_sscanf_enum, uct_helper_cpu_policy_words,
     UCT_HELPER_VALUE(cpu_policy), "idle, conservative or aggressive"},

    {{"HELPER_COALESCE", "local",
      "Register neighbours together, and what lies ahead of them or of a walk in\n"
      "the same mapping, so that the pieces of a range cost few registrations:\n"
      "  off    - each piece by itself\n"
      "  local  - uses that give others no access\n"
      "  remote - all; a remote key may then grant more of the mapping than\n"
      "           the program mapped"},
     ucs_config_sscanf_enum, uct_helper_coalesce_words,
     UCT_HELPER_VALUE(coalesce), "off, local or remote"},

    {{"HELPER_LOG", "warn",
      "Log level of the helper: error, warn, info or debug."},
     uct_helper_read_log, uct_helper_log_words, UCT_HELPER_VALUE(log_level),
     "error, warn, info or debug"},

    {{"HELPER_SYSLOG", "none",
      "Lines that go to the system's log as well: none, error, warn, info or\n"
      "debug."},
     uct_helper_read_log, uct_helper_syslog_words,
     UCT_HELPER_VALUE(syslog_level), "none, error, warn, info or debug"},

    {{"PIN", "n",
      "Software NIC: UCX's cma domain registers (pins) memory for real, by\n"
      "io_uring, so that a job on one machine without RDMA hardware pays a\n"
      "real registration cost. y or n."},
     ucs_config_sscanf_on_off, NULL, UCT_HELPER_VALUE(pin), "y or n"},

    {{"PIN_COST", "",
      "MODELLED cost added to each registration of the software NIC, as\n"
      "BASE,PER_PAGE, for example 5us,100ns; empty: none."},
     uct_helper_read_cost, NULL, UCT_HELPER_VALUE(pin_base_ns),
     "two times such as 5us,100ns, at most 1s and 1ms, or "
     "nothing"},

    {{"PIN_REG_COST", "",
      "What the software NIC tells UCX that a registration costs, for example\n"
      "180ns, which is what UCX reckons a hit in the IB domain's own cache to\n"
      "cost; empty: what it measured, and PIN_COST."},
     uct_helper_read_told, NULL, UCT_HELPER_VALUE(pin_told_ns),
     "a time such as 180ns, above 0 and at most 1s, or "
     "nothing"},

    {{"PIN_MAX_REGIONS", "inf",
      "Registrations that the software NIC allows all processes of the user on a\n"
      "node together. Beyond that it refuses, as a device does."},
     uct_helper_read_count, uct_helper_no_words,
     UCT_HELPER_VALUE(pin_max_regions), "a number above 0, or inf"},

    {{"PIN_VERIFY", "n",
      "Testing aid of the software NIC: compare, at the end of each use, what\n"
      "is seen through the registration with what the virtual address shows;\n"
      "abort with one line at a difference."},
     ucs_config_sscanf_on_off, NULL, UCT_HELPER_VALUE(pin_verify), "y or n"},

    {}
};

static_assert(sizeof(uct_helper_options_table) ==
                      (UCT_HELPER_NUM_OPTIONS + 1) *
                              sizeof(uct_helper_options_table[0]),
              "each option has a text");

const uct_abi_config_t uct_helper_options = {
    .name    = "Helper memory domain",
    .prefix  = UCT_HELPER_TABLE_PREFIX,
    .options = uct_helper_options_table,
    .stride  = sizeof(uct_helper_options_table[0]),
    .size    = sizeof(uct_helper_options_t)
};

__attribute__((constructor)) static void uct_helper_options_list(void)
{
    uct_abi_config_list(&uct_helper_options);
}

__attribute__((destructor)) static void uct_helper_options_unlist(void)
{
    uct_abi_config_unlist();
}
