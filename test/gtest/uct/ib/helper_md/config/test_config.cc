/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../log_capture.h"
#include "../quiet_fork.h"
#include "../run_again.h"

#include <uct/base/uct_abi.h>
#include <uct/ib/helper_md/config/helper_options.h>
#include <uct/ib/helper_md/config/values.h>

#include <ucs/config/parser.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

class test_config : public ::testing::Test {
protected:
    test_config()
    {
        set_defaults();
    }

    void set_defaults()
    {
        for (unsigned i = 0; i < UCT_HELPER_NUM_OPTIONS; ++i) {
            m_options.text[i] = text(uct_helper_options_table[i].super.value);
        }
        option("UCX_MD_HELPER")          = text("y");
        option("UCX_MD_HELPER_COALESCE") = text("off");
        option("UCX_MD_PIN")             = text("y");
    }

    char *&option(const char *name)
    {
        unsigned i = 0;

        while (strcmp(uct_helper_options_table[i].super.name,
                      name + strlen("UCX_MD_"))) {
            ++i;
        }
        return m_options.text[i];
    }

    static char *text(const char *value)
    {
        return const_cast<char*>(value);
    }

    ucs_status_t parse()
    {
        return uct_helper_config_parse(&m_options, &m_config, m_error,
                                       sizeof(m_error));
    }

    /* What the field of the configuration is by this value */
    template<typename T>
    T parsed(const char *name, const char *value,
             T uct_helper_config_t::*field)
    {
        option(name) = text(value);
        EXPECT_EQ(UCS_OK, parse()) << value << ": " << m_error;
        return m_config.*field;
    }

    /* One line that has both strings in it */
    void expect_error(const char *name, const char *value)
    {
        ASSERT_EQ(UCS_ERR_INVALID_PARAM, parse()) << name << "=" << value;
        std::string error = m_error;
        EXPECT_NE(std::string::npos,
                  error.find(std::string(name) + ":")) << error;
        EXPECT_NE(std::string::npos,
                  error.find("'" + std::string(value) + "'")) << error;
        EXPECT_NE(std::string::npos, error.find("allowed")) << error;
        EXPECT_EQ(std::string::npos, error.find('\n')) << error;
    }

    void expect_defaults()
    {
        EXPECT_EQ(UCS_REGCACHE_POLICY_PREDICT, m_config.policy);
        EXPECT_DOUBLE_EQ(UCS_REGCACHE_MAX_SLOWDOWN, m_config.max_slowdown);
        EXPECT_EQ(size_t(UCS_REGCACHE_REGION_BYTES), m_config.region_bytes);
        EXPECT_EQ(16384u, m_config.min_size);
        EXPECT_EQ(SIZE_MAX, m_config.max_pinned);
        EXPECT_EQ(UCT_HELPER_REGIONS_AUTO, int(m_config.max_regions));
        EXPECT_EQ(ULONG_MAX, m_config.pin_max_regions);
        EXPECT_EQ(SIZE_MAX, m_config.node_max_pinned);
        EXPECT_EQ(UCT_HELPER_CPU_POLICY_IDLE, m_config.cpu_policy);
        EXPECT_EQ(UCT_HELPER_MONITOR_AUTO, m_config.monitor);
        EXPECT_EQ(UCT_HELPER_REPORT_NONE, m_config.report.kind);
        EXPECT_EQ(UCT_HELPER_CPU_AUTO, m_config.cpu_mode);
        EXPECT_EQ(UCS_LOG_LEVEL_WARN, m_config.log_level);
        EXPECT_EQ(UCS_LOG_LEVEL_FATAL, m_config.syslog_level);
        EXPECT_EQ(0.0, m_config.pin_base_ns);
    }

    typedef std::vector<std::pair<const char*, std::vector<const char*>>> bad_t;

    /* Each value is named, and turns off what it is for, and not the other */
    void expect_each_off(const bad_t &bad, int uct_helper_config_t::*off,
                         int uct_helper_config_t::*on)
    {
        for (const auto &option_and_values : bad) {
            const char *name = option_and_values.first;
            for (const char *value : option_and_values.second) {
                set_defaults();
                option(name) = text(value);
                expect_error(name, value);
                EXPECT_EQ(0, m_config.*off) << name;
                EXPECT_EQ(1, m_config.*on) << name;
                expect_defaults();
            }
        }
    }

    uct_helper_options_t m_options;
    uct_helper_config_t  m_config;
    char                 m_error[512];
};

/* A locale whose decimal numbers have a comma, as of much of Europe. @return Nonzero if
 * there is one, or the system can make it. */
static bool choose_comma()
{
    char dir[] = "/tmp/test_config.XXXXXX";
    bool found;

    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr) {
        return true;
    }
    if (mkdtemp(dir) == nullptr) {
        return false;
    }
    std::string make = "localedef -i de_DE -f UTF-8 " + std::string(dir) +
                       "/de_DE.UTF-8 > /dev/null 2>&1";
    found = (system(make.c_str()) == 0) && (setenv("LOCPATH", dir, 1) == 0) &&
            (setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr);
    unsetenv("LOCPATH");
    EXPECT_EQ(0, system(("rm -r " + std::string(dir)).c_str()));
    return found;
}

TEST_F(test_config, numbers_have_a_point_in_every_locale)
{
    if (!choose_comma()) {
        GTEST_SKIP() << "no locale with a decimal comma, nor localedef's sources";
    }
    EXPECT_DOUBLE_EQ(0.5, strtod("0,5", nullptr));
    EXPECT_EQ(UCS_OK, parse()) << m_error;
    EXPECT_DOUBLE_EQ(0.005, m_config.max_slowdown);
    option("UCX_MD_PIN_COST") = text("1.5us,0.25us");
    EXPECT_EQ(UCS_OK, parse()) << m_error;
    EXPECT_DOUBLE_EQ(1500, m_config.pin_base_ns);
    setlocale(LC_NUMERIC, "C");
}

TEST_F(test_config, defaults_are_valid)
{
    ASSERT_EQ(UCS_OK, parse());
    EXPECT_STREQ("", m_error);
    EXPECT_EQ(1, m_config.helper);
    expect_defaults();
}

TEST_F(test_config, every_bad_value_is_named_and_turns_the_helper_off)
{
    expect_each_off({
        {"UCX_MD_HELPER", {"perhaps"}},
        {"UCX_MD_HELPER_POLICY", {"papers"}},
        {"UCX_MD_HELPER_MAX_SLOWDOWN",
         {"", "0", "0.0009%", "100.1%", "-1%", "nan", "0.5 %"}},
        {"UCX_MD_HELPER_REGION_BYTES",
         {"", "inf", "-1", "1t", "1025m", "1073741825"}},
        {"UCX_MD_HELPER_MIN_SIZE", {"16q"}},
        {"UCX_MD_HELPER_MAX_PINNED", {"-1"}},
        {"UCX_MD_HELPER_NODE_MAX_PINNED", {"some"}},
        {"UCX_MD_HELPER_CPU_POLICY", {"greedy"}},
        {"UCX_MD_HELPER_COALESCE", {"on"}},
        {"UCX_MD_HELPER_MAX_REGIONS", {"0", "", "some"}},
        {"UCX_MD_HELPER_MONITOR", {"kernel"}},
        {"UCX_MD_HELPER_REPORT", {"json:"}},
        {"UCX_MD_HELPER_CPU", {"3-1"}},
        {"UCX_MD_HELPER_LOG", {"loud", "none"}},
        {"UCX_MD_HELPER_SYSLOG", {"", "loud"}}
    }, &uct_helper_config_t::helper, &uct_helper_config_t::pin);
}

TEST_F(test_config, bad_pin_value_turns_only_pin_off)
{
    expect_each_off({
        {"UCX_MD_PIN_COST", {"5us"}},
        {"UCX_MD_PIN_REG_COST",
         {"0", "0ns", "-1us", "nan", "2s", "1us,1ns"}},
        {"UCX_MD_PIN_MAX_REGIONS",
         {"", "0", "auto", "-1", "8k"}},
        {"UCX_MD_PIN_VERIFY", {"always"}},
        {"UCX_MD_PIN", {"2"}}
    }, &uct_helper_config_t::pin, &uct_helper_config_t::helper);
}

using config = uct_helper_config_t;

TEST_F(test_config, coalesce_by_name)
{
    ASSERT_EQ(UCS_OK, parse());
    EXPECT_EQ(UCS_REGCACHE_COVER_OFF, m_config.coalesce);
    EXPECT_EQ(UCS_REGCACHE_COVER_LOCAL,
              parsed("UCX_MD_HELPER_COALESCE", "local", &config::coalesce));
    EXPECT_EQ(UCS_REGCACHE_COVER_REMOTE,
              parsed("UCX_MD_HELPER_COALESCE", "Remote", &config::coalesce));
}

TEST_F(test_config, a_registration_may_hold_nothing_or_up_to_a_gigabyte)
{
    EXPECT_EQ(0u, parsed("UCX_MD_HELPER_REGION_BYTES", "0", &config::region_bytes));
    EXPECT_EQ(1ul << 30,
              parsed("UCX_MD_HELPER_REGION_BYTES", "1g", &config::region_bytes));
}

TEST_F(test_config, registrations_of_a_device)
{
    EXPECT_EQ(ULONG_MAX,
              parsed("UCX_MD_HELPER_MAX_REGIONS", "INF", &config::max_regions));
    EXPECT_EQ(64u, parsed("UCX_MD_PIN_MAX_REGIONS", "64",
                          &config::pin_max_regions));
    EXPECT_EQ(1u, parsed("UCX_MD_HELPER_MAX_REGIONS", "1", &config::max_regions));
}

TEST_F(test_config, slowdown_is_a_share_or_a_percentage)
{
    const struct {
        const char *text;
        double     share;
    } good[] = {{"0.5%", 0.005}, {"0.005", 0.005}, {".02", 0.02},
                {"0.001%", 1e-5}, {"100%", 1},     {"1", 1}};

    for (const auto &entry : good) {
        EXPECT_DOUBLE_EQ(entry.share, parsed("UCX_MD_HELPER_MAX_SLOWDOWN", entry.text,
                                             &config::max_slowdown));
    }
}

TEST_F(test_config, what_the_software_nic_tells)
{
    ASSERT_EQ(UCS_OK, parse());
    EXPECT_EQ(0.0, m_config.pin_told_ns);
    EXPECT_EQ(180.0, parsed("UCX_MD_PIN_REG_COST", "180ns",
                            &config::pin_told_ns));
    EXPECT_EQ(1e9, parsed("UCX_MD_PIN_REG_COST", "1s", &config::pin_told_ns));
}

TEST_F(test_config, pin_verify_by_name)
{
    ASSERT_EQ(UCS_OK, parse());
    EXPECT_FALSE(m_config.pin_verify);
    EXPECT_TRUE(parsed("UCX_MD_PIN_VERIFY", "on", &config::pin_verify));
}

TEST_F(test_config, policies_by_name)
{
    for (unsigned i = 0; ucs_regcache_policy_names[i] != nullptr; ++i) {
        EXPECT_EQ(i, unsigned(parsed("UCX_MD_HELPER_POLICY",
                                     ucs_regcache_policy_names[i],
                                     &config::policy)));
    }
}

TEST_F(test_config, switches)
{
    for (const char *yes : {"y", "Y", "yes", "on", "1"}) {
        EXPECT_EQ(1, parsed("UCX_MD_HELPER", yes, &config::helper)) << yes;
    }
    for (const char *no : {"n", "No", "off", "0"}) {
        EXPECT_EQ(0, parsed("UCX_MD_HELPER", no, &config::helper)) << no;
    }
    for (const char *bad : {"", "2", "yy", "true", " y"}) {
        option("UCX_MD_HELPER") = text(bad);
        expect_error("UCX_MD_HELPER", bad);
    }
}

TEST(test_values, sizes)
{
    const struct {
        const char *text;
        size_t     value;
    } good[] = {{"0", 0},           {"4096", 4096},      {"16k", 16384},
                {"16K", 16384},     {"2MB", 2ul << 20},  {"1g", 1ul << 30},
                {"3T", 3ul << 40},  {"100b", 100},       {"inf", SIZE_MAX},
                {"INF", SIZE_MAX}};
    size_t value;

    for (const auto &entry : good) {
        ASSERT_TRUE(uct_helper_value_size(entry.text, &value)) << entry.text;
        EXPECT_EQ(entry.value, value) << entry.text;
    }

    value = 77;
    for (const char *bad : {"", "k", "-1", "+1", " 1", "1 ", "16kk", "16kbb",
                            "1.5g", "auto", "99999999999999999999",
                            "99999999999t", "16k,"}) {
        EXPECT_FALSE(uct_helper_value_size(bad, &value)) << bad;
    }
    EXPECT_EQ(77u, value);
}

static std::vector<int> cpus_of(const char *text)
{
    std::vector<int> result;
    ucs_cpu_set_t cpus;

    if (uct_helper_value_cpus(text, &cpus)) {
        for (int i = 0; i < UCS_CPU_SETSIZE; ++i) {
            if (cpus.ucs_bits[UCS_CPUELT(i)] & UCS_CPUMASK(i)) {
                result.push_back(i);
            }
        }
    }
    return result;
}

TEST(test_values, cpus)
{
    EXPECT_EQ((std::vector<int>{0, 1, 2, 3, 8}), cpus_of("0-3,8"));
    EXPECT_EQ((std::vector<int>{5}), cpus_of("5"));
    EXPECT_EQ((std::vector<int>{1023}), cpus_of("1023-1023"));
    for (const char *bad : {"", "a", "1-", "-1", "3-1", "1,", "1024", "1;2",
                            "1 2"}) {
        EXPECT_TRUE(cpus_of(bad).empty()) << bad;
    }
}

TEST(test_values, costs)
{
    double base, per_page;

    ASSERT_TRUE(uct_helper_value_cost("5us,100ns", &base, &per_page));
    EXPECT_DOUBLE_EQ(5000, base);
    EXPECT_DOUBLE_EQ(100, per_page);
    ASSERT_TRUE(uct_helper_value_cost("1.5ms,0", &base, &per_page));
    EXPECT_DOUBLE_EQ(1.5e6, base);
    EXPECT_DOUBLE_EQ(0, per_page);
    ASSERT_TRUE(uct_helper_value_cost("1s,1ms", &base, &per_page));
    EXPECT_DOUBLE_EQ(1e9, base);
    EXPECT_DOUBLE_EQ(1e6, per_page);
    ASSERT_TRUE(uct_helper_value_cost("", &base, &per_page));
    EXPECT_DOUBLE_EQ(0, base);
    for (const char *bad : {"5us", "5us,", ",5us", "5us,1us,1us", "-1us,1us",
                            "5xs,1us", "nan,1us", "inf,1us", "5us;1us",
                            /* a job would never end */
                            "1e9s,0ns", "1001ms,0", "0,1001us"}) {
        EXPECT_FALSE(uct_helper_value_cost(bad, &base, &per_page)) << bad;
    }
}

TEST(test_values, reports)
{
    uct_helper_report_dest_t dest;

    ASSERT_TRUE(uct_helper_value_report("", &dest));
    EXPECT_EQ(UCT_HELPER_REPORT_NONE, dest.kind);
    ASSERT_TRUE(uct_helper_value_report("stderr", &dest));
    EXPECT_EQ(UCT_HELPER_REPORT_TEXT, dest.kind);
    EXPECT_EQ(STDERR_FILENO, dest.stream);
    ASSERT_TRUE(uct_helper_value_report("JSON:/dev/stdout", &dest));
    EXPECT_EQ(UCT_HELPER_REPORT_JSON, dest.kind);
    EXPECT_EQ(STDOUT_FILENO, dest.stream);
    ASSERT_TRUE(uct_helper_value_report("Json:STDERR", &dest));
    EXPECT_EQ(STDERR_FILENO, dest.stream);
    ASSERT_TRUE(uct_helper_value_report("/tmp/%r.txt", &dest));
    EXPECT_EQ(UCT_HELPER_REPORT_TEXT, dest.kind);
    EXPECT_STREQ("/tmp/%r.txt", dest.path);
    EXPECT_EQ(0, dest.stream);
    ASSERT_TRUE(uct_helper_value_report("json:out.json", &dest));
    EXPECT_EQ(UCT_HELPER_REPORT_JSON, dest.kind);
    EXPECT_STREQ("out.json", dest.path);
    for (const char *file : {"./jsn:x", "/tmp/a:b", "12:30", "r%r:x"}) {
        ASSERT_TRUE(uct_helper_value_report(file, &dest)) << file;
        EXPECT_STREQ(file, dest.path);
        EXPECT_EQ(UCT_HELPER_REPORT_TEXT, dest.kind);
    }
    for (const char *bad : {"json:", "JSON:", "jsn:/tmp/x", "xml:x", "stderr:",
                            "text:"}) {
        EXPECT_FALSE(uct_helper_value_report(bad, &dest)) << bad;
    }
    EXPECT_FALSE(uct_helper_value_report(std::string(PATH_MAX, 'x').c_str(),
                                         &dest));
}

TEST(test_config_env, one_line_for_a_bad_value)
{
    uct_helper_config_t config;
    log_capture log;

    setenv("UCX_MD_HELPER", "y", 1);
    setenv("UCX_MD_HELPER_POLICY", "bogus", 1);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_helper_config_read(&config));
    unsetenv("UCX_MD_HELPER_POLICY");
    EXPECT_EQ(0, config.helper);
    ASSERT_EQ(1u, log.lines().size());
    EXPECT_NE(std::string::npos,
              log.lines()[0].find("UCX_MD_HELPER_POLICY: 'bogus'"));

    EXPECT_EQ(UCS_OK, uct_helper_config_read(&config));
    EXPECT_EQ(1, config.helper);
    EXPECT_EQ(1u, log.lines().size());
    unsetenv("UCX_MD_HELPER");
}

TEST(test_config_env, table_is_listed_with_help)
{
    const ucs_config_global_list_entry_t *entry;
    unsigned fields = 0;

    /* As at the start of a program that has UCX already */
    ASSERT_TRUE(uct_abi_is_known());
    uct_abi_config_list(&uct_helper_options);
    ucs_list_for_each(entry, &ucs_config_global_list, list) {
        if ((entry->prefix == nullptr) ||
            strcmp(entry->prefix, UCT_HELPER_TABLE_PREFIX)) {
            continue;
        }

        for (const ucs_config_field_t *field = entry->table;
             field->name != nullptr; ++field) {
            EXPECT_GT(strlen(field->doc), 10u) << field->name;
            ++fields;
        }
    }
    EXPECT_EQ(unsigned(UCT_HELPER_NUM_OPTIONS), fields);
}

/* Exit code where a file system gives no program other rights (nosuid) */
static const int NO_RIGHTS = 77;

/* Runs in a copy of this program that has root's rights and another user: what
 * that user's variables say counts for nothing */
TEST(test_config_env, DISABLED_with_rights_of_another)
{
    uct_helper_config_t config;
    log_capture log;

    if (!getauxval(AT_SECURE)) {
        exit(NO_RIGHTS);
    }
    ASSERT_EQ(UCS_OK, uct_helper_config_read(&config));
    EXPECT_FALSE(config.helper);
    EXPECT_FALSE(config.pin);
    EXPECT_STREQ("", config.trace);
    EXPECT_EQ(UCT_HELPER_REPORT_NONE, config.report.kind);
    EXPECT_EQ(1u, log.lines().size());
}

static int run_as_nobody(const char *program)
{
    const uid_t nobody = 65534;

    if ((setenv("UCX_MD_HELPER", "y", 1) != 0) ||
        (setenv("UCX_MD_PIN", "y", 1) != 0) ||
        (setenv("UCX_MD_HELPER_TRACE", "/tmp/not-to-be-written", 1) != 0) ||
        (setenv("UCX_MD_HELPER_REPORT", "/tmp/not-to-be-written", 1) != 0) ||
        (setresuid(nobody, nobody, nobody) != 0)) {
        return 2;
    }
    run_again(program, "test_config_env.DISABLED_with_rights_of_another");
    return 3;
}

TEST(test_config_env, setuid_program_reads_no_option)
{
    char dir[] = "/tmp/test_config.XXXXXX";

    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can make a program of root's";
    }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer does not run in such a program";
#endif

    ASSERT_NE(nullptr, mkdtemp(dir));
    std::string program = std::string(dir) + "/program";
    ASSERT_EQ(0, chmod(dir, 0755));
    {
        std::ifstream from("/proc/self/exe", std::ios::binary);
        std::ofstream to(program, std::ios::binary);
        to << from.rdbuf();
    }
    ASSERT_EQ(0, chmod(program.c_str(), 04755));
    int code = in_child([&] { return run_as_nobody(program.c_str()); });
    unlink(program.c_str());
    rmdir(dir);
    if (code == NO_RIGHTS) {
        GTEST_SKIP() << "no rights are given below /tmp";
    }
    EXPECT_EQ(0, code);
}
