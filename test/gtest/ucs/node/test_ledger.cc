/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/quiet_fork.h>
#include "node_fixture.h"

#include <test/own_ledger.h>

#include <functional>
#include <list>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/shm.h>

class test_ledger : public test_node_base {
protected:
    static bool is_alive(ucs_ledger_t *ledger, unsigned slot)
    {
        return ucs_ledger_is_alive(ledger, ucs_load_relaxed(&ledger->owner[slot]));
    }

    /* One line that names the segment and says why */
    void expect_refused(const std::string &why)
    {
        ucs_ledger_t *ledger = nullptr;
        char error[512]      = "";

        EXPECT_NE(UCS_OK, ucs_ledger_open(m_name.c_str(), &ledger, error,
                                          sizeof(error)));
        EXPECT_EQ(nullptr, ledger);
        EXPECT_NE(nullptr, strstr(error, m_name.c_str())) << error;
        EXPECT_NE(nullptr, strstr(error, why.c_str())) << error;
        EXPECT_NE(nullptr, strstr(error, "HELPER_MD_NODE_LEDGER:")) << error;
        EXPECT_NE(nullptr, strstr(error, "; allowed: ")) << error;
        EXPECT_EQ(nullptr, strchr(error, '\n')) << error;
    }

    int create(size_t length, mode_t mode = 0600)
    {
        int id = shmget(key(), length, IPC_CREAT | IPC_EXCL | mode);
        EXPECT_GE(id, 0);
        return id;
    }

    int key() const
    {
        return ucs_ledger_key(m_name.c_str());
    }

    void in_another_namespace(int kind, const std::function<int()> &function)
    {
        pid_t pid = fork();
        if (pid == 0) {
            _exit((unshare(kind) == 0) ? function() : 77);
        }
        int code = wait_for_child(pid);
        if (code == 77) {
            GTEST_SKIP() << "no namespace of its own";
        }
        EXPECT_EQ(0, code);
    }
};

TEST_F(test_ledger, names)
{
    char name[128];
    std::string base = "ucx-helper-md-" + std::to_string(UCS_LEDGER_VERSION) +
                       "." + std::to_string(geteuid());

    EXPECT_EQ(UCS_OK, ucs_ledger_name(nullptr, name, sizeof(name)));
    EXPECT_EQ(base, name);
    EXPECT_EQ(UCS_OK, ucs_ledger_name("Job-1_a", name, sizeof(name)));
    EXPECT_EQ(base + ".Job-1_a", name);
    for (auto bad : {"a/b", "..", "a b", "\n"}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  ucs_ledger_name(bad, name, sizeof(name)))
                << bad;
    }
    EXPECT_EQ(UCS_OK, ucs_ledger_name(std::string(64, 'a').c_str(), name,
                                      sizeof(name)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucs_ledger_name(std::string(65, 'a').c_str(), name,
                              sizeof(name)));
}

TEST_F(test_ledger, is_private_and_shared_by_all_who_open_it)
{
    auto one = map(), two = map();
    struct shmid_ds ds;

    ASSERT_EQ(0, shmctl(shmget(key(), 0, 0), IPC_STAT, &ds));
    EXPECT_EQ(0600, ds.shm_perm.mode & 0777);
    EXPECT_EQ(sizeof(*one), ds.shm_segsz);
    EXPECT_EQ(UCS_LEDGER_STAMP, ucs_load_relaxed(&one->stamp));
    ucs_store_relaxed(&one->pinned[3], 17);
    EXPECT_EQ(17u, ucs_load_relaxed(&two->pinned[3]));
}

/* A process was killed after it made the segment */
TEST_F(test_ledger, half_made_is_fresh)
{
    create(sizeof(ucs_ledger_t));
    map();
}

TEST_F(test_ledger, another_size_is_refused)
{
    for (size_t size : {size_t(4096), sizeof(ucs_ledger_t) + 4096}) {
        create(size);
        expect_refused("another size");
        EXPECT_TRUE(ucs_ledger_remove(m_name.c_str()));
    }
}

TEST_F(test_ledger, another_name_with_the_same_key_is_refused)
{
    auto ledger = map();

    ucs_store_relaxed(&ledger->name, ucs_load_relaxed(&ledger->name) + 1);
    expect_refused("another name");
}

/* Whatever another process does to the segment from outside, those that have
 * it attached can go on using every byte */
TEST_F(test_ledger, nothing_makes_it_shorter_for_who_has_it)
{
    auto ledger = map();
    int id      = shmget(key(), 0, 0);
    struct shmid_ds ds;

    ASSERT_GE(id, 0);
    /* A file of that name, in the folder where shared memory shows */
    std::string path = "/dev/shm/" + m_name;
    EXPECT_NE(0, truncate(path.c_str(), 0));
    EXPECT_EQ(id, shmget(key(), 1, IPC_CREAT | 0600)); /* a smaller one */
    ASSERT_EQ(0, shmctl(id, IPC_STAT, &ds));
    ds.shm_perm.mode = 0;
    EXPECT_EQ(0, shmctl(id, IPC_SET, &ds));
    EXPECT_EQ(0, shmctl(id, IPC_RMID, nullptr));
    for (volatile char *byte = (char*)(ledger + 0);
         byte < (volatile char*)(ledger + 1); byte += 512) {
        *byte = 1;
        EXPECT_EQ(1, *byte);
    }
}

/* Those that have it go on by themselves; those that come later make another */
TEST_F(test_ledger, removed_while_used_is_made_anew)
{
    auto one       = map();
    uint64_t owner = 0;

    EXPECT_TRUE(ucs_ledger_remove(m_name.c_str()));
    EXPECT_FALSE(ucs_ledger_remove(m_name.c_str()));
    auto two = map();
    EXPECT_GE(ucs_ledger_enter(one, &owner), 0);
    EXPECT_EQ(0u, ucs_load_relaxed(&two->owner[0]));
}

/* Segments vanish between the look for one and the attachment */
TEST_F(test_ledger, removed_while_others_open_it)
{
    std::atomic<bool> stop{false};
    /* Not without a rest, or it may win each time */
    std::thread remover([&] {
        for (unsigned i = 0; !stop; ++i) {
            ucs_ledger_remove(m_name.c_str());
            for (volatile unsigned spin = 0; spin < (i % 256 + 16) * 256;
                 ++spin) {
            }
        }
    });
    /* Where processors are scarce each takes long */
    uint64_t until = now() + 2000 * MS;
    for (unsigned i = 0; (i < 10000) && (now() < until); ++i) {
        ucs_ledger_t *ledger = nullptr;
        char error[256]      = "";
        if (ucs_ledger_open(m_name.c_str(), &ledger, error, sizeof(error)) ==
            UCS_OK) {
            EXPECT_EQ(UCS_LEDGER_STAMP, ucs_load_relaxed(&ledger->stamp));
            ucs_ledger_close(ledger);
        } else {
            ADD_FAILURE() << error;
        }
    }
    stop = true;
    remover.join();
}

/* As where the memory that the system sets aside for such segments is full. This
 * namespace knows no shared memory but what it makes now. */
TEST_F(test_ledger, no_room_is_an_error_and_no_signal)
{
    in_another_namespace(CLONE_NEWIPC, [&] {
        FILE *file = fopen("/proc/sys/kernel/shmall", "w");
        if ((file == nullptr) || (fputs("4", file) < 0) ||
            (fclose(file) != 0)) {
            return 77;
        }
        expect_refused("No space");
        return HasFailure() ? 1 : 0;
    });
}

/* No folder is needed for it, neither /dev/shm nor a home */
TEST_F(test_ledger, shared_memory_needs_no_file_system)
{
    in_another_namespace(CLONE_NEWNS | CLONE_NEWIPC, [&] {
        if ((mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ||
            (mount("none", "/dev/shm", "tmpfs", MS_RDONLY, nullptr) != 0)) {
            return 77;
        }
        map();
        return HasFailure() ? 1 : 0;
    });
}

TEST_F(test_ledger, another_version_and_what_is_none_are_refused)
{
    auto ledger = map();

    ucs_store_relaxed(&ledger->stamp, UCS_LEDGER_STAMP + 1);
    expect_refused("another version");
    ucs_store_relaxed(&ledger->stamp, 12345);
    expect_refused("not a ledger");
    expect_refused("ipcrm");
}

TEST_F(test_ledger, another_namespace_is_refused)
{
    auto ledger = map();

    ucs_store_relaxed(&ledger->spaces, 1);
    expect_refused("PID namespace");
}

/* Whose clock tells other times. Only a child is in the new time namespace. */
static void enter_another_time()
{
    const char offset[] = "monotonic 864000 0\nboottime 864000 0\n";

    if (unshare(CLONE_NEWTIME) != 0) {
        _exit(77);
    }
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if ((fd < 0) || (write(fd, offset, sizeof(offset) - 1) < 0)) {
        _exit(77);
    }
    close(fd);
    pid_t pid = fork();
    if (pid != 0) {
        _exit(wait_for_child(pid));
    }
}

TEST_F(test_ledger, a_process_in_another_time_namespace_counts)
{
    auto ledger = map();
    int pipe_fds[2];
    uint64_t owner;

    ASSERT_EQ(0, ucs_ledger_enter(ledger, &owner));
    ASSERT_EQ(0, pipe(pipe_fds));
    pid_t pid = fork();
    if (pid == 0) {
        enter_another_time();
        auto other = map();
        if ((other == nullptr) || !is_alive(other, 0) ||
            (ucs_ledger_enter(other, &owner) != 1) ||
            (ucs_ledger_reap(other) != 0)) {
            _exit(1);
        }
        (void)!write(pipe_fds[1], &owner, sizeof(owner));
        sleep(60);
        _exit(1);
    }
    close(pipe_fds[1]);
    if (read(pipe_fds[0], &owner, sizeof(owner)) == sizeof(owner)) {
        EXPECT_TRUE(is_alive(ledger, 1));
        EXPECT_EQ(0u, ucs_ledger_reap(ledger));
        EXPECT_EQ(0, kill(ucs_ledger_pid(owner), SIGKILL));
    }
    int code = wait_for_child(pid);
    close(pipe_fds[0]);
    if (code == 77) {
        GTEST_SKIP() << "no time namespace of its own";
    }
    EXPECT_EQ(-SIGKILL & 0xff, code & 0xff);
}

TEST_F(test_ledger, what_others_may_write_is_refused)
{
    create(sizeof(ucs_ledger_t), 0660);
    expect_refused("others");
}

TEST_F(test_ledger, another_owner_is_refused)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file away";
    }
    int id = create(sizeof(ucs_ledger_t));
    struct shmid_ds ds;
    ASSERT_EQ(0, shmctl(id, IPC_STAT, &ds));
    ds.shm_perm.uid = 65534;
    ASSERT_EQ(0, shmctl(id, IPC_SET, &ds));
    expect_refused("another user");
}

/* Another user made it before us, and gave it away */
TEST_F(test_ledger, another_maker_is_refused)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can be another user";
    }
    pid_t pid = fork();
    if (pid == 0) {
        int id = (setuid(65534) == 0) ?
                         shmget(key(), sizeof(ucs_ledger_t), IPC_CREAT | 0600) :
                         -1;
        struct shmid_ds ds;
        if ((id < 0) || (shmctl(id, IPC_STAT, &ds) != 0)) {
            _exit(1);
        }
        ds.shm_perm.uid = 0;
        _exit(shmctl(id, IPC_SET, &ds) != 0);
    }
    ASSERT_EQ(0, wait_for_child(pid));
    expect_refused("another user");
}

TEST_F(test_ledger, slots_are_taken_and_given_back)
{
    std::list<mapped_ledger> ledgers; /* each has a slot, but the last */
    uint64_t owner;
    int slot;

    ledgers.emplace_back(m_name);
    while ((slot = ucs_ledger_enter(ledgers.back(), &owner)) >= 0) {
        ASSERT_EQ(ledgers.size(), slot + 1u);
        ASSERT_EQ(owner, ucs_load_relaxed(&ledgers.back()->owner[slot]));
        ledgers.emplace_back(m_name);
    }
    EXPECT_EQ(UCS_LEDGER_SLOTS + 1u, ledgers.size());
    mapped_ledger &ledger = ledgers.back();
    owner = ucs_load_relaxed(&ledger->owner[7]);
    ucs_ledger_leave(ledger, 7, owner + 1); /* not its own */
    EXPECT_EQ(-1, ucs_ledger_enter(ledger, &owner));
    ucs_ledger_leave(ledger, 7, ucs_load_relaxed(&ledger->owner[7]));
    ucs_store_relaxed(&ledger->pinned[7], 12345);
    EXPECT_EQ(7, ucs_ledger_enter(ledger, &owner));
    EXPECT_EQ(0u, ucs_load_relaxed(&ledger->pinned[7]));
}

/* A dead process, a zombie, and a number that now is another process's */
TEST_F(test_ledger, the_dead_lose_their_slots_and_the_living_do_not)
{
    auto ledger   = map();
    uint64_t self = ucs_ledger_self(ledger);
    uint64_t owner;
    int pipe_fds[2];
    char byte;

    ASSERT_EQ(0, pipe(pipe_fds));
    pid_t pid = fork();
    if (pid == 0) {
        int slot = ucs_ledger_enter(ledger, &owner);
        byte     = slot;
        (void)!write(pipe_fds[1], &byte, 1);
        pause();
        _exit(0);
    }
    ASSERT_EQ(1, read(pipe_fds[0], &byte, 1));
    unsigned slot = byte;
    EXPECT_TRUE(is_alive(ledger, slot));
    EXPECT_EQ(0u, ucs_ledger_reap(ledger));
    owner = ucs_load_relaxed(&ledger->owner[slot]);
    ucs_store_relaxed(&ledger->owner[5], owner ^ 1);
    EXPECT_FALSE(is_alive(ledger, 5)) << "one that had this number before";
    EXPECT_EQ(1u, ucs_ledger_reap(ledger));

    kill(pid, SIGKILL);
    siginfo_t info;
    ASSERT_EQ(0, waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    EXPECT_FALSE(is_alive(ledger, slot)) << "a zombie";
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit none = {0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none); /* no file can be opened */
    EXPECT_EQ(1u, ucs_ledger_reap(ledger));
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(0u, ucs_load_relaxed(&ledger->owner[slot]));
    ASSERT_EQ(pid, waitpid(pid, nullptr, 0));

    ucs_store_relaxed(&ledger->owner[5], owner);
    EXPECT_FALSE(is_alive(ledger, 5)) << "buried";
    ucs_store_relaxed(&ledger->owner[5], self);
    EXPECT_TRUE(is_alive(ledger, 5));
    ucs_store_relaxed(&ledger->owner[5], self ^ 1);
    EXPECT_FALSE(is_alive(ledger, 5)) << "a program of before";
    for (uint64_t odd : {uint64_t(1), uint64_t(0xffffffff00000001),
                         uint64_t(0x8000000000000001), UINT64_MAX}) {
        ucs_store_relaxed(&ledger->owner[6], odd);
        EXPECT_FALSE(is_alive(ledger, 6)) << odd;
    }
    EXPECT_EQ(2u, ucs_ledger_reap(ledger));
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* The process has the number and the time of its start still */
TEST_F(test_ledger, a_program_that_called_exec_loses_its_slot)
{
    auto ledger = map();
    int pipe_fds[2];
    uint64_t owner;
    char byte;

    ASSERT_EQ(0, pipe2(pipe_fds, O_CLOEXEC));
    pid_t pid = fork();
    if (pid == 0) {
        ucs_ledger_enter(ledger, &owner);
        execl("/bin/sleep", "sleep", "60", (char*)nullptr);
        _exit(127);
    }
    close(pipe_fds[1]);
    EXPECT_EQ(0, read(pipe_fds[0], &byte, 1)); /* until exec() */
    EXPECT_EQ(0, kill(pid, 0));
    EXPECT_NE(0u, ucs_load_relaxed(&ledger->owner[0]));
    EXPECT_EQ(1u, ucs_ledger_reap(ledger));
    EXPECT_EQ(0u, ucs_load_relaxed(&ledger->owner[0]));
    kill(pid, SIGKILL);
    wait_for_child(pid);
    close(pipe_fds[0]);
}

/* Where addresses are not random, the next program has the ledger at the same one */
TEST_F(test_ledger, what_it_had_at_the_same_address_is_of_before)
{
    auto ledger = map();
    uint64_t owner;

    ASSERT_EQ(0, ucs_ledger_enter(ledger, &owner));
    ucs_store_relaxed(&ledger->pinned[0], 12345);
    EXPECT_EQ(0, ucs_ledger_enter(ledger, &owner));
    EXPECT_EQ(0u, ucs_load_relaxed(&ledger->pinned[0]));
    EXPECT_EQ(0u, ucs_load_relaxed(&ledger->owner[1]));
}

/* What the checks of test/own_ledger.h say of each word that is wrong */
TEST_F(test_ledger, each_wrong_word_is_seen)
{
    auto ledger = map();
    uint64_t owner;
    int i = ucs_ledger_enter(ledger, &owner);

    ASSERT_GE(i, 0);
    ucs_ledger_slot_t *slot = &ledger->slots[i];
    auto wrong = [&](auto &word, auto value, bool is_valid, bool is_settled) {
        auto before = ucs_load_relaxed(&word);
        ucs_store_relaxed(&word, value);
        EXPECT_EQ(is_valid, !!ledger_is_valid(ledger, 4096));
        EXPECT_EQ(is_settled, !!ledger_is_settled(ledger));
        ucs_store_relaxed(&word, before);
        EXPECT_TRUE(ledger_is_valid(ledger, 4096));
        EXPECT_TRUE(ledger_is_settled(ledger));
    };
    wrong(ledger->stamp, 0, false, true);
    wrong(ledger->name, 0, false, true);
    wrong(ledger->spaces, 0, false, true);
    wrong(ledger->owner[i], uint64_t(1), false, true); /* no process number */
    wrong(ledger->pinned[i], 1, true, false);
    wrong(ledger->taken[i], 4096, true, false);
    wrong(ledger->taken[i], 4097, false, false);
    wrong(ledger->taken[i], UCS_LEDGER_RISE, true, true); /* it rose once */
    wrong(slot->answer, 1, false, true);
    wrong(slot->bell, 1, true, true); /* where nobody listens */
    wrong(slot->listens, 2, false, true);
    wrong(slot->runs, 2, false, true);
    wrong(slot->cores, UCS_LEDGER_CPUS + 1, false, true);
    ucs_store_relaxed(&slot->listens, 1);
    wrong(slot->bell, 1, true, false);
    /* What stands in a slot that nobody has means nothing */
    ucs_ledger_leave(ledger, i, owner);
    wrong(ledger->pinned[i], UINT64_MAX, true, true);
}

/* As after chroot(): nobody is seen, and all live */
TEST_F(test_ledger, without_proc_nobody_is_dead)
{
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the leak checker needs /proc at a child's end";
#endif
    char dir[]  = "/tmp/test_ledger.XXXXXX";
    auto ledger = map();

    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can leave /proc behind";
    }

    ASSERT_NE(nullptr, mkdtemp(dir));
    ucs_store_relaxed(&ledger->owner[5], ucs_ledger_self(ledger));
    EXPECT_EQ(0, in_child([&] {
        if (chroot(dir) != 0) {
            return 2;
        }
        return int(!is_alive(ledger, 5) ||
                   (ucs_ledger_reap(ledger) != 0));
    }));
    EXPECT_NE(0u, ucs_load_relaxed(&ledger->owner[5]));
    rmdir(dir);
}
