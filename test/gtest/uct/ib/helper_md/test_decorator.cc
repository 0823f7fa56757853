/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"
#include "report/json_check.h"
#include "log_capture.h"

#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <utility>
#include <vector>

/* What the testing aid was called with, in order */
static std::vector<std::pair<uct_mem_h, int>> verified;

static void note_verified(uct_md_h md, uct_mem_h memh)
{
    verified.emplace_back(memh, uct_helper_md_is_gone(md, memh));
}

TEST_F(test_decorator, verify_sees_the_end_of_each_use)
{
    verified.clear();
    attach(lower);
    uct_helper_md_set_verify(lower.md(), note_verified);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
    EXPECT_EQ(memh, reg(lower, m_buffer, TEST_LENGTH));
    uct_mem_h pool = reg(lower, m_buffer, TEST_LENGTH,
                         access | UCT_MD_MEM_FLAG_LOCK);
    EXPECT_TRUE(verified.empty());

    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    EXPECT_EQ(UCS_OK, dereg(lower, pool));
    /* Its mapping goes while it is in use: then it may differ from it */
    munmap(m_buffer, TEST_LENGTH);
    m_buffer = nullptr;
    EXPECT_EQ(UCS_OK, dereg(lower, memh));

    ASSERT_EQ(3u, verified.size());
    EXPECT_EQ(std::make_pair(memh, 0), verified[0]);
    EXPECT_EQ(std::make_pair(pool, 0), verified[1]);
    EXPECT_EQ(std::make_pair(memh, 1), verified[2]);
}

/* Without a further call: nobody but the helper can come to it, for which it waits until
 * a core is idle */
TEST_F(test_decorator, what_is_unmapped_is_deregistered_under_every_policy)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        fake_lower lower;

        m_config.policy = (ucs_regcache_policy_t)policy;
        attach(lower);
        char *memory = (char*)mmap(nullptr, TEST_LENGTH, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, (void*)memory);
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, memory, TEST_LENGTH)));
        munmap(memory, TEST_LENGTH);
        EXPECT_TRUE(lower.await_dereg(1, std::chrono::milliseconds(200))) << policy;
        close(lower);
    }
}

TEST_F(test_decorator, pools_and_empty_ranges_pass_through)
{
    attach(lower);
    for (int i = 1; i <= 2; ++i) {
        uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH,
                             access | UCT_MD_MEM_FLAG_LOCK);
        EXPECT_EQ(2 * i - 1u, lower.reg_count());
        EXPECT_NE(0u, lower.find(memh).flags & UCT_MD_MEM_FLAG_LOCK);
        EXPECT_EQ(UCS_OK, dereg(lower, memh));
        EXPECT_EQ(2 * i - 1u, lower.dereg_count());

        memh = reg(lower, m_buffer, 0);
        EXPECT_EQ(0u, lower.find(memh).length);
        EXPECT_EQ(UCS_OK, dereg(lower, memh));
        EXPECT_EQ(2u * i, lower.dereg_count());
    }
}

TEST_F(test_decorator, what_is_not_ours_goes_down_untouched)
{
    uct_completion_t comp;
    uct_abi_md_mem_dereg_params_t params;

    attach(lower);
    params.field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH |
                        UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS |
                        UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION;
    params.flags      = 0;
    params.comp       = &comp;
    params.memh       = reg(lower, m_buffer, TEST_LENGTH,
                            access | UCT_MD_MEM_FLAG_LOCK);
    EXPECT_EQ(UCS_OK, ops(lower)->mem_dereg(lower.md(), &params));
    EXPECT_EQ(&params, lower.last_dereg_params());
}

static unsigned test_invalidated;

static void test_invalidate_done(uct_completion_t*)
{
    ++test_invalidated;
}

static ucs_status_t invalidate(fake_lower &lower, uct_mem_h memh,
                               uct_completion_t *comp)
{
    uct_abi_md_mem_dereg_params_t params;

    params.field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH |
                        UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS |
                        ((comp == nullptr) ? 0 :
                         +UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION);
    params.flags      = UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE;
    params.memh       = memh;
    params.comp       = comp;
    return uct_abi_md(lower.md())->ops->mem_dereg(lower.md(), &params);
}

TEST_F(test_decorator, invalidation_reaches_the_device)
{
    fake_lower lower("fake", UCT_MD_FLAG_INVALIDATE);
    uct_completion_t comp = {test_invalidate_done, 1, UCS_OK};

    attach(lower);
    test_invalidated = 0;
    uct_mem_h memh   = reg(lower, m_buffer, TEST_LENGTH);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, invalidate(lower, memh, nullptr));
    EXPECT_EQ(UCS_OK, invalidate(lower, memh, &comp));
    lower.await_dereg(1);
    EXPECT_EQ(1u, lower.invalidate_count());
    EXPECT_EQ(1u, test_invalidated);
    EXPECT_FALSE(lower.is_live(memh));

    memh = reg(lower, m_buffer, TEST_LENGTH);
    EXPECT_EQ(2u, lower.reg_count());
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    close(lower);
}

TEST_F(test_decorator, invalidation_unsupported_below_changes_nothing)
{
    uct_completion_t comp = {test_invalidate_done, 1, UCS_OK};

    attach(lower);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, invalidate(lower, memh, &comp));
    EXPECT_TRUE(lower.is_live(memh));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
}

TEST_F(test_decorator, unmapped_memory_is_not_found_again)
{
    /* userfaultfd would tell of it as well */
    m_config.monitor = UCT_HELPER_MONITOR_UCM;
    attach(lower);
    void *other      = map(nullptr);
    uct_mem_h before = reg(lower, other, TEST_LENGTH);
    EXPECT_EQ(UCS_OK, dereg(lower, before));
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, other, TEST_LENGTH)));
    EXPECT_EQ(1u, lower.reg_count());
    munmap(other, TEST_LENGTH);
    /* Raw: the event of a mapping would do as well */
    ASSERT_EQ((long)other, syscall(SYS_mmap, other, TEST_LENGTH,
                                   PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE |
                                   MAP_FIXED_NOREPLACE, -1l, 0l));
    uct_mem_h after = reg(lower, other, TEST_LENGTH);
    EXPECT_EQ(2u, lower.reg_count());
    EXPECT_EQ(UCS_OK, dereg(lower, after));
    munmap(other, TEST_LENGTH);
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}

/* Below us there may be a place where a thread is cancelled; its region would
 * be for ever being registered */
TEST_F(test_decorator, registration_is_not_cancelled_half_way)
{
    auto child = [&] {
        fake_lower lower;
        bool is_done = false;

        attach(lower);
        lower.on_reg = [](void*, size_t) {
            pthread_testcancel();
            return UCS_OK;
        };
        std::thread user([&] {
            pthread_cancel(pthread_self());
            EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, TEST_LENGTH)));
            is_done = true;
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        });
        user.join();
        close(lower);
        return is_done ? 0 : 1;
    };

    EXPECT_EQ(0, in_child(child));
}

TEST_F(test_decorator, thread_starts_with_the_first_large_use_only)
{
    m_config.policy = UCS_REGCACHE_POLICY_PAPER;
    attach(lower);
    EXPECT_FALSE(uct_helper_md_has_thread(lower.md()));
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, 4096)));
    EXPECT_FALSE(uct_helper_md_has_thread(lower.md()));
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
    EXPECT_TRUE(uct_helper_md_has_thread(lower.md()));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}

TEST_F(test_decorator, forked_child_goes_straight_down)
{
    m_config.policy = UCS_REGCACHE_POLICY_PAPER;
    attach(lower);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);

    EXPECT_EQ(0, in_child([&] {
        int error = goes_straight_down(lower, memh);

        munmap(map(nullptr), TEST_LENGTH);
        if (uct_helper_md_has_thread(lower.md())) {
            return 5;
        }
        /* Of the parent's: nothing is done, and its end is told */
        uct_completion_t comp = {test_invalidate_done, 1, UCS_OK};
        test_invalidated      = 0;
        if ((invalidate(lower, memh, &comp) != UCS_OK) ||
            (test_invalidated != 1) || !lower.is_live(memh)) {
            return 6;
        }
        ops(lower)->close(lower.md());
        return (lower.close_count() == 1) ? error : 4;
    }));

    EXPECT_TRUE(lower.is_live(memh));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    lower.await_dereg(1);
}

TEST_F(test_decorator, parent_goes_on_after_forks)
{
    m_config.policy = UCS_REGCACHE_POLICY_PAPER;
    attach(lower);
    for (unsigned i = 1; i <= 20; ++i) {
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, TEST_LENGTH)));
        EXPECT_EQ(0, in_child([] { return 0; }));
    }
    EXPECT_TRUE(uct_helper_md_has_thread(lower.md()));
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}

/* What the report is that a child leaves which does so */
static std::string report_of(uct_helper_config_t &config,
                             const std::function<int()> &function)
{
    char path[] = "/tmp/test_decorator.XXXXXX";
    int fd      = mkstemp(path);

    EXPECT_GE(fd, 0);
    ::close(fd);
    config.report.kind = UCT_HELPER_REPORT_JSON;
    strcpy(config.report.path, path);
    EXPECT_EQ(0, in_child(function));

    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    unlink(path);
    return text.str();
}

/* A child that opens a domain has a session of its own: here it ends without
 * closing the domain, and the report comes at exit */
TEST_F(test_decorator, report_at_exit)
{
    m_config.policy = UCS_REGCACHE_POLICY_PAPER;
    json_check json(report_of(m_config, [&] {
        auto *lower = new fake_lower("cma");

        m_config.pin_base_ns = 5000;
        attach(*lower);
        dereg(*lower, reg(*lower, m_buffer, TEST_LENGTH));
        return 0;
    }));

    ASSERT_TRUE(json.is_valid());
    EXPECT_EQ("1", json.value("uses"));
    EXPECT_EQ("1", json.value("cold"));
    EXPECT_EQ("paper", json.value("policy"));
    EXPECT_EQ("fake0", json.value("lower_domain"));
    EXPECT_EQ("5e-06", json.value("modelled_cost.base_seconds"));
}

TEST_F(test_decorator, report_adds_up_domains_closed_one_after_another)
{
    json_check json(report_of(m_config, [&] {
        for (const char *name : {"one", "two", "one"}) {
            fake_lower lower;

            uct_helper_md_attach(lower.md(), name, &m_config);
            dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
            close(lower);
        }
        return 0;
    }));

    ASSERT_TRUE(json.is_valid());
    EXPECT_EQ("3", json.value("uses"));
    EXPECT_EQ("one,two", json.value("lower_domain"));
    EXPECT_EQ("null", json.value("modelled_cost"));
}
