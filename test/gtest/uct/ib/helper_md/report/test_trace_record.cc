/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../log_capture.h"
#include "../quiet_fork.h"

#include <ucs/sys/clock.h>
#include <ucs/sys/proc/thread.h>
#include <tools/decode.h>
#include <ucs/trace/trace.h>
#include <uct/ib/helper_md/report/trace_open.h>
#include <uct/ib/helper_md/report/trace_record.h>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

class test_trace_record : public ::testing::Test {
protected:
    test_trace_record()
    {
        strcpy(m_path, "/tmp/test_trace.XXXXXX");
        close(mkstemp(m_path));
        ucs_clock_init();
    }

    ~test_trace_record()
    {
        uct_helper_trace_stop();
        tool_trace_cleanup(&m_trace);
        unlink(m_path);
    }

    void start()
    {
        ASSERT_EQ(UCS_OK, uct_helper_trace_start(m_path));
    }

    static uct_mem_h memh(uintptr_t index)
    {
        return (uct_mem_h)(0x1000 + 16 * index);
    }

    static void use(unsigned index, uint64_t signature = 5)
    {
        uct_helper_trace_use(ucs_clock_now(), 0x100000 * (index + 1), 8192, 3,
                             signature, memh(index));
    }

    static void release(unsigned index)
    {
        uct_helper_trace_release(ucs_clock_now(), memh(index));
    }

    /* The first descriptor of a file, -1 if there is none */
    static int descriptor_of(const char *path)
    {
        struct stat wanted, st;

        if (stat(path, &wanted) != 0) {
            return -1;
        }
        for (int fd = 0; fd < 1024; ++fd) {
            if ((fstat(fd, &st) == 0) && (st.st_dev == wanted.st_dev) &&
                (st.st_ino == wanted.st_ino)) {
                return fd;
            }
        }
        return -1;
    }

    void read()
    {
        std::ifstream file(m_path, std::ios::binary);
        std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                std::istreambuf_iterator<char>());
        tool_trace_error_t error = {};

        tool_trace_cleanup(&m_trace);
        ASSERT_EQ(0, tool_trace_decode(bytes.data(), bytes.size(), &m_trace,
                                       &error))
                << error.text << " at " << error.offset;
    }

    size_t count(ucs_trace_kind_t kind)
    {
        size_t result = 0;

        for (size_t i = 0; i < m_trace.count; ++i) {
            result += (m_trace.events[i].kind == kind);
        }
        return result;
    }

    char        m_path[32];
    tool_trace_t m_trace = {};
};

TEST_F(test_trace_record, what_was_done_is_in_the_file)
{
    start();
    use(1);
    use(2, 6);
    release(2);
    uct_helper_trace_unmap(0x5000, 4096);
    release(1);
    release(7); /* not the cache's */
    uct_helper_trace_stop();

    read();
    ASSERT_EQ(5u, m_trace.count);
    EXPECT_EQ((uint32_t)getpid(), m_trace.header.pid);
    EXPECT_EQ((uint32_t)sysconf(_SC_PAGESIZE), m_trace.header.page_size);
    EXPECT_EQ(UCS_TRACE_USE, m_trace.events[0].kind);
    EXPECT_EQ(0x200000u, m_trace.events[0].address);
    EXPECT_EQ(3u, m_trace.events[0].access);
    EXPECT_EQ(UCS_TRACE_RELEASE, m_trace.events[2].kind);
    EXPECT_EQ(0x300000u, m_trace.events[2].address);
    EXPECT_EQ(6u, m_trace.events[2].signature);
    EXPECT_EQ(UCS_TRACE_UNMAP, m_trace.events[3].kind);
    EXPECT_EQ(0x5000u, m_trace.events[3].address);
    EXPECT_EQ(0x200000u, m_trace.events[4].address);
    EXPECT_LE(m_trace.events[0].time_ns, m_trace.events[4].time_ns);
}

/* What is no file is refused in one line, and neither waited for nor opened:
 * the reader of a pipe is not ended, and a file that was there stays as it was
 * */
TEST_F(test_trace_record, only_a_file_is_written)
{
    const std::string dir  = std::string(m_path) + ".d";
    const std::string pipe = dir + "/pipe", dangling = dir + "/dangling";
    const std::string allowed = "allowed: a regular file";

    ASSERT_EQ(0, mkdir(dir.c_str(), 0700));
    ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
    ASSERT_EQ(0, symlink((dir + "/none").c_str(), dangling.c_str()));
    int fd               = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    struct pollfd poller = {fd, POLLIN, 0};

    alarm(30);
    for (const std::string &path : {pipe, dir, dangling, dir + "/no/x",
                                    std::string("/dev/full"),
                                    std::string("/dev/stdout")}) {
        log_capture log;
        EXPECT_NE(UCS_OK, uct_helper_trace_start(path.c_str())) << path;
        ASSERT_EQ(1u, log.lines().size()) << path;
        const std::string line = log.lines()[0];
        EXPECT_NE(std::string::npos, line.find("UCX_MD_HELPER_TRACE: '" + path))
                << line;
        EXPECT_NE(std::string::npos, line.find(allowed)) << line;
    }
    alarm(0);
    EXPECT_EQ(0, poll(&poller, 1, 0)) << poller.revents;
    EXPECT_NE(0, access((dir + "/none").c_str(), F_OK));
    close(fd);
    unlink(pipe.c_str());
    unlink(dangling.c_str());
    rmdir(dir.c_str());
}

/* So a process that is killed leaves what it did until then */
TEST_F(test_trace_record, the_file_is_whole_at_any_time)
{
    start();
    read();
    EXPECT_EQ(0u, m_trace.count);
    for (unsigned i = 1; i <= 100; ++i) {
        use(i);
        release(i);
        uct_helper_trace_sync();
        read();
        ASSERT_EQ(2 * i, m_trace.count);
    }
}

TEST_F(test_trace_record, threads_lose_nothing_below_the_rings_length)
{
    std::vector<std::thread> threads;

    start();
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (unsigned i = 0; i < UCT_HELPER_TRACE_RING / 16; ++i) {
                use(t);
                release(t);
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    uct_helper_trace_stop();
    read();
    EXPECT_EQ(UCT_HELPER_TRACE_RING / 4, count(UCS_TRACE_USE));
    EXPECT_EQ(UCT_HELPER_TRACE_RING / 4, count(UCS_TRACE_RELEASE));
    EXPECT_EQ(0u, count(UCS_TRACE_LOST));
}

TEST_F(test_trace_record, what_does_not_fit_is_counted)
{
    start();
    use(1); /* whose release is lost */
    uct_helper_trace_sync();
    ucs_thread_hold();
    for (unsigned i = 0; i < UCT_HELPER_TRACE_RING; ++i) {
        uct_helper_trace_unmap(0x5000, 4096);
    }
    release(1);
    use(2);
    use(3);
    ucs_thread_release();
    uct_helper_trace_stop();

    read();
    ASSERT_EQ(1u, count(UCS_TRACE_LOST));
    EXPECT_EQ(UCT_HELPER_TRACE_RING, count(UCS_TRACE_UNMAP));
    EXPECT_EQ(1u, count(UCS_TRACE_USE));
    EXPECT_EQ(1u, count(UCS_TRACE_RELEASE)); /* given back by the loss */
    for (size_t i = 0; i < m_trace.count; ++i) {
        if (m_trace.events[i].kind == UCS_TRACE_LOST) {
            EXPECT_EQ(3u, m_trace.events[i].length);
        }
    }
}

/* SIGXFSZ would end the program, which has not written anything */
TEST_F(test_trace_record, limit_of_file_sizes_costs_the_trace_alone)
{
    EXPECT_EQ(0, in_child([&] {
        struct rlimit limit = {10, 10};
        log_capture log;

        /* A sanitizer has lines of its own, for a file perhaps */
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_DFL);
        start();
        uct_helper_trace_stop();
        return int(log.lines().size() != 1);
    }));
}

/* A child without fork handlers, which may share the table of descriptors */
TEST_F(test_trace_record, child_leaves_the_parents_file_open)
{
    log_capture log;

    ASSERT_NO_FATAL_FAILURE(start());
    pid_t pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        uct_helper_trace_forget();
        _exit(0);
    }
    EXPECT_EQ(0, wait_for_child(pid));
    use(1);
    uct_helper_trace_stop();
    read();
    EXPECT_EQ(1u, count(UCS_TRACE_USE));
    EXPECT_EQ(0u, log.lines().size());
}

/* A program that closes descriptors that it does not know has a file of its own
 * under that number soon */
TEST_F(test_trace_record, file_that_took_the_descriptor_is_left_alone)
{
    FILE *own = tmpfile();
    log_capture log;
    struct stat st;

    ASSERT_NE(nullptr, own);
    ASSERT_NO_FATAL_FAILURE(start());
    int fd = descriptor_of(m_path);
    ASSERT_GE(fd, 0);
    /* Not while the recorder is about to write */
    ucs_thread_hold();
    ASSERT_EQ(fd, dup2(fileno(own), fd));
    ucs_thread_release();
    use(1);
    uct_helper_trace_stop();
    ASSERT_EQ(0, fstat(fd, &st)) << "closed";
    EXPECT_EQ(0, st.st_size) << "written";
    ASSERT_EQ(1u, log.lines().size());
    EXPECT_NE(std::string::npos, log.lines()[0].find(m_path));
    close(fd);
    fclose(own);
}

TEST_F(test_trace_record, uses_of_one_handle_end_in_their_order)
{
    ucs_trace_event_t event = {};
    uct_helper_trace_open_h open;

    ASSERT_EQ(UCS_OK, uct_helper_trace_open_create(&open));
    for (unsigned i = 0; i < 3; ++i) {
        event.length = i + 1;
        EXPECT_TRUE(uct_helper_trace_open_add(open, memh(i % 2), &event));
    }
    EXPECT_TRUE(uct_helper_trace_open_take(open, memh(0), &event));
    EXPECT_EQ(1u, event.length);
    EXPECT_TRUE(uct_helper_trace_open_take(open, memh(0), &event));
    EXPECT_EQ(3u, event.length);
    EXPECT_FALSE(uct_helper_trace_open_take(open, memh(0), &event));
    EXPECT_TRUE(uct_helper_trace_open_take_any(open, &event));
    EXPECT_EQ(2u, event.length);
    EXPECT_FALSE(uct_helper_trace_open_take_any(open, &event));
    uct_helper_trace_open_destroy(open);
}
