/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pin_md_fixture.h"

#include <uct/ib/helper_md/quiet_fork.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <sys/syscall.h>
#include <thread>
#include <vector>

class pin_md_verify : public pin_md {
protected:
    void SetUp() override
    {
        pin_md::SetUp();
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
    }

    void attach_verify()
    {
        attach(0, 0, 0, 1);
    }

    uct_mem_h must_reg(void *address, size_t length)
    {
        uct_mem_h memh = nullptr;
        EXPECT_EQ(UCS_OK, reg(address, length, &memh));
        return memh;
    }

    /* Other pages at the same address, by a system call that nobody hooks */
    static void replace(void *address, size_t length)
    {
        long ret = syscall(SYS_mmap, address, length, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0l);
        ASSERT_EQ((long)address, ret);
    }

    int differs(uct_mem_h memh)
    {
        return uct_pin_md_compare(md(), memh, &difference);
    }

    /* Deregister what no longer is what it was registered for */
    void dereg_stale(uct_mem_h memh)
    {
        uct_pin_md_delegate_verify(md());
        EXPECT_EQ(UCS_OK, dereg(memh));
    }

    void replace_descriptors()
    {
        mapping buffer(64 * kB);
        FILE *file = tmpfile();
        char byte  = 0, found[4] = "";
        std::vector<int> replaced;
        bool was_open[64];
        uct_mem_h memh;

        ASSERT_NE(nullptr, file);
        ASSERT_EQ(3, pwrite(fileno(file), "own", 3, 0));
        for (int fd = 0; fd < 64; ++fd) {
            was_open[fd] = fcntl(fd, F_GETFD) >= 0;
        }
        attach_verify();
        memh = must_reg(buffer.at(0), buffer.length);
        for (int fd = 0; fd < 64; ++fd) {
            if (!was_open[fd] && (fcntl(fd, F_GETFD) >= 0)) {
                EXPECT_EQ(fd, dup2(fileno(file), fd));
                replaced.push_back(fd);
            }
        }
        EXPECT_LE(3u, replaced.size());

        EXPECT_EQ(0, differs(memh));
        EXPECT_NE(UCS_OK, uct_pin_md_read(md(), memh, (uintptr_t)buffer.at(0),
                                          &byte, 1));
        EXPECT_NE(UCS_OK, uct_pin_md_write(md(), memh, (uintptr_t)buffer.at(0),
                                           &byte, 1));
        (void)dereg(memh);
        close_md();
        for (int fd : replaced) {
            EXPECT_EQ(0, lseek(fd, 0, SEEK_CUR)) << fd;
            EXPECT_EQ(0, close(fd));
        }
        EXPECT_EQ(3, pread(fileno(file), found, sizeof(found), 0));
        EXPECT_STREQ("own", found);
        fclose(file);
    }

    uct_pin_difference_t difference = {};
    uct_mem_h            m_memh     = nullptr;
    char                 m_byte     = 0;
};

TEST_F(pin_md_verify, device_reads_and_writes_what_is_registered)
{
    mapping buffer(20 * MB);
    std::vector<char> data(300 * kB);
    uct_mem_h memh;

    /* Over the boundary of two slots of the table, and of several chunks */
    const size_t offset = 16 * MB - 100 * kB - 3;
    attach_verify();
    memh = must_reg(buffer.at(0), buffer.length);
    for (size_t i = 0; i < data.size(); ++i) {
        buffer.at(offset)[i] = (char)(i * 31 + i / 251);
    }
    ASSERT_EQ(UCS_OK, uct_pin_md_read(md(), memh, (uintptr_t)buffer.at(offset),
                                      data.data(), data.size()));
    EXPECT_EQ(0, memcmp(data.data(), buffer.at(offset), data.size()));

    for (char &byte : data) {
        byte = ~byte;
    }
    ASSERT_EQ(UCS_OK, uct_pin_md_write(md(), memh,
                                       (uintptr_t)buffer.at(offset),
                                       data.data(), data.size()));
    EXPECT_EQ(0, memcmp(data.data(), buffer.at(offset), data.size()));
    EXPECT_EQ(0, buffer.at(offset)[-1]);
    EXPECT_EQ(0, buffer.at(offset)[data.size()]);
    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_F(pin_md_verify, device_keeps_to_the_registered_pages)
{
    mapping buffer(2 * page_size);
    char byte;
    uct_mem_h memh;

    attach_verify();
    memh = must_reg(buffer.at(page_size), 1);
    const uintptr_t start = (uintptr_t)buffer.at(page_size);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_pin_md_read(md(), memh, start - 1, &byte, 1));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_pin_md_write(md(), memh, start + page_size, &byte, 1));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_pin_md_read(md(), memh, start, &byte, SIZE_MAX));
    EXPECT_EQ(UCS_OK,
              uct_pin_md_read(md(), memh, start + page_size - 1, &byte, 1));
    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_F(pin_md_verify, off_has_no_view_and_compares_nothing)
{
    mapping buffer(page_size);
    char byte;
    uct_mem_h memh;

    attach();
    memh = must_reg(buffer.at(0), page_size);
    replace(buffer.at(0), page_size);
    buffer.at(0)[0] = 1;
    EXPECT_FALSE(differs(memh));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_pin_md_read(md(), memh, (uintptr_t)buffer.at(0), &byte, 1));
    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_F(pin_md_verify, first_difference_is_found_and_told)
{
    mapping buffer(64 * page_size);
    uct_mem_h memh;

    attach_verify();
    memset(buffer.at(0), 0x11, buffer.length);
    memh = must_reg(buffer.at(0), buffer.length);
    EXPECT_FALSE(differs(memh));

    replace(buffer.at(37 * page_size), 2 * page_size);
    memset(buffer.at(37 * page_size), 0x11, 2 * page_size);
    EXPECT_FALSE(differs(memh)) << "equal data prove nothing";
    buffer.at(38 * page_size)[5] = 0x22;
    buffer.at(38 * page_size)[9] = 0x33;
    ASSERT_TRUE(differs(memh));
    EXPECT_EQ((uintptr_t)buffer.at(38 * page_size + 5), difference.address);
    EXPECT_EQ(0x11, difference.seen);
    EXPECT_EQ(0x22, difference.shown);
    dereg_stale(memh);
}

TEST_F(pin_md_verify, pages_that_are_gone_are_no_difference)
{
    mapping buffer(4 * page_size);
    uct_mem_h memh;

    attach_verify();
    memset(buffer.at(0), 1, buffer.length);
    memh = must_reg(buffer.at(0), buffer.length);
    munmap(buffer.at(page_size), page_size);
    EXPECT_FALSE(differs(memh));

    /* But those behind them are looked at */
    replace(buffer.at(3 * page_size), page_size);
    ASSERT_TRUE(differs(memh));
    EXPECT_EQ((uintptr_t)buffer.at(3 * page_size), difference.address);
    dereg_stale(memh);
}

TEST_F(pin_md_verify, bytes_that_change_meanwhile_are_no_difference)
{
    mapping buffer(page_size);
    std::atomic<bool> is_over{false};
    std::atomic<uint64_t> rounds{0};
    uct_mem_h memh;

    attach_verify();
    memh = must_reg(buffer.at(0), page_size);
    std::thread writer([&] {
        while (!is_over) {
            for (size_t i = 0; i < page_size; ++i) {
                ++*(volatile unsigned char*)buffer.at(i);
            }
            ++rounds;
        }
    });
    while (rounds == 0) {
        std::this_thread::yield();
    }
    for (unsigned i = 0; i < 300; ++i) {
        ASSERT_FALSE(differs(memh)) << i;
    }
    is_over = true;
    writer.join();
    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_F(pin_md_verify, own_stack_is_no_difference)
{
    char buffer[64 * kB];
    uct_mem_h memh;

    attach_verify();
    memset(buffer, 1, sizeof(buffer));
    memh = must_reg(buffer, sizeof(buffer));
    EXPECT_FALSE(differs(memh));
    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_F(pin_md_verify, little_of_the_callers_stack_is_used)
{
    const size_t size = 256 * kB;
    mapping stack(size), buffer(64 * kB);
    uintptr_t top               = 0;
    std::function<void()> body  = [&] {
        top = (uintptr_t)__builtin_frame_address(0);
        EXPECT_EQ(0, differs(m_memh));
    };
    const char *lowest = stack.at(0);
    pthread_attr_t attr;
    pthread_t id;

    attach_verify();
    m_memh = must_reg(buffer.at(0), buffer.length);
    pthread_attr_init(&attr);
    ASSERT_EQ(0, pthread_attr_setstack(&attr, stack.at(0), size));
    ASSERT_EQ(0, pthread_create(&id, &attr, [](void *arg) -> void* {
        (*static_cast<std::function<void()>*>(arg))();
        return nullptr;
    }, &body));
    pthread_join(id, nullptr);
    pthread_attr_destroy(&attr);

    while ((lowest < stack.at(size - 1)) && (*lowest == 0)) {
        ++lowest;
    }
    EXPECT_GT(8 * kB, top - (uintptr_t)lowest);
    EXPECT_EQ(UCS_OK, dereg(m_memh));
}

TEST_F(pin_md_verify, deregistration_of_a_stale_region_aborts)
{
    mapping buffer(page_size);
    pid_t pid = fork();

    if (pid == 0) {
        uct_mem_h memh = nullptr;
        uct_pin_config_t config = {0, 0, 0, 1, 0, 0};
        alarm(20);
        signal(SIGABRT, SIG_DFL);
        if ((uct_pin_md_attach(md(), &config) != UCS_OK) ||
            (reg(buffer.at(0), page_size, &memh) != UCS_OK)) {
            _exit(1);
        }
        replace(buffer.at(0), page_size);
        buffer.at(0)[0] = 1;
        dereg(memh);
        _exit(2);
    }
    EXPECT_EQ(-SIGABRT, wait_for_child(pid));
}

/* A cancelled thread ends in the first call that is a cancellation point. Each
 * call of the domain has some, below locks and with half a registration made.
 * */
TEST_F(pin_md_verify, no_call_is_cancelled_half_way)
{
    mapping buffer(4 * page_size);
    const uintptr_t start = (uintptr_t)buffer.at(0);
    const std::vector<std::function<void()>> calls = {
        [&]() { attach_verify(); },
        [&]() { m_memh = must_reg(buffer.at(0), buffer.length); },
        [&]() { EXPECT_FALSE(differs(m_memh)); },
        [&]() { uct_pin_md_read(md(), m_memh, start, &m_byte, 1); },
        [&]() { uct_pin_md_write(md(), m_memh, start, &m_byte, 1); },
        [&]() { EXPECT_EQ(UCS_OK, dereg(m_memh)); },
        [&]() { close_md(); }
    };

    for (const auto &call : calls) {
        bool is_done = false;
        std::thread user([&]() {
            pthread_cancel(pthread_self());
            call();
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
            is_done = true;
        });
        user.join();
        ASSERT_TRUE(is_done) << "call " << &call - &calls[0];
    }
}

/* Files of its own in place of all that the domain has opened. In a child, for
 * what was pinned is let go when the kernel finds the time. */
TEST_F(pin_md_verify, descriptors_of_the_program_are_left_alone)
{
    pid_t pid = fork();

    if (pid == 0) {
        alarm(20);
        replace_descriptors();
        _exit(HasFailure());
    }
    EXPECT_EQ(0, wait_for_child(pid));
}

TEST_F(pin_md_verify, child_of_a_fork_compares_nothing)
{
    mapping buffer(page_size);
    uct_mem_h memh;
    char byte;

    attach_verify();
    memh      = must_reg(buffer.at(0), page_size);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        buffer.at(0)[0] = 1; /* a copy: the parent's page stays */
        _exit(differs(memh) ||
              (uct_pin_md_read(md(), memh, (uintptr_t)buffer.at(0), &byte, 1) != UCS_ERR_UNSUPPORTED));
    }
    EXPECT_EQ(0, wait_for_child(pid));
    EXPECT_FALSE(differs(memh));
    EXPECT_EQ(UCS_OK, dereg(memh));
}
