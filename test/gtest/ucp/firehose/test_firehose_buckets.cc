/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <test/inside/firehose_inside.h>

#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <set>
#include <vector>

#include <sys/time.h>

/* Pins nothing, and knows what is pinned */
struct firehose_pins {
    static constexpr size_t SIZE = 4096;

    std::set<uint64_t> pinned;
    unsigned fail_in = 0; /* the so many-th pin fails; 0: none */
    std::vector<uint64_t> doom_in_pin; /* each dooms what is being pinned */
    ucp_firehose_buckets_t *table = nullptr;

    static ucs_status_t pin(void *arg, uint64_t address, size_t length,
                            void **pin_p)
    {
        auto self = static_cast<firehose_pins *>(arg);

        EXPECT_EQ(SIZE, length);
        if ((self->fail_in > 0) && (--self->fail_in == 0)) {
            return UCS_ERR_NO_MEMORY;
        }
        if (!self->doom_in_pin.empty()) {
            self->doom_in_pin.pop_back();
            ucp_firehose_buckets_doom(self->table, address, address + 1);
        }
        EXPECT_TRUE(self->pinned.insert(address).second ||
                    self->table->num_dooms > 0);
        *pin_p = reinterpret_cast<void *>(address);
        ++self->live;
        return UCS_OK;
    }

    static void unpin(void *arg, void *pin)
    {
        auto self = static_cast<firehose_pins *>(arg);

        self->pinned.erase(reinterpret_cast<uint64_t>(pin));
        EXPECT_GT(self->live--, 0u);
    }

    unsigned live = 0; /* pins that have not been given back */
};

class test_firehose_buckets : public ::testing::Test {
protected:
    static constexpr size_t SIZE    = firehose_pins::SIZE;
    static constexpr size_t REMOTE  = 4;
    static constexpr size_t VICTIMS = 3;

    void SetUp() override
    {
        const ucp_firehose_pin_ops_t ops = {firehose_pins::pin,
                                            firehose_pins::unpin, &pins};

        ASSERT_UCS_OK(ucp_firehose_buckets_init(&table, SIZE, REMOTE, VICTIMS,
                                                &ops));
        pins.table = &table;
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucp_firehose_buckets_is_valid(&table));
        ucp_firehose_buckets_cleanup(&table);
        EXPECT_EQ(0u, pins.live);
    }

    static void ASSERT_UCS_OK(ucs_status_t status)
    {
        ASSERT_EQ(UCS_OK, status);
    }

    ucp_firehose_bucket_t *get(unsigned number, ucp_firehose_use_t use,
                               ucs_status_t expected = UCS_OK)
    {
        ucp_firehose_bucket_t *bucket = nullptr;

        EXPECT_EQ(expected,
                  ucp_firehose_buckets_get(&table, number * SIZE, use,
                                           &bucket));
        EXPECT_TRUE(ucp_firehose_buckets_is_valid(&table));
        return bucket;
    }

    ucp_firehose_bucket_t *remote(unsigned number)
    {
        return get(number, UCP_FIREHOSE_REMOTE);
    }

    ucp_firehose_bucket_t *local(unsigned number)
    {
        return get(number, UCP_FIREHOSE_LOCAL);
    }

    void put(ucp_firehose_bucket_t *bucket, ucp_firehose_use_t use)
    {
        ucp_firehose_buckets_put(&table, bucket, use);
        EXPECT_TRUE(ucp_firehose_buckets_is_valid(&table));
    }

    firehose_pins pins;
    ucp_firehose_buckets_t table;
};

TEST_F(test_firehose_buckets, one_registration_serves_all)
{
    auto a = remote(1), b = remote(1), c = local(1);

    EXPECT_EQ(a, b);
    EXPECT_EQ(a, c);
    EXPECT_EQ(1u, table.num_pins);
    put(a, UCP_FIREHOSE_REMOTE);
    put(b, UCP_FIREHOSE_REMOTE);
    EXPECT_EQ(1u, table.local_only);
    put(c, UCP_FIREHOSE_LOCAL);
    EXPECT_EQ(1u, table.num_victims);
    EXPECT_EQ(1u, pins.live);
}

TEST_F(test_firehose_buckets, the_oldest_victim_goes_first)
{
    for (unsigned i = 1; i <= VICTIMS; ++i) {
        put(remote(i), UCP_FIREHOSE_REMOTE);
    }
    put(remote(1), UCP_FIREHOSE_REMOTE); /* the youngest now */
    put(remote(9), UCP_FIREHOSE_REMOTE);
    EXPECT_EQ(0u, pins.pinned.count(2 * SIZE));
    EXPECT_EQ(1u, pins.pinned.count(1 * SIZE));
    EXPECT_EQ(VICTIMS, pins.live);
}

TEST_F(test_firehose_buckets, a_victim_that_is_wanted_again_is_not_pinned_again)
{
    put(local(1), UCP_FIREHOSE_LOCAL);
    put(remote(1), UCP_FIREHOSE_REMOTE);
    EXPECT_EQ(1u, table.num_pins);
}

TEST_F(test_firehose_buckets, local_uses_draw_on_maxvictim_alone)
{
    std::vector<ucp_firehose_bucket_t *> used;

    for (unsigned i = 1; i <= VICTIMS; ++i) {
        used.push_back(local(i));
    }
    get(99, UCP_FIREHOSE_LOCAL, UCS_ERR_NO_RESOURCE);
    for (unsigned i = 1; i <= REMOTE; ++i) {
        used.push_back(remote(10 + i)); /* what was promised is there */
    }
    EXPECT_EQ(REMOTE + VICTIMS, pins.live);
    get(99, UCP_FIREHOSE_REMOTE, UCS_ERR_NO_RESOURCE);
    for (unsigned i = 0; i < used.size(); ++i) {
        put(used[i], (i < VICTIMS) ? UCP_FIREHOSE_LOCAL : UCP_FIREHOSE_REMOTE);
    }
}

/* What a firehose leaves while a transfer uses it takes the place of another */
TEST_F(test_firehose_buckets, the_bound_holds_when_a_firehose_leaves_a_transfer)
{
    std::vector<ucp_firehose_bucket_t *> locals, remotes;

    for (unsigned i = 1; i <= REMOTE; ++i) {
        remotes.push_back(remote(i));
        local(i);
    }
    for (unsigned i = 1; i <= VICTIMS; ++i) {
        locals.push_back(local(10 + i));
    }
    put(remotes[0], UCP_FIREHOSE_REMOTE);
    EXPECT_EQ(REMOTE + VICTIMS, pins.live);
    get(50, UCP_FIREHOSE_REMOTE, UCS_ERR_NO_RESOURCE); /* it waits */
    put(locals[0], UCP_FIREHOSE_LOCAL);
    put(remote(50), UCP_FIREHOSE_REMOTE);
    EXPECT_LE(table.peak, REMOTE + VICTIMS);

    put(remotes[0], UCP_FIREHOSE_LOCAL);
    for (unsigned i = 1; i < REMOTE; ++i) {
        put(remotes[i], UCP_FIREHOSE_LOCAL);
        put(remotes[i], UCP_FIREHOSE_REMOTE);
    }
    put(locals[1], UCP_FIREHOSE_LOCAL);
    put(locals[2], UCP_FIREHOSE_LOCAL);
}

TEST_F(test_firehose_buckets, what_fails_leaves_nothing)
{
    pins.fail_in = 1;
    get(1, UCP_FIREHOSE_REMOTE, UCS_ERR_NO_MEMORY);
    EXPECT_EQ(0u, table.pinned);
    put(remote(1), UCP_FIREHOSE_REMOTE);
}

TEST_F(test_firehose_buckets, what_is_doomed_is_not_found_again)
{
    auto old = remote(1);

    ucp_firehose_buckets_doom(&table, SIZE + 17, SIZE + 18);
    auto fresh = remote(1);

    EXPECT_NE(old, fresh);
    EXPECT_EQ(2u, pins.live);
    EXPECT_TRUE(ucp_firehose_buckets_is_doomed(&table, table.num_dooms));
    EXPECT_EQ(old, ucp_firehose_buckets_next_struck(&table));
    EXPECT_EQ(nullptr, ucp_firehose_buckets_next_struck(&table));
    EXPECT_TRUE(ucp_firehose_buckets_is_doomed(&table, table.num_dooms));
    put(old, UCP_FIREHOSE_REMOTE);
    EXPECT_FALSE(ucp_firehose_buckets_is_doomed(&table, table.num_dooms));
    EXPECT_EQ(1u, pins.live);
    put(fresh, UCP_FIREHOSE_REMOTE);
}

/* So long a range is looked for among all buckets */
TEST_F(test_firehose_buckets, a_range_ends_before_its_end)
{
    auto inside = remote(99), behind = remote(100);

    ucp_firehose_buckets_doom(&table, 1, 100 * SIZE);
    EXPECT_EQ(inside, ucp_firehose_buckets_next_struck(&table));
    EXPECT_EQ(nullptr, ucp_firehose_buckets_next_struck(&table));
    put(inside, UCP_FIREHOSE_REMOTE);
    put(behind, UCP_FIREHOSE_REMOTE);
}

TEST_F(test_firehose_buckets, a_doomed_victim_goes_at_the_next_look)
{
    put(remote(1), UCP_FIREHOSE_REMOTE);
    ucp_firehose_buckets_doom(&table, 0, UINT64_MAX); /* by all chains */
    EXPECT_EQ(1u, table.idle_doomed);
    EXPECT_TRUE(ucp_firehose_buckets_is_valid(&table));
    EXPECT_EQ(nullptr, ucp_firehose_buckets_next_struck(&table));
    EXPECT_EQ(0u, pins.live);
}

TEST_F(test_firehose_buckets, memory_that_goes_meanwhile_is_pinned_anew)
{
    pins.doom_in_pin.assign(1, 0);
    auto bucket = remote(1);

    EXPECT_EQ(0u, bucket->doom);
    EXPECT_EQ(2u, table.num_pins);
    EXPECT_EQ(1u, pins.live);
    put(bucket, UCP_FIREHOSE_REMOTE);

    pins.doom_in_pin.assign(100, 0);
    get(2, UCP_FIREHOSE_REMOTE, UCS_ERR_INVALID_ADDR);
    EXPECT_EQ(1u, pins.live);
    pins.doom_in_pin.clear();
}

static ucp_firehose_buckets_t *signal_table;
static volatile sig_atomic_t signal_count;

static void signal_doom(int)
{
    ucp_firehose_buckets_doom(signal_table, 0, 4 * firehose_pins::SIZE);
    ++signal_count;
}

TEST_F(test_firehose_buckets, a_signal_handler_may_doom)
{
    struct itimerval often = {{0, 50}, {0, 50}}, never = {};
    struct itimerval at_last = {{0, 0}, {5, 0}}; /* seconds of processor */
    struct sigaction action = {}, before;

    signal_table      = &table;
    signal_count      = 0;
    action.sa_handler = signal_doom;
    action.sa_flags   = SA_RESTART;
    ASSERT_EQ(0, sigaction(SIGALRM, &action, &before));
    /* A handler that waits for its own thread is ended by SIGPROF */
    ASSERT_EQ(0, setitimer(ITIMER_PROF, &at_last, nullptr));
    ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, nullptr));
    for (unsigned i = 0; signal_count < 300; ++i) {
        ucp_firehose_bucket_t *bucket;

        if (ucp_firehose_buckets_get(&table, (i % 8) * SIZE,
                                     UCP_FIREHOSE_REMOTE, &bucket) == UCS_OK) {
            ucp_firehose_buckets_put(&table, bucket, UCP_FIREHOSE_REMOTE);
        }
        while (ucp_firehose_buckets_next_struck(&table) != nullptr) {
        }
    }
    ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, nullptr));
    ASSERT_EQ(0, setitimer(ITIMER_PROF, &never, nullptr));
    ASSERT_EQ(0, sigaction(SIGALRM, &before, nullptr));
    EXPECT_GT(table.num_dooms, 0u);
}

/* Against a model of who uses what; the bound at every step */
TEST_F(test_firehose_buckets, stress)
{
    std::mt19937 random(5);
    std::vector<std::pair<ucp_firehose_bucket_t *, ucp_firehose_use_t>> used;
    unsigned refused = 0, dooms = 0;

    for (unsigned step = 0; step < 100000; ++step) {
        auto use = (random() % 2) ? UCP_FIREHOSE_REMOTE : UCP_FIREHOSE_LOCAL;
        unsigned what = random() % 100;

        if ((what < 48) && (used.size() < 12)) {
            ucp_firehose_bucket_t *bucket;
            uint64_t at = (random() % 12) * SIZE;
            auto status = ucp_firehose_buckets_get(&table, at, use, &bucket);

            if (status == UCS_OK) {
                ASSERT_EQ(at, bucket->elem.key);
                ASSERT_EQ(0u, bucket->doom);
                used.emplace_back(bucket, use);
            } else {
                ASSERT_EQ(UCS_ERR_NO_RESOURCE, status);
                ++refused;
            }
        } else if ((what < 96) && !used.empty()) {
            std::swap(used[random() % used.size()], used.back());
            ucp_firehose_buckets_put(&table, used.back().first,
                                     used.back().second);
            used.pop_back();
        } else if (what < 98) {
            ucp_firehose_buckets_doom(&table, (random() % 12) * SIZE,
                                      (random() % 14) * SIZE);
            ++dooms;
        } else {
            ucp_firehose_buckets_next_struck(&table);
        }
        ASSERT_TRUE(ucp_firehose_buckets_is_valid(&table));
        ASSERT_EQ(table.pinned, pins.live);
        ASSERT_LE(pins.live, REMOTE + VICTIMS);
    }
    EXPECT_GT(refused, 100u);
    EXPECT_GT(dooms, 100u);
    for (auto &use : used) {
        ucp_firehose_buckets_put(&table, use.first, use.second);
    }
}

/* The short way of what hits */
class test_firehose_touch : public test_firehose_buckets {
protected:
    ucp_firehose_bucket_t *touch(unsigned number)
    {
        return ucp_firehose_buckets_touch(&table, number * SIZE);
    }

    void use(unsigned number)
    {
        put(local(number), UCP_FIREHOSE_LOCAL);
    }
};

TEST_F(test_firehose_touch, only_what_is_pinned)
{
    EXPECT_EQ(nullptr, touch(1));
    use(1);
    EXPECT_NE(nullptr, touch(1));
    ucp_firehose_buckets_doom(&table, SIZE, SIZE + 1);
    EXPECT_EQ(nullptr, touch(1));
}

TEST_F(test_firehose_touch, a_victim_that_is_touched_goes_later)
{
    for (unsigned i = 1; i <= VICTIMS; ++i) {
        use(i);
    }
    EXPECT_NE(nullptr, touch(1));
    use(VICTIMS + 1);
    EXPECT_NE(nullptr, touch(1));
    EXPECT_EQ(nullptr, touch(2));
    EXPECT_EQ(VICTIMS, pins.live);
}

TEST_F(test_firehose_touch, held_and_given_back)
{
    use(1);
    ucp_firehose_bucket_t *bucket = touch(1);
    ucp_firehose_buckets_hold(&table, bucket);
    EXPECT_TRUE(ucp_firehose_buckets_is_valid(&table));
    ucp_firehose_buckets_hold(&table, bucket); /* a second transfer */
    put(bucket, UCP_FIREHOSE_LOCAL);
    put(bucket, UCP_FIREHOSE_LOCAL);
    EXPECT_EQ(1u, pins.live);
}

/* The memory goes between the look and the transfer that goes on */
TEST_F(test_firehose_touch, doomed_before_it_is_held)
{
    use(1);
    ucp_firehose_bucket_t *bucket = touch(1);
    ucp_firehose_buckets_doom(&table, SIZE, 2 * SIZE);
    ucp_firehose_buckets_hold(&table, bucket);
    EXPECT_TRUE(ucp_firehose_buckets_is_valid(&table));
    EXPECT_EQ(1u, pins.live);
    EXPECT_EQ(bucket, ucp_firehose_buckets_next_struck(&table));
    EXPECT_EQ(1u, pins.live);
    EXPECT_TRUE(ucp_firehose_buckets_is_doomed(&table, table.num_dooms));
    put(bucket, UCP_FIREHOSE_LOCAL);
    EXPECT_EQ(0u, pins.live);
    EXPECT_FALSE(ucp_firehose_buckets_is_doomed(&table, table.num_dooms));
}
