/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <tools/decode.h>

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

class test_trace : public ::testing::Test {
protected:
    typedef std::vector<uint8_t> bytes;

    test_trace()
    {
        m_header.start_ns  = 5000;
        m_header.page_size = 4096;
        m_header.pid       = 4711;
        m_header.rank      = 3;
        strcpy(m_header.host, "node7");
    }

    ~test_trace()
    {
        tool_trace_cleanup(&m_trace);
    }

    static ucs_trace_event_t event(ucs_trace_kind_t kind, uint64_t time_ns,
                                   uint64_t address, uint64_t length,
                                   uint64_t signature = 0, uint32_t access = 0)
    {
        return {time_ns, address, length, signature, access, kind, 0};
    }

    static ucs_trace_event_t said(uint64_t time_ns, uint64_t address,
                                  uint64_t length, uint32_t label,
                                  uint32_t access, uint32_t id)
    {
        return {time_ns, address, length, label, access, UCS_TRACE_OPERATION,
                id};
    }

    bytes encode(const std::vector<ucs_trace_event_t> &events)
    {
        uint8_t buffer[UCS_TRACE_RECORD_MAX];
        ucs_trace_encoder_h encoder;
        bytes file;
        size_t size;

        EXPECT_EQ(UCS_OK, ucs_trace_encoder_create(&encoder));
        size = ucs_trace_encode_begin(encoder, &m_header, buffer);
        file.insert(file.end(), buffer, buffer + size);
        for (auto &e : events) {
            size = ucs_trace_encode(encoder, &e, buffer);
            EXPECT_LE(size, sizeof(buffer));
            file.insert(file.end(), buffer, buffer + size);
        }
        size = ucs_trace_encode_end(encoder, buffer);
        file.insert(file.end(), buffer, buffer + size);
        ucs_trace_encoder_destroy(encoder);
        return file;
    }

    int decode(const bytes &file)
    {
        tool_trace_cleanup(&m_trace);
        m_error = {SIZE_MAX, nullptr};
        return tool_trace_decode(file.data(), file.size(), &m_trace,
                                 &m_error);
    }

    void expect_error(const bytes &file, size_t offset, const char *text)
    {
        ASSERT_EQ(-1, decode(file));
        EXPECT_EQ(offset, m_error.offset) << m_error.text;
        EXPECT_NE(std::string::npos, std::string(m_error.text).find(text))
                << m_error.text;
    }

    static std::vector<ucs_trace_event_t> random_events(unsigned seed,
                                                        size_t count)
    {
        std::mt19937_64 random(seed);
        std::vector<ucs_trace_event_t> events;
        uint64_t now = 5000;

        for (size_t i = 0; i < count; ++i) {
            now += random() % 1000000;
            now -= random() % 100; /* threads are a little out of order */
            auto kind = ucs_trace_kind_t(random() % 5);
            if (kind == UCS_TRACE_OPERATION) {
                events.push_back(said(now, random() >> (random() % 40 + 1),
                                      (random() % 3) * (random() % 4096),
                                      random() % 64 ? random() % 5 : random(),
                                      random() % 16,
                                      random() % 2 ? random() : 0));
                continue;
            }
            auto e    = event(kind, now, random() >> (random() % 40 + 1),
                              random() % (1ul << (1 + random() % 40)) + 1,
                              random() % 64 ? 1 + random() % 5 : random(),
                              random() % 16);
            if (kind == UCS_TRACE_LOST) {
                e.address = 0;
            }
            if ((kind == UCS_TRACE_LOST) || (kind == UCS_TRACE_UNMAP)) {
                e.signature = 0;
                e.access    = 0;
            }
            events.push_back(e);
        }
        return events;
    }

    ucs_trace_header_t m_header = {};
    tool_trace_t       m_trace  = {};
    tool_trace_error_t m_error  = {};
};

TEST_F(test_trace, what_is_encoded_is_decoded)
{
    auto events = random_events(1, 20000);

    ASSERT_EQ(0, decode(encode(events))) << m_error.text;
    EXPECT_EQ(m_header.start_ns, m_trace.header.start_ns);
    EXPECT_EQ(m_header.page_size, m_trace.header.page_size);
    EXPECT_EQ(m_header.pid, m_trace.header.pid);
    EXPECT_EQ(m_header.rank, m_trace.header.rank);
    EXPECT_STREQ("node7", m_trace.header.host);
    ASSERT_EQ(events.size(), m_trace.count);
    for (size_t i = 0; i < events.size(); ++i) {
        EXPECT_EQ(events[i].kind, m_trace.events[i].kind) << i;
        EXPECT_EQ(events[i].time_ns, m_trace.events[i].time_ns) << i;
        EXPECT_EQ(events[i].address, m_trace.events[i].address) << i;
        EXPECT_EQ(events[i].length, m_trace.events[i].length) << i;
        EXPECT_EQ(events[i].signature, m_trace.events[i].signature) << i;
        EXPECT_EQ(events[i].access, m_trace.events[i].access) << i;
        EXPECT_EQ(events[i].id, m_trace.events[i].id) << i;
    }
}

TEST_F(test_trace, operations_without_data_are_kept)
{
    ASSERT_EQ(0, decode(encode({said(6000, 0, 0, 0, 2, UINT32_MAX),
                                     said(6000, 0, 0, 0, 2, 1),
                                     said(7000, 8, 0, UINT32_MAX, 256, 0)})));
    ASSERT_EQ(3u, m_trace.count);
    EXPECT_EQ(UINT32_MAX, m_trace.events[0].id);
    EXPECT_EQ(1u, m_trace.events[1].id);
    EXPECT_EQ(0u, m_trace.events[2].id);
    EXPECT_EQ(8u, m_trace.events[2].address);
    EXPECT_EQ(UINT32_MAX, m_trace.events[2].signature);
}

/* What is in files of before, which have no operations */
TEST_F(test_trace, version_1_is_read)
{
    bytes file = encode({event(UCS_TRACE_USE, 6000, 4096, 8192, 7, 3),
                         event(UCS_TRACE_UNMAP, 6500, 4096, 8192)});

    ASSERT_EQ(2, file[12]);
    file[12] = 1;
    ASSERT_EQ(0, decode(file)) << m_error.text;
    ASSERT_EQ(2u, m_trace.count);
    EXPECT_EQ(8192u, m_trace.events[1].length);

    file     = encode({said(6000, 0, 0, 0, 0, 0)});
    file[12] = 1;
    expect_error(file, 64, "no record");
    file[12] = 0;
    expect_error(file, 12, "version");
}

TEST_F(test_trace, repeated_uses_take_few_bytes)
{
    std::vector<ucs_trace_event_t> events;

    for (unsigned i = 0; i < 1000; ++i) {
        events.push_back(event(UCS_TRACE_USE, 5000 + i * 20000,
                               0x7f0000000000, 65536, ~0ul, 3));
        events.push_back(event(UCS_TRACE_RELEASE, 5000 + i * 20000 + 9000,
                               0x7f0000000000, 65536, ~0ul, 3));
    }
    EXPECT_LT(encode(events).size(), 64 + 64 + events.size() * 6);
}

TEST_F(test_trace, extreme_values_are_kept)
{
    m_header.rank = -1;
    ASSERT_EQ(0, decode(encode({
        event(UCS_TRACE_USE, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX,
              UINT32_MAX),
        event(UCS_TRACE_UNMAP, 0, UINT64_MAX - 1, 1),
        event(UCS_TRACE_LOST, UINT64_MAX / 2, 0, UINT64_MAX)})));
    EXPECT_EQ(-1, m_trace.header.rank);
    EXPECT_EQ(UINT64_MAX, m_trace.events[0].time_ns);
    EXPECT_EQ(UINT64_MAX, m_trace.events[0].length);
    EXPECT_EQ(UINT32_MAX, m_trace.events[0].access);
    EXPECT_EQ(0u, m_trace.events[1].time_ns);
    EXPECT_EQ(UINT64_MAX, m_trace.events[2].length);
}

/* A process that is killed while it writes leaves a part of what it wrote */
TEST_F(test_trace, what_is_whole_of_a_cut_trace_is_read)
{
    auto events = random_events(2, 30);
    bytes file  = encode(events);
    size_t last = 64, count = 0; /* end and number of the events so far */

    for (size_t size = 64; size < file.size(); ++size) {
        ASSERT_EQ(0, decode(bytes(file.begin(), file.begin() + size)))
                << size << ": " << m_error.text;
        EXPECT_TRUE(m_trace.is_cut);
        ASSERT_LE(m_trace.count, events.size());
        ASSERT_GE(m_trace.count, count);
        ASSERT_LE(m_trace.cut, size - last);
        if (m_trace.cut == 0) {
            last = size; /* of a definition, or of an event */
        }
        count = m_trace.count;
        for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(events[i].time_ns, m_trace.events[i].time_ns) << i;
            ASSERT_EQ(events[i].kind, m_trace.events[i].kind) << i;
        }
    }
    EXPECT_EQ(events.size(), count);
    EXPECT_GT(m_trace.cut, 0u); /* a part of the end mark */

    ASSERT_EQ(0, decode(file));
    EXPECT_FALSE(m_trace.is_cut);
    EXPECT_EQ(0u, m_trace.cut);
}

TEST_F(test_trace, cut_header_is_told)
{
    bytes file = encode(random_events(2, 30));

    for (size_t size = 1; size < 64; ++size) {
        expect_error(bytes(file.begin(), file.begin() + size), size,
                     "cut short");
    }
    expect_error(bytes(), 0, "no trace");
}

TEST_F(test_trace, damage_is_survived)
{
    std::mt19937 random(3);
    bytes file = encode(random_events(3, 300));

    /* Under the sanitizers this proves that no byte is trusted */
    for (unsigned i = 0; i < 4000; ++i) {
        bytes damaged = file;
        for (unsigned j = 0; j <= random() % 3; ++j) {
            damaged[64 + random() % (damaged.size() - 64)] = random();
        }
        if (decode(damaged) != 0) {
            EXPECT_LE(m_error.offset, damaged.size());
            EXPECT_NE(nullptr, m_error.text);
        }
    }
}

TEST_F(test_trace, damaged_header_is_told)
{
    bytes file = encode({});

    bytes foreign = file;
    std::swap(foreign[8], foreign[11]);
    std::swap(foreign[9], foreign[10]);
    expect_error(foreign, 8, "other byte order");

    bytes marked = file;
    marked[8] ^= 1;
    expect_error(marked, 8, "damaged");

    bytes newer = file;
    ++newer[12];
    expect_error(newer, 12, "version");

    bytes pages = file;
    pages[16] = 1;
    expect_error(pages, 16, "page size");

    bytes text = file;
    text[0] = '{';
    expect_error(text, 0, "no trace");
}

TEST_F(test_trace, damaged_records_are_told)
{
    bytes file  = encode({});
    size_t size = file.size() - 2; /* without the end mark */
    bytes head(file.begin(), file.begin() + size);
    auto with = [&](std::initializer_list<uint8_t> tail) {
        bytes result = head;
        result.insert(result.end(), tail);
        return result;
    };

    ASSERT_EQ(64u, size);
    expect_error(with({1, 0}), 64, "not defined");
    expect_error(with({0x0d}), 64, "no record");
    expect_error(with({6, 0, 2}), 64, "number");
    expect_error(with({7, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                       0xff, 1, 0, 0}), 64, "beyond");
    expect_error(with({7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f}), 64,
                 "label");
    expect_error(with({0x80, 0x80, 0x04}), 64, "no record"); /* slot too high */
    expect_error(with({5, 1}), 64, "counts");
    expect_error(with({5, 0, 7}), 66, "after the end");
    expect_error(with({3, 0, 1, 0}), 64, "empty");
    /* Before the place where it is cut, too */
    expect_error(with({0x0d, 1}), 64, "no record");
    expect_error(with({5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                       2}), 64, "64 bits");
}
