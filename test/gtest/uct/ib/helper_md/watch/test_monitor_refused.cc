/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../log_capture.h"
#include "monitor_fixture.h"

#include <test/refuse_calls.h>

class test_monitor_refused : public test_monitor {
protected:
    /* @return 0 if the domain works with UCM's hooks, and @a lines were logged
     *         that name the option */
    int fall_back(uct_helper_monitor_t monitor, int error, size_t lines)
    {
        const int opens = SYS_userfaultfd;
        log_capture log;

        EXPECT_EQ(0, refuse_calls(&opens, 1, error));
        m_config.monitor = monitor;
        attach();
        use(m_buffer);
        if (!is_hit(m_buffer)) {
            return 1;
        }
        munmap(m_buffer, LENGTH);
        map(m_buffer, MAP_FIXED_NOREPLACE);
        if (is_hit(m_buffer)) {
            return 2;
        }
        if (log.lines().size() != lines) {
            return 3;
        }
        for (const auto &line : log.lines()) {
            if (line.find("UCX_MD_HELPER_MONITOR=") == std::string::npos) {
                return 4;
            }
        }
        return testing::Test::HasFailure() ? 5 : 0;
    }
};

TEST_F(test_monitor_refused, falls_back_to_ucm)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
    for (int error : {ENOSYS, EPERM}) {
        EXPECT_EQ(0, in_child([&] {
            return fall_back(UCT_HELPER_MONITOR_AUTO, error, 0);
        })) << error;
    }
}
