/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

extern "C" {
#include <ucp/firehose/firehose_core.h>
#include <ucp/firehose/message.h>
#include <ucp/wire/wire_sim.h>
}

#include <sys/mman.h>
#include <sys/time.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

/* Node 0 is a firehose, node 1 says what the test has it say: what keeps to the
 * protocol is answered, by a peer that does not it is lost */
class test_firehose_protocol : public ::testing::Test {
protected:
    static constexpr size_t PAGE = 4096, PAGES = 32;

    struct heard {
        ucp_firehose_kind_t kind;
        ucp_firehose_entry_t entry;
        std::string key;
    };

    /* What goes round in a circle is ended by SIGPROF */
    void SetUp() override
    {
        struct itimerval at_last = {{0, 0}, {5, 0}}; /* seconds of processor */

        ASSERT_EQ(0, setitimer(ITIMER_PROF, &at_last, nullptr));
    }

    void open(unsigned send_fails = 0, unsigned inline_chance = 0,
              uint64_t seed = 1, size_t lent = 4, unsigned flags = 0)
    {
        ucx_firehose_params_t params = {};
        ucp_wire_sim_params_t net    = {};
        ucp_wire_handlers_t handlers = {on_message, on_failure, this};

        net.num_nodes     = 2;
        net.seed          = seed;
        net.latency       = 1000;
        net.send_fails    = send_fails;
        net.inline_chance = inline_chance;
        sim               = ucp_wire_sim_create(&net);
        params.field_mask = UCX_FIREHOSE_PARAM_FIELD_VICTIMS |
                            UCX_FIREHOSE_PARAM_FIELD_FLAGS;
        params.flags      = flags;
        params.num_nodes  = 2;
        params.memory     = lent * PAGE;
        params.victims    = 2 * PAGE;
        ASSERT_EQ(UCS_OK, ucp_firehose_create(&params, make_wire, this, &node));
        ASSERT_EQ(UCS_OK, ucp_wire_sim_open(sim, 1, &handlers, &wire));
        ASSERT_EQ(UCS_OK, ucp_firehose_greet(node, 1));
        memory = map();
        theirs = map();
        ASSERT_EQ(UCS_OK, ucp_wire_mem_reg(wire, theirs, PAGES * PAGE, &mem));
        ASSERT_EQ(UCS_OK,
                  ucp_wire_mem_pack(wire, mem, &packed, &packed_length));
    }

    void TearDown() override
    {
        struct itimerval never = {};

        close();
        ASSERT_EQ(0, setitimer(ITIMER_PROF, &never, nullptr));
    }

    void close()
    {
        if (sim == nullptr) {
            return;
        }
        run();
        ucp_firehose_stop(node);
        for (unsigned i = 0; (i < 1000) && !ucp_firehose_is_idle(node); ++i) {
            run();
        }
        EXPECT_TRUE(ucp_firehose_is_idle(node));
        EXPECT_TRUE(ucp_firehose_is_valid(node));
        ucp_firehose_destroy(node);
        ucp_wire_mem_dereg(wire, mem);
        ucp_wire_destroy(wire);
        ucp_wire_sim_destroy(sim);
        sim = nullptr;
        munmap(memory, PAGES * PAGE);
        munmap(theirs, PAGES * PAGE);
    }

    static char *map()
    {
        void *memory = mmap(nullptr, PAGES * PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        EXPECT_NE(MAP_FAILED, memory);
        return static_cast<char *>(memory);
    }

    /* The network's wire, whose flushes and keys fail when the test says so */
    static ucs_status_t make_wire(void *arg,
                                  const ucp_wire_handlers_t *handlers,
                                  ucp_wire_t **wire_p)
    {
        auto self = static_cast<test_firehose_protocol *>(arg);
        ucs_status_t status;

        status = ucp_wire_sim_open(self->sim, 0, handlers, wire_p);
        if (status == UCS_OK) {
            below                   = (*wire_p)->ops;
            self->ops               = *below;
            self->ops.flush         = flush;
            self->ops.mem_pack      = pack;
            (*wire_p)->ops          = &self->ops;
            failing_flushes         = 0;
            failing_packs           = 0;
            unmapping               = 0;
        }
        return status;
    }

    struct flushing {
        ucp_wire_done_func_t done;
        void *arg;
        bool fails;
    };

    static void flushed(void *arg, ucs_status_t status)
    {
        auto flush = static_cast<flushing *>(arg);

        flush->done(flush->arg, flush->fails ? UCS_ERR_NO_MEMORY : status);
        delete flush;
    }

    static ucs_status_t flush(ucp_wire_t *wire, unsigned peer,
                              ucp_wire_done_func_t done, void *arg)
    {
        auto own = new flushing{done, arg, failing_flushes > 0};
        ucs_status_t status;

        failing_flushes -= own->fails;
        status           = below->flush(wire, peer, flushed, own);
        if (status == UCS_INPROGRESS) {
            return status;
        }
        status = own->fails ? UCS_ERR_NO_MEMORY : status;
        delete own;
        return status;
    }

    static void unmap(uint64_t address)
    {
        ucp_firehose_unmapped(instance, address, address + PAGE);
        ucp_firehose_mapped(instance, address, address + PAGE);
    }

    static ucs_status_t pack(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                             const void **packed_p, size_t *length_p)
    {
        if (unmapping != 0) {
            unmap(unmapping);
        }
        if (failing_packs > 0) {
            --failing_packs;
            return UCS_ERR_IO_ERROR;
        }
        return below->mem_pack(wire, mem, packed_p, length_p);
    }

    static void on_failure(void *arg, unsigned peer, ucs_status_t status)
    {
        (void)arg, (void)peer, (void)status;
    }

    static void on_message(void *arg, unsigned peer, const void *header,
                           size_t header_length, const void *payload,
                           size_t length)
    {
        auto self = static_cast<test_firehose_protocol *>(arg);
        ucp_firehose_message_t message;
        heard one;

        (void)peer;
        ASSERT_EQ(UCS_OK, ucp_firehose_message_open(&message, header,
                                                    header_length, payload,
                                                    length));
        while (ucp_firehose_message_next(&message, &one.entry) == UCS_OK) {
            one.kind = message.kind;
            one.key.assign(static_cast<const char *>(one.entry.key),
                           one.entry.key_length);
            self->messages.push_back(one);
        }
    }

    void step()
    {
        int next = ucp_wire_sim_next(sim);

        if (next != 1) {
            ucx_firehose_progress(node);
        } else {
            ucp_wire_progress(wire);
        }
    }

    void run()
    {
        for (unsigned i = 0; i < 200; ++i) {
            step();
        }
        EXPECT_TRUE(ucp_firehose_is_valid(node));
    }

    /* Sent until the network takes it */
    void say(ucp_firehose_kind_t kind,
             const std::vector<ucp_firehose_entry_t> &entries)
    {
        uint8_t header[UCP_FIREHOSE_HEADER_SIZE];
        ucp_firehose_message_t message;
        uint8_t bytes[2048];

        ucp_firehose_message_begin(&message, kind, bytes, sizeof(bytes));
        for (auto &entry : entries) {
            ASSERT_EQ(UCS_OK, ucp_firehose_message_add(&message, &entry));
        }
        ucp_firehose_message_header(&message, header);
        while (UCS_STATUS_IS_ERR(ucp_wire_am_send(
                wire, 0, header, sizeof(header), bytes, message.length, NULL,
                NULL))) {
        }
    }

    void hello(uint32_t firehoses = 4, uint8_t shift = 12)
    {
        ucp_firehose_entry_t entry = {};

        entry.firehose = firehoses;
        entry.shift    = shift;
        say(UCP_FIREHOSE_HELLO, {entry});
        run();
    }

    ucp_firehose_entry_t
    move(uint32_t firehose, uint32_t epoch, uint64_t bucket)
    {
        ucp_firehose_entry_t entry = {};

        entry.firehose = firehose;
        entry.epoch    = epoch;
        entry.bucket   = bucket;
        return entry;
    }

    ucp_firehose_entry_t page(uint32_t firehose, uint32_t epoch, size_t number)
    {
        return move(firehose, epoch,
                    reinterpret_cast<uint64_t>(memory + number * PAGE));
    }

    ucp_firehose_entry_t grant(uint32_t firehose, uint32_t epoch,
                               ucs_status_t status = UCS_OK)
    {
        ucp_firehose_entry_t entry = {};

        entry.firehose   = firehose;
        entry.epoch      = epoch;
        entry.status     = status;
        entry.key        = packed;
        entry.key_length = packed_length;
        return entry;
    }

    ucp_firehose_entry_t revoke(uint32_t firehose, uint32_t epoch)
    {
        return move(firehose, epoch, 0);
    }

    bool is_lost()
    {
        run();
        return ucx_firehose_put_nb(node, 1, memory, 0, 0, NULL, NULL) != UCS_OK;
    }

    unsigned count(ucp_firehose_kind_t kind)
    {
        unsigned sum = 0;

        for (auto &one : messages) {
            sum += one.kind == kind;
        }
        return sum;
    }

    const heard &last()
    {
        return messages.back();
    }

    static void done(void *arg, ucs_status_t status)
    {
        *static_cast<ucs_status_t *>(arg) = status;
    }

    void put(size_t number)
    {
        ucs_status_t status;

        ended  = UCS_INPROGRESS;
        status = ucx_firehose_put_nb(node, 1, memory,
                                     reinterpret_cast<uint64_t>(
                                             theirs + number * PAGE),
                                     8, done, &ended);
        if (status != UCS_INPROGRESS) {
            ended = status;
        }
    }

    /* A put whose move has come and been granted */
    void put_granted(size_t number)
    {
        put(number);
        run();
        ASSERT_EQ(UCP_FIREHOSE_MOVE, last().kind);
        say(UCP_FIREHOSE_GRANT,
            {grant(last().entry.firehose, last().entry.epoch)});
        run();
        ASSERT_EQ(UCS_OK, ended);
    }

    size_t pinned()
    {
        ucx_firehose_attr_t attr;

        ucx_firehose_query(node, &attr);
        return attr.pinned / PAGE;
    }

    uint64_t hits()
    {
        ucx_firehose_attr_t attr;

        ucx_firehose_query(node, &attr);
        return attr.hits;
    }

    /* Puts that have begun to move data */
    uint64_t puts()
    {
        ucp_wire_sim_stats_t stats;

        ucp_wire_sim_get_stats(sim, 0, &stats);
        return stats.puts;
    }

    ucs_status_t put_from(size_t source, size_t number)
    {
        return ucx_firehose_put_nb(node, 1, memory + source * PAGE,
                                   reinterpret_cast<uint64_t>(
                                           theirs + number * PAGE),
                                   8, NULL, NULL);
    }

    static const ucp_wire_ops_t *below;
    static unsigned failing_flushes, failing_packs;
    static uint64_t unmapping; /* inside of pack */
    static ucx_firehose_h instance;
    ucp_wire_ops_t ops;
    ucp_wire_sim_t *sim = nullptr;
    ucx_firehose_h node = nullptr;
    ucp_wire_t *wire    = nullptr;
    ucp_wire_mem_t *mem = nullptr;
    char *memory = nullptr, *theirs = nullptr;
    const void *packed = nullptr;
    size_t packed_length = 0;
    std::vector<heard> messages;
    ucs_status_t ended = UCS_OK;
};

const ucp_wire_ops_t *test_firehose_protocol::below;
unsigned test_firehose_protocol::failing_flushes;
unsigned test_firehose_protocol::failing_packs;
uint64_t test_firehose_protocol::unmapping;
ucx_firehose_h test_firehose_protocol::instance;

TEST_F(test_firehose_protocol, a_move_is_granted)
{
    open();
    hello();
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
    open();
    hello();
    say(UCP_FIREHOSE_MOVE, {page(4, 1, 0)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_move_of_another_epoch)
{
    open();
    hello();
    say(UCP_FIREHOSE_MOVE, {page(0, 2, 0)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, two_moves_of_one_firehose_at_once)
{
    open();
    hello();
    say(UCP_FIREHOSE_MOVE, {page(0, 1, 0), page(0, 2, 1)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_move_before_the_grant_has_left)
{
    unsigned lost = 0;

    for (uint64_t seed = 1; seed <= 20; ++seed) {
        messages.clear();
        open(900000, 0, seed);
        hello();
        say(UCP_FIREHOSE_MOVE, {page(0, 1, 0)});
        say(UCP_FIREHOSE_MOVE, {page(0, 2, 1)});
        lost += is_lost();
        close();
    }
    EXPECT_GT(lost, 5u);
}

TEST_F(test_firehose_protocol, a_move_into_a_bucket)
{
    open();
    hello();
    say(UCP_FIREHOSE_MOVE,
        {move(0, 1, reinterpret_cast<uint64_t>(memory) + 64)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_move_into_the_kernel)
{
    open();
    hello();
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

    for (uint64_t seed = 1; seed <= 20; ++seed) {
        messages.clear();
        open(900000, 0, seed);
        hello();
        say(UCP_FIREHOSE_MOVE, {page(0, 1, 0)});
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
        close();
    }
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
    open();
    hello();
    hello();
    EXPECT_TRUE(is_lost());
}

/* As many as a peer may claim are not made a table of */
TEST_F(test_firehose_protocol, a_peer_that_claims_firehoses_without_end)
{
    open();
    hello(UINT32_MAX);
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
    open();
    hello();
    put_granted(0);
    say(UCP_FIREHOSE_GRANT, {grant(0, 1)});
    EXPECT_TRUE(is_lost());
}

TEST_F(test_firehose_protocol, a_key_that_is_no_key_is_given_back)
{
    static const char garbage[32] = "no key";

    open();
    hello();
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
    open();
    hello();
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
    open();
    hello();
    put_granted(0);
    messages.clear();
    say(UCP_FIREHOSE_REVOKE, {revoke(0, 1)});
    ucp_wire_sim_work(sim, 0, 900); /* it comes before the put has ended */
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
    open();
    hello();
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
