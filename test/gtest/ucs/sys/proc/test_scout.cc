/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/clock.h>
#include <ucs/sys/sync/futex.h>
#include <ucs/sys/proc/scout.h>

#include <gtest/gtest.h>
#include <atomic>
#include <chrono>
#include <thread>

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Turns of a helper, which is the test's own thread. Its scout is not let run
 *  before it is started. */
class test_scout : public ::testing::Test {
protected:
    static constexpr uint64_t MS = 1000000;

    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, ucs_scout_create(1, &m_scout));
        alarm(20);
    }

    void TearDown() override
    {
        ucs_scout_stop(m_scout);
        ucs_scout_destroy(m_scout);
        alarm(0);
    }

    void await()
    {
        ucs_scout_await(m_scout, &m_bell, m_seen);
    }

    /* The bell rings after so long. Did the wait end before? */
    bool ends_before_bell(unsigned ms)
    {
        std::thread ringer([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(ms));
            ++m_bell;
            ucs_futex_wake(&m_bell, 1, UCS_FUTEX_SHARED);
        });
        await();
        bool is_before = (m_bell == m_seen);
        ringer.join();
        m_seen = m_bell;
        return is_before;
    }

    ucs_scout_h       m_scout;
    _Atomic(uint32_t) m_bell{0};
    uint32_t          m_seen = 0;
};

TEST_F(test_scout, that_never_runs_holds_up_what_is_due_for_a_second)
{
    uint64_t begin = ucs_clock_now();

    ucs_scout_wake(m_scout);
    ucs_scout_done(m_scout, begin + 10 * MS);
    await();
    EXPECT_GE(ucs_clock_now() - begin, 10 * MS + UCS_SCOUT_OVERDUE_NS);
    EXPECT_LE(ucs_clock_now() - begin, 10 * MS + 3 * UCS_SCOUT_OVERDUE_NS);
}

TEST_F(test_scout, that_never_runs_does_not_hold_up_a_sooner_time)
{
    uint64_t begin = ucs_clock_now();

    ucs_scout_serve(m_scout);
    ucs_scout_done(m_scout, UINT64_MAX);
    std::thread teller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ucs_scout_advance(m_scout, ucs_clock_now());
    });
    await();
    teller.join();
    EXPECT_GE(ucs_clock_now() - begin, 10 * MS + UCS_SCOUT_OVERDUE_NS);
    EXPECT_LE(ucs_clock_now() - begin, 3 * UCS_SCOUT_OVERDUE_NS);
}

TEST_F(test_scout, that_never_runs_does_not_hold_up_a_wake_up)
{
    uint64_t begin = ucs_clock_now();

    ucs_scout_serve(m_scout);
    ucs_scout_done(m_scout, UINT64_MAX);
    std::thread waker([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ucs_scout_wake(m_scout);
    });
    await();
    waker.join();
    EXPECT_GE(ucs_clock_now() - begin, UCS_SCOUT_OVERDUE_NS);
    EXPECT_LE(ucs_clock_now() - begin, 4 * UCS_SCOUT_OVERDUE_NS);
}

TEST_F(test_scout, that_never_runs_does_not_hold_up_the_bell)
{
    uint64_t begin = ucs_clock_now();

    ucs_scout_done(m_scout, UINT64_MAX);
    EXPECT_FALSE(ends_before_bell(5));
    EXPECT_LE(ucs_clock_now() - begin, UCS_SCOUT_OVERDUE_NS);
}

TEST_F(test_scout, that_never_runs_does_not_hold_up_the_end)
{
    uint64_t begin = ucs_clock_now();

    ucs_scout_done(m_scout, UINT64_MAX);
    std::thread stopper([&] { ucs_scout_stop(m_scout); });
    await();
    stopper.join();
    EXPECT_LE(ucs_clock_now() - begin, UCS_SCOUT_OVERDUE_NS);
}

TEST_F(test_scout, gives_a_turn_when_it_runs)
{
    ucs_scout_start(m_scout);
    await(); /* the first */
    uint64_t begin = ucs_clock_now();
    ucs_scout_done(m_scout, begin + MS);
    await();
    EXPECT_GE(ucs_clock_now(), begin + MS);
    ucs_scout_done(m_scout, UINT64_MAX);
    ucs_scout_wake(m_scout);
    await();
}

/* Of the scout's thread: the core is taken each time that it is offered */
std::atomic<bool> core_is_taken{false};

extern "C" int sched_yield() noexcept
{
    char name[16] = "";

    if (core_is_taken && (prctl(PR_GET_NAME, name) == 0) &&
        (strcmp(name, "ucx-scout") == 0)) {
        usleep(200);
    }
    return (int)syscall(SYS_sched_yield);
}

/* A thread of its class runs now and then beside one that is never done: that is no idle
 * core. A turn that comes all the same keeps the helper going. How soon such a thread is let
 * run differs by the kernel, so what takes the core is made up. */
TEST_F(test_scout, offers_a_busy_core_for_a_while)
{
    ucs_scout_start(m_scout);
    await(); /* the first */
    core_is_taken = true;
    for (unsigned i = 0; i < 4; ++i) {
        uint64_t due = ucs_clock_now() + 5 * MS;
        ucs_scout_done(m_scout, due);
        await();
        EXPECT_LE(due + UCS_SCOUT_PATIENCE_NS, ucs_clock_now());
    }
    core_is_taken = false;
}

/* What somebody else has served is not served again */
TEST_F(test_scout, gives_no_turn_for_what_was_served)
{
    ucs_scout_serve(m_scout);
    ucs_scout_done(m_scout, UINT64_MAX);
    ucs_scout_start(m_scout);
    EXPECT_FALSE(ends_before_bell(100));
}

/* The helper steps without a turn, for its bell, when one is given: what it was
 * woken for may have come after it had looked */
TEST_F(test_scout, a_turn_that_is_given_during_a_step_is_still_to_come)
{
    ucs_scout_serve(m_scout);
    ucs_scout_done(m_scout, UINT64_MAX);
    EXPECT_FALSE(ends_before_bell(1));
    ucs_scout_start(m_scout);
    ucs_scout_wake(m_scout);
    /* By then it has given one, unless the machine is very busy; one that comes
     * later is to be had as well */
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ucs_scout_done(m_scout, UINT64_MAX);
    EXPECT_TRUE(ends_before_bell(1000));
}

/* Turns that the step has counted, which came from the scout: what they had of a
 * processor */
TEST_F(test_scout, tells_how_long_its_turns_took)
{
    uint64_t worked, delayed, now, end;

    ucs_scout_start(m_scout);
    await();
    ucs_scout_done(m_scout, ucs_clock_now());
    for (bool counts : {false, true, false, true}) {
        await();
        if (counts) {
            ucs_scout_count(m_scout);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ucs_clock_read(CLOCK_THREAD_CPUTIME_ID, &now);
        for (end = now + (counts ? 5 : 50) * MS; now < end;) {
            ucs_clock_read(CLOCK_THREAD_CPUTIME_ID, &now);
        }
        ucs_scout_done(m_scout, ucs_clock_now());
        await(); /* by then the one before has been added */
        ucs_scout_done(m_scout, ucs_clock_now());
    }
    ucs_scout_delays(m_scout, &worked, &delayed);
    EXPECT_GE(worked, 10 * MS);
    EXPECT_LT(worked, 50 * MS) << "those that were not counted, or asleep";
    EXPECT_LE(delayed, worked);
}
