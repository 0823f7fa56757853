/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/io/own_fd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <unistd.h>

class test_own_fd : public ::testing::Test {
protected:
    void SetUp() override
    {
        m_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        ASSERT_GE(m_fd, 0);
        ASSERT_TRUE(ucs_own_fd_set(&m_own, m_fd));
    }

    void TearDown() override
    {
        close(m_fd);
    }

    bool is_open() const
    {
        return fcntl(m_fd, F_GETFD) >= 0;
    }

    ucs_own_fd_t m_own = UCS_OWN_FD_INIT;
    int          m_fd  = -1;
};

TEST_F(test_own_fd, kept_and_closed)
{
    EXPECT_EQ(m_fd, ucs_own_fd_get(&m_own));
    EXPECT_EQ(m_fd, ucs_own_fd_number(&m_own));
    ucs_own_fd_close(&m_own);
    EXPECT_FALSE(is_open());
    EXPECT_EQ(-1, ucs_own_fd_get(&m_own));
    EXPECT_EQ(-1, ucs_own_fd_number(&m_own));
}

TEST_F(test_own_fd, what_the_program_closed_is_none)
{
    close(m_fd);
    EXPECT_EQ(-1, ucs_own_fd_get(&m_own));
    EXPECT_EQ(m_fd, ucs_own_fd_number(&m_own)) << "for a message";
    ucs_own_fd_close(&m_own);
}

TEST_F(test_own_fd, what_the_program_put_there_is_left_alone)
{
    for (const char *path : {"/dev/null", "/proc/self/status"}) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ASSERT_EQ(m_fd, dup2(fd, m_fd));
        close(fd);
        EXPECT_EQ(-1, ucs_own_fd_get(&m_own)) << path;
    }
    ucs_own_fd_close(&m_own);
    EXPECT_TRUE(is_open());
}

/* As a profiler opens it, and under the number that it finds free */
TEST_F(test_own_fd, same_file_opened_by_the_program_is_left_alone)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    ASSERT_EQ(m_fd, dup2(fd, m_fd));
    close(fd);
    EXPECT_EQ(-1, ucs_own_fd_get(&m_own));
    ucs_own_fd_close(&m_own);
    EXPECT_TRUE(is_open());
}

/* The program has closed one, and the next one that we open has its number */
TEST_F(test_own_fd, another_one_of_ours_is_not_the_same)
{
    ucs_own_fd_t other = UCS_OWN_FD_INIT;

    close(m_fd);
    ASSERT_EQ(m_fd, ucs_own_fd_open(&other, "/proc/self/status"));
    EXPECT_EQ(-1, ucs_own_fd_get(&m_own));
    EXPECT_EQ(m_fd, ucs_own_fd_get(&other));
    ucs_own_fd_close(&other);
}

/* A program that writes to a closed stream writes to no file of ours */
TEST_F(test_own_fd, number_is_none_of_a_stream)
{
    int stream         = dup(STDIN_FILENO);
    ucs_own_fd_t other = UCS_OWN_FD_INIT;

    close(STDIN_FILENO);
    EXPECT_LT(STDERR_FILENO, ucs_own_fd_open(&other, "/proc/self/maps"));
    EXPECT_LT(STDERR_FILENO, ucs_own_fd_get(&other));
    EXPECT_GT(0, fcntl(STDIN_FILENO, F_GETFD));
    ucs_own_fd_close(&other);
    if (stream >= 0) {
        dup2(stream, STDIN_FILENO);
        close(stream);
    }
}

TEST_F(test_own_fd, what_is_forgotten_stays_open)
{
    ucs_own_fd_forget(&m_own);
    EXPECT_EQ(-1, ucs_own_fd_get(&m_own));
    EXPECT_TRUE(is_open());
}

TEST_F(test_own_fd, what_is_closed_cannot_be_kept)
{
    ucs_own_fd_t other = UCS_OWN_FD_INIT;

    EXPECT_FALSE(ucs_own_fd_set(&other, -1));
    EXPECT_EQ(-1, ucs_own_fd_number(&other));
}

TEST(test_own_fd_text, short_file)
{
    char text[64], part[4];

    EXPECT_LT(0, ucs_own_fd_read_text("/proc/self/comm", text, sizeof(text)));
    EXPECT_EQ(3, ucs_own_fd_read_text("/proc/self/comm", part, sizeof(part)));
    EXPECT_EQ(std::string(text, 3), part);
    EXPECT_EQ(-1, ucs_own_fd_read_text("/proc/self/none", text, sizeof(text)));
    EXPECT_EQ(ENOENT, errno);
}

/* What is not a file, as the program may put there: nothing is taken. Its writer has
 * gone, so that what reads it ends. */
TEST(test_own_fd_text, nothing_is_taken_from_a_pipe)
{
    char path[64], text[8] = "";
    int ends[2];

    ASSERT_EQ(0, pipe2(ends, O_NONBLOCK));
    ASSERT_EQ(1, write(ends[1], "x", 1));
    close(ends[1]);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
    EXPECT_EQ(0, ucs_own_fd_read_text(path, text, sizeof(text)));
    EXPECT_EQ(1, read(ends[0], text, 1));
    EXPECT_EQ('x', text[0]);
    close(ends[0]);
}
