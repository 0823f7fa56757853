/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_world.h"

#include <ucp/pipeline/ucx_pipeline.h>
#include <uct/ib/helper_md/quiet_fork.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

/* Real UCP between processes of this machine. Each process is forked before
 * anything of UCX has been touched by it, does its part, and says by its exit
 * status at which step it found something wrong. */

namespace {

constexpr unsigned NUM = 3;

#define STEP(_condition) \
    do { \
        if (!(_condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #_condition); \
            _exit(1); \
        } \
    } while (0)

class process {
public:
    process(unsigned self, int (*pipes)[NUM][2], ucx_pipeline_mode_t mode) :
        m_self(self), m_pipes(pipes)
    {
        ucx_pipeline_options_t options;
        ucx_pipeline_options_init(&options);
        options.mode     = mode;
        options.max_slowdown = 0; /* registering costs next to nothing here */
        options.fragment = 65536;
        STEP(ucx_pipeline_create(self, NUM, &options, &m_pipeline) == UCS_OK);
        const void *address;
        size_t length;
        ucx_pipeline_address(m_pipeline, &address, &length);
        for (unsigned to = 0; to < NUM; ++to) {
            tell(to, &length, sizeof(length));
            tell(to, address, length);
        }
        for (unsigned from = 0; from < NUM; ++from) {
            hear(from, &length, sizeof(length));
            std::vector<char> bytes(length);
            hear(from, bytes.data(), length);
            STEP(ucx_pipeline_connect(m_pipeline, from, bytes.data()) ==
                 UCS_OK);
        }
    }

    void tell(unsigned to, const void *bytes, size_t length)
    {
        STEP(write(m_pipes[m_self][to][1], bytes, length) == (ssize_t)length);
    }

    void hear(unsigned from, void *bytes, size_t length)
    {
        for (size_t got = 0; got < length;) {
            ssize_t ret = read(m_pipes[from][m_self][0], (char*)bytes + got,
                               length - got);
            STEP(ret > 0);
            got += ret;
        }
    }

    /* Everybody to everybody, one message of this length for each pair, for
     * some rounds with the same memory, so that short ones are read at last */
    void exchange(size_t length)
    {
        std::vector<std::vector<char>> in(NUM, std::vector<char>(length));
        std::vector<std::vector<char>> out(NUM, std::vector<char>(length));
        for (unsigned round = 0; round < 6; ++round) {
            std::vector<ucx_pipeline_request_h> reqs(2 * NUM);
            for (unsigned i = 0; i < NUM; ++i) {
                fill(out[i], m_self, i, round);
                STEP(ucx_pipeline_recv(m_pipeline, i, 5, ~0ull, in[i].data(),
                                       length, &reqs[i]) == UCS_OK);
            }
            for (unsigned i = 0; i < NUM; ++i) {
                STEP(ucx_pipeline_send(m_pipeline, i, 5, out[i].data(), length,
                                       &reqs[NUM + i]) == UCS_OK);
            }
            for (auto req : reqs) {
                STEP(ucx_pipeline_wait(req, NULL) == UCS_OK);
                STEP(ucx_pipeline_request_free(req) == UCS_OK);
            }
            for (unsigned i = 0; i < NUM; ++i) {
                std::vector<char> expected(length);
                fill(expected, i, m_self, round);
                STEP(expected == in[i]);
            }
        }
    }

    /* Nobody ends while another may still need its progress: each sends a byte
     * to each and has received one from each */
    void finish(ucx_pipeline_mode_t mode)
    {
        ucx_pipeline_stats_t stats;
        stats.size = sizeof(stats);
        exchange(1);
        ucx_pipeline_get_stats(m_pipeline, &stats);
        STEP(stats.refused == 0);
        STEP((stats.written > 0) == (mode != UCX_PIPELINE_MODE_COPY));
        STEP((stats.reused > 0) == (mode == UCX_PIPELINE_MODE_CACHE));
        STEP((stats.read > 0) == (mode == UCX_PIPELINE_MODE_CACHE));
        STEP((mode == UCX_PIPELINE_MODE_CACHE) || (stats.registered == 0));
        STEP(ucx_pipeline_destroy(m_pipeline) == UCS_OK);
    }

    /* Another thread is in the middle of the list that an unmapping looks
     * through: the child does not have it */
    void fork_meanwhile()
    {
        std::atomic<bool> is_locked(false), is_over(false);
        std::thread other([&] {
            ucp_pipeline_cache_lock(m_pipeline);
            is_locked = true;
            while (!is_over) {
                usleep(1000);
            }
            ucp_pipeline_cache_unlock(m_pipeline);
        });
        char *memory = (char*)mmap(NULL, KEPT, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        while (!is_locked) {
            usleep(1000);
        }
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20); /* or it waits for ever */
            munmap(memory, KEPT);
            _exit(0);
        }
        int status = wait_for_child(pid);
        is_over    = true;
        other.join();
        STEP(status == 0);
        munmap(memory, KEPT);
    }

    void end()
    {
        exchange(1);
        STEP(ucx_pipeline_destroy(m_pipeline) == UCS_OK);
    }

private:
    static constexpr size_t KEPT = 4 << 20;

    static void fill(std::vector<char> &bytes, unsigned from, unsigned to,
                     unsigned round)
    {
        for (size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = (char)(i * 13 + (i >> 9) + from * 5 + to * 7 + round);
        }
    }

    unsigned m_self;
    int (*m_pipes)[NUM][2];
    ucx_pipeline_h m_pipeline;
};

void run_process(unsigned self, int (*pipes)[NUM][2], ucx_pipeline_mode_t mode)
{
    alarm(300); /* a process that hangs ends the test as a failure */
    process me(self, pipes, mode);
    for (size_t length : {0ul, 100ul, 20000ul, 100001ul, 1000003ul}) {
        me.exchange(length);
    }
    me.finish(mode);
    _exit(0);
}

void run_fork(unsigned self, int (*pipes)[NUM][2], ucx_pipeline_mode_t mode)
{
    alarm(300);
    process me(self, pipes, mode);
    me.fork_meanwhile();
    me.end();
    _exit(0);
}

class test_pipeline_ucp :
    public ::testing::TestWithParam<ucx_pipeline_mode_t> {
protected:
    void run(void (*part)(unsigned, int (*)[NUM][2], ucx_pipeline_mode_t),
             ucx_pipeline_mode_t mode);
};

class test_pipeline_ucp_cache : public test_pipeline_ucp {
};

} // namespace

void test_pipeline_ucp::run(void (*part)(unsigned, int (*)[NUM][2],
                                         ucx_pipeline_mode_t),
                            ucx_pipeline_mode_t mode)
{
    PIPELINE_TEST_NEEDS_UCM();
    int pipes[NUM][NUM][2];
    std::vector<pid_t> pids;

    for (auto &from : pipes) {
        for (auto &to : from) {
            ASSERT_EQ(0, pipe(to));
        }
    }
    for (unsigned i = 0; i < NUM; ++i) {
        pid_t pid = fork();
        if (pid == 0) {
            setenv("UCX_TLS", "posix,sysv,cma,self", 1);
            part(i, pipes, mode);
        }
        pids.push_back(pid);
    }
    for (auto &from : pipes) {
        for (auto &to : from) {
            close(to[0]);
            close(to[1]);
        }
    }
    for (pid_t pid : pids) {
        EXPECT_EQ(0, wait_for_child(pid));
    }
}

TEST_P(test_pipeline_ucp, everybody_to_everybody)
{
    run(run_process, GetParam());
}

TEST_P(test_pipeline_ucp_cache, a_child_unmaps_though_a_lock_was_held)
{
    run(run_fork, GetParam());
}

INSTANTIATE_TEST_SUITE_P(modes, test_pipeline_ucp_cache,
                         ::testing::Values(UCX_PIPELINE_MODE_CACHE));
INSTANTIATE_TEST_SUITE_P(modes, test_pipeline_ucp,
                         ::testing::Values(UCX_PIPELINE_MODE_PIPELINE,
                                           UCX_PIPELINE_MODE_CACHE,
                                           UCX_PIPELINE_MODE_COPY));
