/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../bench_util.h"

#include <ucs/predict/order/order.h>

#include <stdio.h>

/*
 * What the predictor by order costs the helper: one use learned from, and one
 * forecast, for loops of several lengths and for uses in random order.
 */

#define ORDER_COST_BATCH 32
#define ORDER_COST_USES 200000

typedef struct order_cost {
    double record_ns;
    double forecast_ns;
} order_cost_t;

static uint64_t order_cost_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

/* loop == 0: random */
static int order_cost_run(unsigned loop, unsigned buffers, order_cost_t *cost)
{
    const ucs_predict_order_params_t params = {.max_buffers = 4096,
                                               .max_labels  = 4096};
    ucs_predict_forecast_t forecasts[ORDER_COST_BATCH];
    uint64_t now   = 1000000;
    uint64_t state = 1;
    uint64_t spent[2] = {0, 0};
    ucs_predict_use_t use = {.length = 65536};
    const ucs_predict_price_t price = {
        .rent_ns = 1e8, .register_ns = 1e4, .react_ns = 1e4};
    ucs_predict_order_h order;
    uint64_t start, middle;
    unsigned i, buffer;

    if (ucs_predict_order_create(&params, &order) != UCS_OK) {
        return -1;
    }
    for (i = 0; i < ORDER_COST_USES; ++i) {
        buffer       = (loop > 0) ? (i % loop) % buffers :
                                    order_cost_random(&state) % buffers;
        use.start_ns = now;
        use.address  = 0x100000 * (buffer + 1);
        use.path     = 1 + (buffer % 7);
        start        = bench_now();
        (void)ucs_predict_order_record(order, &use, now + 1000, &price, 1);
        middle    = bench_now();
        while (ucs_predict_order_changed(order, forecasts,
                                         ORDER_COST_BATCH) > 0) {
        }
        spent[0] += middle - start;
        spent[1] += bench_now() - middle;
        now      += 50000 + order_cost_random(&state) % 100000;
    }
    ucs_predict_order_destroy(order);
    cost->record_ns   = (double)spent[0] / ORDER_COST_USES;
    cost->forecast_ns = (double)spent[1] / ORDER_COST_USES;
    return 0;
}

int main(void)
{
    static const struct {
        const char *name;
        unsigned   loop;
        unsigned   buffers;
    } cases[] = {{"loop of 4 uses", 4, 4},
                 {"loop of 500 uses, 40 buffers", 500, 40},
                 {"loop of 4000 uses, 4000 buffers", 4000, 4000},
                 {"random, 12 buffers", 0, 12},
                 {"random, 4000 buffers", 0, 4000}};
    uint64_t clock_ns = bench_now();
    order_cost_t cost;
    unsigned i;

    for (i = 0; i < 1000; ++i) {
        (void)bench_now();
    }
    printf("reading the clock takes %.0f ns, included once in each\n",
           (bench_now() - clock_ns) / 1000.0);
    printf("%-34s %12s %12s\n", "", "record, ns", "forecast, ns");
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if (order_cost_run(cases[i].loop, cases[i].buffers, &cost) != 0) {
            fprintf(stderr, "order_cost: no memory\n");
            return 1;
        }
        printf("%-34s %12.0f %12.0f\n", cases[i].name, cost.record_ns,
               cost.forecast_ns);
    }
    return 0;
}
