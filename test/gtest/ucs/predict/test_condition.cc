/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

#include <ucs/predict/condition.h>

namespace {

/* Each term a digit of its own, so that a sum shows which are in it */
const ucs_predict_terms_t TERMS = {
    1,       /* hash_ns */
    10,      /* cache_ns */
    100,     /* insert_ns */
    1000,    /* update_ns */
    10000,   /* deregister_ns */
    100000,  /* register_ns */
    1000000, /* wakeup_ns */
};

TEST(predict_condition, deregister_cost_has_the_paper_s_terms_and_the_wakeup)
{
    EXPECT_EQ(1111100u, ucs_predict_deregister_cost(&TERMS));
}

TEST(predict_condition, register_cost_has_the_paper_s_terms_and_the_wakeup)
{
    EXPECT_EQ(1111111u, ucs_predict_register_cost(&TERMS));
}

TEST(predict_condition, without_wakeup_it_is_the_paper_s)
{
    ucs_predict_terms_t terms = TERMS;

    terms.wakeup_ns = 0;
    EXPECT_EQ(111100u, ucs_predict_deregister_cost(&terms));
    EXPECT_EQ(111111u, ucs_predict_register_cost(&terms));
}

TEST(predict_condition, gap_is_one_item_of_each_queue)
{
    EXPECT_EQ(111111u, ucs_predict_rq_gap(&TERMS));
}

TEST(predict_condition, may_deregister_up_to_and_including_the_deadline)
{
    EXPECT_TRUE(ucs_predict_may_deregister(500, &TERMS, 500 + 1111100));
    EXPECT_TRUE(ucs_predict_may_deregister(500, &TERMS, 500 + 1111101));
    EXPECT_FALSE(ucs_predict_may_deregister(500, &TERMS, 500 + 1111099));
    EXPECT_FALSE(ucs_predict_may_deregister(500, &TERMS, 0));
}

TEST(predict_condition, may_delay_up_to_and_including_the_deadline)
{
    EXPECT_TRUE(ucs_predict_may_delay(500, &TERMS, 500 + 1111111));
    EXPECT_TRUE(ucs_predict_may_delay(500, &TERMS, 500 + 1111112));
    EXPECT_FALSE(ucs_predict_may_delay(500, &TERMS, 500 + 1111110));
    EXPECT_FALSE(ucs_predict_may_delay(500, &TERMS, 0));
}

TEST(predict_condition, no_deadline_always_allows)
{
    EXPECT_TRUE(ucs_predict_may_deregister(0, &TERMS, UINT64_MAX));
    EXPECT_TRUE(ucs_predict_may_deregister(UINT64_MAX, &TERMS, UINT64_MAX));
    EXPECT_TRUE(ucs_predict_may_delay(UINT64_MAX, &TERMS, UINT64_MAX));
}

TEST(predict_condition, a_sum_past_the_end_of_time_is_not_in_time)
{
    EXPECT_FALSE(ucs_predict_may_deregister(UINT64_MAX - 5, &TERMS,
                                            UINT64_MAX - 1));
    EXPECT_FALSE(ucs_predict_may_delay(UINT64_MAX - 5, &TERMS,
                                       UINT64_MAX - 1));
}

TEST(predict_condition, each_term_saturates)
{
    uint64_t ucs_predict_terms_t::*fields[] = {
        &ucs_predict_terms_t::hash_ns,       &ucs_predict_terms_t::cache_ns,
        &ucs_predict_terms_t::insert_ns,     &ucs_predict_terms_t::update_ns,
        &ucs_predict_terms_t::deregister_ns, &ucs_predict_terms_t::register_ns,
        &ucs_predict_terms_t::wakeup_ns,
    };

    for (auto field : fields) {
        ucs_predict_terms_t terms = TERMS;

        terms.*field = UINT64_MAX;
        EXPECT_EQ(UINT64_MAX, ucs_predict_register_cost(&terms));
    }
}

} // namespace
