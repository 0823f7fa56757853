/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../decorator_fixture.h"
#include "../log_capture.h"
#include "../run_again.h"

#include <test/refuse_calls.h>
#include <uct/ib/helper_md/watch/events.h>
#include <uct/ib/helper_md/watch/events_probe.h>

#include <ucm/api/ucm.h>
#include <ucs/sys/clock.h>

#include <chrono>
#include <string>
#include <thread>

#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/*
 * Memory hooks that are lost. Each test runs in a process of its own: what
 * happens to the hooks cannot be undone.
 */

/* As libraries with hooks of their own do: a jump at the function's entry */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define TEST_CAN_PATCH 1
#endif

class test_events : public test_decorator {
protected:
    static constexpr uint64_t SEC = 1000000000;

    void SetUp() override
    {
        test_decorator::SetUp();
        /* What is left when a hook is lost: nothing */
        m_config.monitor = UCT_HELPER_MONITOR_UCM;
#if !defined(TEST_CAN_PATCH)
        if (!IsSkipped()) {
            GTEST_SKIP() << "no way known here to take over a function";
        }
#endif
    }

    static void patch(const char *name, const void *target)
    {
        unsigned char jump[] = {0x49, 0xbb, 0, 0, 0, 0, /* mov target, r11 */
                                0, 0, 0, 0, 0x41, 0xff, 0xe3}; /* jmp *r11 */
        char *entry = (char*)dlsym(RTLD_DEFAULT, name);
        size_t page = sysconf(_SC_PAGESIZE);
        void *first = (void*)((uintptr_t)entry & ~(page - 1));

        memcpy(jump + 2, &target, sizeof(target));
        if (syscall(SYS_mprotect, first, 2 * page,
                    PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
            memcpy(entry, jump, sizeof(jump));
        }
    }

    static int raw_munmap(void *address, size_t length)
    {
        return syscall(SYS_munmap, address, length);
    }

    static int raw_madvise(void *address, size_t length, int advice)
    {
        return syscall(SYS_madvise, address, length, advice);
    }

    static void *raw_mremap(void *address, size_t length, size_t to, int flags,
                            void *where)
    {
        return (void*)syscall(SYS_mremap, address, length, to, flags, where);
    }

    static void *raw_mmap(void *address, size_t length, int prot, int flags,
                          int fd, off_t offset)
    {
        return (void*)syscall(SYS_mmap, address, length, prot, flags, fd,
                              offset);
    }

    static int no_brk(void*)
    {
        errno = ENOMEM;
        return -1;
    }

    /* Hooks that serve the main thread only */
    static int main_munmap(void *address, size_t length)
    {
        static auto hook = (int (*)(void*, size_t))dlsym(RTLD_DEFAULT,
                                                         "ucm_munmap");

        return (syscall(SYS_gettid) == syscall(SYS_getpid)) ?
                       hook(address, length) :
                       raw_munmap(address, length);
    }

    /* A hook that tells as UCX's does */
    static int any_munmap(void *address, size_t length)
    {
        static auto hook = (int (*)(void*, size_t))dlsym(RTLD_DEFAULT,
                                                         "ucm_munmap");

        return hook(address, length);
    }

    /* What becomes of a cached registration and later ones when a function is
     * taken over: 0 if all is dropped, with one line */
    int lose(const char *name, const void *target)
    {
        fake_lower lower;
        log_capture log;

        attach(lower);
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
        uct_mem_h kept = reg(lower, m_buffer, TEST_LENGTH);
        if (lower.reg_count() != 1) {
            return 1;
        }
        patch(name, target);
        /* The helper thread may be at it already, and is not waited for. What it
         * has looked at before the patch it looks at again, if it is asked. */
        for (unsigned i = 0; (i < 1000) && log.lines().empty(); ++i) {
            uct_helper_events_recheck(UINT64_MAX - SEC);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        if (!log.await() || (log.lines().size() != 1) ||
            (log.lines()[0].find("any more") == std::string::npos)) {
            return 2;
        }
        if ((log.lines()[0].find(std::string(name) + "() ") != 0) &&
            (log.lines()[0].find(std::string(name) + "() over ") != 0)) {
            return 3;
        }
        for (unsigned i = 0; i < 5; ++i) {
            uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
            if ((memh == kept) || (dereg(lower, memh) != UCS_OK) ||
                (lower.live_count() != 1)) {
                return 4;
            }
        }
        uct_helper_events_recheck(UINT64_MAX);
        if (log.lines().size() != 1) {
            return 5;
        }
        if ((dereg(lower, kept) != UCS_OK) || (lower.live_count() != 0)) {
            return 6;
        }
        /* The next domain is left alone */
        fake_lower next;
        if (uct_helper_md_attach(next.md(), "next", &m_config) !=
            UCS_ERR_UNSUPPORTED) {
            return 7;
        }
        close(lower);
        return (uct_helper_events_complaint() != nullptr) ? 0 : 8;
    }

    /* Runs one disabled test in a new program, so that nothing has been hooked
     * or decided yet. */
    static int run_alone(const char *name, const char *variable)
    {
        pid_t pid = fork();

        if (pid == 0) {
            int null = open("/dev/null", O_WRONLY);
            alarm(20);
            dup2(null, 1);
            if (variable != nullptr) {
                putenv((char*)variable);
            }
            run_again("/proc/self/exe",
                      std::string("test_events.DISABLED_") + name);
            _exit(127);
        }
        return wait_for_child(pid);
    }

    void expect_refused(const char *text)
    {
        fake_lower lower;
        log_capture log;
        const uct_abi_md_ops_t *before = ops(lower);

        m_config.policy = UCS_REGCACHE_POLICY_PAPER;
        EXPECT_NE(UCS_OK, uct_helper_md_attach(lower.md(), "fake0", &m_config));
        EXPECT_EQ(before, ops(lower));
        ASSERT_EQ(1u, log.lines().size());
        EXPECT_NE(std::string::npos, log.lines()[0].find(text))
                << log.lines()[0];
        EXPECT_NE(std::string::npos, log.lines()[0].find("stays off"));
    }
};

/* Where brk() is, the heap is trimmed behind our back */
TEST_F(test_events, a_function_is_taken_over)
{
    const struct {
        const char *name;
        void       *by;
    } functions[] = {{"munmap", (void*)raw_munmap},
                     {"madvise", (void*)raw_madvise},
                     {"mmap", (void*)raw_mmap},
                     {"mremap", (void*)raw_mremap},
                     {"brk", (void*)no_brk}};

    for (const auto &function : functions) {
        EXPECT_EQ(0, in_child([&]() {
            return lose(function.name, function.by);
        })) << function.name;
    }
}

/* The helper finds it by itself, while it is at work */
TEST_F(test_events, helper_finds_a_lost_hook)
{
    EXPECT_EQ(0, in_child([&]() {
        const time_t end = time(nullptr) + 15;
        unsigned dropped = 0;
        fake_lower lower;
        log_capture log;

        m_config.policy = UCS_REGCACHE_POLICY_PAPER;
        attach(lower);
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
        patch("munmap", (void*)raw_munmap);
        while ((dropped < 1000) && (time(nullptr) < end)) {
            dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
            dropped = (lower.live_count() == 0) ? dropped + 1 : 0;
        }
        close(lower);
        return (dropped == 1000) && (log.lines().size() == 1) ? 0 : 1;
    }));
}

/* Patched by whom it may be, and what is right is not probed again and again */
TEST_F(test_events, changed_code_is_looked_at)
{
    EXPECT_EQ(0, in_child([&]() {
        fake_lower lower;
        uint64_t now;

        attach(lower);
        now = ucs_clock_now() + 10 * SEC; /* after all that has been */
        if (uct_helper_events_probe_again(now) != nullptr) {
            return 1;
        }
        if (uct_helper_events_probe_is_due(now + 1)) {
            return 2;
        }
        patch("munmap", (void*)any_munmap);
        if (!uct_helper_events_probe_is_due(now + 1)) {
            return 3;
        }
        if ((uct_helper_events_probe_again(now) != nullptr) ||
            uct_helper_events_probe_is_due(now + 1)) {
            return 4;
        }
        close(lower);
        return 0;
    }));
}

TEST_F(test_events, probe_needs_no_memory)
{
    EXPECT_EQ(0, in_child([&]() {
        struct rlimit none = {1 << 20, 1 << 20};
        fake_lower lower;

        attach(lower);
        setrlimit(RLIMIT_AS, &none);
        if (uct_helper_events_probe_again(SEC) != nullptr) {
            return 1;
        }
        patch("munmap", (void*)raw_munmap);
        return (uct_helper_events_probe_again(SEC) == nullptr) ? 2 : 0;
    }));
}

/*
 * A program that manages addresses itself: where it has unmapped a page it maps
 * another one, at a moment when the probe is at work
 */

struct mapper {
    char     *place; /* where the next mapping of a page goes */
    size_t   page;
    unsigned events;
    int      is_mapped;
};

static bool is_mapped(const mapper &program)
{
    unsigned char resident;

    return mincore(program.place, program.page, &resident) == 0;
}

/* Within the probe's events: by now a page of its own would be mapped */
static void map_again(ucm_event_type_t, ucm_event_t*, void *arg)
{
    mapper *program = static_cast<mapper*>(arg);

    ++program->events;
    if (!program->is_mapped) {
        program->is_mapped = 1;
        if (syscall(SYS_mmap, program->place, program->page,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0) == (long)program->place) {
            *program->place = 42;
        }
    }
}

/* Leaves a page to which the kernel would map the next */
static char *leave_place(size_t page)
{
    long place = syscall(SYS_mmap, nullptr, page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    syscall(SYS_munmap, place, page);
    return (char*)place;
}

TEST_F(test_events, probe_takes_no_place_that_the_program_left)
{
    EXPECT_EQ(0, in_child([&]() {
        mapper program = {nullptr, size_t(sysconf(_SC_PAGESIZE)), 0, 0};
        fake_lower lower;

        attach(lower);
        if (ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, 2000, map_again,
                                  &program) != UCS_OK) {
            return 2;
        }
        program.place = leave_place(program.page);
        if (is_mapped(program)) {
            return 1;
        }
        errno = 0;
        if ((uct_helper_events_probe_again(SEC) != nullptr) ||
            (errno != 0)) {
            return 3;
        }
        ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, map_again, &program);
        if (program.events < 4) {
            return 4;
        }
        if (!is_mapped(program)) {
            return 5; /* and who writes there dies */
        }
        return (*program.place == 42) ? 0 : 6;
    }));
}

/*
 * No hooks from the start
 */

/* What follows runs in a program of its own, which has this in its environment */
#define TEST_ALONE(_name, _variable) \
    TEST_F(test_events, _name) \
    { \
        EXPECT_EQ(0, run_alone(#_name, _variable)); \
    } \
    TEST_F(test_events, DISABLED_##_name)

TEST_ALONE(events_are_off, "UCX_MEM_EVENTS=n")
{
    expect_refused("UCX_MEM_EVENTS");
}

TEST_ALONE(hooks_are_not_installed, "UCX_MEM_MMAP_HOOK_MODE=none")
{
    expect_refused("cannot install");
}

/* UCX would wait for itself */
TEST_F(test_events, DISABLED_hooks_by_relocation)
{
    alarm(30);
    expect_refused("UCX_MEM_MMAP_HOOK_MODE=reloc");
}

TEST_F(test_events, hooks_by_relocation)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer's malloc() is not UCX's, and may have them";
#endif
    EXPECT_EQ(0, run_alone("hooks_by_relocation",
                           "UCX_MEM_MMAP_HOOK_MODE=reloc"));
}

TEST_ALONE(other_threads_have_no_hook, nullptr)
{
    /* UCX hooks first, the other library comes over it */
    ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, 2000,
                          [](ucm_event_type_t, ucm_event_t*, void*) {},
                          nullptr);
    patch("munmap", (void*)main_munmap);
    expect_refused("munmap() is not reported");
}

/* No thread may be made: memory is kept as without us, in one line */
TEST_ALONE(threads_are_refused, nullptr)
{
    const int calls[] = {SYS_clone, SYS_clone3};
    log_capture log;

    ASSERT_EQ(0, refuse_calls(calls, 2, EAGAIN));
    m_config.policy = UCS_REGCACHE_POLICY_PAPER;
    attach(lower);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, TEST_LENGTH)));
    }
    EXPECT_EQ(1u, log.lines().size());
    EXPECT_FALSE(uct_helper_md_has_thread(lower.md()));
    EXPECT_LE(lower.reg_count(), 2u);
    /* Events are served all the same */
    munmap(m_buffer, TEST_LENGTH);
    ASSERT_EQ(m_buffer, map(m_buffer));
    unsigned before = lower.reg_count();
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, TEST_LENGTH)));
    EXPECT_EQ(before + 1, lower.reg_count());
    EXPECT_EQ(1u, lower.live_count()) << "nobody gave up what was unmapped";
    /* Also what is unmapped during its use, and not only before the next */
    void *other    = map(nullptr);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
    munmap(m_buffer, TEST_LENGTH);
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, other, TEST_LENGTH)));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    EXPECT_EQ(1u, lower.live_count()) << "nobody gave up what was unmapped";
    ASSERT_EQ(m_buffer, map(m_buffer));
    munmap(other, TEST_LENGTH);
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}
