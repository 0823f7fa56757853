/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef NODE_FIXTURE_H_
#define NODE_FIXTURE_H_

#include <ucs/node/node.h>
#include <ucs/sys/clock.h>
#include <test/own_ledger.h>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/** A ledger as another process has it, attached as long as this lives. */
class mapped_ledger {
public:
    explicit mapped_ledger(const std::string &name)
    {
        char error[256] = "";

        EXPECT_EQ(UCS_OK, ucs_ledger_open(name.c_str(), &m_ledger, error,
                                          sizeof(error)))
                << error;
    }

    ~mapped_ledger()
    {
        if (m_ledger != nullptr) {
            ucs_ledger_close(m_ledger);
        }
    }

    mapped_ledger(const mapped_ledger&) = delete;
    mapped_ledger &operator=(const mapped_ledger&) = delete;

    ucs_ledger_t *operator->() const
    {
        return m_ledger;
    }

    operator ucs_ledger_t*() const
    {
        return m_ledger;
    }

private:
    ucs_ledger_t *m_ledger = nullptr;
};

/** A segment of its own for each test. */
class test_node_base : public ::testing::Test {
protected:
    static constexpr uint64_t MS = 1000000;
    static constexpr uint64_t MB = 1 << 20;

    void SetUp() override
    {
        char name[128];
        std::string suffix = "test-" + std::to_string(getpid());

        ASSERT_EQ(UCS_OK, ucs_ledger_name(suffix.c_str(), name, sizeof(name)));
        m_name = name;
        ucs_ledger_remove(name);
    }

    void TearDown() override
    {
        later() = 0;
        ucs_ledger_remove(m_name.c_str());
    }

    static uint64_t now()
    {
        return ucs_clock_now() + later();
    }

    /* By so much, ns, the time of the nodes of a test is ahead */
    static std::atomic<uint64_t> &later()
    {
        static std::atomic<uint64_t> ns{0};
        return ns;
    }

    /* The application is bound to the processors, or else uses one core */
    ucs_node_h open(uint64_t budget, uint64_t patience_ns = 0,
                    std::vector<int> cpus = {})
    {
        ucs_node_params_t params = {};

        params.budget      = budget;
        params.patience_ns = patience_ns;
        params.cores       = cpus.empty();
        for (int cpu : cpus) {
            CPU_SET(cpu, &params.cpus);
        }
        return open(params);
    }

    ucs_node_h open(ucs_node_params_t params)
    {
        ucs_node_h node = nullptr;
        char error[256] = "";

        params.name = m_name.c_str();
        params.now  = now;
        EXPECT_EQ(UCS_OK, ucs_node_open(&params, &node, error, sizeof(error)))
                << error;
        return node;
    }

    mapped_ledger map() const
    {
        return mapped_ledger(m_name);
    }

    std::string m_name;
};

/** A rank that keeps what it has used, idle, and has a helper that answers. */
class test_rank {
public:
    /** What ranks hold beyond doubt: counted after it was granted, and no more
     *  before it is given back. Never more than what is pinned at that time. */
    struct held {
        std::atomic<uint64_t> bytes{0};
        std::atomic<uint64_t> most{0};

        void add(uint64_t length)
        {
            uint64_t sum  = bytes.fetch_add(length) + length;
            uint64_t peak = most;
            while ((sum > peak) && !most.compare_exchange_weak(peak, sum)) {
            }
        }
    };

    explicit test_rank(ucs_node_h node, held *all = nullptr)
        : m_node(node), m_held((all != nullptr) ? all : &m_own)
    {
        ucs_node_join(node, release, this);
    }

    ~test_rank()
    {
        drop(UINT64_MAX); /* who does not listen any more has nothing idle */
        stop();
        ucs_node_part(m_node, this);
        EXPECT_TRUE(ucs_node_is_valid(m_node));
        ucs_node_close(m_node);
    }

    /* The helper looks at the bell all the time: what it sleeps on has a test
     * of its own */
    void start()
    {
        m_stop   = false;
        m_helper = std::thread([this] {
            while (!m_stop) {
                ucs_node_serve(m_node);
                std::this_thread::yield();
            }
        });
        ucs_node_listen(m_node, 1);
    }

    void stop()
    {
        if (m_helper.joinable()) {
            ucs_node_listen(m_node, 0);
            m_stop = true;
            m_helper.join();
        }
    }

    bool use(uint64_t length)
    {
        bool is_forced = get(length);
        m_held->add(length);
        return is_forced;
    }

    /* As the cache does for a use. @return Whether it had to be forced. */
    bool get(uint64_t length)
    {
        if (ucs_node_claim(m_node, length, UCS_CLAIM_USE) ||
            ucs_node_ask(m_node, length, UCS_ASK_SHARE)) {
            return false;
        }
        while (drop(1) > 0) {
            if (ucs_node_claim(m_node, length, UCS_CLAIM_USE)) {
                return false;
            }
        }
        if (ucs_node_ask(m_node, length, UCS_ASK_ALL)) {
            return false;
        }
        ucs_node_claim(m_node, length, UCS_CLAIM_FORCE);
        return true;
    }

    /* The use is over; the registration stays */
    void keep(uint64_t length)
    {
        std::lock_guard<std::mutex> guard(m_lock);
        m_idle.push_back(length);
    }

    /* So many uses that need not be forced, and are over */
    void fill(unsigned count, uint64_t length)
    {
        for (unsigned i = 0; i < count; ++i) {
            ASSERT_FALSE(use(length));
            keep(length);
        }
    }

    /* Registrations of at least this many bytes. @return Bytes. */
    uint64_t drop(uint64_t length)
    {
        uint64_t dropped = 0;

        while (dropped < length) {
            uint64_t one = 0;
            {
                std::lock_guard<std::mutex> guard(m_lock);
                if (m_idle.empty()) {
                    break;
                }
                one = m_idle.back();
                m_idle.pop_back();
            }
            m_held->bytes -= one;
            ucs_node_unclaim(m_node, one);
            dropped += one;
        }
        return dropped;
    }

    uint64_t idle()
    {
        std::lock_guard<std::mutex> guard(m_lock);
        uint64_t sum = 0;
        for (uint64_t one : m_idle) {
            sum += one;
        }
        return sum;
    }

    ucs_node_figures_t figures()
    {
        ucs_node_figures_t figures;
        ucs_node_figures(m_node, &figures);
        return figures;
    }

    ucs_node_h node()
    {
        return m_node;
    }

    /* What is done instead of drop() when others ask, if it is set before */
    std::function<uint64_t(uint64_t)> on_release;

private:
    static uint64_t release(void *arg, uint64_t length)
    {
        test_rank *self = static_cast<test_rank*>(arg);

        return self->on_release ? self->on_release(length) :
                                  self->drop(length);
    }

    ucs_node_h m_node;
    held                  m_own;
    held                  *m_held;
    std::mutex            m_lock;
    std::vector<uint64_t> m_idle;
    std::atomic<bool>     m_stop{false};
    std::thread           m_helper;
};

/** Several ranks in one process: each has a slot of its own. */
class test_node : public test_node_base {
protected:
    /* Patience is long: the machine may be busy with other things */
    std::unique_ptr<test_rank> rank(uint64_t budget,
                                    uint64_t patience_ns = 20000 * MS)
    {
        return std::make_unique<test_rank>(open(budget, patience_ns));
    }
};

#endif
