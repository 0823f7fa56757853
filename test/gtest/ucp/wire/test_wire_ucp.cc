/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

extern "C" {
#include <ucp/wire/wire_ucp_int.h>
}

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

/* The order in which messages are handed up, without UCP: they come as its
 * handler is given them */
class test_wire_ucp : public ::testing::Test {
protected:
    static constexpr unsigned PEERS = 3;

    void SetUp() override
    {
        wire = static_cast<ucp_wire_ucp_t *>(
                calloc(1, sizeof(*wire) + PEERS * sizeof(wire->peers[0])));
        wire->super.num_peers     = PEERS;
        wire->super.max_header    = 128;
        wire->super.max_payload   = 4096;
        wire->super.handlers.am   = handed_up;
        wire->super.handlers.arg  = this;
        wire->progressing         = 1;
        for (unsigned i = 0; i < PEERS; ++i) {
            ucs_list_head_init(&wire->peers[i].early);
        }
    }

    void TearDown() override
    {
        for (unsigned i = 0; i < PEERS; ++i) {
            ucp_wire_ucp_forget_early(&wire->peers[i]);
        }
        free(wire);
    }

    static void handed_up(void *arg, unsigned peer, const void *header,
                          size_t header_length, const void *payload,
                          size_t length)
    {
        auto self = static_cast<test_wire_ucp *>(arg);

        self->heard += std::to_string(peer) + ":" +
                       std::string(static_cast<const char *>(header),
                                   header_length) +
                       std::string(static_cast<const char *>(payload), length) +
                       " ";
    }

    void come(unsigned from, uint64_t number, const std::string &header = "a",
              const std::string &payload = "", uint32_t magic = UCP_WIRE_MAGIC,
              size_t cut = 0)
    {
        ucp_wire_ucp_header_t first = {magic, from, number};
        ucp_am_recv_param_t param   = {};
        std::vector<char> bytes(sizeof(first) + header.size());

        memcpy(bytes.data(), &first, sizeof(first));
        memcpy(bytes.data() + sizeof(first), header.data(), header.size());
        EXPECT_EQ(UCS_OK,
                  ucp_wire_ucp_arrived(wire, bytes.data(), bytes.size() - cut,
                                       const_cast<char *>(payload.data()),
                                       payload.size(), &param));
    }

    ucp_wire_ucp_t *wire;
    std::string heard;
};

TEST_F(test_wire_ucp, messages_are_handed_up_by_number)
{
    come(1, 2, "c", "3");
    come(1, 1, "b");
    come(2, 0, "x");
    EXPECT_EQ("2:x ", heard);
    come(1, 0, "a", "1");
    EXPECT_EQ("2:x 1:a1 1:b 1:c3 ", heard);
    come(1, 3, "d");
    EXPECT_EQ("2:x 1:a1 1:b 1:c3 1:d ", heard);
}

TEST_F(test_wire_ucp, a_message_is_handed_up_once)
{
    come(1, 0);
    come(1, 0);
    EXPECT_EQ("1:a ", heard);
    come(1, 2, "c");
    come(1, 2, "c");
    come(1, 1, "b");
    EXPECT_EQ("1:a 1:b 1:c ", heard);
    EXPECT_EQ(0u, wire->peers[1].num_early);
    come(1, 3, "d");
    EXPECT_EQ("1:a 1:b 1:c 1:d ", heard);
}

TEST_F(test_wire_ucp, what_nobody_of_us_sent_is_refused)
{
    come(1, 0, "a", "", UCP_WIRE_MAGIC + 1);
    come(PEERS, 0);
    come(UINT32_MAX, 0);
    come(1, 0, "a", std::string(4097, 'x'));
    come(1, 0, std::string(129, 'x'));
    come(1, 0, "", "", UCP_WIRE_MAGIC, 1);
    EXPECT_EQ("", heard);
    come(1, 0, std::string(128, 'x'), std::string(4096, 'y'));
    EXPECT_NE("", heard);
}

TEST_F(test_wire_ucp, what_comes_outside_of_progress_waits_for_it)
{
    wire->progressing = 0;
    come(0, 0);
    EXPECT_EQ("", heard);
    EXPECT_TRUE(wire->held);
    ucp_wire_ucp_hand_up_early(wire, 0);
    EXPECT_EQ("0:a ", heard);
}

TEST_F(test_wire_ucp, a_lost_peer_is_not_heard)
{
    come(1, 1, "b");
    wire->peers[1].status = UCS_ERR_CONNECTION_RESET;
    come(1, 0);
    EXPECT_EQ("", heard);
    /* What it sent early is not handed up either, should the rest have come */
    wire->peers[1].received = 1;
    ucp_wire_ucp_hand_up_early(wire, 1);
    EXPECT_EQ("", heard);
    ucp_wire_ucp_forget_early(&wire->peers[1]);
    EXPECT_EQ(0u, wire->peers[1].num_early);
}

/* As many as UCP lets pass one that waits for room on its lane */
TEST_F(test_wire_ucp, one_message_may_be_overtaken_by_thousands)
{
    const unsigned count = 20000;

    for (unsigned i = 100; i > 0; --i) {
        come(1, i, "a");
    }
    for (unsigned i = 101; i <= count; ++i) {
        come(1, i, "a");
    }
    EXPECT_EQ(0u, wire->num_failed);
    EXPECT_EQ("", heard);
    come(1, 0, "a");
    EXPECT_EQ(count + 1, wire->peers[1].received);
    EXPECT_EQ(4 * (count + 1), heard.size());
}
