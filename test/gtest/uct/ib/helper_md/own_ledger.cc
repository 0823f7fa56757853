/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <test/own_ledger.h>

#include <gtest/gtest.h>

#include <string>

#include <stdlib.h>
#include <unistd.h>

/*
 * Each test that opens a domain has a ledger of its own: neither a job that
 * runs beside, nor what another test left, decides it.
 */

namespace {

class own_ledger : public ::testing::EmptyTestEventListener {
    void OnTestStart(const ::testing::TestInfo &) override
    {
        m_suffix = "gtest-" + std::to_string(getpid()) + "-" +
                   std::to_string(m_count++);
        setenv(UCS_NODE_SUFFIX_ENV, m_suffix.c_str(), 1);
    }

    void OnTestEnd(const ::testing::TestInfo &) override
    {
        /* Some tests, run by root, have children that are nobody */
        for (unsigned uid : {unsigned(geteuid()), 65534u}) {
            std::string name = "ucx-helper-md-" +
                               std::to_string(UCS_LEDGER_VERSION) + "." +
                               std::to_string(uid) + "." + m_suffix;
            ucs_ledger_remove(name.c_str());
            /* Of those that children had open to the end */
            for (const char *device : {"fake", "fake0", "fake1", "own0", "next",
                                       "other0", "pin", "software-nic"}) {
                ucs_ledger_remove((name + "+" + device).c_str());
            }
        }
    }

    std::string m_suffix;
    unsigned    m_count = 0;
};

const bool is_there = [] {
    ::testing::UnitTest::GetInstance()->listeners().Append(new own_ledger);
    return true;
}();

}
