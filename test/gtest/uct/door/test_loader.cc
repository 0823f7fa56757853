/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * The loader's lock belongs to the program: while a thread of it holds one, in a
 * callback of dl_iterate_phdr(), all that the helper is asked for comes to an end.
 */

#include "../ib/helper_md/decorator_fixture.h"
#include <sanitized.h>

#include <uct/ib/helper_md/hear.h>
#include <uct/ib/helper_md/watch/events.h>

#include <ucs/sys/clock.h>

#include <link.h>
#include <semaphore.h>
#include <time.h>

class test_loader : public test_decorator,
                    public ::testing::WithParamInterface<int> {
protected:
    struct holder {
        sem_t inside, over;
    };

    static int hold(struct dl_phdr_info *, size_t, void *arg)
    {
        holder *lock = static_cast<holder*>(arg);

        sem_post(&lock->inside);
        while (sem_wait(&lock->over) != 0) {
        }
        return 1;
    }

    /* Some time for the helper between each use and the next */
    void use(fake_lower &lower, unsigned count)
    {
        const struct timespec gap = {0, 1000000};

        for (unsigned i = 0; i < count; ++i) {
            dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
            nanosleep(&gap, nullptr);
        }
    }

    int do_everything(fake_lower &lower)
    {
        fake_lower other;
        int status = -1;
        void *fresh;
        pid_t pid;

        use(lower, 20);
        fresh = map(nullptr);
        dereg(lower, reg(lower, fresh, TEST_LENGTH));
        munmap(fresh, TEST_LENGTH);
        uct_helper_events_recheck(ucs_clock_now() + UINT64_C(3600000000000));
        (void)uct_helper_idle_step(UINT64_C(1000000));
        uct_helper_posted((uintptr_t)m_buffer, TEST_LENGTH);
        attach(other);
        use(other, 20);
        close(other);
        pid = fork();
        if (pid == 0) {
            _exit(0);
        }
        return (waitpid(pid, &status, 0) == pid) ? status : -1;
    }
};

/* The end of the process as well: the lock is never let go */
TEST_P(test_loader, everything_is_done_while_a_thread_holds_its_lock)
{
    /* Which takes that lock itself, as threads begin and processes fork */
    SKIP_IF_SANITIZED();
    EXPECT_EQ(0, in_child([&]() {
        static holder lock;
        fake_lower lower, left_open;

        m_config.policy = ucs_regcache_policy_t(GetParam());
        attach(lower);
        attach(left_open);
        use(lower, 5);
        use(left_open, 5);
        sem_init(&lock.inside, 0, 0);
        sem_init(&lock.over, 0, 0);
        std::thread([] { dl_iterate_phdr(hold, &lock); }).detach();
        while (sem_wait(&lock.inside) != 0) {
        }
        if (do_everything(lower) != 0) {
            return 1;
        }
        close(lower);
        return 0;
    }));
}

INSTANTIATE_TEST_SUITE_P(policies, test_loader,
                         ::testing::Range(0, int(UCS_REGCACHE_POLICY_LAST)));
