/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef ORDER_FIXTURE_H_
#define ORDER_FIXTURE_H_

#include <test/inside/predict_inside.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

static constexpr uint64_t US = 1000;
static constexpr uint64_t MS = 1000000;

/** A predictor, and a clock that moves with the uses. */
class predict_order : public ::testing::Test {
protected:
    static constexpr size_t LENGTH = 65536;

    void SetUp() override
    {
        open();
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucs_predict_order_is_valid(order));
        ucs_predict_order_destroy(order);
    }

    void open()
    {
        ucs_predict_order_destroy(order);
        order = nullptr;
        ASSERT_EQ(UCS_OK, ucs_predict_order_create(&params, &order));
    }

    ucs_predict_ref_t record(uint64_t start, uintptr_t address,
                             uint64_t end = 0, uint64_t path = 0,
                             int is_ready = 1, size_t length = LENGTH)
    {
        ucs_predict_use_t u = {start, path ? path : address, address, length,
                               0};
        return ucs_predict_order_record(order, &u, end, &price, is_ready);
    }

    /* One use of 100 us, @a gap after the end of the one before */
    ucs_predict_ref_t use(uint64_t gap, uintptr_t address, uint64_t path = 0,
                          int is_ready = 1)
    {
        uint64_t start = now + gap;
        now            = start + 100 * US;
        return record(start, address, now, path, is_ready);
    }

    std::vector<ucs_predict_forecast_t> changed()
    {
        std::vector<ucs_predict_forecast_t> all, some(3);
        unsigned count;
        while ((count = ucs_predict_order_changed(order, some.data(),
                                                  some.size())) > 0) {
            all.insert(all.end(), some.begin(), some.begin() + count);
        }
        return all;
    }

    ucs_predict_ref_t find(uintptr_t address, size_t length = LENGTH)
    {
        return ucs_predict_order_find(order, address, length);
    }

    int plan(uintptr_t address)
    {
        return ucs_predict_order_plan(order, find(address));
    }

    ucs_predict_forecast_t forecast(uintptr_t address, size_t length = LENGTH)
    {
        ucs_predict_forecast_t f = {};
        EXPECT_TRUE(ucs_predict_order_forecast(order, find(address, length), &f));
        return f;
    }

    bool is_known(uintptr_t address, size_t length = LENGTH)
    {
        ucs_predict_forecast_t f;
        return ucs_predict_order_forecast(order, find(address, length), &f);
    }

    bool is_rented(uintptr_t address)
    {
        ucs_predict_forecast_t f = forecast(address);
        return !f.is_known && (f.due_ns == 0) &&
               (f.hold_ns == uint64_t(price.rent_ns));
    }

    ucs_predict_order_params_t params = {4096, 4096, 0, nullptr};
    ucs_predict_price_t price = {50.0 * MS, 100.0 * US, 50.0 * US, 50.0 * US,
                                 0,         0.02, 0, 0, 0};
    ucs_predict_order_h order = nullptr;
    uint64_t now              = 1000 * MS;
};

#endif
