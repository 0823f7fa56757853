/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "order_fixture.h"

#include <ucs/predict/newcomers.h>

#include <vector>

namespace {

/* Renting one for 100 costs a missed use; the account may come to two */
class predict_newcomers : public ::testing::Test {
protected:
    bool add(uint64_t now, unsigned *number = nullptr)
    {
        unsigned ignored;
        return ucs_predict_newcomers_add(&newcomers, now, 100, 2, 1,
                                         number ? number : &ignored);
    }

    void come_back(unsigned number, uint64_t since, uint64_t now)
    {
        ucs_predict_newcomers_return(&newcomers, number, since, now, 1);
    }

    ucs_predict_newcomers_t newcomers = {};
};

TEST_F(predict_newcomers, what_is_out_costs_as_much_as_it_has_been_held)
{
    for (uint64_t at : {0, 0, 0, 0}) {
        EXPECT_TRUE(add(at));
    }
    EXPECT_TRUE(add(50));  /* 4 * 0.5 */
    EXPECT_FALSE(add(51)); /* 4 * 0.51 + 0.01 */
}

TEST_F(predict_newcomers, those_that_never_return_cost_one_each)
{
    add(0);
    add(0);
    EXPECT_TRUE(add(1000)); /* 2 */
    EXPECT_FALSE(add(1001)); /* 2.01 */
    EXPECT_FALSE(add(100000));
}

TEST_F(predict_newcomers, one_that_is_lost_costs_one_at_once)
{
    unsigned first, second;
    add(0, &first);
    ucs_predict_newcomers_lost(&newcomers, first, 1, 1); /* another's number */
    EXPECT_DOUBLE_EQ(0, newcomers.balance);
    ucs_predict_newcomers_lost(&newcomers, first, 0, 1);
    EXPECT_DOUBLE_EQ(1, newcomers.balance);
    ucs_predict_newcomers_lost(&newcomers, first, 0, 1);
    come_back(first, 0, 1);
    EXPECT_DOUBLE_EQ(1, newcomers.balance);
    ucs_predict_newcomers_lost(&newcomers, 0, 0, 1);
    EXPECT_DOUBLE_EQ(1, newcomers.balance);
    add(0, &second);
    EXPECT_EQ(first, second);
}

TEST_F(predict_newcomers, a_return_gives_back_what_renting_has_saved)
{
    unsigned first, second, third;
    add(0, &first);
    add(0, &second);
    add(0, &third);
    come_back(first, 0, 10);
    EXPECT_DOUBLE_EQ(0.1 - 1, newcomers.balance);
    come_back(first, 0, 10); /* no more than once */
    EXPECT_DOUBLE_EQ(0.1 - 1, newcomers.balance);
    /* and too late is as good as never, by whatever comes first */
    come_back(second, 0, 100);
    EXPECT_DOUBLE_EQ(0.1, newcomers.balance);
    add(101);
    EXPECT_DOUBLE_EQ(1.1, newcomers.balance);
    come_back(third, 0, 102);
    EXPECT_DOUBLE_EQ(1.1, newcomers.balance);
    come_back(0, 0, 102);
    EXPECT_DOUBLE_EQ(1.1, newcomers.balance);
}

/* A place that is another's by now is not given back for it */
TEST_F(predict_newcomers, the_number_of_one_that_is_settled)
{
    unsigned first, second;
    add(0, &first);
    add(200, &second);
    EXPECT_EQ(first, second);
    come_back(first, 0, 201);
    EXPECT_DOUBLE_EQ(1, newcomers.balance);
    come_back(second, 200, 200);
    EXPECT_DOUBLE_EQ(0, newcomers.balance);
}

TEST_F(predict_newcomers, more_than_are_followed)
{
    std::vector<unsigned> numbers(UCS_PREDICT_NEWCOMERS);
    unsigned number;
    for (unsigned &n : numbers) {
        add(0, &n);
        EXPECT_GT(n, 0u);
    }
    EXPECT_TRUE(add(0, &number));
    EXPECT_EQ(0u, number);
    come_back(numbers[17], 0, 1);
    EXPECT_TRUE(add(1, &number));
    EXPECT_EQ(numbers[17], number);
}

TEST_F(predict_newcomers, the_account_fades)
{
    unsigned number;
    for (int i = 0; i < 10; ++i) {
        add(200 * i);
    }
    ucs_predict_newcomers_add(&newcomers, 10000, 100, 2, 0.5, &number);
    EXPECT_DOUBLE_EQ(9 * 0.5 + 1, newcomers.balance);
    ucs_predict_newcomers_return(&newcomers, number, 10000, 10000, 0.5);
    EXPECT_DOUBLE_EQ(5.5 * 0.5 - 1, newcomers.balance);
}

/* A new buffer for each message: all but the first few are let go at once */
TEST_F(predict_order, buffers_that_never_come_back_are_dropped)
{
    unsigned rented = 0;
    for (uintptr_t b = 1; b <= 200; ++b) {
        use(5 * MS, b << 16);
        rented += is_rented(b << 16);
    }
    EXPECT_GE(rented, 2u);
    EXPECT_LE(rented, 10u);
    EXPECT_EQ(0u, forecast(200 << 16).due_ns);
    EXPECT_EQ(0u, forecast(200 << 16).hold_ns);
}

/* It finds out that they do come back, though it does not hold them: by what is
 * saved, long before what the others have cost is forgotten */
TEST_F(predict_order, buffers_that_begin_to_come_back_are_rented_again)
{
    uintptr_t b = 1;
    for (; b <= 100; ++b) {
        use(5 * MS, b << 16);
    }
    ASSERT_FALSE(is_rented(100 << 16));
    for (; b <= 150; ++b) {
        use(2 * MS, b << 16);
        use(8 * MS, b << 16); /* within the rent time of 50 ms */
    }
    use(2 * MS, b << 16);
    EXPECT_TRUE(is_rented(b << 16));
}

/* What a program sets up once does not keep it from renting what it iterates
 * over: of 100 buffers that iterate at most a few are dropped at first */
TEST_F(predict_order, buffers_of_a_loop_are_rented)
{
    unsigned dropped = 0;
    for (int iteration = 0; iteration < 3; ++iteration) {
        for (uintptr_t b = 1; b <= 10; ++b) {
            use(100 * US, b << 16);
            dropped += (iteration == 0) && !is_rented(b << 16);
        }
        now += 20 * MS;
    }
    EXPECT_EQ(0u, dropped);
}

} /* namespace */
