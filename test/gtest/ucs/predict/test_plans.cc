/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/plans.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace {

/*
 * What a course costs. Holding for 100 costs one missed use, a registration
 * takes 10, the helper hears of an end after 5, and what a deregistration costs the
 * thread that ends a use is 0.04.
 */
class predict_course : public ::testing::Test {
protected:
    double cost(double hold, double due, double gap)
    {
        ucs_predict_course_t course = {hold, due, drops, looks};
        return ucs_predict_course_cost(&course, &price, gap);
    }

    int drops                 = 0;
    double looks              = 0;
    ucs_predict_price_t price = {100, 10, 5, 5, 0, 0.04, 0, 0, 0};
};

/* To hold costs a hundredth of a missed use for each unit of time */
TEST_F(predict_course, dropped_at_once_where_the_helper_comes_later_than_is_worth)
{
    price.late_ns = 3.9;
    EXPECT_FALSE(ucs_predict_price_drops(&price));
    price.late_ns = 4.1;
    EXPECT_TRUE(ucs_predict_price_drops(&price));
}

TEST_F(predict_course, rented)
{
    EXPECT_DOUBLE_EQ(0, cost(100, -1, 0));
    EXPECT_DOUBLE_EQ(0.4, cost(100, -1, 40));
    EXPECT_DOUBLE_EQ(1, cost(100, -1, 100));
    EXPECT_DOUBLE_EQ(1 + 1, cost(100, -1, 101));
    EXPECT_DOUBLE_EQ(1 + 1, cost(100, -1, 1e9));
}

/* It stays until the helper hears of it */
TEST_F(predict_course, dropped)
{
    EXPECT_DOUBLE_EQ(0.03, cost(0, -1, 3));
    EXPECT_DOUBLE_EQ(0.05 + 1, cost(0, -1, 6));
    EXPECT_DOUBLE_EQ(0.05 + 1, cost(0, -1, 1e9));
}

/* It is gone when the use is over */
TEST_F(predict_course, dropped_by_the_thread_that_ends_the_use)
{
    drops = 1;
    EXPECT_TRUE(ucs_predict_price_drops(&price));
    EXPECT_DOUBLE_EQ(0.04 + 1, cost(0, -1, 3));
    EXPECT_DOUBLE_EQ(0.04 + 1, cost(0, -1, 1e9));
    price.late_ns = 4;
    EXPECT_FALSE(ucs_predict_price_drops(&price));
}

TEST_F(predict_course, foretold)
{
    EXPECT_DOUBLE_EQ(0.03, cost(0, 60, 3));
    EXPECT_DOUBLE_EQ(0.05 + 1, cost(0, 60, 40));
    /* nothing has begun: it registers by itself */
    EXPECT_DOUBLE_EQ(0.05 + 1, cost(0, 60, 50));
    /* it waits for half of it */
    EXPECT_DOUBLE_EQ(0.05 + 0.5, cost(0, 60, 55));
    EXPECT_DOUBLE_EQ(0.05 + 0.1, cost(0, 60, 60));
    EXPECT_DOUBLE_EQ(0.05 + 0.5, cost(0, 60, 100));
    EXPECT_DOUBLE_EQ(0.05 + 1.1, cost(0, 60, 160));
    /* in vain: given up after the rent time */
    EXPECT_DOUBLE_EQ(0.05 + 1.1 + 1, cost(0, 60, 161));
    EXPECT_DOUBLE_EQ(0.05 + 1.1 + 1, cost(0, 60, 1e9));
}

TEST_F(predict_course, held_for_a_while_and_foretold)
{
    EXPECT_DOUBLE_EQ(0.3, cost(50, 80, 30));
    EXPECT_DOUBLE_EQ(0.5 + 1, cost(50, 80, 60));
    EXPECT_DOUBLE_EQ(0.5 + 0.5, cost(50, 80, 75));
    EXPECT_DOUBLE_EQ(0.5 + 0.2, cost(50, 80, 90));
}

/* Nobody would deregister what is to be registered again at once */
TEST_F(predict_course, no_time_to_do_without)
{
    EXPECT_DOUBLE_EQ(0.4, cost(0, 12, 40));
    EXPECT_DOUBLE_EQ(1.12, cost(0, 12, 112));
    EXPECT_DOUBLE_EQ(1.12 + 1, cost(0, 12, 113));
    EXPECT_DOUBLE_EQ(0.6, cost(50, 60, 60));
}

/* Half of what the helper does: a deregistration, and a registration as long as a missed
 * use */
TEST_F(predict_course, what_others_wait_for_is_charged)
{
    price.wanted = 0.5;
    EXPECT_DOUBLE_EQ(0.4, cost(100, -1, 40)) << "it does nothing";
    EXPECT_DOUBLE_EQ(0.4, cost(0, 12, 40)) << "likewise";
    EXPECT_DOUBLE_EQ(1 + 0.02 + 1, cost(100, -1, 101));
    EXPECT_DOUBLE_EQ(0.05 + 0.02 + 1, cost(0, 60, 40)) << "too early for it";
    EXPECT_DOUBLE_EQ(0.05 + 0.02 + 0.5 + 0.1, cost(0, 60, 60));
    drops = 1;
    EXPECT_DOUBLE_EQ(0.04 + 1, cost(0, -1, 6)) << "the thread that used it does all";
}

TEST_F(predict_course, looks_are_charged)
{
    looks = 3;
    EXPECT_DOUBLE_EQ(0.05 + 0.1, cost(0, 60, 60));
    price.look = 0.25;
    EXPECT_DOUBLE_EQ(0.05 + 0.1 + 0.75, cost(0, 60, 60));
    EXPECT_DOUBLE_EQ(0.4 + 0.75, cost(100, -1, 40));
}

/* An announcement saves a use of a plan that does not register the buffer, and of any plan
 * that it was not left to */
TEST_F(predict_course, an_announced_use_is_left_to_a_plan_that_is_due)
{
    price.saved = 0.75;
    EXPECT_DOUBLE_EQ(0.05 + 0.25, cost(0, -1, 40));
    EXPECT_DOUBLE_EQ(0.05 + 1, cost(0, 60, 40));
    EXPECT_DOUBLE_EQ(0.05 + 0.5, cost(0, 60, 55));
    EXPECT_DOUBLE_EQ(0.05 + 1.1 + 0.25, cost(0, 60, 161));
    price.saved_late = 0.75;
    EXPECT_DOUBLE_EQ(0.05 + 0.25, cost(0, 60, 40));
    EXPECT_DOUBLE_EQ(0.05 + 0.25, cost(0, 60, 55));
}

/*
 * Judges
 */

class predict_judge : public ::testing::Test {
protected:
    void SetUp() override
    {
        ucs_predict_scores_init(&all);
    }

    /* A gap in which each plan costs @a cost, but @a plan @a special */
    void gap(double cost, int plan, double special, double extra = 0,
             int is_foretold = 1)
    {
        double costs[UCS_PREDICT_PLAN_LAST];
        std::fill(costs, costs + UCS_PREDICT_PLAN_LAST, cost);
        costs[plan] = special;
        ucs_predict_judge_gap(&judge, costs, extra, is_foretold, &tuning,
                              &buffer);
        ucs_predict_scores_gap(&all, costs, is_foretold, &tuning);
    }

    void gaps(unsigned count, int plan, double special)
    {
        for (unsigned i = 0; i < count; ++i) {
            gap(1, plan, special);
        }
    }

    /* All that was judged so far */
    void forget()
    {
        judge  = {};
        buffer = {};
        ucs_predict_scores_init(&all);
    }

    int choice()
    {
        ucs_predict_judge_choose(&judge, &tuning, &buffer, &all);
        return judge.choice;
    }

    ucs_predict_tuning_t tuning = ucs_predict_tuning_default;
    ucs_predict_scores_t all    = {};
    ucs_predict_scores_t buffer = {};
    ucs_predict_judge_t judge   = {};
};

TEST_F(predict_judge, of_which_nothing_is_known_is_rented)
{
    EXPECT_EQ(UCS_PREDICT_PLAN_RENT, choice());
}

TEST_F(predict_judge, the_cheapest_is_followed)
{
    for (int plan = 0; plan < UCS_PREDICT_PLAN_LAST; ++plan) {
        forget();
        gaps(5, plan, 0.1);
        EXPECT_EQ(plan, choice());
    }
}

/* First gaps say of plans that foretell only that there was nothing to go by */
TEST_F(predict_judge, what_nothing_could_foretell_judges_the_others_alone)
{
    for (int is_foretold = 0; is_foretold < 2; ++is_foretold) {
        forget();
        for (int i = 0; i < 20; ++i) {
            gap(1.2, UCS_PREDICT_PLAN_DROP, 1.1, 0, is_foretold);
        }
        EXPECT_EQ(is_foretold ? UCS_PREDICT_PLAN_DROP : UCS_PREDICT_PLAN_KEY,
                  choice());
    }
}

TEST_F(predict_judge, what_was_cheapest_long_ago_is_not)
{
    gaps(100, UCS_PREDICT_PLAN_DROP, 0.1);
    choice();
    for (int i = 0; i < 30; ++i) {
        gap(1, UCS_PREDICT_PLAN_BURST, 0.1);
        choice();
    }
    EXPECT_EQ(UCS_PREDICT_PLAN_BURST, judge.choice);
}

TEST_F(predict_judge, a_new_call_site_goes_by_its_buffer)
{
    gaps(10, UCS_PREDICT_PLAN_DROP, 0.1);
    ucs_predict_scores_init(&all);
    judge = {};
    EXPECT_EQ(UCS_PREDICT_PLAN_DROP, choice());
}

TEST_F(predict_judge, a_new_buffer_goes_by_all)
{
    gaps(10, UCS_PREDICT_PLAN_DROP, 0.1);
    judge  = {};
    buffer = {};
    EXPECT_EQ(UCS_PREDICT_PLAN_DROP, choice());
}

TEST_F(predict_judge, lateness_of_the_helper_is_the_plans)
{
    gaps(5, UCS_PREDICT_PLAN_DROP, 0.1);
    ASSERT_EQ(UCS_PREDICT_PLAN_DROP, choice());
    for (int i = 0; i < 20; ++i) {
        gap(0.5, UCS_PREDICT_PLAN_DROP, 0.1,
            (judge.choice == UCS_PREDICT_PLAN_DROP) ? 1 : 0);
        choice();
    }
    EXPECT_EQ(UCS_PREDICT_PLAN_RENT, judge.choice);
}

/* Past the credit it is rented, however good the plan was, until the allowance
 * of the gaps that were rented has paid */
TEST_F(predict_judge, debt_is_paid_by_renting)
{
    gaps(100, UCS_PREDICT_PLAN_DROP, 0.01);
    ASSERT_EQ(UCS_PREDICT_PLAN_DROP, choice());
    /* debt: 4 - 1.125, and the plan is still the best on average */
    gap(1, UCS_PREDICT_PLAN_DROP, 4);
    unsigned rented = 0;
    while ((rented < 100) && (choice() == UCS_PREDICT_PLAN_RENT)) {
        gap(1, UCS_PREDICT_PLAN_DROP, 0.01);
        ++rented;
    }
    EXPECT_EQ(7u, rented);
    EXPECT_EQ(UCS_PREDICT_PLAN_DROP, judge.choice);
}

/*
 * The floor, which holds whatever the plans are: here, what is random or worst
 * for the one that is followed.
 */
class predict_floor : public predict_judge {
protected:
    static double rented(double gap, const ucs_predict_price_t &price)
    {
        ucs_predict_course_t rent = {price.rent_ns, -1, 0, 0};
        return ucs_predict_course_cost(&rent, &price, gap);
    }

    static double offline(double gap, const ucs_predict_price_t &price)
    {
        return std::min(gap / price.rent_ns, 1.0);
    }

    double followed(double gap, const ucs_predict_price_t &price)
    {
        return ucs_predict_course_cost(&courses[judge.choice], &price, gap);
    }

    void draw(std::mt19937 &random, const ucs_predict_price_t &price)
    {
        std::uniform_real_distribution<double> part(0, 4);
        for (ucs_predict_course_t &course : courses) {
            course.hold_ns = price.rent_ns *
                             ((random() % 2) ? part(random) : 0);
            course.due_ns  = (random() % 2) ? price.rent_ns * part(random) : -1;
        }
        courses[UCS_PREDICT_PLAN_RENT] = {price.rent_ns, -1, 0, 0};
        courses[UCS_PREDICT_PLAN_DROP] = {0, -1,
                                          ucs_predict_price_drops(&price), 0};
    }

    /* The gap that costs most more than renting does */
    double worst(const ucs_predict_price_t &price)
    {
        const ucs_predict_course_t &course = courses[judge.choice];
        double found = 0, most = -1e9;
        for (double at : {course.hold_ns, course.due_ns,
                          course.due_ns - price.register_ns,
                          course.due_ns + price.rent_ns, price.late_ns,
                          price.rent_ns}) {
            for (double gap : {at * 0.999, at * 1.001 + 1}) {
                double more = followed(gap, price) -
                              rented(gap, price) * (1 + tuning.plan_allowance);
                if ((gap > 0) && (more > most)) {
                    most  = more;
                    found = gap;
                }
            }
        }
        return found;
    }

    void run(unsigned seed, bool is_worst)
    {
        ucs_predict_price_t price = {
                1e6, 1e4, 1e3, (seed % 4) * 1e5, 0, (seed % 3) * 0.1,
                (seed % 5) * 0.2, 0, 0};
        std::mt19937 random(seed);
        std::lognormal_distribution<double> tail(0, 2);
        double cost = 0, rent = 0, best = 0, most = 0;

        judge = {};
        for (unsigned i = 0; i < 2000; ++i) {
            double costs[UCS_PREDICT_PLAN_LAST];
            if (i % 50 == 0) {
                draw(random, price);
            }
            choice();
            double gap = is_worst ? worst(price) : price.rent_ns * tail(random);
            for (int plan = 0; plan < UCS_PREDICT_PLAN_LAST; ++plan) {
                costs[plan] = ucs_predict_course_cost(&courses[plan], &price,
                                                      gap);
            }
            cost += costs[judge.choice];
            most  = std::max(most, costs[judge.choice]);
            rent += rented(gap, price);
            best += offline(gap, price);
            ucs_predict_judge_gap(&judge, costs, 0, random() % 8 != 0, &tuning,
                                  &buffer);
            ucs_predict_scores_gap(&all, costs, 1, &tuning);

            double beside = tuning.plan_credit + most + 0.01;
            ASSERT_LE(cost, (1 + tuning.plan_allowance) * rent + beside) << i;
            /* After the rent time the helper deregisters, which others may wait for */
            double twice = (2 + price.wanted * price.drop_work) * best;
            ASSERT_LE(rent, twice + 0.01) << i;
            ASSERT_LE(cost, (1 + tuning.plan_allowance) * twice + beside) << i;
        }
    }

    ucs_predict_course_t courses[UCS_PREDICT_PLAN_LAST];
};

TEST_F(predict_floor, holds_for_random_gaps)
{
    for (unsigned seed = 0; seed < 40; ++seed) {
        run(seed, false);
    }
}

TEST_F(predict_floor, holds_for_the_worst_gaps)
{
    for (unsigned seed = 0; seed < 40; ++seed) {
        run(seed, true);
    }
}

} // namespace
