/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/test_paths.h>

#include <gtest/gtest.h>

#include <cstdlib>

#include <dlfcn.h>

/* The preloaded library's entry points, called from a UCX of another name that only its
 * users see. The preloaded one is opened, so nobody else calls it. */
class test_preload : public ::testing::Test {
protected:
    void SetUp() override
    {
        m_stub = dlopen(TEST_PRELOAD_LIBRARY,
                        RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        ASSERT_NE(nullptr, m_stub) << dlerror();
        m_ucx = dlopen(TEST_RENAMED_UCX, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(nullptr, m_ucx) << dlerror();
    }

    void TearDown() override
    {
        unsetenv("HELPER_MD_SITE_FILE");
        dlclose(m_ucx);
        dlclose(m_stub);
    }

    /* @return What its caller gets from an entry point */
    int call(const char *caller, const char *entry)
    {
        auto function = (int (*)(void*))dlsym(m_ucx, caller);

        return -function(dlsym(m_stub, entry));
    }

    void *m_stub = nullptr;
    void *m_ucx  = nullptr;
};

TEST_F(test_preload, functions_of_the_callers_libraries_are_found)
{
    EXPECT_EQ(71, call("test_read_config", "ucp_config_read"));
    EXPECT_EQ(72, call("test_open_md", "uct_md_open"));
    EXPECT_EQ(73, call("test_init_fork", "ibv_fork_init"));
}

/* It is not looked up again */
TEST_F(test_preload, what_was_found_stays_loaded)
{
    EXPECT_EQ(72, call("test_open_md", "uct_md_open"));
    dlclose(m_ucx);
    void *still = dlopen(TEST_RENAMED_UCX, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    EXPECT_NE(nullptr, still);
    m_ucx = (still != nullptr) ? still : dlopen(TEST_RENAMED_UCX, RTLD_NOW);
}

/* UCX would warn of the switch, so it goes; a site file must not take its place */
TEST_F(test_preload, children_have_opted_out_as_well)
{
    EXPECT_EQ(72, call("test_open_md", "uct_md_open"));
    EXPECT_EQ(nullptr, getenv("HELPER_MD_SITE_FILE"));
    setenv("UCX_MD_HELPER", "n", 1);
    EXPECT_EQ(72, call("test_open_md", "uct_md_open"));
    EXPECT_EQ(nullptr, getenv("UCX_MD_HELPER"));
    EXPECT_STREQ("", getenv("HELPER_MD_SITE_FILE"));
}
