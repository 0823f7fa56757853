/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_world.h"

/*
 * Random programs by seed: each node writes to, then reads from a slice of each
 * other's memory, in pieces of any length, while targets take memory back and
 * registrations and sends fail. The world looks at bound and invariants after
 * each step.
 */
class test_firehose_random : public ::testing::Test {
protected:
    static constexpr size_t PAGE  = firehose_world::PAGE;
    static constexpr size_t SLICE = 12 * PAGE;
    static constexpr size_t EDGE  = 100; /* at most so far from aligned */

    unsigned below(unsigned bound)
    {
        return random() % bound;
    }

    firehose_world::options choose(unsigned seed, bool fails)
    {
        firehose_world::options opts;

        random.seed(seed);
        opts.seed          = seed;
        opts.nodes         = 2 + below(3);
        opts.memory        = (opts.nodes - 1) * (1 + below(12)) *
                             (below(4) == 0 ? 8 : 1);
        opts.victims       = 1 + below(6);
        opts.arena         = opts.nodes * SLICE / PAGE;
        opts.jitter        = below(2) * 20000;
        opts.inline_chance = below(3) * 400000;
        if (fails) {
            opts.reg_fails  = 500;
            opts.send_fails = 500;
        }
        return opts;
    }

    /* Everything of every slice, in pieces, in no order */
    void begin(firehose_world &world, unsigned from, unsigned to, bool is_put)
    {
        auto local = world.locals[from] + to * SLICE + shift_local;
        auto there = world.at(to, from * SLICE + shift_there);
        size_t at = 0, length;

        while (at < SLICE - EDGE) {
            length = 1 + below(below(2) ? 3 * PAGE : 300);
            length = std::min(length, SLICE - EDGE - at);
            auto status =
                    is_put ? ucx_firehose_put_nb(world.nodes[from], to,
                                                 local + at, there + at, length,
                                                 nullptr, nullptr) :
                             ucx_firehose_get_nb(world.nodes[from], to,
                                                 local + at, there + at, length,
                                                 nullptr, nullptr);
            failed |= UCS_STATUS_IS_ERR(status);
            at += length;
            disturb(world);
        }
    }

    void disturb(firehose_world &world)
    {
        unsigned node  = below(world.opts.nodes);
        uint64_t start = world.at(node, below(world.opts.nodes * SLICE));
        unsigned what  = below(100);

        if (what < 3) {
            ucp_firehose_revoke(world.nodes[node], start, start + below(SLICE));
        } else if (what < 6) {
            ucp_firehose_unmapped(world.nodes[node], start,
                                  start + below(SLICE));
        } else if (what < 60) {
            world.step();
        }
    }

    /* @return Whether all went well; else an unknown part has been moved */
    bool flush(firehose_world &world)
    {
        std::vector<firehose_result> results(world.opts.nodes *
                                             world.opts.nodes);

        for (unsigned i = 0; i < results.size(); ++i) {
            unsigned from = i / world.opts.nodes, to = i % world.opts.nodes;

            if (from != to) {
                results[i].begin(ucx_firehose_flush_nb(
                        world.nodes[from], to, firehose_result::done,
                        &results[i]));
            } else {
                results[i].status = UCS_OK;
            }
        }
        world.run();
        for (auto &result : results) {
            EXPECT_NE(UCS_INPROGRESS, result.status) << "it hangs";
            failed |= result.status != UCS_OK;
        }
        return !failed;
    }

    void all(firehose_world &world, bool is_put, bool fails)
    {
        unsigned tries = 0;

        do {
            ASSERT_LT(++tries, fails ? 1000u : 2u);
            failed = false;
            for (unsigned i = 0; i < world.opts.nodes * world.opts.nodes; ++i) {
                if (i / world.opts.nodes != i % world.opts.nodes) {
                    begin(world, i / world.opts.nodes, i % world.opts.nodes,
                          is_put);
                }
            }
        } while (!flush(world) && !HasFatalFailure());
    }

    void compare(firehose_world &world, unsigned from, unsigned to)
    {
        ASSERT_EQ(0, memcmp(world.arenas[to] + from * SLICE + shift_there,
                            world.locals[from] + to * SLICE + shift_local,
                            SLICE - EDGE))
                << from << " to " << to;
    }

    void compare(firehose_world &world)
    {
        for (unsigned i = 0; i < world.opts.nodes * world.opts.nodes; ++i) {
            if (i / world.opts.nodes != i % world.opts.nodes) {
                compare(world, i / world.opts.nodes, i % world.opts.nodes);
            }
        }
    }

    void program(unsigned seed, bool fails)
    {
        firehose_world world(choose(seed, fails));

        shift_local = below(EDGE);
        shift_there = below(EDGE);
        for (unsigned round = 0; round < 2; ++round) {
            for (auto local : world.locals) {
                for (size_t i = 0; i < world.opts.arena * PAGE; ++i) {
                    local[i] = random();
                }
            }
            all(world, true, fails);
            compare(world);
            for (auto local : world.locals) {
                memset(local, 0, world.opts.arena * PAGE);
            }
            all(world, false, fails);
            compare(world);
        }
        for (unsigned node = 0; node < world.opts.nodes; ++node) {
            revokes += world.attr(node).revokes;
            misses  += world.attr(node).misses;
            hits    += world.attr(node).hits;
        }
    }

    std::mt19937 random;
    size_t shift_local = 0, shift_there = 0;
    bool failed = false; /* something, since the last try began */
    uint64_t revokes = 0, misses = 0, hits = 0;
};

TEST_F(test_firehose_random, data_are_right_while_memory_is_taken_back)
{
    for (unsigned seed = 0; (seed < 40) && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE(seed);
        program(seed, false);
    }
    EXPECT_GT(revokes, 100u);
    EXPECT_GT(misses, 1000u);
    EXPECT_GT(hits, 1000u);
}

TEST_F(test_firehose_random, failures_are_told_and_what_is_tried_again_is_right)
{
    for (unsigned seed = 100; (seed < 120) && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE(seed);
        program(seed, true);
    }
    EXPECT_GT(misses, 1000u);
}

/* A node dies in the middle: all that others began ends, and what they began to
 * each other is right */
TEST_F(test_firehose_random, a_death_ends_everything_and_harms_nobody_else)
{
    unsigned dead = 0;

    for (unsigned seed = 200; (seed < 230) && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE(seed);
        auto opts  = choose(seed, false);
        opts.nodes = 3;
        opts.memory = 2 * (1 + below(12));
        opts.arena = opts.nodes * SLICE / PAGE;
        firehose_world world(opts);
        std::vector<firehose_result> results(4);

        for (auto local : world.locals) {
            for (size_t i = 0; i < opts.arena * PAGE; ++i) {
                local[i] = random();
            }
        }
        begin(world, 2, 0, below(2)); /* it holds memory of both */
        begin(world, 2, 1, below(2));
        world.run();
        for (unsigned from : {0u, 1u}) {
            begin(world, from, 2, below(2));
            begin(world, from, !from, true);
        }
        for (unsigned steps = below(100); steps > 0; --steps) {
            world.step();
        }
        ucp_wire_sim_kill(world.sim, 2);
        for (unsigned from : {0u, 1u}) {
            for (unsigned to : {2u, 1u - from}) {
                auto &result = results[2 * from + (to == 2)];
                result.begin(ucx_firehose_flush_nb(world.nodes[from], to,
                                                   firehose_result::done,
                                                   &result));
            }
        }
        world.run();
        for (unsigned from : {0u, 1u}) {
            ASSERT_EQ(UCS_OK, results[2 * from].status);
            /* An error, or all had arrived before */
            ASSERT_NE(UCS_INPROGRESS, results[2 * from + 1].status);
            dead += UCS_STATUS_IS_ERR(results[2 * from + 1].status);
            compare(world, from, !from);
        }
    }
    EXPECT_GT(dead, 10u);
}
