/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "newcomers.h"
#include "saturate.h"

#include <ucs/sys/math.h>

#include <assert.h>

static_assert(UCS_PREDICT_NEWCOMERS == 64, "a bit each");

/* @return What one has cost so far, in missed uses: 1 at most */
static double newcomers_rent(const ucs_predict_newcomers_t *newcomers,
                             unsigned i, uint64_t now_ns)
{
    double out_ns = (double)ucs_predict_sat_sub(now_ns,
                                                newcomers->since_ns[i]);

    return ucs_min(out_ns / newcomers->rent_ns[i], 1.0);
}

static void newcomers_settle(ucs_predict_newcomers_t *newcomers, unsigned i,
                             double cost, double decay)
{
    newcomers->balance = newcomers->balance * decay + cost;
    newcomers->out    &= ~(1ull << i);
}

/* What renting has cost so far. Those whose rent time is over count as ones
 * that never return: a later use of them is missed in any case. */
static double newcomers_sum(ucs_predict_newcomers_t *newcomers, uint64_t now_ns,
                            double decay)
{
    double sum = 0;
    double rent;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_NEWCOMERS; ++i) {
        if (!(newcomers->out & (1ull << i))) {
            continue;
        }
        rent = newcomers_rent(newcomers, i, now_ns);
        if (rent < 1) {
            sum += rent;
        } else {
            newcomers_settle(newcomers, i, 1, decay);
        }
    }
    return newcomers->balance + sum;
}

int ucs_predict_newcomers_add(ucs_predict_newcomers_t *newcomers,
                              uint64_t now_ns, double rent_ns, double credit,
                              double decay, unsigned *number_p)
{
    int is_rented = newcomers_sum(newcomers, now_ns, decay) <= credit;
    unsigned i;

    *number_p = 0;
    if (~newcomers->out != 0) {
        i                      = (unsigned)__builtin_ctzll(~newcomers->out);
        newcomers->out        |= 1ull << i;
        newcomers->since_ns[i] = now_ns;
        newcomers->rent_ns[i]  = rent_ns;
        *number_p              = i + 1;
    }
    return is_rented;
}

static int newcomers_is_out(const ucs_predict_newcomers_t *newcomers,
                            unsigned number, uint64_t since_ns)
{
    return (number > 0) && (newcomers->out & (1ull << (number - 1))) &&
           (newcomers->since_ns[number - 1] == since_ns);
}

void ucs_predict_newcomers_return(ucs_predict_newcomers_t *newcomers,
                                  unsigned number, uint64_t since_ns,
                                  uint64_t now_ns, double decay)
{
    unsigned i = number - 1;
    double rent;

    if (!newcomers_is_out(newcomers, number, since_ns)) {
        return;
    }
    rent = newcomers_rent(newcomers, i, now_ns);
    newcomers_settle(newcomers, i, (rent < 1) ? rent - 1 : 1, decay);
}

void ucs_predict_newcomers_lost(ucs_predict_newcomers_t *newcomers,
                                unsigned number, uint64_t since_ns,
                                double decay)
{
    if (newcomers_is_out(newcomers, number, since_ns)) {
        newcomers_settle(newcomers, number - 1, 1, decay);
    }
}
