/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/door/site.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

class test_site : public ::testing::Test {
protected:
    test_site()
    {
        strcpy(m_path, "/tmp/test_site.XXXXXX");
        close(mkstemp(m_path));
        forget();
    }

    ~test_site()
    {
        forget();
        unlink(m_path);
    }

    static void forget()
    {
        for (const char *name : {"UCX_MD_HELPER_A", "UCX_MD_HELPER_B",
                                 "UCX_MD_PIN_C", "UCX_MD_PIN_D"}) {
            unsetenv(name);
        }
    }

    static int is_on()
    {
        return getenv("UCX_MD_HELPER_A") != NULL;
    }

    /* @return What is wrong with the file */
    std::string read(const std::string &text)
    {
        char error[UCT_SITE_ERROR_MAX] = "";

        std::ofstream(m_path) << text;
        return (uct_site_read(m_path, 1, is_on, error) == 0) ? "" : error;
    }

    static std::string variable(const char *name)
    {
        const char *value = getenv(name);

        return (value != NULL) ? value : "(none)";
    }

    char m_path[32];
};

TEST_F(test_site, lines_are_set)
{
    EXPECT_EQ("", read("# ours\n; too\n\n UCX_MD_HELPER_A = y \r\n"
                       "UCX_MD_PIN_C=1us,2 ns\nUCX_MD_HELPER_B=a=b\n"
                       "UCX_MD_PIN_D="));
    EXPECT_EQ("y", variable("UCX_MD_HELPER_A"));
    EXPECT_EQ("a=b", variable("UCX_MD_HELPER_B"));
    EXPECT_EQ("1us,2 ns", variable("UCX_MD_PIN_C"));
    EXPECT_EQ("", variable("UCX_MD_PIN_D"));
}

TEST_F(test_site, environment_wins)
{
    setenv("UCX_MD_HELPER_B", "mine", 1);
    EXPECT_EQ("", read("UCX_MD_HELPER_A=y\nUCX_MD_HELPER_B=theirs\n"));
    EXPECT_EQ("mine", variable("UCX_MD_HELPER_B"));
}

/* UCX would warn of what nobody reads */
TEST_F(test_site, nothing_is_set_where_nothing_is_on)
{
    EXPECT_EQ("", read("UCX_MD_HELPER_B=1\nUCX_MD_PIN_C=2\n"));
    EXPECT_EQ("(none)", variable("UCX_MD_HELPER_B"));
    EXPECT_EQ("(none)", variable("UCX_MD_PIN_C"));
}

TEST_F(test_site, error_names_file_and_line_and_sets_nothing)
{
    std::string place = std::string(m_path) + ":3: ";

    EXPECT_EQ(place + "'UCX_MD_PIN_C' is no NAME=VALUE",
              read("UCX_MD_HELPER_A=y\n\nUCX_MD_PIN_C\nUCX_MD_PIN_D=1\n"));
    EXPECT_EQ("(none)", variable("UCX_MD_HELPER_A"));
    EXPECT_EQ(place + "'UCX_TLS' names no option of the helper's",
              read("UCX_MD_HELPER_A=y\n\nUCX_TLS=tcp\n"));
    EXPECT_EQ("(none)", variable("UCX_MD_HELPER_A"));
    EXPECT_EQ(std::string(m_path) + " is no site file: it is longer than 16 KB",
              read(std::string(20000, '#')));
}

TEST_F(test_site, a_file_that_is_none)
{
    char error[UCT_SITE_ERROR_MAX] = "";

    unlink(m_path);
    EXPECT_EQ(0, uct_site_read(m_path, 0, is_on, error));
    EXPECT_STREQ("", error);
    EXPECT_EQ(-1, uct_site_read(m_path, 1, is_on, error));
    EXPECT_EQ(std::string(m_path) + " is no site file: No such file or directory",
              error);
    /* Nobody writes to it: opening it must not wait */
    ASSERT_EQ(0, mkfifo(m_path, 0600));
    EXPECT_EQ(-1, uct_site_read(m_path, 0, is_on, error));
    EXPECT_EQ(std::string(m_path) + " is no site file: it is no regular file",
              error);
}
