/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "table_fixture.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace {

/*
 * The rules of callsite.h again, as plainly as possible: a std::map, an
 * eviction that looks at everything, and wide arithmetic instead of care.
 */
class model_t {
public:
    struct context_t {
        bool         has_last = false, spent = false, relearn = false;
        uint64_t     last = 0, period = 0, uses = 0, touched = 0;
        unsigned     confidence = 0;
        ucs_predict_use_t use = {};
        ucs_predict_ref_t ref = {};
    };

    explicit model_t(const ucs_predict_params_t &params) : m_params(params)
    {
    }

    ucs_predict_sig_t record(const ucs_predict_use_t &use)
    {
        ucs_predict_window_t window = {};

        std::copy(m_recent.begin(), m_recent.end(), window.comm);

        ucs_predict_sig_t sig = ucs_predict_signature(use.path, use.address,
                                                      &window,
                                                      m_params.window_length);

        if ((m_contexts.count(sig) == 0) &&
            (m_contexts.size() == m_params.max_entries)) {
            m_contexts.erase(oldest());
            ++m_evictions;
        }

        learn(m_contexts[sig], use);
        m_recent.insert(m_recent.begin(),
                        ucs_predict_comm(use.type, use.address));
        m_recent.resize(std::min<size_t>(m_recent.size(),
                                         UCS_PREDICT_WINDOW_MAX));
        return sig;
    }

    void unused(context_t &context)
    {
        if (context.period == 0) {
            return;
        }

        context.spent = true;
        if (--context.confidence == 0) {
            context.period   = 0;
            context.has_last = context.spent = false;
            context.relearn  = true;
        }
    }

    uint64_t slack(const context_t &context) const
    {
        long double slack = std::ceil(m_params.slack_fraction *
                                      (double)context.period);

        return std::max<long double>(m_params.slack_min_ns,
                                     std::min<long double>(
                                             m_params.slack_max_ns, slack));
    }

    std::map<ucs_predict_sig_t, context_t> m_contexts;
    uint64_t                               m_evictions = 0;

private:
    std::map<ucs_predict_sig_t, context_t>::iterator oldest()
    {
        return std::min_element(m_contexts.begin(), m_contexts.end(),
                                [](const auto &x, const auto &y) {
                                    return x.second.touched <
                                           y.second.touched;
                                });
    }

    void learn(context_t &context, const ucs_predict_use_t &use)
    {
        context.touched = ++m_clock;
        context.use     = use;
        if ((context.uses++ > 0) && (use.start_ns <= context.last)) {
            return;
        }

        __int128 gap = (__int128)use.start_ns - context.last;

        if (context.period != 0) {
            __int128 error = gap - context.period;

            if ((error < 0 ? -error : error) <= slack(context)) {
                context.confidence = std::min(context.confidence + 1,
                                              m_params.confidence_max);
            }
            context.period = std::min<__int128>(context.period, gap);
        } else if (context.has_last) {
            context.period     = gap;
            context.confidence = context.relearn ? 1 :
                                 m_params.confidence_initial;
        }

        context.last     = use.start_ns;
        context.has_last = true;
        context.spent    = false;
    }

    ucs_predict_params_t  m_params;
    std::vector<uint64_t> m_recent;
    uint64_t              m_clock = 0;
};

struct stress_t {
    uint32_t max_entries;
    unsigned window_length;
    unsigned paths;
    unsigned records;
    bool     evicts;
};

class predict_callsite_model :
    public predict_table,
    public testing::WithParamInterface<stress_t> {
protected:
    void SetUp() override
    {
        m_params.max_entries   = GetParam().max_entries;
        m_params.window_length = GetParam().window_length;
        create();
    }

    unsigned random(unsigned limit)
    {
        return std::uniform_int_distribution<unsigned>(0,
                                                       limit - 1)(m_random);
    }

    /* Mostly a step ahead, sometimes none, back, or very far */
    void pass_time()
    {
        unsigned kind = random(100);

        if (kind < 95) {
            m_time += random(20) * MS + random(3);
        } else if (kind < 97) {
            m_time -= std::min<uint64_t>(m_time, random(50) * MS);
        } else if (kind < 98) {
            m_time += 10 * S;
        }
    }

    void compare(const model_t &model, ucs_predict_sig_t sig)
    {
        const model_t::context_t &expected = model.m_contexts.at(sig);
        ucs_predict_entry_info_t actual    = info(expected.ref);
        uint64_t due                       = 0;
        int predicted = ucs_predict_table_deadline(m_table, expected.ref,
                                                   &due);

        ASSERT_EQ(sig, actual.signature);
        ASSERT_EQ(expected.period, actual.period_ns);
        ASSERT_EQ(expected.last, actual.last_ns);
        ASSERT_EQ(expected.confidence, actual.confidence);
        ASSERT_EQ(expected.uses, actual.uses);
        ASSERT_EQ(model.slack(expected),
                  ucs_predict_table_slack(m_table, expected.ref));
        ASSERT_EQ((expected.period != 0) && !expected.spent, predicted == 1);
        if (predicted) {
            ASSERT_EQ(expected.last + expected.period, due);
        }
    }

    std::mt19937_64 m_random{42};
    uint64_t        m_time = 0;
};

TEST_P(predict_callsite_model, random_records)
{
    model_t model(m_params);
    /* Any reference ever given out for a signature; the latest is current */
    std::vector<std::pair<ucs_predict_sig_t, ucs_predict_ref_t>> given;
    uint64_t stale_seen = 0;

    for (unsigned i = 0; i < GetParam().records; ++i) {
        ucs_predict_use_t use;

        pass_time();
        use = {m_time, random(GetParam().paths), random(6) * 0x10000u,
               random(1 << 20), random(2)};

        ucs_predict_ref_t ref = ucs_predict_table_record(m_table, &use);
        ucs_predict_sig_t sig = model.record(use);
        model_t::context_t &context = model.m_contexts[sig];

        if (context.uses > 1) {
            ASSERT_EQ(context.ref, ref);
        }
        context.ref = ref;
        ASSERT_EQ(model.m_contexts.size(), ucs_predict_table_count(m_table));
        ASSERT_NO_FATAL_FAILURE(compare(model, sig));

        if (given.size() < 4096) {
            given.push_back({sig, ref});
        } else {
            given[random(4096)] = {sig, ref};
        }

        auto &old  = given[random(given.size())];
        auto found = model.m_contexts.find(old.first);
        bool live  = (found != model.m_contexts.end()) &&
                     (found->second.ref == old.second);

        ASSERT_EQ(!live, stale(old.second));
        stale_seen += !live;
        if (random(3) == 0) {
            ucs_predict_table_unused(m_table, old.second);
            if (live) {
                model.unused(found->second);
            }
        }
        if (live) {
            ASSERT_NO_FATAL_FAILURE(compare(model, old.first));
        }
        if (i % 65536 == 0) {
            ASSERT_TRUE(ucs_predict_table_is_valid(m_table));
        }
    }

    EXPECT_EQ(GetParam().evicts, model.m_evictions > 0);
    EXPECT_EQ(GetParam().evicts, stale_seen > 0);
    for (auto &context : model.m_contexts) {
        ASSERT_NO_FATAL_FAILURE(compare(model, context.first));
    }
}

INSTANTIATE_TEST_SUITE_P(
        sizes, predict_callsite_model,
        testing::Values(stress_t{256, 1, 4, 1000000, true},
                        stress_t{4096, 2, 2, 200000, false},
                        stress_t{1, 0, 2, 50000, true},
                        stress_t{7, 0, 3, 100000, true},
                        stress_t{64, 4, 1, 100000, true}),
        [](const auto &info) {
            return "entries_" + std::to_string(info.param.max_entries) +
                   "_window_" + std::to_string(info.param.window_length);
        });

} // namespace
