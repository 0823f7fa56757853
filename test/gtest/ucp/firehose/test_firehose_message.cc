/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/firehose/message.h>

#include <gtest/gtest.h>
#include <string>
#include <vector>

class test_firehose_message : public ::testing::Test {
protected:
    /* Writes and reads back; @return what came out */
    std::vector<ucp_firehose_entry_t>
    pass(ucp_firehose_kind_t kind, const std::vector<ucp_firehose_entry_t> &in)
    {
        std::vector<ucp_firehose_entry_t> out;
        ucp_firehose_message_t message;
        ucp_firehose_entry_t entry;

        ucp_firehose_message_begin(&message, kind, bytes, sizeof(bytes));
        for (auto &item : in) {
            EXPECT_EQ(UCS_OK, ucp_firehose_message_add(&message, &item));
        }
        header = {(uint8_t)kind, 0, (uint16_t)message.count};
        length = message.length;
        EXPECT_EQ(UCS_OK,
                  ucp_firehose_message_open(&message, &header, sizeof(header),
                                            bytes, length));
        EXPECT_EQ(kind, message.kind);
        while (ucp_firehose_message_next(&message, &entry) == UCS_OK) {
            out.push_back(entry);
        }
        return out;
    }

    /* @return How reading it to its end ends */
    ucs_status_t read(size_t header_length, size_t payload_length)
    {
        ucp_firehose_message_t message;
        ucp_firehose_entry_t entry;
        ucs_status_t status;

        status = ucp_firehose_message_open(&message, &header, header_length,
                                           bytes, payload_length);
        while (status == UCS_OK) {
            status = ucp_firehose_message_next(&message, &entry);
        }
        return status;
    }

    ucp_firehose_header_t header;
    uint8_t bytes[1024];
    size_t length;
};

TEST_F(test_firehose_message, grants_with_keys_and_errors)
{
    const std::string key = "a key";
    ucp_firehose_entry_t good = {}, bad = {};

    good.firehose   = 1;
    good.key        = key.data();
    good.key_length = key.size();
    bad.firehose    = 2;
    bad.status      = UCS_ERR_INVALID_ADDR;
    auto out        = pass(UCP_FIREHOSE_GRANT, {good, bad, good});
    ASSERT_EQ(3u, out.size());
    EXPECT_EQ(key, std::string((const char *)out[2].key, out[2].key_length));
    EXPECT_EQ(UCS_OK, out[0].status);
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, out[1].status);
    EXPECT_EQ(0, out[1].key_length);
}

TEST_F(test_firehose_message, what_does_not_fit_is_not_written)
{
    ucp_firehose_message_t message;
    ucp_firehose_entry_t entry = {};
    unsigned count             = 0;

    ucp_firehose_message_begin(&message, UCP_FIREHOSE_MOVE, bytes, 60);
    while (ucp_firehose_message_add(&message, &entry) == UCS_OK) {
        ++count;
    }
    EXPECT_EQ(2u, count);
    EXPECT_EQ(2u, message.count);
    EXPECT_EQ(48u, message.length);
}

TEST_F(test_firehose_message, what_is_cut_short_or_too_long_is_told)
{
    const char key[]           = "0123456789";
    ucp_firehose_entry_t entry = {};

    entry.key        = key;
    entry.key_length = sizeof(key);
    pass(UCP_FIREHOSE_GRANT, {entry, entry});
    EXPECT_EQ(UCS_ERR_NO_ELEM, read(sizeof(header), length));
    for (size_t cut = 0; cut < length; ++cut) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, read(sizeof(header), cut)) << cut;
    }
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, read(sizeof(header), length + 1));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, read(sizeof(header) - 1, length));
}

/* An entry that does not end within the message is not read, though the bytes
 * behind it are there */
TEST_F(test_firehose_message, nothing_is_read_behind_the_message)
{
    const char key[] = "0123456789";

    for (int kind = UCP_FIREHOSE_HELLO; kind < UCP_FIREHOSE_KIND_LAST; ++kind) {
        ucp_firehose_entry_t entry = {};
        ucp_firehose_message_t message;

        entry.key        = key;
        entry.key_length = sizeof(key);
        pass((ucp_firehose_kind_t)kind, {entry});
        for (size_t cut = 0; cut < length; ++cut) {
            ASSERT_EQ(UCS_OK, ucp_firehose_message_open(&message, &header,
                                                        sizeof(header), bytes,
                                                        cut));
            EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                      ucp_firehose_message_next(&message, &entry))
                    << kind << " " << cut;
        }
    }
}

TEST_F(test_firehose_message, kinds_that_there_are_not)
{
    for (int kind : {0, (int)UCP_FIREHOSE_KIND_LAST, 255}) {
        header = {(uint8_t)kind, 0, 0};
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, read(sizeof(header), 0)) << kind;
    }
}
