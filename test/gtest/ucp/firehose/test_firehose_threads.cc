/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_world.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

/* A node of the virtual network that several threads may use: those of all
 * nodes take turns */
struct shared_wire {
    ucp_wire_t super;
    ucp_wire_t *below;
    std::recursive_mutex *turn;

    static shared_wire *of(ucp_wire_t *wire)
    {
        return reinterpret_cast<shared_wire *>(wire);
    }
};

template<auto Member, typename... Args>
static auto in_turn(ucp_wire_t *wire, Args... args)
{
    auto self = shared_wire::of(wire);
    std::lock_guard<std::recursive_mutex> guard(*self->turn);

    self->below->handlers = self->super.handlers;
    return (self->below->ops->*Member)(self->below, args...);
}

static void end_shared(ucp_wire_t *wire)
{
    auto self = shared_wire::of(wire);

    ucp_wire_destroy(self->below);
    delete self;
}

static const ucp_wire_ops_t shared_ops = {
    in_turn<&ucp_wire_ops_t::am_send>,    in_turn<&ucp_wire_ops_t::mem_reg>,
    in_turn<&ucp_wire_ops_t::mem_dereg>,  in_turn<&ucp_wire_ops_t::mem_pack>,
    in_turn<&ucp_wire_ops_t::key_unpack>, in_turn<&ucp_wire_ops_t::key_release>,
    in_turn<&ucp_wire_ops_t::move>,       in_turn<&ucp_wire_ops_t::flush>,
    in_turn<&ucp_wire_ops_t::progress>,   in_turn<&ucp_wire_ops_t::time>,
    end_shared
};

class test_firehose_threads : public ::testing::Test {
protected:
    static constexpr size_t PAGE  = 4096;
    static constexpr size_t ARENA = 32 * PAGE;

    void open(unsigned count, unsigned flags)
    {
        firehose_world::options opts;

        opts.nodes = count;
        opts.arena = ARENA / PAGE;
        opts.flags = flags;
        opts.wrap  = [this](ucp_wire_t *below) {
            auto wire       = new shared_wire{*below, below, &turn};
            wire->super.ops = &shared_ops;
            return &wire->super;
        };
        world.reset(new firehose_world(opts));
    }

    unsigned advance()
    {
        unsigned count = 0;
        int node;

        {
            std::lock_guard<std::recursive_mutex> guard(turn);
            node = ucp_wire_sim_next(world->sim);
        }
        if (node >= 0) {
            return 1 + ucx_firehose_progress(world->nodes[node]);
        }
        for (auto one : world->nodes) {
            count += ucx_firehose_progress(one);
        }
        return count;
    }

    void start_driver()
    {
        driver = std::thread([this] {
            while (!stops) {
                if (advance() == 0) {
                    std::this_thread::yield();
                }
            }
        });
    }

    void stop_driver()
    {
        stops = true;
        driver.join();
        stops = false;
    }

    static void done(void *arg, ucs_status_t status)
    {
        static_cast<std::atomic<int> *>(arg)->store(status);
    }

    ucs_status_t move(bool is_put, unsigned from, unsigned to, char *local,
                      char *remote, size_t length)
    {
        std::atomic<int> ended(UCS_INPROGRESS);
        auto func = is_put ? reinterpret_cast<decltype(&ucx_firehose_get_nb)>(
                                     ucx_firehose_put_nb) :
                             ucx_firehose_get_nb;
        ucs_status_t status;

        status = func(world->nodes[from], to, local,
                      reinterpret_cast<uint64_t>(remote), length, done, &ended);
        while ((status == UCS_INPROGRESS) && (ended == UCS_INPROGRESS)) {
            std::this_thread::yield();
        }
        return (status == UCS_INPROGRESS) ?
                       static_cast<ucs_status_t>(ended.load()) :
                       status;
    }

    ucx_firehose_attr_t attr(unsigned node)
    {
        return world->attr(node);
    }

    std::recursive_mutex turn;
    std::unique_ptr<firehose_world> world;
    std::thread driver;
    std::atomic<bool> stops{false};
};

/* Each thread has pages of its own at each peer; meanwhile memory is taken back
 * by two more */
TEST_F(test_firehose_threads, several_use_one_instance)
{
    static constexpr unsigned THREADS = 4, ROUNDS = 400;
    std::vector<std::thread> threads;
    std::atomic<unsigned> running(THREADS);

    open(3, UCX_FIREHOSE_FLAG_STRICT);
    start_driver();
    for (unsigned thread = 0; thread < THREADS; ++thread) {
        threads.emplace_back([this, thread, &running] {
            std::mt19937 random(thread);
            char out[64], in[64];

            for (unsigned round = 0; round < ROUNDS; ++round) {
                unsigned to = 1 + random() % 2;
                char *at    = world->arenas[to] +
                           (thread * 8 + random() % 8) * PAGE +
                           random() % (PAGE - sizeof(out));

                memset(out, random(), sizeof(out));
                memset(in, ~out[0], sizeof(in));
                EXPECT_EQ(UCS_OK, move(true, 0, to, out, at, sizeof(out)));
                EXPECT_EQ(UCS_OK, ucx_firehose_flush(world->nodes[0]));
                EXPECT_EQ(UCS_OK, move(false, 0, to, in, at, sizeof(in)));
                EXPECT_EQ(0, memcmp(in, out, sizeof(in)));
            }
            --running;
        });
    }
    for (unsigned node = 1; node < 3; ++node) {
        threads.emplace_back([this, node, &running] {
            std::mt19937 random(node);

            while (running > 0) {
                auto at = reinterpret_cast<uint64_t>(world->arenas[node] +
                                                     random() % 32 * PAGE);

                ucp_firehose_unmapped(world->nodes[node], at, at + PAGE);
                ucp_firehose_mapped(world->nodes[node], at, at + PAGE);
                EXPECT_EQ(UCS_OK, ucx_firehose_release(
                                          world->nodes[node],
                                          world->arenas[node] +
                                                  random() % 32 * PAGE,
                                          PAGE, UINT64_MAX));
                std::this_thread::yield();
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    stop_driver();
    EXPECT_GT(attr(1).revokes + attr(2).revokes, 0u);
}

TEST_F(test_firehose_threads, an_unmapping_waits_until_peers_have_let_go)
{
    char local[8] = {};

    open(2, UCX_FIREHOSE_FLAG_STRICT);
    start_driver();
    for (unsigned round = 1; round <= 20; ++round) {
        auto start    = reinterpret_cast<uint64_t>(world->arenas[1]);
        auto released = attr(1).unpins;

        ASSERT_EQ(UCS_OK, move(true, 0, 1, local, world->arenas[1], 8));
        ucp_firehose_unmapped(world->nodes[1], start, start + PAGE);
        EXPECT_EQ(released + 1, attr(1).unpins);
        EXPECT_EQ(round, attr(1).unmaps);
        ucp_firehose_mapped(world->nodes[1], start, start + PAGE);
    }
    EXPECT_EQ(0u, attr(1).unmaps_late);
    EXPECT_EQ(20u, attr(0).misses); /* no access was by what was there before */
    stop_driver();
}

TEST_F(test_firehose_threads, who_is_not_strict_goes_on)
{
    char local[8] = {};
    uint64_t start;

    open(2, 0);
    start_driver();
    ASSERT_EQ(UCS_OK, move(true, 0, 1, local, world->arenas[1], 8));
    start = reinterpret_cast<uint64_t>(world->arenas[1]);
    ucp_firehose_unmapped(world->nodes[1], start + PAGE, start + 2 * PAGE);
    EXPECT_EQ(0u, attr(1).unmaps); /* nobody has reached for that */
    ucp_firehose_unmapped(world->nodes[1], start, start + PAGE);
    EXPECT_EQ(1u, attr(1).unmaps);
    EXPECT_EQ(1u, attr(1).unmaps_late);
    stop_driver();
}

TEST_F(test_firehose_threads, an_unmapping_that_nobody_answers_goes_on_late)
{
    auto before   = std::chrono::steady_clock::now();
    char local[8] = {};
    std::atomic<bool> is_over(false);

    open(2, UCX_FIREHOSE_FLAG_STRICT);
    start_driver();
    ASSERT_EQ(UCS_OK, move(true, 0, 1, local, world->arenas[1], 8));
    stop_driver();
    std::thread unmapping([&] {
        auto start = reinterpret_cast<uint64_t>(world->arenas[1]);

        ucp_firehose_unmapped(world->nodes[1], start, start + PAGE);
        is_over = true;
    });
    for (unsigned ms = 0; (ms < 10000) && !is_over; ++ms) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(is_over) << "it waits without end";
    start_driver(); /* so that it ends in any case */
    unmapping.join();
    stop_driver();
    EXPECT_EQ(1u, attr(1).unmaps_late);
    EXPECT_GE(std::chrono::steady_clock::now() - before,
              std::chrono::milliseconds(900));
}

/* The event comes before the memory goes: who is revoked must not have it
 * again in between */
TEST_F(test_firehose_threads, what_is_being_unmapped_is_not_pinned)
{
    std::atomic<int> ended(UCS_INPROGRESS);
    char local[8] = {};
    uint64_t start;

    open(2, UCX_FIREHOSE_FLAG_STRICT);
    start = reinterpret_cast<uint64_t>(world->arenas[1]);
    ucp_firehose_unmapped(world->nodes[1], start, start + PAGE);
    ASSERT_EQ(UCS_INPROGRESS,
              ucx_firehose_put_nb(world->nodes[0], 1, local, start, 8, done,
                                  &ended));
    for (unsigned i = 0; i < 100; ++i) {
        advance();
    }
    EXPECT_EQ(0u, attr(1).moves);
    EXPECT_EQ(UCS_INPROGRESS, ended);
    ucp_firehose_mapped(world->nodes[1], start, start + PAGE);
    for (unsigned i = 0; (i < 100) && (ended == UCS_INPROGRESS); ++i) {
        advance();
    }
    EXPECT_EQ(UCS_OK, ended);

    /* Nothing is mapped anew, as by madvise(): it comes by itself */
    ended = UCS_INPROGRESS;
    ucp_firehose_unmapped(world->nodes[1], start + PAGE, start + 2 * PAGE);
    ASSERT_EQ(UCS_INPROGRESS,
              ucx_firehose_put_nb(world->nodes[0], 1, local, start + PAGE, 8,
                                  done, &ended));
    for (unsigned ms = 0; (ms < 10000) && (ended == UCS_INPROGRESS); ++ms) {
        advance();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(UCS_OK, ended);
}
