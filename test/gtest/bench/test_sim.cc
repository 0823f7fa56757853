/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <bench/simulator/sim_queue.h>
#include <bench/simulator/sim_world.h>
#include <tools/replay/replay_trace.h>
#include <tools/replay/replay_world.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

/* A pattern of the test's own: the ops of each rank as a list */
static std::vector<std::vector<sim_op_t>> s_program;

static int program_setup(sim_shape_t *shape, unsigned, double)
{
    shape->phases = 1;
    return 0;
}

static int program_op(const sim_shape_t *, uint32_t rank,
                      const sim_cursor_t *at, sim_op_t *op)
{
    if (at->index >= s_program[rank].size()) {
        return 0;
    }
    *op = s_program[rank][at->index];
    return 1;
}

static const sim_pattern_t s_program_pattern = {"program", "any", "A",
                                                program_setup, program_op};

class test_sim : public ::testing::Test {
protected:
    static constexpr uint64_t L = 1500, O = 500, GAP = 200, EAGER = 16384;
    static constexpr double   G = 0.25;

    test_sim()
    {
        m_params.network                         = {L, O, GAP, G, EAGER};
        m_params.process.policy                  = SIM_NO_POLICY;
        m_params.process.max_pinned              = UINT64_MAX;
        m_params.process.register_cost.base_ns   = 20000;
        m_params.process.register_cost.page_ns   = 250;
        m_params.process.deregister_cost.base_ns = 10000;
        m_params.process.deregister_cost.page_ns = 100;
        m_params.process.lateness_ns             = 30000;
        m_params.process.seed                    = 1;
        m_params.iterations                      = 1;
        m_params.flops                           = 1e9;
        s_program.clear();
    }

    sim_result_t run(const sim_shape_t &shape, bool is_sound = true)
    {
        sim_result_t result;

        EXPECT_EQ(UCS_OK, sim_world_run(&shape, &m_params, &result));
        EXPECT_EQ(is_sound, !!sim_result_is_sound(&result));
        EXPECT_EQ(result.stats.uses, result.stats.on_time + result.stats.late +
                                             result.stats.missed +
                                             result.stats.cold);
        return result;
    }

    sim_result_t run_program(bool is_sound = true)
    {
        sim_shape_t shape;

        EXPECT_EQ(0, sim_shape_init(&s_program_pattern, s_program.size(), 'A',
                                    1, SIM_ALLTOALL_AUTO, &shape));
        return run(shape, is_sound);
    }

    static sim_shape_t shape_of(const char *name, uint32_t ranks,
                                char letter = 'A',
                                sim_alltoall_t how = SIM_ALLTOALL_AUTO)
    {
        sim_shape_t shape;

        EXPECT_EQ(0, sim_shape_init(sim_pattern_find(name, strlen(name)),
                                    ranks, letter, 1, how, &shape)) << name;
        return shape;
    }

    static sim_op_t message(sim_op_kind_t kind, uint32_t peer, uint64_t bytes,
                            uint32_t tag = 0, unsigned buffer = 0)
    {
        sim_op_t op = {};

        sim_op_message(&op, kind, peer, tag, 1 + kind, sim_buffer(buffer),
                       bytes);
        return op;
    }

    static sim_op_t wait()
    {
        sim_op_t op = {};

        sim_op_wait(&op);
        return op;
    }

    static sim_op_t compute(double flops)
    {
        sim_op_t op = {};

        sim_op_compute(&op, flops);
        return op;
    }

    /* Ranks exchange blocks with one partner after the other */
    static void alltoall(uint32_t ranks, uint64_t bytes, unsigned times = 1)
    {
        s_program.assign(ranks, {});
        for (uint32_t rank = 0; rank < ranks; ++rank) {
            for (uint32_t i = 0; i < times * (ranks - 1); ++i) {
                uint32_t distance = i % (ranks - 1) + 1;
                uint32_t to       = (rank + distance) % ranks;
                uint32_t from     = (rank + ranks - distance) % ranks;

                s_program[rank].push_back(
                        message(SIM_OP_RECV, from, bytes, 0, 100 + from));
                s_program[rank].push_back(
                        message(SIM_OP_SEND, to, bytes, 0, to));
                s_program[rank].push_back(wait());
            }
        }
    }

    static uint64_t stream(uint64_t bytes)
    {
        return (bytes - 1) * G;
    }

    uint64_t cost(const replay_cost_t &cost, uint64_t bytes) const
    {
        return cost.base_ns + cost.page_ns * ((bytes + 4095) / 4096);
    }

    sim_params_t m_params = {};
};

TEST_F(test_sim, queue_is_sorted_and_stable)
{
    sim_queue_t queue;
    sim_event_t event;
    uint64_t last_time = 0, last_kind = 0;

    sim_queue_init(&queue);
    for (uint64_t i = 0; i < 5000; ++i) {
        sim_queue_push(&queue, i * 7919 % 97, i, nullptr);
    }
    for (uint64_t i = 0; i < 5000; ++i) {
        ASSERT_TRUE(sim_queue_pop(&queue, &event));
        ASSERT_EQ(event.kind * 7919 % 97, event.time_ns);
        ASSERT_TRUE((event.time_ns > last_time) ||
                    ((event.time_ns == last_time) &&
                     ((i == 0) || (event.kind > last_kind))));
        last_time = event.time_ns;
        last_kind = event.kind;
    }
    EXPECT_FALSE(sim_queue_pop(&queue, &event));
    sim_queue_cleanup(&queue);
}

/* LogGP: a round of short messages takes o + (k - 1) G + L + o, and no
 * message leaves before the one before it has, and g */
TEST_F(test_sim, eager_alltoall_takes_what_loggp_says)
{
    for (uint32_t ranks = 1; ranks <= 4; ++ranks) {
        for (uint64_t bytes : {1ul, 1001ul, 16001ul}) {
            alltoall(ranks, bytes);
            EXPECT_EQ((ranks - 1) * (2 * O + L + stream(bytes)),
                      run_program().time_ns);
        }
    }
}

/* The gap counts where the wire is what is waited for: back to back */
TEST_F(test_sim, gap_and_stream_separate_messages)
{
    const uint64_t bytes = 4001, count = 10;

    s_program.assign(2, {});
    for (unsigned i = 0; i < count; ++i) {
        s_program[0].push_back(message(SIM_OP_SEND, 1, bytes));
        s_program[1].push_back(message(SIM_OP_RECV, 0, bytes));
    }
    s_program[1].push_back(wait());
    EXPECT_EQ(O + (count - 1) * (stream(bytes) + GAP) + L + stream(bytes) + O,
              run_program().time_ns);
}

/* To different receivers it is the sender's NIC that is waited for */
TEST_F(test_sim, receivers_share_the_senders_nic)
{
    const uint64_t bytes = 4001;

    s_program.assign(3, {});
    for (uint32_t i = 1; i < 3; ++i) {
        s_program[0].push_back(message(SIM_OP_SEND, i, bytes));
        s_program[i] = {message(SIM_OP_RECV, 0, bytes), wait()};
    }
    EXPECT_EQ(O + stream(bytes) + GAP + L + stream(bytes) + O,
              run_program().time_ns);
}

/* A rank that waits for a packet takes one that was sent later and comes
 * earlier */
TEST_F(test_sim, waiting_ends_with_the_first_packet)
{
    const uint64_t bytes = 1 << 20, later = 1000;

    s_program.assign(3, {});
    s_program[0] = {message(SIM_OP_RECV, 1, 16001),
                    message(SIM_OP_RECV, 2, bytes), wait()};
    s_program[1] = {message(SIM_OP_SEND, 0, 16001)};
    s_program[2] = {compute(later), message(SIM_OP_SEND, 0, bytes), wait()};
    EXPECT_EQ(later + 4 * O + 4 * L + stream(bytes), run_program().time_ns);
}

/* The receiver's NIC takes one message after the other */
TEST_F(test_sim, senders_share_the_receivers_nic)
{
    const uint64_t bytes = 4001;

    s_program.assign(4, {});
    for (uint32_t i = 1; i < 4; ++i) {
        s_program[i].push_back(message(SIM_OP_SEND, 0, bytes));
        s_program[0].push_back(message(SIM_OP_RECV, i, bytes));
    }
    s_program[0].push_back(wait());
    EXPECT_EQ(O + L + 3 * stream(bytes) + 2 * GAP + O, run_program().time_ns);
}

/* Ready, get, data, done: four times o and L, and the bytes once */
TEST_F(test_sim, rendezvous_alltoall_takes_what_loggp_says)
{
    for (uint32_t ranks = 1; ranks <= 4; ++ranks) {
        for (uint64_t bytes : {EAGER, 1ul << 20, (1ul << 22) + 1}) {
            alltoall(ranks, bytes);
            EXPECT_EQ((ranks - 1) * (4 * O + 4 * L + stream(bytes)),
                      run_program().time_ns);
        }
    }
}

/* On demand adds both registrations and deregistrations to each round: all are
 * in the way */
TEST_F(test_sim, on_demand_adds_every_registration)
{
    m_params.process.policy = UCS_REGCACHE_POLICY_ON_DEMAND;
    for (uint32_t ranks = 1; ranks <= 4; ++ranks) {
        const uint64_t bytes = 1 << 20, times = 3;

        alltoall(ranks, bytes, times);
        sim_result_t result = run_program();
        uint64_t rounds     = times * (ranks - 1);
        EXPECT_EQ(rounds * (4 * O + 4 * L + stream(bytes) +
                            2 * cost(m_params.process.register_cost, bytes) +
                            2 * cost(m_params.process.deregister_cost, bytes)),
                  result.time_ns);
        EXPECT_EQ(2 * ranks * rounds, result.stats.uses);
        EXPECT_EQ(2 * ranks * (ranks - 1), result.stats.cold);
        EXPECT_EQ(ranks > 1 ? 2 * bytes : 0, result.peak_max_bytes);
    }
}

/* Leave pinned pays the first time only */
TEST_F(test_sim, leave_pinned_registers_once)
{
    const uint64_t bytes = 1 << 20, ranks = 4, times = 5;

    m_params.process.policy = UCS_REGCACHE_POLICY_LEAVE_PINNED;
    alltoall(ranks, bytes, times);
    sim_result_t result = run_program();
    EXPECT_EQ(times * (ranks - 1) * (4 * O + 4 * L + stream(bytes)) +
                      (ranks - 1) * 2 *
                              cost(m_params.process.register_cost, bytes),
              result.time_ns);
    EXPECT_EQ(2 * (ranks - 1) * bytes, result.peak_max_bytes);
}

TEST_F(test_sim, computing_and_reducing_take_their_time)
{
    sim_op_t sync = {};

    sim_op_sync(&sync, 0, 3);
    s_program.assign(3, {sync});
    s_program[1].insert(s_program[1].begin(), compute(7e6));
    /* two rounds for three ranks */
    EXPECT_EQ(7000000 + 2 * (2 * O + L), run_program().time_ns);
}

/* As if each had to register, though all is left pinned; or some of them */
TEST_F(test_sim, uses_are_late_by_chance)
{
    const uint64_t bytes = 1 << 20, times = 200;
    const uint64_t late  = cost(m_params.process.register_cost, bytes);

    m_params.process.policy = UCS_REGCACHE_POLICY_LEAVE_PINNED;
    alltoall(2, bytes, times);
    uint64_t time_ns = run_program().time_ns;
    m_params.late    = 1;
    EXPECT_EQ(time_ns + 2 * times * late, run_program().time_ns);
    EXPECT_EQ(4 * times * late, run_program().late_ns);
    m_params.late = 0.1;
    EXPECT_NEAR(0.1 * 4 * times * late, run_program().late_ns, 20 * late);
}

TEST_F(test_sim, deadlock_is_told)
{
    sim_result_t result;

    /* Each waits for the other's message before it sends */
    s_program.assign(3, {});
    for (uint32_t rank = 0; rank < 2; ++rank) {
        s_program[rank] = {message(SIM_OP_RECV, 1 - rank, 1 << 20), wait(),
                           message(SIM_OP_SEND, 1 - rank, 1 << 20), wait()};
    }
    result = run_program(false);
    EXPECT_EQ(2u, result.stuck);
    EXPECT_EQ(0u, result.stuck_rank);
    EXPECT_EQ(2u, result.unmatched);
}

TEST_F(test_sim, message_without_receive_is_told)
{
    s_program.assign(2, {});
    s_program[0].push_back(message(SIM_OP_SEND, 1, 100));
    sim_result_t result = run_program(false);
    EXPECT_EQ(0u, result.stuck);
    EXPECT_EQ(1u, result.unmatched);
}

/* Every pattern: each send has its receive, of the same length */
TEST_F(test_sim, patterns_are_closed)
{
    for (const sim_pattern_t *pattern = sim_patterns; pattern->name != nullptr;
         ++pattern) {
        for (uint32_t ranks : {1u, 4u, 16u, 64u}) {
            sim_shape_t shape = shape_of(pattern->name, ranks);
            std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>, long>
                    open;

            for (uint32_t rank = 0; rank < ranks; ++rank) {
                sim_cursor_t at;
                sim_op_t op;

                sim_cursor_init(&shape, &at);
                while (sim_cursor_next(&shape, rank, 2, &at, &op)) {
                    if (op.kind == SIM_OP_SEND) {
                        ++open[{rank, op.peer, op.tag, op.bytes}];
                    } else if (op.kind == SIM_OP_RECV) {
                        --open[{op.peer, rank, op.tag, op.bytes}];
                    }
                }
            }
            for (auto &each : open) {
                ASSERT_EQ(0, each.second)
                        << pattern->name << " " << ranks << ": "
                        << std::get<0>(each.first) << " to "
                        << std::get<1>(each.first);
            }
            m_params.iterations = 2;
            m_params.noise      = 0.05;
            sim_result_t result = run(shape);
            if (ranks > 1) {
                EXPECT_GT(result.sends, 0u);
            }
        }
    }
}

/* All-to-all by Bruck's algorithm and in the other ways */
TEST_F(test_sim, alltoall_is_closed_for_any_number_of_ranks)
{
    for (uint32_t ranks : {2u, 3u, 5u, 7u, 12u, 100u}) {
        for (sim_alltoall_t how : {SIM_ALLTOALL_AUTO, SIM_ALLTOALL_LINEAR,
                                   SIM_ALLTOALL_PAIRWISE, SIM_ALLTOALL_BRUCK}) {
            run(shape_of("ft", ranks, 'A', how));
            run(shape_of("is", ranks, 'A', how));
        }
    }
}

/* Without noise all ranks of an all-to-all do the same, so delays that are
 * taken from a fourth of them are the right ones */
TEST_F(test_sim, borrowed_delays)
{
    m_params.process.policy = UCS_REGCACHE_POLICY_ON_DEMAND;
    alltoall(16, 1 << 20, 3);
    sim_result_t all = run_program();
    m_params.engines = 4;
    sim_result_t some = run_program();
    EXPECT_EQ(4u, some.engines);
    EXPECT_EQ(all.time_ns, some.time_ns);
    EXPECT_EQ(4 * some.stats.uses, all.stats.uses);
    EXPECT_EQ(2 * 3 * some.stats.uses, some.borrowed); /* begins and ends */
}

/*
 * The rank as its own helper
 */

TEST_F(test_sim, a_rank_that_waits_is_its_own_helper)
{
    /* One computes and then sends; the other posts, and waits for it */
    s_program.assign(2, {});
    s_program[0] = {compute(1e6), message(SIM_OP_SEND, 1, 1 << 20), wait()};
    s_program[1] = {message(SIM_OP_RECV, 0, 1 << 20), wait()};
    m_params.iterations     = 30;
    m_params.process.policy = UCS_REGCACHE_POLICY_PREDICT;

    sim_result_t thread = run_program();
    EXPECT_EQ(0u, thread.idle_steps);
    EXPECT_EQ(0u, thread.stats.announced);

    m_params.helper              = SIM_HELPER_IDLE;
    sim_result_t idle            = run_program();
    EXPECT_GT(idle.idle_steps, 30u);
    EXPECT_EQ(thread.stats.uses, idle.stats.uses);
    /* Every post but those of the warm-up finds its buffer registered, by a
     * receiver that has nothing else to do */
    EXPECT_EQ(30u, idle.stats.announced);
    EXPECT_GT(idle.stats.announced_on_time, 20u);
}

/*
 * What one rank of a simulated kernel did, replayed as a trace, gives the same
 * figures: the two drive the same process.
 */

struct recording {
    std::vector<ucs_trace_event_t> events;
    uint32_t                       rank;
};

static void record(void *arg, uint32_t rank, uint64_t, int is_end,
                   uint64_t time_ns, uint64_t address, uint64_t bytes,
                   unsigned access, uint64_t signature)
{
    recording *r = static_cast<recording*>(arg);

    if (rank == r->rank) {
        r->events.push_back({time_ns, address, bytes, signature, access,
                             is_end ? UCS_TRACE_RELEASE : UCS_TRACE_USE, 0});
    }
}

TEST_F(test_sim, replay_of_a_rank_agrees)
{
    uint64_t late = 0, missed = 0;

    for (const char *name : {"ft", "cg", "sp", "mg", "amg"}) {
        for (unsigned policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
            recording r         = {};
            tool_trace_t raw     = {};
            sim_shape_t shape   = shape_of(name, strcmp(name, "sp") ? 2 : 4);
            replay_trace_t trace;
            ucs_regcache_stats_t once, stats;

            m_params.iterations     = 40;
            m_params.noise          = 0.05;
            m_params.process.policy = (ucs_regcache_policy_t)policy;
            m_params.engines        = 1; /* the first, the others borrow */
            m_params.on_use         = record;
            m_params.arg            = &r;
            sim_result_t result     = run(shape);

            raw.header.page_size = 4096;
            raw.count            = r.events.size();
            raw.events           = (ucs_trace_event_t*)malloc(
                    (raw.count + 1) * sizeof(*raw.events));
            std::copy(r.events.begin(), r.events.end(), raw.events);
            ASSERT_EQ(0, replay_trace_prepare(&raw, "test", 0, nullptr,
                                              &trace));
            /* As old as the rank's: what room is worth depends on it */
            trace.start_ns = 0;
            ASSERT_EQ(UCS_OK, replay_world_run(&trace, &m_params.process,
                                               nullptr, &once, &stats));
            EXPECT_GT(stats.uses, 0u) << name;
            EXPECT_EQ(result.stats.uses, stats.uses) << name << policy;
            EXPECT_EQ(result.stats.on_time, stats.on_time) << name << policy;
            EXPECT_EQ(result.stats.late, stats.late) << name << policy;
            EXPECT_EQ(result.stats.missed, stats.missed) << name << policy;
            EXPECT_EQ(result.stats.cold, stats.cold) << name << policy;
            EXPECT_EQ(result.stats.wasted, stats.wasted) << name << policy;
            EXPECT_EQ(result.stats.pinned_peak_bytes, stats.pinned_peak_bytes)
                    << name << policy;
            late   += stats.late;
            missed += stats.missed;
            replay_trace_cleanup(&trace);
            tool_trace_cleanup(&raw);
        }
    }
    /* All kinds of use are in it */
    EXPECT_GT(late, 0u);
    EXPECT_GT(missed, 0u);
}
