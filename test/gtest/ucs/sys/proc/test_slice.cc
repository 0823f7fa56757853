/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/proc/slice.h>

#include <gtest/gtest.h>
#include <cerrno>
#include <thread>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/** struct sched_attr in its first version */
struct test_slice_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t  nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static test_slice_attr test_slice_get()
{
    test_slice_attr attr = {};

    EXPECT_EQ(0, syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0));
    return attr;
}

TEST(test_slice, is_longer_than_others_have)
{
    std::thread([] {
        test_slice_attr before = test_slice_get();
        ucs_slice_lengthen();
        test_slice_attr after = test_slice_get();
        EXPECT_EQ(before.policy, after.policy);
        EXPECT_EQ(before.nice, after.nice);
        if (after.runtime == 0) {
            GTEST_SKIP() << "this kernel has no time slices of a thread's own "
                            "(Linux 6.12)";
        }
        EXPECT_GE(after.runtime, 2 * before.runtime);
    }).join();
}

TEST(test_slice, leaves_other_classes_alone)
{
    std::thread([] {
        struct sched_param param = {};
        ASSERT_EQ(0, sched_setscheduler(0, SCHED_BATCH, &param));
        test_slice_attr before = test_slice_get();
        ucs_slice_lengthen();
        test_slice_attr after = test_slice_get();
        EXPECT_EQ(uint32_t(SCHED_BATCH), after.policy);
        EXPECT_EQ(before.runtime, after.runtime);
    }).join();
}
