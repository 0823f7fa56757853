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

TEST(predict_condition, costs_have_the_paper_s_terms_and_the_wakeup)
{
    ucs_predict_terms_t terms = TERMS;

    EXPECT_EQ(1111100u, ucs_predict_deregister_cost(&TERMS));
    EXPECT_EQ(1111111u, ucs_predict_register_cost(&TERMS));
    EXPECT_EQ(111111u, ucs_predict_rq_gap(&TERMS)); /* an item of each queue */

    terms.wakeup_ns = 0;
    EXPECT_EQ(111100u, ucs_predict_deregister_cost(&terms));
    EXPECT_EQ(111111u, ucs_predict_register_cost(&terms));
}

TEST(predict_condition, holds_up_to_and_including_the_deadline)
{
    const struct {
        decltype(&ucs_predict_may_delay) may;
        uint64_t cost;
    } rows[] = {{ucs_predict_may_deregister, 1111100},
                {ucs_predict_may_delay, 1111111}};

    for (auto &row : rows) {
        EXPECT_TRUE(row.may(500, &TERMS, 500 + row.cost));
        EXPECT_TRUE(row.may(500, &TERMS, 501 + row.cost));
        EXPECT_FALSE(row.may(500, &TERMS, 499 + row.cost));
        EXPECT_FALSE(row.may(500, &TERMS, 0));
        /* No deadline, and a sum past the end of time */
        EXPECT_TRUE(row.may(0, &TERMS, UINT64_MAX));
        EXPECT_TRUE(row.may(UINT64_MAX, &TERMS, UINT64_MAX));
        EXPECT_FALSE(row.may(UINT64_MAX - 5, &TERMS, UINT64_MAX - 1));
    }
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
