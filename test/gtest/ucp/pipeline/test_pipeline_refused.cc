/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_fixture.h"

#include <algorithm>

/* A peer that sends whatever it likes: headers as on the wire */
class test_pipeline_refused : public test_pipeline {
protected:
    enum { MATCH, ACK, READY, DATA, FIN, ABORT, DONE };

    struct header {
        uint32_t magic, type;
        uint64_t to, from, tag, offset, length, address;
    };

    void from_wire(header what, const std::vector<char> &payload = {},
                   unsigned node = 0, size_t size = sizeof(header))
    {
        EXPECT_GE(ucp_wire_am_send(ucp_pipeline_wire(world->nodes[node]), 1,
                                   &what, size, payload.data(), payload.size(),
                                   NULL, NULL),
                  UCS_OK);
        world->run();
    }

    /* To each request that there may be; the message is right but for that */
    bool is_refused(header what, size_t bytes = 0, unsigned node = 0)
    {
        uint64_t before = world->pipeline_stats(1).refused;
        for (uint64_t id = 0; id < NUM_IDS; ++id) {
            what.magic = MAGIC;
            what.to    = id;
            from_wire(what, std::vector<char>(bytes, 'x'), node);
        }
        return world->pipeline_stats(1).refused == before + NUM_IDS;
    }

    void lose_peers(ucx_pipeline_request_h req)
    {
        for (unsigned node : {0u, 2u}) {
            world->kill(node);
        }
        world->run();
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end(req));
    }

    static const uint32_t MAGIC   = 0x50495045;
    static const unsigned NUM_IDS = 64;
};

TEST_F(test_pipeline_refused, by_a_receiver)
{
    start(UCX_PIPELINE_MODE_PIPELINE, 0, 3);
    auto in = recv(target, 1);
    /* less of a header, another's magic, more bytes than the message has */
    from_wire({MAGIC, MATCH, 0, 7, 1, 0, 100000, 0}, {}, 0, 55);
    from_wire({MAGIC + 1, MATCH, 0, 7, 1, 0, 100000, 0});
    from_wire({MAGIC, MATCH, 0, 7, 1, 0, 4, 0}, std::vector<char>(5, 'x'));
    EXPECT_EQ(3u, world->pipeline_stats(1).refused);
    EXPECT_TRUE(is_refused({0, DATA, 0, 7, 0, 0, 0, 0}, 100)); /* not matched */
    from_wire({MAGIC, MATCH, 0, 7, 1, 0, 100000, 0},
              std::vector<char>(512, 's'));
    /* it waits for bytes 512 to 2048, and for fragments of 4096 from there */
    EXPECT_TRUE(is_refused({0, 99, 0, 7, 0, 512, 0, 0}, 100));
    EXPECT_TRUE(is_refused({0, DATA, 0, 7, 0, 512, 0, 0}, 100, 2));
    EXPECT_TRUE(is_refused({0, DATA, 0, 7, 0, 513, 0, 0}, 100));
    EXPECT_TRUE(is_refused({0, DATA, 0, 7, 0, 512, 0, 0}, 1537));
    EXPECT_TRUE(is_refused({0, FIN, 0, 7, 0, 512, 1536, 0}));
    EXPECT_TRUE(is_refused({0, FIN, 0, 7, 0, 2049, 4096, 0}));
    EXPECT_TRUE(is_refused({0, FIN, 0, 7, 0, 2048, 4095, 0}));
    EXPECT_FALSE(is_refused({0, FIN, 0, 7, 0, 2048, 4096, 0}));
    EXPECT_TRUE(is_refused({0, FIN, 0, 7, 0, 2048, 4096, 0})); /* again */
    lose_peers(in);
}

TEST_F(test_pipeline_refused, by_a_sender)
{
    ucx_pipeline_request_h out;
    start(UCX_PIPELINE_MODE_PIPELINE, 0, 3);
    ASSERT_EQ(UCS_OK, ucx_pipeline_send(world->nodes[1], 0, 1, source.data(),
                                        source.size(), &out));
    world->run();
    EXPECT_TRUE(is_refused({0, READY, 0, 7, 0, 512, 4096, 0})); /* too early */
    EXPECT_TRUE(is_refused({0, ACK, 0, 7, 0, 2048, 99999, 0}));
    EXPECT_TRUE(is_refused({0, ACK, 0, 7, 0, 0, 100000, 0}));
    EXPECT_TRUE(is_refused({0, ACK, 0, 7, 0, 100001, 100000, 0}));
    EXPECT_FALSE(is_refused({0, ACK, 0, 7, 0, 2048, 100000, 0}));
    EXPECT_TRUE(is_refused({0, ACK, 0, 7, 0, 4096, 100000, 0})); /* again */
    EXPECT_TRUE(is_refused({0, READY, 0, 7, 0, 2049, 4096, 0}));
    EXPECT_TRUE(is_refused({0, READY, 0, 7, 0, 2048, 0, 0}));
    EXPECT_TRUE(is_refused({0, READY, 0, 7, 0, 2048, 97953, 0}));
    EXPECT_TRUE(is_refused({0, READY, 0, 7, 0, 2048, 4096, 0}, 0, 2));
    EXPECT_TRUE(is_refused({0, DATA, 0, 7, 0, 2048, 0, 0}, 100));
    lose_peers(out);
}

/* A peer that offers a key, or answers one that it was offered, as it likes */
class test_pipeline_refused_read : public test_pipeline_refused {
protected:
    void SetUp() override
    {
        PIPELINE_TEST_NEEDS_UCM();
        options = pipeline_world::options(UCX_PIPELINE_MODE_CACHE);
        options.max_slowdown = 0; /* it stays, however long that takes */
        start_reading(pipeline_world::network(3, 1).reg_base);
        /* node 1 has both its buffers registered, as other messages used them */
        for (int i = 0; i < 4; ++i) {
            transfer(source.data(), target.data(), source.size(), 2, 1);
            transfer(source.data(), m_sink.data(), source.size(), 1, 2);
        }
        ASSERT_EQ(target.size() + source.size(), world->pipeline_stats(1).kept);
    }

    /* Up to `end` one registration has it, by this key */
    static std::vector<char> told(uint64_t end, const void *key,
                                  uint64_t key_length)
    {
        uint64_t numbers[] = {end, key_length};
        std::vector<char> bytes((char*)numbers, (char*)(numbers + 2));
        bytes.insert(bytes.end(), (char*)key, (char*)key + key_length);
        return bytes;
    }

    /* Node 0 sends MATCH with these bytes behind it, and says where it lies */
    void offer(const std::vector<char> &keys, uint64_t address,
               const std::vector<char> &payload = {})
    {
        header match = {MAGIC, MATCH, address, 7, 1, 0, target.size(), 0};
        std::vector<char> bytes((char*)&match, (char*)(&match + 1));
        bytes.insert(bytes.end(), keys.begin(), keys.end());
        EXPECT_GE(ucp_wire_am_send(ucp_pipeline_wire(world->nodes[0]), 1,
                                   bytes.data(), bytes.size(), payload.data(),
                                   payload.size(), NULL, NULL), UCS_OK);
    }

    /* All of it by one key */
    void offer(const void *key, size_t key_length, uint64_t address,
               const std::vector<char> &payload = {})
    {
        offer(told(target.size(), key, key_length), address, payload);
    }

    void tell(header what, size_t bytes = 0)
    {
        std::vector<char> payload(bytes, 'x');
        EXPECT_GE(ucp_wire_am_send(ucp_pipeline_wire(world->nodes[0]), 1, &what,
                                   sizeof(what), payload.data(), bytes, NULL,
                                   NULL), UCS_OK);
    }

    /* Real memory of node 0 */
    void open_memory()
    {
        m_memory.assign(target.size(), 'm');
        EXPECT_EQ(UCS_OK, ucp_wire_mem_reg(wire(), m_memory.data(),
                                           m_memory.size(), &m_mem));
        EXPECT_EQ(UCS_OK, ucp_wire_mem_pack(wire(), m_mem, &m_key,
                                            &m_key_length));
    }

    ucp_wire_t *wire()
    {
        return ucp_pipeline_wire(world->nodes[0]);
    }

    uint64_t gets() const
    {
        return world->stats(1).gets;
    }

    /* Nothing was read of what these receives are for, and nothing is left */
    void nothing_is_read(const std::vector<ucx_pipeline_request_h> &reqs,
                         uint64_t gets_before)
    {
        world->run();
        EXPECT_EQ(gets_before, gets());
        EXPECT_EQ(0u, world->stats(1).keys);
        ucp_wire_mem_dereg(wire(), m_mem);
        world->kill(0);
        world->kill(2);
        world->run();
        for (auto req : reqs) {
            EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end(req));
        }
    }

    std::vector<char> m_sink = std::vector<char>(100000), m_memory;
    ucp_wire_mem_t *m_mem    = NULL;
    const void *m_key        = NULL;
    size_t m_key_length      = 0;
};

TEST_F(test_pipeline_refused_read, a_key_that_cannot_be_one_is_overlooked)
{
    open_memory();
    uint64_t before = gets(), address = (uintptr_t)m_memory.data();
    std::vector<ucx_pipeline_request_h> reqs;
    std::vector<char> garbage(m_key_length, 'g');
    auto receive = [&]() { reqs.push_back(recv(target, 1)); };

    receive();
    offer(garbage.data(), garbage.size(), address); /* not unpacked */
    receive();
    offer(m_key, m_key_length - 1, address);
    receive();
    offer(m_key, m_key_length, 0);
    receive();
    offer(m_key, m_key_length, UINT64_MAX - 10);
    receive();
    offer(m_key, m_key_length, address, {'a'}); /* some of it came */
    nothing_is_read(reqs, before);
}

TEST_F(test_pipeline_refused_read, offers_that_are_not_of_the_message_are_too)
{
    open_memory();
    uint64_t before = gets(), length = target.size();
    auto key        = [&](uint64_t end) {
        return told(end, m_key, m_key_length);
    };
    auto cut = [](std::vector<char> bytes, size_t by) {
        bytes.resize(bytes.size() - by);
        return bytes;
    };
    auto both = [](std::vector<char> bytes, const std::vector<char> &more) {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return bytes;
    };
    std::vector<ucx_pipeline_request_h> reqs;
    for (const auto &keys : {
             key(length - 1),                            /* not all of it */
             key(length + 1),                            /* more */
             key(UINT64_MAX),
             both(key(length), key(length)),             /* some of it twice */
             both(key(length / 2), key(length / 2 - 1)),
             both(key(0), key(length)),                  /* nothing first */
             both(key(length / 2), told(length, m_key, 0)),
             both(key(length), cut(key(length), m_key_length + 1)),
             cut(key(length), m_key_length),             /* no key */
             cut(key(length), 1),                        /* less of it */
         }) {
        reqs.push_back(recv(target, 1));
        offer(keys, (uintptr_t)m_memory.data());
    }
    nothing_is_read(reqs, before);
}

/* Those that are right are read, as many as they are */
TEST_F(test_pipeline_refused_read, offers_of_all_of_the_message_are_taken)
{
    open_memory();
    uint64_t before = gets(), length = target.size();
    auto keys = told(1, m_key, m_key_length);
    for (uint64_t end : {length / 3, length - 1, length}) {
        auto next = told(end, m_key, m_key_length);
        keys.insert(keys.end(), next.begin(), next.end());
    }
    auto in = recv(target, 1);
    offer(keys, (uintptr_t)m_memory.data());
    while (!ucx_pipeline_test(in, NULL)) {
        ASSERT_TRUE(world->step());
    }
    EXPECT_EQ(m_memory, target); /* when it ends, not only in the end */
    EXPECT_EQ(UCS_OK, end(in));
    world->run();
    EXPECT_EQ(before + 4, gets());
    EXPECT_EQ(0u, world->stats(1).keys);
    ucp_wire_mem_dereg(wire(), m_mem);
}

/* One of two keys is nobody's: the other read is waited for, then all of it is
 * asked for */
TEST_F(test_pipeline_refused_read, what_is_read_in_part_is_asked_for)
{
    for (bool is_first : {true, false}) {
        SetUp();
        open_memory();
        uint64_t before = gets(), asked = world->stats(1).messages;
        std::vector<char> key((char*)m_key, (char*)m_key + m_key_length);
        std::fill(key.begin() + m_key_length / 2, key.end(), 0x7f);
        auto keys = told(50000, is_first ? key.data() : m_key, m_key_length);
        auto rest = told(target.size(), is_first ? m_key : key.data(),
                         m_key_length);
        keys.insert(keys.end(), rest.begin(), rest.end());
        auto in = recv(target, 1);
        offer(keys, (uintptr_t)m_memory.data());
        world->run();
        EXPECT_EQ(before + 2, gets());
        EXPECT_EQ(asked + 2, world->stats(1).messages); /* ACK and READY */
        EXPECT_EQ(0u, world->stats(1).keys);
        EXPECT_FALSE(ucx_pipeline_test(in, NULL));
        ucp_wire_mem_dereg(wire(), m_mem);
        lose_peers(in);
    }
}

/* As the adapter refuses a key that nobody gave: the message is asked for */
TEST_F(test_pipeline_refused_read, a_read_that_is_refused_is_asked_for)
{
    open_memory();
    uint64_t before = gets(), asked = world->stats(1).messages;
    std::vector<char> key((char*)m_key, (char*)m_key + m_key_length);
    std::fill(key.begin() + m_key_length / 2, key.end(), 0x7f);
    auto in = recv(target, 1);
    offer(key.data(), key.size(), (uintptr_t)m_memory.data());
    world->run();
    EXPECT_EQ(before + 1, gets());
    EXPECT_EQ(asked + 2, world->stats(1).messages); /* ACK and READY */
    EXPECT_EQ(0u, world->stats(1).keys);
    ucp_wire_mem_dereg(wire(), m_mem);
    lose_peers(in);
}

TEST_F(test_pipeline_refused_read, nothing_else_is_taken_for_what_is_read)
{
    open_memory();
    auto in = recv(target, 1);
    uint64_t before = world->pipeline_stats(1).refused, told_of = 0;
    uint64_t piece  = target.size() / 10;
    std::vector<char> keys;
    for (int i = 1; i <= 10; ++i) { /* the last ones wait for the first ones */
        auto next = told(i * piece, m_key, m_key_length);
        keys.insert(keys.end(), next.begin(), next.end());
    }
    offer(keys, (uintptr_t)m_memory.data());
    for (uint64_t to = 0; to < NUM_IDS; ++to) {
        for (uint64_t offset : {uint64_t(0), 9 * piece}) {
            tell({MAGIC, DATA, to, 7, 0, offset, 0, 0}, 100);
            tell({MAGIC, FIN, to, 7, 0, offset, piece, 0});
            told_of += 2;
        }
    }
    world->run();
    EXPECT_EQ(before + told_of, world->pipeline_stats(1).refused);
    EXPECT_EQ(UCS_OK, end(in));
    EXPECT_EQ(m_memory, target);
    ucp_wire_mem_dereg(wire(), m_mem);
}

TEST_F(test_pipeline_refused_read, who_takes_it_back_is_still_waited_for)
{
    open_memory();
    auto in = recv(target, 1);
    offer(m_key, m_key_length, (uintptr_t)m_memory.data());
    for (uint64_t to = 0; to < NUM_IDS; ++to) {
        tell({MAGIC, ABORT, to, 7, 0, 0, 0, 0});
    }
    for (int i = 0; (i < 1000) && !ucx_pipeline_test(in, NULL); ++i) {
        world->step();
    }
    EXPECT_EQ('m', target[target.size() - 1]); /* not ended before the bytes */
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end(in));
    world->run();
    ucp_wire_mem_dereg(wire(), m_mem);
}

TEST_F(test_pipeline_refused_read, by_a_sender)
{
    uint64_t length = source.size();
    auto begin = [&]() {
        ucx_pipeline_request_h out = NULL;
        EXPECT_EQ(UCS_OK, ucx_pipeline_send(world->nodes[1], 0, 1,
                                            source.data(), length, &out));
        world->run();
        return out;
    };
    /* how often it was heard, by any request that there may be */
    auto heard = [&](uint32_t type, uint64_t of_length, unsigned from = 0) {
        uint64_t before = world->pipeline_stats(1).refused;
        for (uint64_t to = 0; to < NUM_IDS; ++to) {
            from_wire({MAGIC, type, to, 7, 0, 0, of_length, 0}, {}, from);
        }
        return NUM_IDS - (world->pipeline_stats(1).refused - before);
    };

    auto out = begin();
    EXPECT_EQ(0u, heard(DONE, length - 1));
    EXPECT_EQ(0u, heard(DONE, length, 2));
    EXPECT_FALSE(ucx_pipeline_test(out, NULL));
    EXPECT_EQ(1u, heard(DONE, length));
    EXPECT_EQ(0u, heard(DONE, length)); /* again */
    EXPECT_EQ(UCS_OK, end(out));

    out = begin(); /* it was answered already */
    EXPECT_EQ(1u, heard(ACK, length));
    EXPECT_EQ(0u, heard(DONE, length));
    EXPECT_FALSE(ucx_pipeline_test(out, NULL));

    /* it was offered no key */
    ucp_pipeline_unmapped(world->nodes[1], source.data(), length);
    auto other = begin();
    EXPECT_EQ(0u, heard(DONE, length));
    EXPECT_FALSE(ucx_pipeline_test(other, NULL));
    world->kill(0);
    world->kill(2);
    world->run();
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end(out));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end(other));
    EXPECT_EQ(world->pipeline_stats(1).kept, world->stats(1).bytes);
}
