/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/io/sink.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

class test_sink : public ::testing::Test {
protected:
    void SetUp() override
    {
        char dir[] = "/tmp/test_sink.XXXXXX";

        ASSERT_NE(nullptr, mkdtemp(dir));
        m_dir = dir;
        alarm(30); /* what waits has failed */
    }

    void TearDown() override
    {
        alarm(0);
        for (const auto &path : m_made) {
            remove(path.c_str());
        }
        rmdir(m_dir.c_str());
    }

    std::string at(const char *name)
    {
        m_made.push_back(m_dir + "/" + name);
        return m_made.back();
    }

    std::string make_file(const char *name)
    {
        std::string path = at(name);
        FILE *file       = fopen(path.c_str(), "w");

        fputs("what was there", file);
        fclose(file);
        return path;
    }

    std::string make_pipe(const char *name)
    {
        std::string path = at(name);

        EXPECT_EQ(0, mkfifo(path.c_str(), 0600));
        return path;
    }

    void expect_refused(const std::string &path, const char *expected)
    {
        const char *why = "";

        EXPECT_EQ(UCS_SINK_REFUSED, ucs_sink_look(path.c_str(), &why)) << path;
        EXPECT_STREQ(expected, why) << path;
        why = "";
        EXPECT_EQ(-1, ucs_sink_open(path.c_str(), 0600, &why)) << path;
        EXPECT_STREQ(expected, why) << path;
    }

    /* Of what stands at the path for a second */
    static void expect_files_only(const std::string &path)
    {
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        unsigned files = 0, refused = 0;
        const char *why;
        struct stat st;

        while (!HasFailure() && (std::chrono::steady_clock::now() < end)) {
            int fd = ucs_sink_open(path.c_str(), 0600, &why);
            if (fd < 0) {
                ++refused;
                continue;
            }
            EXPECT_EQ(0, fstat(fd, &st));
            EXPECT_TRUE(S_ISREG(st.st_mode));
            close(fd);
            ++files;
        }
        EXPECT_GT(files, 0u);
        EXPECT_GT(refused, 0u);
    }

    /* @return A reader of the pipe, -1 if it is the file at this moment */
    static int open_reader(const char *path)
    {
        int fd = open(path, O_RDONLY | O_NONBLOCK);
        struct stat st;

        if ((fd >= 0) && (fstat(fd, &st) == 0) && !S_ISFIFO(st.st_mode)) {
            close(fd);
            fd = -1;
        }
        return fd;
    }

    std::string              m_dir;
    std::vector<std::string> m_made;
};

TEST_F(test_sink, what_is_no_file_is_refused)
{
    std::string pipe = make_pipe("pipe"), link = at("link");
    std::string nothing = at("nothing"), sock = at("socket");
    struct sockaddr_un address = {};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, sock.c_str());
    ASSERT_EQ(0, bind(fd, (struct sockaddr*)&address, sizeof(address)));
    ASSERT_EQ(0, symlink(pipe.c_str(), link.c_str()));
    ASSERT_EQ(0, symlink((m_dir + "/none").c_str(), nothing.c_str()));

    expect_refused(pipe, "it is a pipe");
    expect_refused(link, "it is a pipe");
    expect_refused(m_dir, "it is a folder");
    expect_refused(sock, "it is a socket");
    expect_refused(nothing, "it is a link to nothing");
    for (const char *device : {"/dev/full", "/dev/zero", "/dev/ptmx"}) {
        if (access(device, F_OK) == 0) {
            expect_refused(device, "it is a device");
        }
    }
    EXPECT_NE(0, access((m_dir + "/none").c_str(), F_OK));
    close(fd);
}

TEST_F(test_sink, streams_are_not_opened)
{
    for (const char *path : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
        EXPECT_EQ(STDOUT_FILENO, ucs_sink_stream(path)) << path;
        expect_refused(path, "it is a stream of the job's own");
    }
    EXPECT_EQ(STDERR_FILENO, ucs_sink_stream("/dev/stderr"));
    for (const char *path : {"/dev/null", "stderr", "/dev/fd/11", ""}) {
        EXPECT_EQ(0, ucs_sink_stream(path)) << path;
    }
}

TEST_F(test_sink, files_are_emptied_or_made)
{
    std::string file = make_file("file"), fresh = at("fresh"), link = at("l");
    const char *why = nullptr;
    struct stat st;

    ASSERT_EQ(0, symlink(file.c_str(), link.c_str()));
    for (const std::string &path : {file, fresh, link}) {
        EXPECT_EQ(UCS_SINK_FILE, ucs_sink_look(path.c_str(), &why));
        int fd = ucs_sink_open(path.c_str(), 0600, &why);
        ASSERT_GE(fd, 0) << path << ": " << why;
        EXPECT_EQ(0, fstat(fd, &st));
        EXPECT_EQ(0, st.st_size);
        EXPECT_EQ(1, pwrite(fd, "x", 1, 0));
        EXPECT_NE(0, fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
    }
    EXPECT_EQ(UCS_SINK_NULL, ucs_sink_look("/dev/null", &why));
    int fd = ucs_sink_open("/dev/null", 0600, &why);
    EXPECT_EQ(1, pwrite(fd, "x", 1, 0));
    close(fd);

    EXPECT_EQ(-1, ucs_sink_open((m_dir + "/none/x").c_str(), 0600, &why));
    EXPECT_STREQ(strerror(ENOENT), why);
}

/* Between the look and the opening something else may get there */
TEST_F(test_sink, what_was_opened_counts)
{
    std::string file = make_file("file"), pipe = make_pipe("pipe");
    std::atomic<bool> stop(false);
    int reader = -1;

    std::thread swapper([&] {
        while (!stop) {
            renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, pipe.c_str(),
                      RENAME_EXCHANGE);
        }
    });
    /* One that would be waited for, and one that could be opened */
    expect_files_only(file);
    while (reader < 0) {
        reader = open_reader(pipe.c_str());
    }
    expect_files_only(file);
    stop = true;
    swapper.join();
    close(reader);
}

TEST_F(test_sink, a_text_of_a_page_is_one_write)
{
    std::string text(PIPE_BUF, 'x'), longer(3 * PIPE_BUF, 'y');
    char buffer[4 * PIPE_BUF];
    int fds[2];

    ASSERT_EQ(0, pipe2(fds, O_DIRECT)); /* a read gets one write */
    ASSERT_TRUE(ucs_sink_write(fds[1], text.c_str(), text.size()));
    EXPECT_EQ(PIPE_BUF, read(fds[0], buffer, sizeof(buffer)));
    ASSERT_TRUE(ucs_sink_write(fds[1], longer.c_str(), longer.size()));
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(PIPE_BUF, read(fds[0], buffer, sizeof(buffer)));
    }
    close(fds[0]);
    close(fds[1]);
}

TEST_F(test_sink, a_reader_that_stopped_is_not_waited_for)
{
    char zeros[PIPE_BUF] = {};
    int fds[2];

    ASSERT_EQ(0, pipe2(fds, O_NONBLOCK));
    while (write(fds[1], zeros, sizeof(zeros)) > 0) {
    }
    ASSERT_EQ(0, fcntl(fds[1], F_SETFL, 0));
    /* It goes on in the end, so that who waits for it is told from who does not */
    std::promise<void> written;
    std::thread reader([&, done = written.get_future()] {
        if (done.wait_for(std::chrono::seconds(5)) ==
            std::future_status::timeout) {
            EXPECT_LT(0, read(fds[0], zeros, sizeof(zeros)));
        }
    });
    EXPECT_FALSE(ucs_sink_write(fds[1], "text", 4));
    written.set_value();
    reader.join();
    close(fds[0]);
    close(fds[1]);
}

/* As those of a timer of the program's */
TEST_F(test_sink, signals_do_not_cut_a_text)
{
    char bytes[PIPE_BUF] = {};
    pthread_t writer     = pthread_self();
    int fds[2];

    ASSERT_NE(SIG_ERR, signal(SIGUSR1, [](int) {}));
    ASSERT_EQ(0, pipe2(fds, O_NONBLOCK));
    while (write(fds[1], bytes, sizeof(bytes)) > 0) {
    }
    ASSERT_EQ(0, fcntl(fds[1], F_SETFL, 0));
    std::thread reader([&] {
        for (unsigned i = 0; i < 50; ++i) {
            pthread_kill(writer, SIGUSR1);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        while (read(fds[0], bytes, sizeof(bytes)) > 0) {
        }
    });
    EXPECT_TRUE(ucs_sink_write(fds[1], "text", 4));
    reader.join();
    signal(SIGUSR1, SIG_DFL);
    close(fds[0]);
    close(fds[1]);
}

/* A job that did not write itself would not have got the signal */
TEST_F(test_sink, a_reader_that_is_gone_ends_nobody)
{
    sigset_t before, after;
    int fds[2];

    ASSERT_EQ(SIG_DFL, signal(SIGPIPE, SIG_DFL));
    ASSERT_EQ(0, pipe(fds));
    close(fds[0]);
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    EXPECT_FALSE(ucs_sink_write(fds[1], "text", 4));
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
    sigpending(&after);
    EXPECT_FALSE(sigismember(&after, SIGPIPE));
    close(fds[1]);
}
