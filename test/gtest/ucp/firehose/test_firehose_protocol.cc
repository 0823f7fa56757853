/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_protocol.h"

#include <ucs/sys/address_space.h>

#include <unistd.h>

#include <chrono>

TEST_F(test_firehose_protocol, a_move_is_granted)
{
    meet();
    say(UCP_FIREHOSE_MOVE, {page(0, 1, 0), page(3, 1, 1)});
    run();
    ASSERT_EQ(2u, count(UCP_FIREHOSE_GRANT));
    EXPECT_EQ(UCS_OK, last().entry.status);
    EXPECT_EQ(3u, last().entry.firehose);
    EXPECT_EQ(2u, pinned());
    say(UCP_FIREHOSE_MOVE, {page(0, 2, 2), move(3, 2, UCP_FIREHOSE_NOWHERE)});
    run();
    EXPECT_EQ(3u, count(UCP_FIREHOSE_GRANT));
    EXPECT_EQ(3u, pinned()); /* two of them are victims */
    EXPECT_FALSE(is_lost());
    EXPECT_EQ(UCS_OK, ucx_firehose_release(node, memory, 2 * PAGE, 0));
    EXPECT_EQ(1u, pinned());
    EXPECT_EQ(0u, count(UCP_FIREHOSE_REVOKE));
}

TEST_F(test_firehose_protocol, a_move_of_what_was_not_lent)
{
    meet();
    say(UCP_FIREHOSE_MOVE, {page(4, 1, 0)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_move_of_another_epoch)
{
    meet();
    say(UCP_FIREHOSE_MOVE, {page(0, 2, 0)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, two_moves_of_one_firehose_at_once)
{
    meet();
    say(UCP_FIREHOSE_MOVE, {page(0, 1, 0), page(0, 2, 1)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_move_before_the_grant_has_left)
{
    unsigned lost = 0;

    while_a_grant_is_to_leave([&]() {
        say(UCP_FIREHOSE_MOVE, {page(0, 2, 1)});
        lost += is_lost();
    });
    EXPECT_GT(lost, 5u);
}

TEST_F(test_firehose_protocol, a_move_into_a_bucket)
{
    meet();
    say(UCP_FIREHOSE_MOVE,
        {move(0, 1, reinterpret_cast<uint64_t>(memory) + 64)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_move_into_the_kernel)
{
    meet();
    say(UCP_FIREHOSE_MOVE, {move(0, 1, UINT64_MAX << 12)});
    EXPECT_TRUE(is_lost());
}

/* Half of the sends fail, and come all the same, once */
TEST_F(test_firehose_protocol, what_could_not_be_sent_is_sent_again)
{
    open(700000);
    hello();
    for (uint32_t epoch = 1; epoch <= 40; ++epoch) {
        messages.clear();
        say(UCP_FIREHOSE_MOVE, {page(0, epoch, epoch % 8)});
        run();
        ASSERT_EQ(1u, count(UCP_FIREHOSE_GRANT));
        (void)ucx_firehose_release(node, memory, PAGES * PAGE, 0);
        run();
        ASSERT_EQ(1u, count(UCP_FIREHOSE_REVOKE));
    }
    for (size_t number = 0; number < 20; ++number) {
        put_granted(number % 8);
    }
    EXPECT_FALSE(is_lost());
}

TEST_F(test_firehose_protocol, a_grant_that_has_not_left_is_no_promise)
{
    unsigned refused = 0;

    while_a_grant_is_to_leave([&]() {
        for (unsigned i = 0; (i < 100) && (pinned() == 0); ++i) {
            step();
        }
        if (count(UCP_FIREHOSE_GRANT) == 0) {
            (void)ucx_firehose_release(node, memory, PAGE, 0);
        }
        run();
        ASSERT_EQ(1u, count(UCP_FIREHOSE_GRANT));
        if (messages.back().entry.status == UCS_ERR_INVALID_ADDR) {
            EXPECT_EQ(0u, count(UCP_FIREHOSE_REVOKE));
            EXPECT_EQ(0u, pinned());
            ++refused;
        }
    });
    EXPECT_GT(refused, 0u);
}

TEST_F(test_firehose_protocol, a_full_message_of_grants_ends)
{
    std::vector<ucp_firehose_entry_t> moves;

    open(0, 0, 1, 80);
    hello();
    for (unsigned i = 0; i < 80; ++i) {
        moves.push_back(page(i, 1, i % PAGES));
    }
    say(UCP_FIREHOSE_MOVE, moves);
    run();
    EXPECT_EQ(80u, count(UCP_FIREHOSE_GRANT));
    EXPECT_FALSE(is_lost());
}

TEST_F(test_firehose_protocol, hellos)
{
    const struct {
        uint8_t shift;
        bool is_good;
    } rows[] = {{12, true}, {40, true}, {11, false}, {41, false}};

    for (auto &row : rows) {
        open();
        hello(4, row.shift);
        EXPECT_EQ(row.is_good, !is_lost()) << unsigned(row.shift);
        close();
    }
    meet();
    hello();
    EXPECT_TRUE(is_lost());
}

/* As many as a peer may claim are not made a table of: 2^32 of them would be some
 * 380 GB, which the kernel gives, for nothing of it is touched */
TEST_F(test_firehose_protocol, a_peer_that_claims_firehoses_without_end)
{
    size_t before;

    open();
    before = address_space("VmSize");
    ASSERT_GT(before, 0u);
    hello(UINT32_MAX);
    EXPECT_LT(address_space("VmSize"), before + (UINT64_C(8) << 30));
    EXPECT_FALSE(is_lost());
    put_granted(0);
}

TEST_F(test_firehose_protocol, a_peer_that_lends_nothing)
{
    open();
    hello(0);
    put(0);
    run();
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, ended);
}

TEST_F(test_firehose_protocol, what_is_begun_before_hello_waits)
{
    open();
    put(0);
    run();
    EXPECT_EQ(UCS_INPROGRESS, ended);
    hello();
    EXPECT_EQ(1u, count(UCP_FIREHOSE_MOVE));
}

TEST_F(test_firehose_protocol, grants)
{
    const struct {
        uint32_t firehose, epoch;
        ucs_status_t status;
        bool has_key, is_good;
    } rows[] = {
        {0, 1, UCS_OK, true, true},
        {0, 1, UCS_ERR_NO_MEMORY, false, true},
        {1, 1, UCS_OK, true, false}, /* not moved */
        {0, 2, UCS_OK, true, false},
        {0, 1, UCS_OK, false, false},
        {0, 1, UCS_INPROGRESS, true, false},
        {1u << 30, 1, UCS_OK, true, false},
    };

    for (auto &row : rows) {
        open();
        hello();
        put(0);
        run();
        auto answer = grant(row.firehose, row.epoch, row.status);
        answer.key_length *= row.has_key;
        say(UCP_FIREHOSE_GRANT, {answer});
        EXPECT_EQ(row.is_good, !is_lost())
                << row.firehose << " " << row.epoch << " " << row.status;
        EXPECT_NE(UCS_INPROGRESS, ended);
        close();
    }
}

TEST_F(test_firehose_protocol, a_grant_that_nobody_asked_for)
{
    meet();
    put_granted(0);
    say(UCP_FIREHOSE_GRANT, {grant(0, 1)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_key_that_is_no_key_is_given_back)
{
    static const char garbage[32] = "no key";

    meet();
    put(0);
    run();
    auto answer       = grant(0, 1);
    answer.key        = garbage;
    answer.key_length = sizeof(garbage);
    say(UCP_FIREHOSE_GRANT, {answer});
    run();
    EXPECT_TRUE(UCS_STATUS_IS_ERR(ended));
    EXPECT_EQ(UCP_FIREHOSE_MOVE, last().kind);
    EXPECT_EQ(UCP_FIREHOSE_NOWHERE, last().entry.bucket);
    put_granted(0);
    EXPECT_FALSE(is_lost());
}

TEST_F(test_firehose_protocol, revokes)
{
    meet();
    put_granted(0);
    messages.clear();
    say(UCP_FIREHOSE_REVOKE, {revoke(0, 0), revoke(0, 2)}); /* of other moves */
    run();
    EXPECT_TRUE(messages.empty());
    put(0);
    run();
    EXPECT_TRUE(messages.empty()); /* a hit */
    say(UCP_FIREHOSE_REVOKE, {revoke(0, 1)});
    run();
    ASSERT_EQ(1u, messages.size());
    EXPECT_EQ(UCP_FIREHOSE_NOWHERE, last().entry.bucket);
    say(UCP_FIREHOSE_REVOKE, {revoke(0, 1)}); /* again: nothing to be done */
    EXPECT_FALSE(is_lost());
    EXPECT_EQ(1u, messages.size());
    put_granted(0); /* a miss */
    say(UCP_FIREHOSE_REVOKE, {revoke(1u << 30, 1)});
    EXPECT_TRUE(is_lost());
}

/* It is given back when the put through it is there, and not found before */
TEST_F(test_firehose_protocol, a_revoke_while_a_put_is_under_way)
{
    meet();
    put_granted(0);
    messages.clear();
    say(UCP_FIREHOSE_REVOKE, {revoke(0, 1)});
    ucp_wire_sim_work(sim, 0, 2000); /* it is there before the put begins, but
                                      * is read while that is under way */
    put(0);
    ASSERT_EQ(UCS_INPROGRESS, ended);
    for (unsigned i = 0; (i < 200) && messages.empty(); ++i) {
        step();
    }
    ASSERT_EQ(1u, messages.size());
    EXPECT_EQ(UCP_FIREHOSE_NOWHERE, last().entry.bucket);
    EXPECT_EQ(UCS_OK, ended);
    put_granted(0);
    EXPECT_FALSE(is_lost());
}

/* The second one finds nothing to be taken out, and no answer is due to it */
TEST_F(test_firehose_protocol, two_revokes_while_a_put_is_under_way)
{
    meet();
    put_granted(0);
    messages.clear();
    say(UCP_FIREHOSE_REVOKE, {revoke(0, 1), revoke(0, 1)});
    ucp_wire_sim_work(sim, 0, 2000); /* as above */
    put(0);
    ASSERT_EQ(UCS_INPROGRESS, ended);
    run();
    EXPECT_EQ(UCS_OK, ended);
    EXPECT_EQ(1u, messages.size());
    put_granted(0);
    EXPECT_FALSE(is_lost());
}

TEST_F(test_firehose_protocol, who_is_lost_is_not_heard)
{
    open();
    say(UCP_FIREHOSE_MOVE, {page(9, 1, 0)});
    EXPECT_TRUE(is_lost());
    say(UCP_FIREHOSE_MOVE, {page(0, 1, 0)});
    run();
    EXPECT_EQ(0u, pinned());
    EXPECT_EQ(0u, count(UCP_FIREHOSE_GRANT));
}

TEST_F(test_firehose_protocol, a_grant_that_is_refused_holds_nothing)
{
    meet();
    failing_packs = 1;
    say(UCP_FIREHOSE_MOVE, {page(0, 1, 0)});
    run();
    ASSERT_EQ(1u, count(UCP_FIREHOSE_GRANT));
    EXPECT_EQ(UCS_ERR_IO_ERROR, last().entry.status);
    EXPECT_EQ(UCS_OK, ucx_firehose_release(node, memory, PAGE, 0));
    EXPECT_EQ(0u, pinned());
    EXPECT_EQ(0u, count(UCP_FIREHOSE_REVOKE));
}

/* What was put must be there before the firehose moves */
TEST_F(test_firehose_protocol, a_flush_that_failed_has_flushed_nothing)
{
    open();
    hello(1);
    put_granted(0);
    messages.clear();
    failing_flushes = 3;
    put(1);
    for (unsigned i = 0; (i < 400) && messages.empty(); ++i) {
        step();
    }
    EXPECT_EQ(1u, count(UCP_FIREHOSE_MOVE));
    EXPECT_EQ(0u, failing_flushes);
}

TEST_F(test_firehose_protocol, a_long_transfer_holds_a_window_of_firehoses)
{
    std::vector<ucp_firehose_entry_t> answers;

    open();
    hello(400);
    ended = UCS_INPROGRESS;
    ASSERT_EQ(UCS_INPROGRESS,
              ucx_firehose_put_nb(node, 1, memory, UINT64_C(1) << 40,
                                  300 * PAGE, done, &ended));
    run();
    ASSERT_EQ(128u, count(UCP_FIREHOSE_MOVE));
    /* One that fails begins no more */
    for (auto &one : messages) {
        if (one.kind == UCP_FIREHOSE_MOVE) {
            auto answer       = grant(one.entry.firehose, one.entry.epoch,
                                      UCS_ERR_NO_MEMORY);
            answer.key_length = 0;
            say(UCP_FIREHOSE_GRANT, {answer});
        }
    }
    for (unsigned i = 0; i < 10; ++i) {
        run();
    }
    EXPECT_EQ(128u, count(UCP_FIREHOSE_MOVE));
    EXPECT_EQ(UCS_ERR_NO_MEMORY, ended);
}

/* Neither at the peer's firehoses nor at local buckets */
TEST_F(test_firehose_protocol, who_waits_is_not_overtaken)
{
    uint64_t before;

    open();
    hello(1);
    put_granted(0);
    before = hits();
    put_from(0, 0); /* under way: the firehose is in use */
    put_from(0, 1); /* waits for it */
    put_from(0, 0); /* could go, but comes later */
    EXPECT_EQ(before + 1, hits());
    close();

    messages.clear();
    open();
    hello(4);
    for (size_t number = 0; number < 4; ++number) {
        put_granted(number);
    }
    before = puts();
    put_from(1, 0);
    put_from(2, 1); /* MAXVICTIM is two buckets */
    put_from(3, 2);
    put_from(1, 3);
    EXPECT_EQ(before + 2, puts());
    run();
    EXPECT_EQ(before + 4, puts());
}

/* UCX may unmap memory inside of a call that the instance makes: nobody could
 * let go of it before that call returns */
TEST_F(test_firehose_protocol, an_unmapping_inside_the_instance_does_not_wait)
{
    auto least = std::chrono::nanoseconds::max();

    open(0, 0, 1, 4, UCX_FIREHOSE_FLAG_STRICT);
    instance = node;
    hello();
    for (uint32_t epoch = 1; epoch <= 10; ++epoch) {
        auto before = std::chrono::steady_clock::now();

        unmapping = reinterpret_cast<uint64_t>(memory + epoch % 4 * PAGE);
        say(UCP_FIREHOSE_MOVE, {page(0, epoch, epoch % 4)});
        run();
        unmapping = 0;
        least = std::min<std::chrono::nanoseconds>(
                least, std::chrono::steady_clock::now() - before);
    }
    EXPECT_LT(least, std::chrono::milliseconds(900));
    EXPECT_FALSE(is_lost());
}
