/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_world.h"

#include <sanitized.h>

#if defined(__SANITIZE_ADDRESS__)
#  include <sanitizer/lsan_interface.h>
#endif

#include <cstring>
#include <memory>
#include <random>

/* Random programs over the virtual network. What each has to keep: messages of
 * a peer match in order, bytes are those that were sent, every request ends,
 * nothing stays registered, and the network saw no put to or from memory that
 * was not registered (pipeline_world). */

namespace {

/* A buffer of one node, used by one operation after another */
struct buffer {
    std::vector<char> bytes = std::vector<char>(64000);
    bool is_used            = false;
};

struct message {
    unsigned from, to;
    uint64_t tag;
    std::vector<char> bytes; /* that were sent */
    buffer *place;
    ucx_pipeline_request_h req;
};

struct receive {
    unsigned at, peer;
    uint64_t tag, mask;
    std::vector<char> bytes; /* that came, once it is complete */
    buffer *place;
    ucx_pipeline_request_h req;
    ucx_pipeline_status_t status;
    uint64_t number; /* of the message that came, -1: not known */
};

class program {
public:
    program(uint64_t seed, ucx_pipeline_mode_t mode, bool deaths)
        : m_random(seed), m_deaths(deaths)
    {
        auto network = pipeline_world::network(2 + m_random() % 3, seed);
        if (seed % 2) {
            network.reg_fails     = 50000;
            network.inline_chance = 200000;
        }
        auto options  = pipeline_world::options(mode);
        options.depth = 1 + m_random() % 4;
        options.cache_bytes = (m_random() % 2) ? 30000 : 1 << 20;
        m_fails = (seed % 2) != 0;
        if (seed % 4 > 1) { /* all is short, and read once it was seen often */
            options.rdma_offset   = UCX_PIPELINE_DERIVED;
            options.fragment      = 65536;
            network.copy_per_byte = 1;
            network.reg_base      = 10000;
            m_is_read             = true;
        }
        m_world.reset(new pipeline_world(network, options));
        m_buffers.resize(network.num_nodes);
    }

    void run()
    {
        unsigned actions = (60 + m_random() % 60) * (m_is_read ? 2 : 1);
        unsigned death   = m_deaths ? m_random() % actions : actions;
        for (unsigned i = 0; i < actions; ++i) {
            if (i == death) {
                m_world->kill(m_random() % m_world->nodes.size());
            }
            act();
            for (unsigned steps = m_random() % 8; steps > 0; --steps) {
                m_world->step();
            }
        }
        m_world->run();
        finish();
        check_order();
    }

    uint64_t gets() const
    {
        uint64_t gets = 0;
        for (unsigned node = 0; node < m_world->nodes.size(); ++node) {
            gets += m_world->stats(node).gets;
        }
        return gets;
    }

private:
    unsigned node()
    {
        return m_random() % m_world->nodes.size();
    }

    size_t length()
    {
        switch (m_random() % 8) {
        case 0:
            return 8 + m_random() % 504; /* eager */
        case 1:
            return 8 + m_random() % 3000; /* copied */
        case 2:
        case 3:
        case 4:
        case 5:
            return 20000; /* the same one often, so that it is worth it to
                           * register what it comes from and goes to */
        default:
            return 8 + m_random() % 60000;
        }
    }

    /* One that nothing uses, most often one that was used before */
    buffer *take_buffer(unsigned at)
    {
        for (auto &one : m_buffers[at]) {
            if (!one->is_used && (m_random() % 4)) {
                one->is_used = true;
                return one.get();
            }
        }
        m_buffers[at].emplace_back(new buffer);
        m_buffers[at].back()->is_used = true;
        return m_buffers[at].back().get();
    }

    /* Buffers of what is complete may be used again */
    void harvest()
    {
        ucx_pipeline_status_t status;
        for (auto &recv : m_receives) {
            if ((recv->place != nullptr) && !m_world->is_dead(recv->at) &&
                ucx_pipeline_test(recv->req, &status)) {
                recv->bytes.assign(recv->place->bytes.begin(),
                                   recv->place->bytes.begin() +
                                   recv->bytes.size());
                recv->place->is_used = false;
                recv->place          = nullptr;
            }
        }
        for (auto &sent : m_messages) {
            if ((sent->place != nullptr) && !m_world->is_dead(sent->from) &&
                ucx_pipeline_test(sent->req, &status)) {
                sent->place->is_used = false;
                sent->place          = nullptr;
            }
        }
    }

    void act()
    {
        harvest();
        if (m_random() % 2) {
            send(node(), node(), m_random() % 3, length());
        } else {
            bool any = m_random() % 3 == 0;
            post(node(), any ? UCX_PIPELINE_ANY_SOURCE : node(),
                 m_random() % 3, (m_random() % 3) ? ~0ull : 0, length());
        }
        if ((m_random() % 10 == 0) && !m_receives.empty()) {
            auto &recv = m_receives[m_random() % m_receives.size()];
            if (!m_world->is_dead(recv->at)) {
                ucx_pipeline_cancel(recv->req);
            }
        }
    }

    void send(unsigned from, unsigned to, uint64_t tag, size_t size)
    {
        if (m_world->is_dead(from)) {
            return;
        }
        std::unique_ptr<message> sent(new message);
        uint64_t number = m_messages.size();
        sent->from = from;
        sent->to   = to;
        sent->tag  = tag;
        sent->bytes.resize(size);
        for (size_t i = 8; i < size; ++i) {
            sent->bytes[i] = (char)(number * 31 + i * 7 + (i >> 8));
        }
        memcpy(sent->bytes.data(), &number, 8);
        sent->place = take_buffer(from);
        memcpy(sent->place->bytes.data(), sent->bytes.data(), size);
        ucs_status_t status = ucx_pipeline_send(m_world->nodes[from], to, tag,
                                                sent->place->bytes.data(), size,
                                                &sent->req);
        if (status == UCS_OK) {
            m_messages.push_back(std::move(sent));
        } else {
            EXPECT_TRUE(m_deaths) << ucs_status_string(status);
        }
    }

    void post(unsigned at, unsigned peer, uint64_t tag, uint64_t mask,
              size_t room)
    {
        if (m_world->is_dead(at)) {
            return;
        }
        std::unique_ptr<receive> recv(new receive);
        recv->at     = at;
        recv->peer   = peer;
        recv->tag    = tag;
        recv->mask   = mask;
        recv->number = UINT64_MAX;
        recv->bytes.resize(room);
        recv->place = take_buffer(at);
        ucs_status_t status = ucx_pipeline_recv(m_world->nodes[at], peer, tag,
                                                mask, recv->place->bytes.data(),
                                                room, &recv->req);
        if (status == UCS_OK) {
            m_receives.push_back(std::move(recv));
        } else {
            EXPECT_TRUE(m_deaths) << ucs_status_string(status);
        }
    }

    /* Receive what nobody asked for, cancel what nobody sent, and look at
     * how everything ended */
    void finish()
    {
        for (auto &recv : m_receives) {
            if (!m_world->is_dead(recv->at)) {
                ucx_pipeline_cancel(recv->req);
            }
        }
        for (unsigned at = 0; at < m_world->nodes.size(); ++at) {
            for (size_t i = 0; i < m_messages.size(); ++i) {
                post(at, UCX_PIPELINE_ANY_SOURCE, 0, 0, 64000);
            }
        }
        m_world->run();
        for (auto &recv : m_receives) {
            if (!m_world->is_dead(recv->at)) {
                ucx_pipeline_cancel(recv->req);
            }
        }
        harvest();
        for (auto &recv : m_receives) {
            if (!m_world->is_dead(recv->at)) {
                check_receive(*recv);
            }
        }
        for (auto &sent : m_messages) {
            check_send(*sent);
        }
        for (unsigned i = 0; i < m_world->nodes.size(); ++i) {
            auto stats = m_world->pipeline_stats(i);
            if (!m_world->is_dead(i)) {
                EXPECT_EQ(stats.registered, m_world->stats(i).registered);
                EXPECT_EQ(stats.kept, m_world->stats(i).bytes);
                EXPECT_EQ(0u, m_world->stats(i).keys);
            }
            if (!m_fails && !m_deaths) {
                EXPECT_EQ(0u, stats.refused);
            }
        }
    }

    void check_send(message &sent)
    {
        ucx_pipeline_status_t status;
        if (m_world->is_dead(sent.from)) {
            return;
        }
        ASSERT_TRUE(ucx_pipeline_test(sent.req, &status));
        if (!m_world->is_dead(sent.to)) {
            EXPECT_EQ(UCS_OK, status.status);
        }
        EXPECT_EQ(UCS_OK, ucx_pipeline_request_free(sent.req));
    }

    void check_receive(receive &recv)
    {
        ASSERT_TRUE(ucx_pipeline_test(recv.req, &recv.status));
        if (recv.status.status == UCS_OK) {
            memcpy(&recv.number, recv.bytes.data(), 8);
            ASSERT_LT(recv.number, m_messages.size());
            const message &sent = *m_messages[recv.number];
            EXPECT_EQ(sent.from, recv.status.peer);
            EXPECT_EQ(sent.to, recv.at);
            EXPECT_EQ(sent.tag, recv.status.tag);
            ASSERT_EQ(sent.bytes.size(), recv.status.length);
            EXPECT_EQ(0, memcmp(sent.bytes.data(), recv.bytes.data(),
                                sent.bytes.size()));
            ++m_received;
        } else if (recv.status.status == UCS_ERR_MESSAGE_TRUNCATED) {
            /* no bytes came where it might have been read */
            EXPECT_GT(recv.status.length, recv.bytes.size());
            ++m_received;
        } else if (recv.status.status != UCS_ERR_CANCELED) {
            EXPECT_TRUE(m_deaths) << ucs_status_string(recv.status.status);
        }
        EXPECT_EQ(UCS_OK, ucx_pipeline_request_free(recv.req));
    }

    static bool would_match(const receive &recv, const message &sent)
    {
        return ((recv.peer == UCX_PIPELINE_ANY_SOURCE) ||
                (recv.peer == sent.from)) &&
               (((recv.tag ^ sent.tag) & recv.mask) == 0);
    }

    /* Of two messages of one peer the first one is matched by the receive that
     * was posted first, if that one would take both */
    void check_order()
    {
        for (size_t b = 0; b < m_receives.size(); ++b) {
            for (size_t a = b + 1; a < m_receives.size(); ++a) {
                const receive &first = *m_receives[b], &second = *m_receives[a];
                if ((first.at != second.at) || (first.number == UINT64_MAX) ||
                    (second.number == UINT64_MAX) ||
                    m_world->is_dead(first.at)) {
                    continue;
                }
                const message &of_first  = *m_messages[first.number];
                const message &of_second = *m_messages[second.number];
                if ((of_first.from == of_second.from) &&
                    would_match(first, of_second)) {
                    EXPECT_LT(first.number, second.number);
                }
            }
        }
        if (!m_deaths) {
            EXPECT_EQ(m_messages.size(), m_received);
        }
    }

    std::mt19937_64 m_random;
    bool m_deaths, m_fails = false, m_is_read = false;
    std::vector<std::vector<std::unique_ptr<buffer>>> m_buffers;
    std::unique_ptr<pipeline_world> m_world;
    std::vector<std::unique_ptr<message>> m_messages;
    std::vector<std::unique_ptr<receive>> m_receives;
    size_t m_received = 0;
};

class test_pipeline_random :
    public ::testing::TestWithParam<ucx_pipeline_mode_t> {
};

} // namespace

TEST_P(test_pipeline_random, programs_by_seed)
{
    if (GetParam() == UCX_PIPELINE_MODE_CACHE) {
        PIPELINE_TEST_NEEDS_UCM();
    }
    uint64_t gets = 0;
    for (uint64_t seed = 1; (seed <= seeds_of(100)) && !HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        program one(seed, GetParam(), false);
        one.run();
        gets += one.gets();
    }
    EXPECT_EQ(GetParam() == UCX_PIPELINE_MODE_CACHE, gets > 0) << gets;
}

/* A process that died leaves its memory behind, and nobody looks for that;
 * whether the others leave registrations or keys the network tells */
TEST_P(test_pipeline_random, programs_in_which_a_node_dies)
{
    if (GetParam() == UCX_PIPELINE_MODE_CACHE) {
        PIPELINE_TEST_NEEDS_UCM();
    }
#if defined(__SANITIZE_ADDRESS__)
    __lsan::ScopedDisabler what_dies_is_not_a_leak;
#endif
    for (uint64_t seed = 1; (seed <= seeds_of(100)) && !HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        program(seed, GetParam(), true).run();
    }
}

INSTANTIATE_TEST_SUITE_P(modes, test_pipeline_random,
                         ::testing::Values(UCX_PIPELINE_MODE_PIPELINE,
                                           UCX_PIPELINE_MODE_CACHE,
                                           UCX_PIPELINE_MODE_COPY));
