/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef REGCACHE_WORLD_H_
#define REGCACHE_WORLD_H_

#include <test/inside/regcache_inside.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <algorithm>
#include <atomic>
#include <memory>

/**
 * A world for one cache: a virtual clock that moves only when it is told to
 * (and by the cost of each lower call), a lower domain that counts, can fail
 * and can be interrupted, and a helper that is stepped by hand.
 */
class regcache_world {
public:
    struct registration {
        uintptr_t start;
        size_t    length;
        unsigned  flags;
    };

    /* Cost of a registration: base + per page; a deregistration a third */
    static constexpr uint64_t REG_BASE_NS = 1000;
    static constexpr uint64_t REG_PAGE_NS = 50;
    static constexpr size_t   PAGE        = 4096;

    /* What a use may ask for; of the cache's mask, but for the last */
    static constexpr unsigned LOCAL_READ  = 1;
    static constexpr unsigned LOCAL_WRITE = 2;
    static constexpr unsigned REMOTE_GET  = 4;
    static constexpr unsigned REMOTE_PUT  = 8;
    static constexpr unsigned ACCESS      = 15;
    static constexpr unsigned NOT_ACCESS  = 16;

    explicit regcache_world(ucs_regcache_policy_t policy)
    {
        params             = {};
        params.policy      = policy;
        params.min_size    = 16384;
        params.max_pinned  = SIZE_MAX;
        params.max_regions = ULONG_MAX;
        params.page_size   = PAGE;
        params.access_mask = ACCESS;
    }

    ~regcache_world()
    {
        if (cache != nullptr) {
            close();
        }
    }

    void open()
    {
        ucs_regcache_env_t env = {};

        env.arg          = this;
        env.mem_reg      = mem_reg;
        env.mem_dereg    = mem_dereg;
        env.complete     = complete;
        env.now          = [](void *arg) {
            ++self(arg)->reads;
            if (self(arg)->on_now) {
                self(arg)->on_now();
            }
            return self(arg)->now.load();
        };
        env.wake         = [](void *arg) {
            ++self(arg)->wakes;
            ++self(arg)->woken;
        };
        env.wait         = wait;
        env.wake_waiters = [](void*, uint32_t*) {};
        env.listen = [](void *arg, int listens) {
            self(arg)->listens += listens ? 1 : -1;
        };
        if (on_inspect) {
            env.inspect = [](void *arg, unsigned flags, uintptr_t *start_p,
                             uintptr_t *end_p) {
                return int(self(arg)->on_inspect(flags, start_p, end_p));
            };
        }
        if (on_claim) {
            static const ucs_regcache_budget_t budget = {claim, unclaim, ask,
                                                         refused, ask_back,
                                                         learn};
            env.budget = &budget;
        }
        env.leave_bytes = leave_bytes;
        ASSERT_EQ(UCS_OK, ucs_regcache_create(&params, &env, &cache));
    }

    void close()
    {
        EXPECT_STREQ(nullptr, invalid());
        ucs_regcache_destroy(cache);
        cache = nullptr;
        EXPECT_TRUE(live.empty()) << live.size() << " registrations leaked";
    }

    /** One use that takes no time. From any thread: the helper, which only one
     *  thread may step, does not run meanwhile. */
    void touch(uintptr_t start, size_t length, uintptr_t sp = 1)
    {
        ucs_regcache_memh_t memh = get(start, length, sp);
        if (memh != nullptr) {
            put(memh);
        }
    }

    /** One use: get, hold for @a hold_ns, put. */
    void use(uintptr_t start, size_t length, uint64_t hold_ns = 0,
             uintptr_t sp = 1, unsigned flags = REMOTE_GET | REMOTE_PUT)
    {
        ucs_regcache_memh_t memh = get(start, length, sp, flags);
        if (memh != nullptr) {
            advance(hold_ns);
            put(memh);
        }
    }

    ucs_regcache_memh_t get(uintptr_t start, size_t length, uintptr_t sp = 1,
                  unsigned flags = REMOTE_GET | REMOTE_PUT)
    {
        ucs_regcache_memh_t memh = nullptr;
        EXPECT_EQ(UCS_OK, ucs_regcache_get(cache, (void *)start, length, flags,
                                           sp, &memh));
        return memh;
    }

    /** @a completed counts how often the end of the use, which invalidates, has
     *  been told. */
    void put(ucs_regcache_memh_t memh, unsigned *completed = nullptr)
    {
        EXPECT_EQ(UCS_OK, ucs_regcache_put(cache, memh,
                                           (ucs_regcache_comp_t)completed));
    }

    /** Let time pass; the helper runs whenever it asked to, or was woken. */
    void advance(uint64_t ns)
    {
        uint64_t end = now + ns;

        for (;;) {
            if (wakes > 0) {
                wakes = 0;
                next  = std::min<uint64_t>(next, now);
            }
            if ((next <= end) && (next + late <= end)) {
                now = std::max<uint64_t>(now, next + late);
                step();
            } else {
                break;
            }
        }
        now = std::max<uint64_t>(now, end);
    }

    /** @return The equation of the cache that does not hold, or nullptr. */
    const char *invalid()
    {
        ucs_regcache_lock(cache);
        const char *broken = ucs_regcache_find_invalid(cache);
        ucs_regcache_unlock(cache);
        return broken;
    }

    void step()
    {
        next = ucs_regcache_step(cache, now);
        EXPECT_STREQ(nullptr, invalid());
        late = on_sleep ? on_sleep() : 0;
        ++steps;
    }

    ucs_regcache_stats_t stats()
    {
        ucs_regcache_stats_t result;
        ucs_regcache_stats(cache, now, &result);
        EXPECT_EQ(result.uses, result.on_time + result.late + result.missed +
                                       result.cold);
        return result;
    }

    /** Say that the program has sent, or posted, or received. */
    void tell(ucs_operation_kind_t kind, uintptr_t address, size_t length,
              uint32_t id = 0)
    {
        const ucs_operation_t operation = {now,       address, length,
                                           1u + kind, id,      kind, 0};

        ucs_regcache_tell(cache, &operation, 1);
    }

    /** By a thread that has waited for so long. @return When the next is due. */
    uint64_t idle_step(uint64_t spare_ns = 0)
    {
        return ucs_regcache_idle_step(cache, now, spare_ns);
    }

    /** Bytes that are registered, twice if by two registrations. */
    size_t live_bytes() const
    {
        size_t sum = 0;
        for (const auto &entry : live) {
            sum += entry.second.length;
        }
        return sum;
    }

    bool is_registered(uintptr_t start, size_t length)
    {
        std::lock_guard<std::mutex> guard(mutex);
        for (auto &entry : live) {
            if ((entry.second.start <= start) &&
                (entry.second.start + entry.second.length >= start + length)) {
                return true;
            }
        }
        return false;
    }

    ucs_regcache_params_t params;
    ucs_regcache_h cache = nullptr;
    std::atomic<uint64_t>                     now{1000000};
    uint64_t next                                     = UCS_REGCACHE_TIME_NEVER;
    uint64_t late                                     = 0; /* behind that */
    std::atomic<unsigned>                     wakes{0}; /* not served yet */
    std::atomic<unsigned>                     woken{0}; /* in all */
    std::atomic<unsigned>                     reads{0}; /* of the clock */
    unsigned                                  steps  = 0;
    std::mutex                                mutex;
    std::map<uintptr_t, registration>         live;
    uintptr_t                                 next_memh = 0x1000;
    unsigned                                  regs      = 0;
    unsigned                                  deregs    = 0;
    unsigned                                  invalidates = 0;
    /* Called inside each registration, before it takes effect; what it
     * returns instead of UCS_OK is the lower domain's answer */
    std::function<ucs_status_t(registration)> on_reg;
    std::function<void()>                     on_dereg;
    std::function<void()>                     on_wait;
    /* Called before each look at the clock */
    std::function<void()>                     on_now;
    /* Begun to listen less ended */
    std::atomic<int>                          listens{0};
    /* If set before open(): others share the price of memory */
    _Atomic(uint64_t)                         *leave_bytes = nullptr;
    /* By how much the helper will be late to wake up, ns */
    std::function<uint64_t()>                 on_sleep;
    /* If set before open(): what the cache asks about kinds of memory */
    std::function<bool(unsigned, uintptr_t*, uintptr_t*)> on_inspect;
    /* Likewise, all three: a ceiling that others share */
    std::function<bool(size_t, ucs_claim_t)>          on_claim;
    std::function<void(size_t)>                       on_unclaim;
    std::function<ucs_regcache_answer_t(size_t, ucs_ask_t)> on_ask;
    /* With these, if set */
    std::function<uint64_t()>                         on_refused;
    std::function<void(uint64_t)>                     on_ask_back, on_learn;

private:
    static regcache_world *self(void *arg)
    {
        return static_cast<regcache_world *>(arg);
    }

    static uint64_t pages(size_t length)
    {
        return (length + PAGE - 1) / PAGE;
    }

    static ucs_status_t mem_reg(void *arg, void *address, size_t length,
                                unsigned flags, ucs_regcache_memh_t *memh_p)
    {
        regcache_world *w = self(arg);
        registration reg  = {(uintptr_t)address, length, flags};

        if (w->on_reg) {
            ucs_status_t status = w->on_reg(reg);
            if (status != UCS_OK) {
                return status;
            }
        }
        w->now += REG_BASE_NS + REG_PAGE_NS * pages(length);

        std::lock_guard<std::mutex> guard(w->mutex);
        ++w->regs;
        w->next_memh         += 16;
        w->live[w->next_memh] = reg;
        *memh_p               = (ucs_regcache_memh_t)w->next_memh;
        return UCS_OK;
    }

    static ucs_status_t mem_dereg(void *arg, ucs_regcache_memh_t memh,
                                  ucs_regcache_comp_t comp)
    {
        regcache_world *w = self(arg);

        if (w->on_dereg) {
            w->on_dereg();
        }
        {
            std::lock_guard<std::mutex> guard(w->mutex);
            auto found = w->live.find((uintptr_t)memh);
            if (found == w->live.end()) {
                ADD_FAILURE() << "deregistered twice: " << memh;
                return UCS_ERR_INVALID_PARAM;
            }
            w->now += (REG_BASE_NS +
                       REG_PAGE_NS * pages(found->second.length)) / 3;
            w->live.erase(found);
            ++w->deregs;
        }
        if (comp != nullptr) {
            ++w->invalidates;
            complete(arg, comp);
        }
        return UCS_OK;
    }

    static void complete(void*, ucs_regcache_comp_t comp)
    {
        ++*reinterpret_cast<unsigned*>(comp);
    }

    static int claim(void *arg, size_t length, ucs_claim_t why)
    {
        return self(arg)->on_claim(length, why);
    }

    static void unclaim(void *arg, size_t length)
    {
        self(arg)->on_unclaim(length);
    }

    static ucs_regcache_answer_t ask(void *arg, size_t length, ucs_ask_t whom)
    {
        return self(arg)->on_ask(length, whom);
    }

    static uint64_t refused(void *arg)
    {
        return self(arg)->on_refused ? self(arg)->on_refused() : 0;
    }

    static void ask_back(void *arg, uint64_t limit)
    {
        if (self(arg)->on_ask_back) {
            self(arg)->on_ask_back(limit);
        }
    }

    static void learn(void *arg, uint64_t limit)
    {
        if (self(arg)->on_learn) {
            self(arg)->on_learn(limit);
        }
    }

    static void wait(void *arg, uint32_t*, uint32_t, uint64_t)
    {
        regcache_world *w = self(arg);
        if (w->on_wait) {
            w->on_wait();
        }
    }
};

#endif
