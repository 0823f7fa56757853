/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/io/stream.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

/* The error stream is another file for the time of a test */
class test_stream : public ::testing::Test {
protected:
    void SetUp() override
    {
        fflush(stderr);
        m_saved = dup(STDERR_FILENO);
        ASSERT_GE(m_saved, 0);
    }

    void TearDown() override
    {
        dup2(m_saved, STDERR_FILENO);
        close(m_saved);
        ucs_stream_note();
    }

    void put(FILE *file)
    {
        ASSERT_EQ(STDERR_FILENO, dup2(fileno(file), STDERR_FILENO));
    }

    int m_saved = -1;
};

TEST_F(test_stream, what_was_there_is_output)
{
    EXPECT_TRUE(ucs_stream_is_output(STDERR_FILENO));
}

TEST_F(test_stream, the_programs_file_is_none)
{
    FILE *file = tmpfile();
    int ends[2];

    put(file);
    EXPECT_FALSE(ucs_stream_is_output(STDERR_FILENO));
    EXPECT_FALSE(ucs_stream_hold(STDERR_FILENO));
    fclose(file);

    ASSERT_EQ(0, pipe(ends));
    ASSERT_EQ(STDERR_FILENO, dup2(ends[1], STDERR_FILENO));
    EXPECT_FALSE(ucs_stream_is_output(STDERR_FILENO));
    close(ends[0]);
    close(ends[1]);

    close(STDERR_FILENO);
    EXPECT_FALSE(ucs_stream_is_output(STDERR_FILENO));
}

/* A program that redirects a stream before it opens a domain reads it there */
TEST_F(test_stream, what_is_there_as_a_domain_is_opened_is_output)
{
    FILE *before = tmpfile(), *after = tmpfile();

    put(before);
    ucs_stream_note();
    EXPECT_TRUE(ucs_stream_is_output(STDERR_FILENO));
    put(after);
    EXPECT_FALSE(ucs_stream_is_output(STDERR_FILENO));
    dup2(m_saved, STDERR_FILENO);
    EXPECT_TRUE(ucs_stream_is_output(STDERR_FILENO)) << "as it was at first";
    fclose(before);
    fclose(after);
}

TEST_F(test_stream, a_device_is_output)
{
    int fd = open("/dev/null", O_WRONLY);

    ASSERT_EQ(STDERR_FILENO, dup2(fd, STDERR_FILENO));
    close(fd);
    EXPECT_TRUE(ucs_stream_is_output(STDERR_FILENO));
}

/* The program may hold it while it waits for who has something to say */
TEST_F(test_stream, what_another_thread_keeps_is_not_waited_for)
{
    using clock = std::chrono::steady_clock;
    clock::duration waited(0);

    flockfile(stderr);
    EXPECT_TRUE(ucs_stream_hold(STDERR_FILENO)) << "it is the caller's";
    ucs_stream_release(STDERR_FILENO);
    std::thread([&waited]() {
        const clock::time_point begin = clock::now();

        EXPECT_FALSE(ucs_stream_hold(STDERR_FILENO));
        waited = clock::now() - begin;
    }).join();
    funlockfile(stderr);
    EXPECT_GT(std::chrono::seconds(20), waited);
    EXPECT_TRUE(ucs_stream_hold(STDERR_FILENO));
    ucs_stream_release(STDERR_FILENO);
}
