/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

extern "C" {
#include <bench/pace/paced_codes.h>
}

class test_paced : public ::testing::Test {
protected:
    static bool shape_of(const paced_code_t *code, char letter, unsigned ranks,
                         sim_shape_t *shape)
    {
        const paced_size_t *size;

        return paced_code_shape(code, letter, ranks, shape, &size) == 0;
    }
};

/* What arrives is told from another message, an earlier one, and a part */
TEST_F(test_paced, a_stamp_is_of_one_message)
{
    std::vector<uint64_t> data(512);
    uint64_t stamp = paced_stamp(0, 1, 2, 3);
    void *message  = data.data();
    uint64_t bytes = data.size() * sizeof(uint64_t) - 4; /* ends in a word */

    paced_stamp_put(message, bytes, stamp);
    EXPECT_TRUE(paced_stamp_is(message, bytes, stamp));
    for (uint64_t other : {paced_stamp(1, 0, 2, 3), paced_stamp(0, 1, 1, 3),
                           paced_stamp(0, 1, 2, 2), paced_stamp(0, 2, 2, 3)}) {
        EXPECT_FALSE(paced_stamp_is(message, bytes, other));
    }
    EXPECT_FALSE(paced_stamp_is(message, bytes - 8, stamp));
    data.front() ^= 1;
    EXPECT_FALSE(paced_stamp_is(message, bytes, stamp));
    data.front() ^= 1;
    data.back()  ^= 1;
    EXPECT_FALSE(paced_stamp_is(message, bytes, stamp));
}

/* A buffer that was given back comes again at another address */
TEST_F(test_paced, new_buffers_are_new)
{
    paced_data_t data = {};
    uint64_t brief    = sim_buffer(3);

    paced_data_reach(&data, sim_buffer(0) + 4096, 4096);
    paced_data_reach(&data, sim_buffer(0), 16);
    paced_data_reach(&data, brief, 65536);
    paced_data_brief(&data, brief);
    paced_data_map(&data);

    char *lasting = (char*)paced_data_get(&data, sim_buffer(0));
    lasting[8191] = 1;
    EXPECT_EQ(lasting + 4096, paced_data_get(&data, sim_buffer(0) + 4096));
    EXPECT_EQ(nullptr, data.buffers[3].address);

    void *first = paced_data_get(&data, brief);
    EXPECT_EQ(first, paced_data_get(&data, brief));
    paced_data_unmap(&data, brief);
    void *second = paced_data_get(&data, brief);
#if !defined(__SANITIZE_THREAD__) /* which maps where it likes, there again */
    EXPECT_NE(first, second);
#else
    EXPECT_NE(nullptr, second);
#endif
    paced_data_unmap(&data, brief);
    paced_data_unmap(&data, sim_buffer(0));
    free(data.buffers);
}

/* Every code, of few ranks too: each send has its receive, and what is open at
 * once, call sites and tags are no more than the program has room for */
TEST_F(test_paced, codes_are_closed)
{
    std::map<std::string, unsigned> runs;

    for (const paced_code_t *code = paced_codes; code->name != nullptr;
         ++code) {
        for (unsigned ranks = 2; ranks <= 16; ++ranks) {
            std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>, long>
                    open;
            sim_shape_t shape;

            if (!shape_of(code, 'D', ranks, &shape)) {
                continue;
            }
            ++runs[code->name];
            for (uint32_t rank = 0; rank < ranks; ++rank) {
                unsigned requests = 0;
                sim_cursor_t at;
                sim_op_t op;

                sim_cursor_init(&shape, &at);
                while (sim_cursor_next(&shape, rank, 12, &at, &op)) {
                    if (op.kind == SIM_OP_WAIT) {
                        requests = 0;
                    } else if (op.kind == SIM_OP_SEND) {
                        ++open[{rank, op.peer, op.tag, op.bytes}];
                    } else if (op.kind == SIM_OP_RECV) {
                        --open[{op.peer, rank, op.tag, op.bytes}];
                    } else {
                        continue;
                    }
                    requests += (op.kind != SIM_OP_WAIT);
                    ASSERT_LE(requests, PACED_REQUESTS) << code->name;
                    ASSERT_LT(op.site, PACED_SITES) << code->name;
                    ASSERT_LT(op.tag, PACED_TAGS) << code->name;
                }
            }
            for (auto &each : open) {
                ASSERT_NE(std::get<0>(each.first), std::get<1>(each.first));
                ASSERT_EQ(0, each.second) << code->name << " " << ranks;
            }
        }
    }
    for (auto &each : runs) {
        EXPECT_GE(each.second, 3u) << each.first;
    }
    EXPECT_EQ(12u, runs.size());
}

/* Of phases: what is mapped for a gather is unmapped after it, and no rank is
 * without one in a hundred iterations */
TEST_F(test_paced, a_gather_gives_back)
{
    const paced_code_t *code = paced_code_find("phases");
    sim_shape_t shape;

    ASSERT_TRUE(shape_of(code, 'C', 4, &shape));
    for (uint32_t rank = 0; rank < 4; ++rank) {
        std::set<uint64_t> used, gone;
        sim_cursor_t at;
        sim_op_t op;

        sim_cursor_init(&shape, &at);
        while (sim_cursor_next(&shape, rank, 100, &at, &op)) {
            if ((unsigned)op.kind == PACED_OP_UNMAP) {
                EXPECT_TRUE(gone.insert(op.address).second);
            } else if (op.bytes == shape.bytes[1]) {
                EXPECT_TRUE(used.insert(op.address).second);
            }
        }
        EXPECT_EQ(used, gone);
        EXPECT_GE(used.size(), (rank == 0) ? 15u : 5u);
    }
}

/* A march comes to each piece once a pass, whatever its way */
TEST_F(test_paced, each_walk_comes_to_all)
{
    const paced_code_t *code = paced_code_find("march");

    for (int walk = 0; walk < PACED_WALK_LAST; ++walk) {
        for (uint64_t piece : {64 << 10, 16 << 20}) { /* of 128 MB: also of 8 */
            std::vector<uint64_t> order;
            sim_shape_t shape;
            sim_cursor_t at;
            sim_op_t op;

            paced_codes_set_march(piece, (paced_walk_t)walk);
            ASSERT_TRUE(shape_of(code, 'C', 2, &shape));
            sim_cursor_init(&shape, &at);
            while (sim_cursor_next(&shape, 0, 1, &at, &op)) {
                if ((unsigned)op.kind == PACED_OP_REDUCE) {
                    order.push_back((op.address - sim_buffer(0)) / piece);
                }
            }
            ASSERT_EQ((128u << 20) / piece, order.size());
            const int64_t by[] = {1, -1, 16};
            if (order.size() > 16) {
                EXPECT_EQ(by[walk], (int64_t)(order[1] - order[0]));
            }
            std::set<uint64_t> all(order.begin(), order.end());
            EXPECT_EQ(order.size(), all.size());
            EXPECT_EQ(order.size() - 1, *all.rbegin());
        }
    }
    paced_codes_set_march(0, PACED_WALK_UP);
}

/* A rank of two has the points of one of the class's job, and its messages are
 * of that order */
TEST_F(test_paced, a_rank_has_its_share)
{
    sim_shape_t shape;

    ASSERT_TRUE(shape_of(paced_code_find("ft"), 'C', 2, &shape));
    EXPECT_EQ(512.0 * 512 * 512 / 16, shape.points);
    ASSERT_TRUE(shape_of(paced_code_find("is"), 'D', 4, &shape));
    EXPECT_EQ(0x1p31 / 64, shape.points);
    ASSERT_TRUE(shape_of(paced_code_find("cg"), 'D', 4, &shape));
    EXPECT_EQ(1500000u, shape.bytes[0]);
    /* Of A a run of two has all: of MG what a rank of C has */
    ASSERT_TRUE(shape_of(paced_code_find("mg"), 'A', 2, &shape));
    EXPECT_EQ(512.0 * 512 * 512 / 16, shape.points);
    EXPECT_FALSE(shape_of(paced_code_find("bt"), 'C', 2, &shape));
    EXPECT_FALSE(shape_of(paced_code_find("halo"), 'B', 2, &shape));
}
