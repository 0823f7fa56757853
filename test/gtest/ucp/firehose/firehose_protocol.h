/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_FIREHOSE_PROTOCOL_H_
#define TEST_FIREHOSE_PROTOCOL_H_

#include <gtest/gtest.h>

extern "C" {
#include <test/inside/firehose_inside.h>
#include <ucp/firehose/message.h>
#include <bench/wire/wire_sim.h>
}

#include <sys/mman.h>
#include <sys/time.h>

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
        ASSERT_EQ(UCS_OK, ucp_firehose_create(&params, make_wire(), &node));
        ASSERT_EQ(UCS_OK, ucp_wire_sim_open(sim, 1, &handlers, &wire));
        ucp_firehose_greet(node, 1);
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

    /** The node, and its peer, which has said so. */
    void meet()
    {
        open();
        hello();
    }

    static char *map()
    {
        void *memory = mmap(nullptr, PAGES * PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        EXPECT_NE(MAP_FAILED, memory);
        return static_cast<char *>(memory);
    }

    /* The network's wire, whose flushes and keys fail when the test says so */
    ucp_wire_t *make_wire()
    {
        ucp_wire_t *made;

        EXPECT_EQ(UCS_OK, ucp_wire_sim_open(sim, 0, nullptr, &made));
        below           = made->ops;
        ops             = *below;
        ops.flush       = flush;
        ops.mem_pack    = pack;
        made->ops       = &ops;
        failing_flushes = 0;
        failing_packs   = 0;
        unmapping       = 0;
        return made;
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
    }

    static void on_message(void *arg, unsigned peer, const void *header,
                           size_t header_length, const void *payload,
                           size_t length)
    {
        auto self = static_cast<test_firehose_protocol *>(arg);
        ucp_firehose_message_t message;
        heard one;

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
        ucp_firehose_header_t header;
        ucp_firehose_message_t message;
        uint8_t bytes[8192];

        ucp_firehose_message_begin(&message, kind, bytes, sizeof(bytes));
        for (auto &entry : entries) {
            ASSERT_EQ(UCS_OK, ucp_firehose_message_add(&message, &entry));
        }
        header = {(uint8_t)kind, 0, (uint16_t)message.count};
        while (UCS_STATUS_IS_ERR(ucp_wire_am_send(
                wire, 0, &header, sizeof(header), bytes, message.length, NULL,
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

    /* By twenty seeds: most sends fail, so that the grant of a first move may
     * not have left yet when the body begins */
    template<typename body_t> void while_a_grant_is_to_leave(body_t body)
    {
        for (uint64_t seed = 1; seed <= 20; ++seed) {
            messages.clear();
            open(900000, 0, seed);
            hello();
            say(UCP_FIREHOSE_MOVE, {page(0, 1, 0)});
            body();
            close();
        }
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

    static inline const ucp_wire_ops_t *below;
    static inline unsigned failing_flushes, failing_packs;
    static inline uint64_t unmapping; /* inside of pack */
    static inline ucx_firehose_h instance;
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

#endif
