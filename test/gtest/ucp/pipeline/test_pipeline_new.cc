/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_fixture.h"

/* Messages from and to memory of which none or some is used again */
class test_pipeline_new : public test_pipeline {
protected:
    void SetUp() override
    {
        PIPELINE_TEST_NEEDS_UCM();
        start(UCX_PIPELINE_MODE_CACHE);
    }

    /* Buffers by number; both ends use them */
    void use(unsigned number)
    {
        transfer(&m_memory[number * LENGTH], &m_memory[0], LENGTH);
    }

    void unmap(unsigned number)
    {
        ucp_pipeline_unmapped(world->nodes[0], &m_memory[number * LENGTH],
                              LENGTH);
    }

    size_t kept() const
    {
        return world->pipeline_stats(0).kept;
    }

    /* As many as it takes until new ones are not kept */
    unsigned use_until_dropped()
    {
        unsigned number = 1;
        do {
            use(number);
            unmap(number);
        } while ((kept() > 0) && (++number < NUM / 2));
        return number;
    }

    static const size_t LENGTH = 50000;
    static const unsigned NUM  = 64;

private:
    std::vector<char> m_memory = std::vector<char>(NUM * LENGTH);
};

TEST_F(test_pipeline_new, what_is_unmapped_each_time_is_not_kept_any_more)
{
    /* three in vain are more than a credit of two, then each goes at once */
    EXPECT_EQ(4u, use_until_dropped());
    for (unsigned number = 10; number < 20; ++number) {
        use(number);
        EXPECT_EQ(0u, kept()) << number;
    }
    /* the receiver has one buffer, which comes back */
    EXPECT_GT(world->pipeline_stats(1).kept, 0u);
}

TEST_F(test_pipeline_new, what_never_comes_back_is_not_kept_any_more)
{
    for (unsigned number = 1; number < 10; ++number) {
        use(number);
        EXPECT_EQ(number < 4, kept() > 0) << number;
        /* far longer than the rent of any of it */
        ucp_wire_sim_work(world->sim, 0, 1000000000);
    }
}

TEST_F(test_pipeline_new, what_was_dropped_and_comes_back_is_kept)
{
    use_until_dropped();
    use(40);
    EXPECT_EQ(0u, kept());
    use(40);
    EXPECT_GT(kept(), 0u);
    uint64_t before = world->stats(0).registrations;
    use(40);
    EXPECT_EQ(before, world->stats(0).registrations);
}

TEST_F(test_pipeline_new, what_is_new_is_kept_again_once_others_came_back)
{
    use_until_dropped();
    for (unsigned number = 40; number < 50; ++number) {
        use(number);
        use(number);
    }
    size_t before = kept();
    use(50);
    EXPECT_GE(kept(), before + LENGTH - options.rdma_offset);
}

/* A message has many fragments, and the last ones are as new as the first */
TEST_F(test_pipeline_new, one_long_message_is_one_newcomer)
{
    source.assign(200 * options.fragment, 's');
    target.assign(source.size(), 't');
    transfer();
    uint64_t before = world->stats(0).registrations;
    transfer();
    EXPECT_EQ(before, world->stats(0).registrations);
}
