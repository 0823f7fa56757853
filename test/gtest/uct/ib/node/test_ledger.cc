/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../quiet_fork.h"
#include "node_fixture.h"

#include <functional>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

class test_ledger : public test_node_base {
protected:
    uct_helper_ledger_t *map()
    {
        uct_helper_ledger_t *ledger = nullptr;
        char error[256]             = "";

        EXPECT_EQ(UCS_OK, uct_helper_ledger_open(m_name.c_str(), &ledger, error,
                                                 sizeof(error))) << error;
        return ledger;
    }

    /* One line that names the segment and says why */
    void expect_refused(const std::string &why)
    {
        uct_helper_ledger_t *ledger = nullptr;
        char error[512]             = "";

        EXPECT_NE(UCS_OK, uct_helper_ledger_open(m_name.c_str(), &ledger, error,
                                                 sizeof(error)));
        EXPECT_EQ(nullptr, ledger);
        EXPECT_NE(nullptr, strstr(error, m_name.c_str())) << error;
        EXPECT_NE(nullptr, strstr(error, why.c_str())) << error;
        EXPECT_NE(nullptr, strstr(error, "HELPER_MD_NODE_LEDGER:")) << error;
        EXPECT_NE(nullptr, strstr(error, "; allowed: ")) << error;
        EXPECT_EQ(nullptr, strchr(error, '\n')) << error;
    }

    void create(size_t length, mode_t mode = 0600)
    {
        int fd = shm_open(m_name.c_str(), O_RDWR | O_CREAT | O_EXCL, mode);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(0, fchmod(fd, mode));
        ASSERT_EQ(0, ftruncate(fd, length));
        close(fd);
    }

    std::string path() const
    {
        return "/dev/shm" + m_name;
    }
};

TEST_F(test_ledger, names)
{
    char name[128];
    std::string base = "/ucx-helper-md-" +
                       std::to_string(UCT_HELPER_LEDGER_VERSION) + "." +
                       std::to_string(geteuid());

    EXPECT_EQ(UCS_OK, uct_helper_ledger_name(nullptr, name, sizeof(name)));
    EXPECT_EQ(base, name);
    EXPECT_EQ(UCS_OK, uct_helper_ledger_name("Job-1_a", name, sizeof(name)));
    EXPECT_EQ(base + ".Job-1_a", name);
    for (auto bad : {"a/b", "..", "a b", "\n"}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_helper_ledger_name(bad, name, sizeof(name))) << bad;
    }
    EXPECT_EQ(UCS_OK, uct_helper_ledger_name(std::string(64, 'a').c_str(), name,
                                             sizeof(name)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_helper_ledger_name(std::string(65, 'a').c_str(), name,
                                     sizeof(name)));
}

TEST_F(test_ledger, is_private_and_shared_by_all_who_open_it)
{
    uct_helper_ledger_t *one = map();
    uct_helper_ledger_t *two = map();
    struct stat st;

    ASSERT_EQ(0, stat(path().c_str(), &st));
    EXPECT_EQ(mode_t(0600), st.st_mode & 0777);
    EXPECT_EQ(off_t(sizeof(*one)), st.st_size);
    EXPECT_EQ(UCT_HELPER_LEDGER_STAMP, ucs_load_relaxed(&one->stamp));
    ucs_store_relaxed(&one->pinned[3], 17);
    EXPECT_EQ(17u, ucs_load_relaxed(&two->pinned[3]));
    uct_helper_ledger_close(one);
    uct_helper_ledger_close(two);
}

/* A process was killed after it made the file, or after it made it large */
TEST_F(test_ledger, half_made_is_fresh)
{
    create(0);
    uct_helper_ledger_close(map());
    shm_unlink(m_name.c_str());
    create(sizeof(uct_helper_ledger_t));
    uct_helper_ledger_close(map());
}

TEST_F(test_ledger, another_size_is_refused)
{
    create(4096);
    expect_refused("another size");
}

TEST_F(test_ledger, another_version_and_what_is_none_are_refused)
{
    uct_helper_ledger_t *ledger = map();

    ucs_store_relaxed(&ledger->stamp, UCT_HELPER_LEDGER_STAMP + 1);
    expect_refused("another version");
    ucs_store_relaxed(&ledger->stamp, 12345);
    expect_refused("not a ledger");
    uct_helper_ledger_close(ledger);
}

TEST_F(test_ledger, another_pid_namespace_is_refused)
{
    uct_helper_ledger_t *ledger = map();

    ucs_store_relaxed(&ledger->pid_ns, 1);
    expect_refused("PID namespace");
    uct_helper_ledger_close(ledger);
}

TEST_F(test_ledger, what_others_may_write_is_refused)
{
    create(sizeof(uct_helper_ledger_t), 0660);
    expect_refused("others");
}

TEST_F(test_ledger, another_owner_is_refused)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file away";
    }
    create(sizeof(uct_helper_ledger_t));
    ASSERT_EQ(0, chown(path().c_str(), 65534, -1));
    /* Which of the two depends on fs.protected_regular */
    uct_helper_ledger_t *ledger = nullptr;
    char error[256]             = "";
    EXPECT_NE(UCS_OK, uct_helper_ledger_open(m_name.c_str(), &ledger, error,
                                             sizeof(error)));
    EXPECT_TRUE(strstr(error, "another user") ||
                strstr(error, "Permission denied")) << error;
}

TEST_F(test_ledger, links_and_folders_are_refused)
{
    ASSERT_EQ(0, symlink("/dev/null", path().c_str()));
    expect_refused("link");
    shm_unlink(m_name.c_str());
    ASSERT_EQ(0, mkdir(path().c_str(), 0700));
    expect_refused("it is a folder");
    rmdir(path().c_str());
    ASSERT_EQ(0, mkfifo(path().c_str(), 0600));
    expect_refused("regular");
}

TEST_F(test_ledger, slots_are_taken_and_given_back)
{
    uct_helper_ledger_t *ledger = map();
    std::vector<int> slots;
    uint64_t owner;
    int slot;

    while ((slot = uct_helper_ledger_enter(ledger, &owner)) >= 0) {
        ASSERT_EQ(owner, ucs_load_relaxed(&ledger->owner[slot]));
        slots.push_back(slot);
    }
    EXPECT_EQ(size_t(UCT_HELPER_LEDGER_SLOTS), slots.size());
    uct_helper_ledger_leave(ledger, slots[7], owner + 1); /* not its own */
    EXPECT_EQ(-1, uct_helper_ledger_enter(ledger, &owner));
    uct_helper_ledger_leave(ledger, slots[7], owner);
    ucs_store_relaxed(&ledger->pinned[slots[7]], 12345);
    EXPECT_EQ(slots[7], uct_helper_ledger_enter(ledger, &owner));
    EXPECT_EQ(0u, ucs_load_relaxed(&ledger->pinned[slots[7]]));
    uct_helper_ledger_close(ledger);
}

/* A dead process, a zombie, and a number that now is another process's */
TEST_F(test_ledger, the_dead_lose_their_slots_and_the_living_do_not)
{
    uct_helper_ledger_t *ledger = map();
    uint64_t self               = uct_helper_ledger_self();
    uint64_t owner;
    int pipe_fds[2];
    char byte;

    ASSERT_NE(0u, self);
    ASSERT_EQ(0, pipe(pipe_fds));
    pid_t pid = fork();
    if (pid == 0) {
        int slot = uct_helper_ledger_enter(ledger, &owner);
        byte     = slot;
        (void)!write(pipe_fds[1], &byte, 1);
        pause();
        _exit(0);
    }
    ASSERT_EQ(1, read(pipe_fds[0], &byte, 1));
    unsigned slot = byte;
    EXPECT_TRUE(uct_helper_ledger_is_alive(ledger, slot));
    EXPECT_EQ(0u, uct_helper_ledger_reap(ledger));

    kill(pid, SIGKILL);
    siginfo_t info;
    ASSERT_EQ(0, waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    EXPECT_FALSE(uct_helper_ledger_is_alive(ledger, slot)) << "a zombie";
    EXPECT_EQ(1u, uct_helper_ledger_reap(ledger));
    EXPECT_EQ(0u, ucs_load_relaxed(&ledger->owner[slot]));
    ASSERT_EQ(pid, waitpid(pid, nullptr, 0));

    ucs_store_relaxed(&ledger->owner[5], uint64_t(pid) << 32);
    EXPECT_FALSE(uct_helper_ledger_is_alive(ledger, 5)) << "buried";
    ucs_store_relaxed(&ledger->owner[5], self);
    EXPECT_TRUE(uct_helper_ledger_is_alive(ledger, 5));
    ucs_store_relaxed(&ledger->owner[5], self ^ 1);
    EXPECT_FALSE(uct_helper_ledger_is_alive(ledger, 5)) << "started later";
    for (uint64_t odd : {uint64_t(1), uint64_t(0xffffffff00000001),
                         uint64_t(0x8000000000000001), UINT64_MAX}) {
        ucs_store_relaxed(&ledger->owner[6], odd);
        EXPECT_FALSE(uct_helper_ledger_is_alive(ledger, 6)) << odd;
    }
    EXPECT_EQ(2u, uct_helper_ledger_reap(ledger));
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    uct_helper_ledger_close(ledger);
}

/* As after chroot(): nobody is seen, and all live */
TEST_F(test_ledger, without_proc_nobody_is_dead)
{
    char dir[]                  = "/tmp/test_ledger.XXXXXX";
    uct_helper_ledger_t *ledger = map();

    if (geteuid() != 0) {
        uct_helper_ledger_close(ledger);
        GTEST_SKIP() << "only root can leave /proc behind";
    }

    ASSERT_NE(nullptr, mkdtemp(dir));
    ucs_store_relaxed(&ledger->owner[5], uct_helper_ledger_self());
    EXPECT_EQ(0, in_child([&] {
        if (chroot(dir) != 0) {
            return 2;
        }
        return int(!uct_helper_ledger_is_alive(ledger, 5) ||
                   (uct_helper_ledger_reap(ledger) != 0));
    }));
    EXPECT_NE(0u, ucs_load_relaxed(&ledger->owner[5]));
    rmdir(dir);
    uct_helper_ledger_close(ledger);
}

/* SIGXFSZ would end the program, which has not written anything */
TEST_F(test_ledger, limit_of_file_sizes_costs_the_ledger_alone)
{
    EXPECT_EQ(0, in_child([&] {
        uct_helper_ledger_t *ledger = nullptr;
        struct rlimit limit         = {4096, 4096};
        char error[256]             = "";

        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_DFL);
        return (uct_helper_ledger_open(m_name.c_str(), &ledger, error,
                                       sizeof(error)) == UCS_OK) ||
               (strstr(error, m_name.c_str()) == nullptr);
    }));
}
