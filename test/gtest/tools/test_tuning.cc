/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

#include <tools/replay/replay_process.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>

TEST(test_tuning, rows_cover_the_struct)
{
    const replay_tuning_row_t *row;
    std::set<std::string> names;
    size_t offset = 0;

    for (row = replay_tuning_rows; row->name != NULL; ++row) {
        EXPECT_EQ(offset, row->offset) << row->name;
        EXPECT_TRUE(names.insert(row->name).second) << row->name;
        EXPECT_GT(replay_tuning_get(&ucs_regcache_tuning_default, row), 0)
                << row->name;
        EXPECT_GT(strlen(row->why), 0u) << row->name;
        EXPECT_GT(strlen(row->effect), 0u) << row->name;
        offset += 8;
    }
    EXPECT_EQ(sizeof(ucs_regcache_tuning_t), offset);
}

TEST(test_tuning, defaults_of_prediction_are_the_same)
{
    EXPECT_EQ(0, memcmp(&ucs_predict_tuning_default,
                        &ucs_regcache_tuning_default.predict,
                        sizeof(ucs_predict_tuning_default)));
}

TEST(test_tuning, one_value_is_set)
{
    ucs_regcache_tuning_t tuning = ucs_regcache_tuning_default;

    EXPECT_EQ(UCS_OK, replay_tuning_set(&tuning, "lot", 4.5));
    EXPECT_EQ(4u, tuning.lot);
    EXPECT_EQ(UCS_OK, replay_tuning_set(&tuning, "plan_decay", 0.5));
    EXPECT_EQ(0.5, tuning.predict.plan_decay);
    tuning.lot                  = ucs_regcache_tuning_default.lot;
    tuning.predict.plan_decay   = ucs_predict_tuning_default.plan_decay;
    EXPECT_EQ(0, memcmp(&ucs_regcache_tuning_default, &tuning, sizeof(tuning)));
}

TEST(test_tuning, what_makes_no_sense_is_refused)
{
    ucs_regcache_tuning_t tuning = ucs_regcache_tuning_default;

    EXPECT_EQ(UCS_ERR_NO_ELEM, replay_tuning_set(&tuning, "lots", 1));
    for (double value : {0.0, -1.0, 0.5, 1e18, (double)INFINITY, (double)NAN}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  replay_tuning_set(&tuning, "lot", value));
    }
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              replay_tuning_set(&tuning, "soft_weight", 0));
    EXPECT_EQ(0, memcmp(&ucs_regcache_tuning_default, &tuning, sizeof(tuning)));
}
