/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pin_md_fixture.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <thread>
#include <vector>

class pin_md_threads : public pin_md {
protected:
    /* Range whose first page fault waits until the test lets it through */
    struct gate {
        int    fd;
        void   *address;
        size_t length;

        gate(void *addr, size_t len) : address(addr), length(len)
        {
            struct uffdio_api api      = {};
            struct uffdio_register reg = {};

            fd        = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
            api.api   = UFFD_API;
            reg.range = {(uintptr_t)addr, len};
            reg.mode  = UFFDIO_REGISTER_MODE_MISSING;
            if ((fd >= 0) && ((ioctl(fd, UFFDIO_API, &api) != 0) ||
                              (ioctl(fd, UFFDIO_REGISTER, &reg) != 0))) {
                ::close(fd);
                fd = -1;
            }
        }

        ~gate()
        {
            open();
        }

        /* Until a thread stands at the gate, or has come back: a kernel that
         * pins under the mmap lock cannot wait there and fails instead */
        bool wait(const std::atomic<bool> &is_back)
        {
            struct pollfd poll_fd = {fd, POLLIN, 0};
            struct uffd_msg msg   = {};

            while (read(fd, &msg, sizeof(msg)) != (ssize_t)sizeof(msg)) {
                if (is_back) {
                    return false;
                }
                poll(&poll_fd, 1, 10);
            }
            EXPECT_EQ(UFFD_EVENT_PAGEFAULT, msg.event);
            return true;
        }

        void open()
        {
            struct uffdio_range range = {(uintptr_t)address, length};
            if (fd >= 0) {
                ioctl(fd, UFFDIO_UNREGISTER, &range);
                ::close(fd);
                fd = -1;
            }
        }
    };

    ucs_status_t cycle(void *address, size_t length)
    {
        uct_mem_h memh;
        ucs_status_t status = reg(address, length, &memh,
                                  UCT_MD_MEM_FLAG_HIDE_ERRORS);
        return (status == UCS_OK) ? dereg(memh) : status;
    }
};

/* While one thread is held inside a registration of 'held' bytes, the kernel's
 * mutex of that ring with it, registrations of these sizes go through */
static const struct {
    size_t held, other;
} independent_sizes[] = {
    {64ul << 20, 64ul << 10},
    {64ul << 20, 8ul << 20},
    {64ul << 20, 32ul << 20},
    {8ul << 20, 64ul << 10},
    {8ul << 20, 1ul << 20},
    {64ul << 10, 64ul << 10},
    {64ul << 10, 32ul << 20},
};

TEST_F(pin_md_threads, a_registration_does_not_wait_for_another)
{
    attach();
    for (const auto &sizes : independent_sizes) {
        SCOPED_TRACE(testing::Message() << sizes.held << "/" << sizes.other);
        mapping held(sizes.held), other(sizes.other);
        gate held_gate(held.address, held.length);
        if (held_gate.fd < 0) {
            GTEST_SKIP() << "no userfaultfd for faults in the kernel";
        }

        std::atomic<bool> is_back{false};
        ucs_status_t held_status = UCS_INPROGRESS;
        std::thread thread([&] {
            held_status = cycle(held.address, held.length);
            is_back     = true;
        });
        bool is_held = held_gate.wait(is_back);
        if (is_held) {
            /* Would hang here, were they on one ring */
            EXPECT_EQ(UCS_OK, cycle(other.address, other.length));
        }
        held_gate.open();
        thread.join();
        if (!is_held) {
            GTEST_SKIP() << "this kernel does not pin through userfaultfd";
        }
        EXPECT_EQ(UCS_OK, held_status);
    }
}

TEST_F(pin_md_threads, threads_register_side_by_side)
{
    const size_t sizes[]  = {page_size, 64 * kB, 300 * kB, 2 * MB, 20 * MB};
    const int num_threads = 3, num_cycles = 40;
    std::vector<std::thread> threads;

    attach(num_threads * 5);
    for (int t = 0; t < num_threads; ++t) {
        threads.emplace_back([&] {
            mapping buffer(20 * MB);
            uct_mem_h memh[5];
            for (int i = 0; i < num_cycles; ++i) {
                for (int s = 0; s < 5; ++s) {
                    ASSERT_EQ(UCS_OK, reg(buffer.address, sizes[s], &memh[s]));
                }
                for (int s = 0; s < 5; ++s) {
                    ASSERT_EQ(UCS_OK, dereg(memh[s]));
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }

    EXPECT_EQ(num_threads * num_cycles * 5u, lower.reg_count());
    EXPECT_EQ(0u, lower.live_count());
    EXPECT_EQ(0u, uct_pin_md_pinned_bytes(md()));
    expect_pinned(0);
}
