/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pin_md_fixture.h"

#include <uct/ib/helper_md/quiet_fork.h>
#include <test/refuse_calls.h>

#include <cerrno>
#include <sys/resource.h>

/* In a child: leave with a code that names the line */
#define CHILD_CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            fprintf(stderr, "child: %s:%d: %s\n", __FILE__, __LINE__, #_cond); \
            _exit(1); \
        } \
    } while (0)

class pin_md_process : public pin_md {
protected:
    static pid_t spawn(const std::function<void()> &body)
    {
        pid_t pid = fork();
        if (pid == 0) {
            body();
            _exit(0);
        }
        return pid;
    }

    static void expect_success(pid_t pid)
    {
        EXPECT_EQ(0, wait_for_child(pid));
    }

    /* A child has a VmPin of its own, which begins at 0 */
    bool child_pinned(long expected)
    {
        base_pin = 0;
        return pinned(expected) == expected;
    }

    /* Forbid one system call to this process, with EPERM */
    static void forbid(int number)
    {
        CHILD_CHECK(refuse_calls(&number, 1, EPERM) == 0);
    }

    static int count_rings()
    {
        int count = 0;
        for (int fd = 0; fd < 256; ++fd) {
            char path[64], target[64] = {};
            snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
            if (readlink(path, target, sizeof(target) - 1) > 0) {
                count += strstr(target, "io_uring") != NULL;
            }
        }
        return count;
    }
};

TEST_F(pin_md_process, refused_ring_leaves_the_domain_alone)
{
    for (int number : {SYS_io_uring_setup, SYS_io_uring_register}) {
        expect_success(spawn([&] {
            uct_pin_config_t config = {};
            int rings               = count_rings();
            forbid(number);
            CHILD_CHECK(uct_pin_md_attach(md(), &config) ==
                        UCS_ERR_UNSUPPORTED);
            CHILD_CHECK(uct_abi_md(md())->ops == lower.ops());
            CHILD_CHECK(!uct_pin_md_is_attached(md()));
            CHILD_CHECK(num_warnings == 1);
            CHILD_CHECK(count_rings() == rings);
        }));
    }
}

TEST_F(pin_md_process, memlock_limit_is_no_memory)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "needs root, to become a user without pins";
    }

    expect_success(spawn([&] {
        struct rlimit limit = {MB, MB};
        mapping buffer(2 * MB);
        uct_mem_h memh;

        CHILD_CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
        CHILD_CHECK(setgid(65534) == 0);
        CHILD_CHECK(setuid(65534) == 0);
        attach();
        CHILD_CHECK(attached);
        CHILD_CHECK(reg(buffer.address, 2 * MB, &memh) == UCS_ERR_NO_MEMORY);
        CHILD_CHECK(num_errors == 1);
        CHILD_CHECK(child_pinned(0));
        CHILD_CHECK(lower.live_count() == 0);
        CHILD_CHECK(reg(buffer.address, 64 * kB, &memh) == UCS_OK);
        CHILD_CHECK(child_pinned(64 * kB));
        CHILD_CHECK(dereg(memh) == UCS_OK);
        close_md();
    }));
}

TEST_F(pin_md_process, child_leaves_the_parents_pins_alone)
{
    mapping buffer(64 * MB), other(MB);
    uct_mem_h small, large;

    attach();
    ASSERT_EQ(UCS_OK, reg(buffer.at(0), MB, &small));
    ASSERT_EQ(UCS_OK, reg(buffer.at(MB), 40 * MB, &large));
    expect_success(spawn([&] {
        uct_mem_h memh;
        CHILD_CHECK(uct_pin_md_is_attached(md()));
        CHILD_CHECK(uct_pin_md_pinned_bytes(md()) == 0);
        CHILD_CHECK(reg(other.address, MB, &memh) == UCS_OK);
        CHILD_CHECK(child_pinned(0));
        CHILD_CHECK(dereg(memh) == UCS_OK);
        CHILD_CHECK(dereg(small) == UCS_OK);
        close_md(); /* With 'large' outstanding */
        CHILD_CHECK(lower.close_count() == 1);
        CHILD_CHECK(count_rings() == 0);
    }));

    expect_pinned(41 * MB);
    ASSERT_EQ(UCS_OK, dereg(small));
    expect_pinned(40 * MB);
    ASSERT_EQ(UCS_OK, dereg(large));
    expect_pinned(0);
    ASSERT_EQ(UCS_OK, reg(buffer.at(0), MB, &small));
    EXPECT_EQ(UCS_OK, dereg(small));
}

TEST_F(pin_md_process, closing_unpins_while_a_child_lives)
{
    mapping buffer(MB);
    uct_mem_h memh;
    int pipe_fds[2];

    attach();
    ASSERT_EQ(UCS_OK, reg(buffer.address, MB, &memh));
    ASSERT_EQ(0, pipe(pipe_fds));
    pid_t pid = spawn([&] {
        char byte;
        close(pipe_fds[1]);
        CHILD_CHECK(read(pipe_fds[0], &byte, 1) == 0);
    });
    close(pipe_fds[0]);
    close_md();
    expect_pinned(0);
    close(pipe_fds[1]);
    expect_success(pid);
}

TEST_F(pin_md_process, child_can_attach_its_own)
{
    mapping buffer(MB);

    attach();
    expect_success(spawn([&] {
        uct_pin_config_t config = {};
        uct_mem_h memh;
        fake_md own;
        CHILD_CHECK(uct_pin_md_attach(own.md(), &config) == UCS_OK);
        CHILD_CHECK(own.now()->mem_reg(own.md(), buffer.address, MB, 0,
                                           &memh) == UCS_OK);
        CHILD_CHECK(child_pinned(MB));
        own.now()->close(own.md());
        CHILD_CHECK(child_pinned(0));
    }));
}
