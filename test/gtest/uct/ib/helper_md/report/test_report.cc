/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "json_check.h"
#include "../log_capture.h"
#include "../quiet_fork.h"

#include <uct/ib/helper_md/report/report.h>
#include <uct/ib/helper_md/report/report_path.h>
#include <ucs/regcache/regcache.h>
#include <ucs/sys/io/stream.h>
#include <uct/ib/helper_md/config/values.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

class test_report : public ::testing::Test {
protected:
    void SetUp() override
    {
        char dir[] = "/tmp/test_report.XXXXXX";

        ASSERT_NE(nullptr, mkdtemp(dir));
        m_dir = dir;
        memset(&m_figures, 0, sizeof(m_figures));
        m_figures.policy = "paper";
        strcpy(m_figures.ucx_version, "1.13.1");
        strcpy(m_figures.lower_domain, "rxe0");
        m_figures.elapsed_seconds         = 2.5;
        m_figures.stats.pinned_peak_bytes = 4096;
        m_figures.stats.pinned_byte_ns    = 3e9;
        m_figures.stats.uses              = 10;
        m_figures.stats.on_time           = 9;
        m_figures.stats.cold              = 1;
    }

    void TearDown() override
    {
        for (const auto &name : files()) {
            unlink((m_dir + "/" + name).c_str());
        }
        rmdir(m_dir.c_str());
    }

    std::set<std::string> files()
    {
        std::set<std::string> names;
        DIR *dir = opendir(m_dir.c_str());

        while (dirent *entry = readdir(dir)) {
            if (entry->d_name[0] != '.') {
                names.insert(entry->d_name);
            }
        }
        closedir(dir);
        return names;
    }

    static uct_helper_report_dest_t dest(uct_helper_report_kind_t kind,
                                         const std::string &path)
    {
        uct_helper_report_dest_t result;

        result.kind   = kind;
        result.stream = 0;
        snprintf(result.path, sizeof(result.path), "%s", path.c_str());
        return result;
    }

    std::string print(void (*function)(FILE*, const uct_helper_figures_t*))
    {
        char *text    = nullptr;
        size_t length = 0;
        FILE *stream  = open_memstream(&text, &length);

        function(stream, &m_figures);
        fclose(stream);
        std::string result(text, length);
        free(text);
        return result;
    }

    void expect_text(const std::string &words)
    {
        std::string text = print(uct_helper_report_print_text);

        EXPECT_NE(std::string::npos, text.find(words)) << text;
    }

    void expect_json(const std::map<std::string, std::string> &values)
    {
        json_check json(print(uct_helper_report_print_json));

        ASSERT_TRUE(json.is_valid());
        for (const auto &value : values) {
            EXPECT_EQ(value.second, json.value(value.first)) << value.first;
        }
    }

    static std::string read(const std::string &path)
    {
        std::ifstream file(path);
        std::stringstream text;

        text << file.rdbuf();
        return text.str();
    }

    std::string          m_dir;
    uct_helper_figures_t m_figures;
};

TEST_F(test_report, json_has_exactly_these_keys)
{
    json_check json(print(uct_helper_report_print_json));
    const std::set<std::string> keys = {
        "version", "host", "pid", "rank", "command", "policy", "ucx_version",
        "lower_domain", "modelled_cost", "elapsed_seconds",
        "pinned_peak_bytes", "pinned_byte_seconds", "leave_pinned_bytes",
        "leave_pinned_peak_bytes", "leave_pinned_byte_seconds",
        "in_use_byte_seconds", "in_use_peak_bytes", "regions_peak",
        "region_seconds", "leave_pinned_regions_peak", "region_bytes",
        "uses", "on_time", "late",
        "missed", "cold", "wasted", "evicted", "invalidated", "heard",
        "heard_lost",
        "announced", "announced_on_time", "announced_late", "idle_steps",
        "soon_byte_seconds", "ahead_byte_seconds", "unknown_byte_seconds",
        "late_byte_seconds", "other_byte_seconds", "registered_ahead",
        "ahead_seconds", "lost_first_seconds", "lost_unforetold_seconds",
        "lost_late_seconds", "lost_room_seconds", "lost_waited_seconds",
        "lost_released_seconds",
        "lost_seconds", "max_slowdown",
        "price_j", "soft_ceiling_bytes", "soft_ceiling_raises",
        "registrations", "repinned", "covers", "spared",
        "spared_seconds",
        "helper_cpu_seconds",
        "register_model", "deregister_model", "notes", "node_ranks",
        "node_pinned_peak_bytes",
        "node_budget_bytes", "node_forced", "node_given_bytes", "idle_cores",
        "helper_wanted",
        "helper_rests", "helper_rest_seconds", "device_regions_peak",
        "device_regions_limit", "device_regions_forced"
    };

    ASSERT_TRUE(json.is_valid());
    EXPECT_EQ(keys, json.keys());
    EXPECT_EQ("3", json.value("version"));
    EXPECT_EQ("2.5", json.value("elapsed_seconds"));
    EXPECT_EQ("3", json.value("pinned_byte_seconds"));
    EXPECT_EQ("null", json.value("modelled_cost"));
    EXPECT_EQ("[]", json.value("notes"));
    EXPECT_EQ(std::to_string(getpid()), json.value("pid"));
}

/* Time lost and memory held, and what both cost at the price */
TEST_F(test_report, both_terms_and_their_price)
{
    ucs_regcache_stats_t &stats = m_figures.stats;

    m_figures.max_slowdown        = 0.005;
    stats.lost_ns                 = 20000000; /* of 2.5 s */
    stats.leave_pinned_peak_bytes = 8192;
    stats.pinned_byte_ns          = 0.25 * 8192 * 2.5e9;
    expect_json({{"lost_seconds", "0.02"}, {"max_slowdown", "0.005"}});
    json_check json(print(uct_helper_report_print_json));
    EXPECT_DOUBLE_EQ(0.008 + 0.005 / 4, std::stod(json.value("price_j")));
    expect_text("time lost        0.020000 s, 0.800 % of the run\n");
    expect_text("price            0.925 % of the run, time and memory "
                "together, where leaving all pinned costs 0.500 %");

    /* What leave pinned does costs the knob */
    stats.lost_ns            = 0;
    stats.pinned_byte_ns     = 8192 * 2.5e9;
    EXPECT_DOUBLE_EQ(0.005, uct_helper_report_price(&m_figures));
}

/* What the NIC holds has the price of what is pinned */
TEST_F(test_report, registrations_and_what_is_held_for_them)
{
    ucs_regcache_stats_t stats = {};

    m_figures.max_slowdown          = 0.005;
    stats.region_bytes              = 4096;
    stats.regions_peak              = 64;
    stats.region_ns                 = 16 * 2.5e9;
    stats.leave_pinned_regions_peak = 256;
    stats.leave_pinned_peak_bytes   = 3 * 256 * 4096;
    stats.pinned_byte_ns            = 3 * 16 * 4096 * 2.5e9;
    m_figures.stats                 = {};
    ucs_regcache_stats_add(&m_figures.stats, &stats);
    EXPECT_DOUBLE_EQ(0.005 / 16, uct_helper_report_price(&m_figures));
    ucs_regcache_stats_add(&m_figures.stats, &stats); /* of two domains */
    EXPECT_DOUBLE_EQ(0.005 / 16, uct_helper_report_price(&m_figures));
    expect_json({{"regions_peak", "128"}, {"region_seconds", "80"},
                 {"leave_pinned_regions_peak", "512"},
                 {"region_bytes", "4096"}});

    m_figures.stats.pinned_byte_ns = 0;
    EXPECT_DOUBLE_EQ(0.005 / 64, uct_helper_report_price(&m_figures));
}

/* Each reason and cause has a line and a key, of two domains together */
TEST_F(test_report, why_memory_is_held_and_time_is_lost)
{
    ucs_regcache_stats_t stats = {};

    for (unsigned i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        stats.why.held_byte_ns[i] = (i + 1) * 1e9; /* of 21 */
    }
    for (unsigned i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        stats.why.lost_ns[i] = (i + 1) * 1000000; /* likewise */
    }
    stats.why.ahead            = 4;
    stats.why.ahead_ns         = 10000000;
    stats.leave_pinned_byte_ns = 100e9;
    ucs_regcache_stats_add(&m_figures.stats, &stats);
    ucs_regcache_stats_add(&m_figures.stats, &stats);
    expect_json({{"in_use_byte_seconds", "2"},    {"ahead_byte_seconds", "6"},
                 {"other_byte_seconds", "12"},    {"registered_ahead", "8"},
                 {"ahead_seconds", "0.02"},
                 {"lost_first_seconds", "0.002"},
                 {"lost_late_seconds", "0.006"},
                 {"lost_released_seconds", "0.012"}});
    for (const char *line : {
            "    in use                                              1.000 %       4.8 %\n",
            "    registered ahead of its use                         3.000 %      14.3 %"
            "  by 2.500 ms on average, 8 times\n",
            "    the helper came too late to give it up              5.000 %      23.8 %\n",
            "    missed: not foretold                                0.160 %       9.5 %\n",
            "    waited for a registration                           0.400 %      23.8 %\n"}) {
        expect_text(line);
    }
}

/* No time, no memory: figures all the same */
TEST_F(test_report, the_price_of_nothing)
{
    m_figures.max_slowdown = 0.005;
    EXPECT_EQ(0, uct_helper_report_price(&m_figures)) << "nothing is worth it";
    m_figures.elapsed_seconds = 0;
    m_figures.stats.lost_ns   = 1000;
    EXPECT_EQ(0, uct_helper_report_price(&m_figures));
    EXPECT_TRUE(json_check(print(uct_helper_report_print_json)).is_valid());
}

/* What was asked for and made, waited and spared */
TEST_F(test_report, what_neighbours_share)
{
    ucs_regcache_stats_t stats = {};

    stats.registrations = 3;
    stats.covers        = 2;
    stats.spared        = 7;
    stats.spared_ns     = 30000000;
    stats.lost_ns       = 10000000;
    ucs_regcache_stats_add(&m_figures.stats, &stats);
    ucs_regcache_stats_add(&m_figures.stats, &stats); /* of two domains */
    expect_json({{"registrations", "6"}, {"covers", "4"}, {"spared", "14"},
                 {"spared_seconds", "0.06"}});
}

/* Of several devices the one with most registrations counts */
TEST_F(test_report, registrations_of_a_device)
{
    ucs_node_figures_t quota = {};

    expect_json({{"device_regions_peak", "null"},
                 {"device_regions_limit", "null"},
                 {"device_regions_forced", "null"}});
    quota.peak_bytes = 7;
    quota.budget     = UINT64_MAX;
    uct_helper_report_add_quota(&m_figures, &quota);
    expect_json({{"device_regions_peak", "7"},
                 {"device_regions_limit", "null"},
                 {"device_regions_forced", "0"}});
    quota.peak_bytes = 60;
    quota.budget     = 64;
    quota.forced     = 2;
    uct_helper_report_add_quota(&m_figures, &quota);
    quota.peak_bytes = 59;
    quota.budget     = 1;
    uct_helper_report_add_quota(&m_figures, &quota);
    expect_json({{"device_regions_peak", "60"}, {"device_regions_limit", "64"},
                 {"device_regions_forced", "2"}});
}

TEST_F(test_report, what_the_node_says)
{
    expect_json({{"node_ranks", "null"}, {"helper_rests", "null"}});
    uct_helper_report_note_node(&m_figures);
    EXPECT_EQ(0u, m_figures.num_notes);

    m_figures.has_node        = 1;
    m_figures.node.ranks      = 4;
    m_figures.node.peak_bytes = 3 << 20;
    m_figures.node.budget     = UINT64_MAX;
    expect_json({{"node_ranks", "4"}, {"node_budget_bytes", "null"}});

    m_figures.node.budget      = 4 << 20;
    m_figures.node.idle_cores  = 2;
    m_figures.node.wanted      = 0.25;
    m_figures.node.forced      = 5;
    expect_json({{"node_budget_bytes", "4194304"},
                 {"node_pinned_peak_bytes", "3145728"}, {"idle_cores", "2"},
                 {"helper_wanted", "0.25"}});
}

TEST_F(test_report, a_helper_that_rested)
{
    m_figures.has_node        = 1;
    m_figures.elapsed_seconds = 20;
    m_figures.node.rests      = 2;
    m_figures.node.rest_ns    = 4250000000;
    uct_helper_report_note_node(&m_figures);
    expect_json({{"helper_rests", "2"}, {"helper_rest_seconds", "4.25"}});
    ASSERT_EQ(1u, m_figures.num_notes);
    EXPECT_STREQ("the helper rested 4.2 of 20.0 s, while no core was idle",
                 m_figures.notes[0]);
}

TEST_F(test_report, a_helper_whose_processors_are_wanted)
{
    m_figures.has_node    = 1;
    m_figures.node.wanted = 0.04;
    uct_helper_report_note_node(&m_figures);
    EXPECT_EQ(0u, m_figures.num_notes);
    m_figures.node.wanted = 0.31;
    uct_helper_report_note_node(&m_figures);
    ASSERT_EQ(1u, m_figures.num_notes);
    EXPECT_STREQ("ranks waited for processors, and for 31 % of what the helper did: "
                 "more stays registered", m_figures.notes[0]);
}

TEST_F(test_report, json_of_a_modelled_cost)
{
    m_figures.modelled             = 1;
    m_figures.modelled_base_ns     = 5000;
    m_figures.modelled_per_page_ns = 100;
    m_figures.stats.register_model = {50, 500, 7};

    expect_json({{"modelled_cost.base_seconds", "5e-06"},
                 {"modelled_cost.per_page_seconds", "1e-07"},
                 {"register_model.a_seconds_per_page", "5e-08"},
                 {"register_model.b_seconds", "5e-07"},
                 {"register_model.samples", "7"}});
    expect_text("MODELLED");
}

TEST_F(test_report, json_survives_any_text_and_number)
{
    strcpy(m_figures.lower_domain, "a\"b\\c\n\t\x01\xff\xc3\xa9\xed\xa0\x80");
    uct_helper_report_add_note(&m_figures, "quoted \"note\"");
    m_figures.helper_cpu_seconds = INFINITY;
    m_figures.elapsed_seconds    = NAN;

    expect_json({{"lower_domain", "a\"b\\c\n\t\x01\ufffd\u00e9\ufffd\ufffd\ufffd"},
                 {"helper_cpu_seconds", "null"}, {"elapsed_seconds", "null"},
                 {"notes", "[\"quoted \\\"note\\\"\"]"}});
}

TEST_F(test_report, text_is_short)
{
    std::string text = print(uct_helper_report_print_text);
    size_t lines     = std::count(text.begin(), text.end(), '\n');

    EXPECT_GE(lines, 6u);
    EXPECT_LE(lines, 12u);
    expect_text("policy paper over rxe0");
    expect_text("10: 9 on time");
}

TEST_F(test_report, path_expands)
{
    char path[PATH_MAX], host[256], tiny[4];

    gethostname(host, sizeof(host));
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    ASSERT_EQ(UCS_OK, uct_helper_report_expand("a-%h-%p-%r-%%-%x%", path,
                                               sizeof(path)));
    EXPECT_EQ("a-" + std::string(host) + "-" + std::to_string(getpid()) +
              "-3-%-%x%", path);
    EXPECT_EQ(3, uct_helper_report_rank());
    unsetenv("OMPI_COMM_WORLD_RANK");

    EXPECT_EQ(UCS_OK, uct_helper_report_expand("abc", tiny, sizeof(tiny)));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              uct_helper_report_expand("abcd", tiny, sizeof(tiny)));
}

TEST_F(test_report, rank_of_every_launcher)
{
    for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                             "SLURM_PROCID"}) {
        EXPECT_EQ(-1, uct_helper_report_rank());
        setenv(name, "5", 1);
        EXPECT_EQ(5, uct_helper_report_rank()) << name;
        setenv(name, "five", 1);
        EXPECT_EQ(-1, uct_helper_report_rank()) << name;
        unsetenv(name);
    }
}

TEST_F(test_report, file_is_written_whole_and_alone)
{
    auto to = dest(UCT_HELPER_REPORT_JSON, m_dir + "/out.%p.json");
    const std::string name = "out." + std::to_string(getpid()) + ".json";
    char error[512];

    ASSERT_EQ(UCS_OK, uct_helper_report_check(&to, error, sizeof(error)));
    EXPECT_TRUE(files().empty());
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(UCS_OK, uct_helper_report_write(&to, &m_figures));
        EXPECT_EQ(std::set<std::string>{name}, files());
        EXPECT_TRUE(json_check(read(m_dir + "/" + name)).is_valid());
    }
}

TEST_F(test_report, unwritable_path_is_found_at_the_start)
{
    char error[512];

    for (const std::string &path : {m_dir + "/none/out", m_dir,
                                    m_dir + "/" + std::string(300, 'x')}) {
        auto to = dest(UCT_HELPER_REPORT_JSON, path);

        error[0] = '\0';
        EXPECT_NE(UCS_OK, uct_helper_report_check(&to, error, sizeof(error)));
        EXPECT_NE(nullptr, strstr(error, "UCX_MD_HELPER_REPORT")) << error;
        EXPECT_NE(nullptr, strstr(error, path.c_str())) << error;

        log_capture log;
        EXPECT_NE(UCS_OK, uct_helper_report_write(&to, &m_figures));
        EXPECT_EQ(1u, log.lines().size());
    }
    EXPECT_TRUE(files().empty());
}

TEST_F(test_report, device_stays_a_device)
{
    auto to = dest(UCT_HELPER_REPORT_JSON, "/dev/null");
    char error[512];
    struct stat st;

    EXPECT_EQ(UCS_OK, uct_helper_report_check(&to, error, sizeof(error)));
    EXPECT_EQ(UCS_OK, uct_helper_report_write(&to, &m_figures));
    ASSERT_EQ(0, stat("/dev/null", &st));
    EXPECT_TRUE(S_ISCHR(st.st_mode));
}

TEST_F(test_report, a_stream_gets_each_format)
{
    uct_helper_report_dest_t to;
    int saved = dup(STDERR_FILENO);
    int fds[2];

    ASSERT_EQ(0, pipe(fds));
    ASSERT_EQ(STDERR_FILENO, dup2(fds[1], STDERR_FILENO));
    ucs_stream_note();
    for (const char *value : {"stderr", "json:/dev/stderr"}) {
        ASSERT_TRUE(uct_helper_value_report(value, &to));
        char error[512];
        ASSERT_EQ(UCS_OK, uct_helper_report_check(&to, error, sizeof(error)));
        ASSERT_EQ(STDERR_FILENO, to.stream);

        ASSERT_EQ(UCS_OK, uct_helper_report_write(&to, &m_figures));
        char text[8192];
        ssize_t size = ::read(fds[0], text, sizeof(text));
        ASSERT_GT(size, 0);
        EXPECT_EQ(print((to.kind == UCT_HELPER_REPORT_JSON) ?
                                uct_helper_report_print_json :
                                uct_helper_report_print_text),
                  std::string(text, size));
    }
    dup2(saved, STDERR_FILENO);
    ::close(saved);
    ucs_stream_note();
    ::close(fds[0]);
    ::close(fds[1]);
}

/* SIGXFSZ would end the program, which has not written anything */
TEST_F(test_report, limit_of_file_sizes_costs_the_report_alone)
{
    auto to = dest(UCT_HELPER_REPORT_JSON, m_dir + "/out");

    EXPECT_EQ(0, in_child([&] {
        struct rlimit limit = {10, 10};
        log_capture log;

        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_DFL);
        return (uct_helper_report_write(&to, &m_figures) == UCS_OK) ||
               (log.lines().size() != 1);
    }));
    EXPECT_TRUE(files().empty());
}

TEST_F(test_report, reader_that_has_gone_costs_the_report_alone)
{
    auto to = dest(UCT_HELPER_REPORT_TEXT, "");

    to.stream = STDERR_FILENO;
    EXPECT_EQ(0, in_child([&] {
        int fds[2];

        if (pipe(fds) != 0) {
            return 1;
        }
        close(fds[0]);
        dup2(fds[1], STDERR_FILENO);
        ucs_stream_note(); /* nothing is written to what is no stream of ours */
        signal(SIGPIPE, SIG_DFL);
        return int(!ucs_stream_is_output(STDERR_FILENO) ||
                   (uct_helper_report_write(&to, &m_figures) == UCS_OK));
    }));
}

/* What the program has waiting for itself stays there */
TEST_F(test_report, signal_of_the_programs_own_is_left_to_it)
{
    auto to = dest(UCT_HELPER_REPORT_JSON, m_dir + "/out");

    EXPECT_EQ(0, in_child([&] {
        struct rlimit limit = {10, 10};
        log_capture log;
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
        raise(SIGXFSZ);
        setrlimit(RLIMIT_FSIZE, &limit);
        uct_helper_report_write(&to, &m_figures);
        sigpending(&set);
        return int(!sigismember(&set, SIGXFSZ));
    }));
}

TEST_F(test_report, domains_add_up)
{
    ucs_regcache_stats_t sum, stats;

    memset(&sum, 0, sizeof(sum));
    memset(&stats, 0, sizeof(stats));
    stats.uses              = 5;
    stats.pinned_peak_bytes = 100;
    stats.pinned_byte_ns    = 7;
    stats.register_model    = {1, 2, 3};
    ucs_regcache_stats_add(&sum, &stats);

    stats.register_model = {9, 9, 2};
    ucs_regcache_stats_add(&sum, &stats);
    EXPECT_EQ(10u, sum.uses);
    EXPECT_EQ(200u, sum.pinned_peak_bytes);
    EXPECT_EQ(14.0, sum.pinned_byte_ns);
    EXPECT_EQ(3u, sum.register_model.samples);

    m_figures.lower_domain[0] = '\0';
    for (const char *name : {"rxe0", "rxe", "rxe0", "pin", "rxe"}) {
        uct_helper_report_add_domain(&m_figures, name);
    }
    EXPECT_STREQ("rxe0,rxe,pin", m_figures.lower_domain);

    uct_helper_report_add_note(&m_figures, "one");
    uct_helper_report_add_note(&m_figures, "one");
    EXPECT_EQ(1u, m_figures.num_notes);
    for (int i = 0; i < 100; ++i) {
        uct_helper_report_add_note(&m_figures, "%d", i);
    }
    EXPECT_EQ(unsigned(UCT_HELPER_REPORT_NOTES_MAX), m_figures.num_notes);
}
