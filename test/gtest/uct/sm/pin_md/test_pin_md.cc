/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pin_md_fixture.h"

#include <cmath>
#include <ctime>

TEST_F(pin_md, rejects_bad_options_and_a_second_attach)
{
    uct_pin_config_t config = {-1, 0, 0, 0, 0, 0};
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_pin_md_attach(md(), &config));
    config = {0, std::nan(""), 0, 0, 0, 0};
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_pin_md_attach(md(), &config));
    EXPECT_EQ(lower.ops(), uct_abi_md(md())->ops);

    attach(UCT_PIN_MD_MAX_REGIONS + 1);
    EXPECT_EQ((unsigned)UCT_PIN_MD_MAX_REGIONS,
              uct_pin_md_config(md())->max_regions);
    config = {};
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, uct_pin_md_attach(md(), &config));
}

TEST_F(pin_md, query_asks_for_handles_on_both_sides)
{
    uct_md_attr_t attr = {};

    attach();
    lower.queries = 0;
    ASSERT_EQ(UCS_OK, uct_abi_md(md())->ops->query(md(), &attr));
    EXPECT_EQ((uint64_t)(UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                         UCT_MD_FLAG_NEED_RKEY),
              (uint64_t)attr.cap.flags);
    EXPECT_EQ(1, lower.queries);
    EXPECT_GT(attr.reg_cost.c + attr.reg_cost.m * page_size, 0);
    EXPECT_NE(16e-6, attr.reg_cost.c);
}

TEST_F(pin_md, modelled_cost_is_told_and_paid)
{
    uct_md_attr_t attr = {};
    mapping buffer(4 * page_size);
    struct timespec start, end;
    uct_mem_h memh;

    attach(0, 1e6, 5e5);
    EXPECT_EQ(1e6, uct_pin_md_config(md())->cost_base_ns);
    EXPECT_EQ(5e5, uct_pin_md_config(md())->cost_per_page_ns);
    ASSERT_EQ(UCS_OK, uct_abi_md(md())->ops->query(md(), &attr));
    EXPECT_GE(attr.reg_cost.c, 1e-3);
    EXPECT_GE(attr.reg_cost.m * page_size, 0.999 * 5e-4);

    /* Lower bounds hold however loaded the machine is: 1 + 4 * 0.5 ms to
     * register, a third of that to deregister */
    clock_gettime(CLOCK_MONOTONIC, &start);
    ASSERT_EQ(UCS_OK, reg(buffer.address, buffer.length, &memh));
    ASSERT_EQ(UCS_OK, dereg(memh));
    clock_gettime(CLOCK_MONOTONIC, &end);
    EXPECT_GE((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec,
              4e6);
}

TEST_F(pin_md, tells_a_cost_that_it_was_given)
{
    uct_pin_config_t config = {1e3, 0, 0, 0, -1, 0};
    uct_md_attr_t attr      = {};

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_pin_md_attach(md(), &config));
    config.told_ns = std::nan("");
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_pin_md_attach(md(), &config));
    attach(0, 1e3, 0, 0, 180);
    ASSERT_EQ(UCS_OK, uct_abi_md(md())->ops->query(md(), &attr));
    EXPECT_DOUBLE_EQ(180e-9, attr.reg_cost.c);
    EXPECT_EQ(0.0, attr.reg_cost.m);
}

TEST_F(pin_md, pins_whole_pages_and_unpins_at_once)
{
    mapping buffer(64 * page_size);
    uct_mem_h memh;

    attach();
    /* From the last byte of page 3 to the first byte of page 10 */
    ASSERT_EQ(UCS_OK, reg(buffer.at(4 * page_size - 1), 6 * page_size + 2,
                          &memh));
    expect_pinned(8 * page_size);
    EXPECT_EQ(8 * page_size, uct_pin_md_pinned_bytes(md()));
    EXPECT_EQ(1u, lower.reg_count());

    ASSERT_EQ(UCS_OK, dereg(memh));
    expect_pinned(0);
    EXPECT_EQ(0u, uct_pin_md_pinned_bytes(md()));
    EXPECT_EQ(1u, lower.dereg_count());
}

TEST_F(pin_md, pins_pools_like_any_other)
{
    mapping buffer(16 * page_size);
    uct_mem_h memh;

    attach();
    ASSERT_EQ(UCS_OK, reg(buffer.address, buffer.length, &memh,
                          UCT_MD_MEM_FLAG_LOCK | UCT_MD_MEM_ACCESS_ALL));
    expect_pinned(buffer.length);
    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_F(pin_md, overlapping_registrations_are_apart)
{
    mapping buffer(16 * page_size);
    uct_mem_h first, second;

    attach();
    ASSERT_EQ(UCS_OK, reg(buffer.address, 8 * page_size, &first));
    ASSERT_EQ(UCS_OK, reg(buffer.at(4 * page_size), 8 * page_size, &second));
    EXPECT_NE(first, second);
    expect_pinned(16 * page_size);
    ASSERT_EQ(UCS_OK, dereg(first));
    expect_pinned(8 * page_size);
    ASSERT_EQ(UCS_OK, dereg(second));
}

TEST_F(pin_md, registers_more_than_1_GiB)
{
    /* One small file mapped again and again: the addresses are many, the
     * memory is not */
    const size_t file_size = 16 * MB, length = GB + 3 * file_size;
    int fd = memfd_create("pin_md", MFD_CLOEXEC);
    mapping range(length, PROT_NONE);
    uct_mem_h memh;

    ASSERT_GE(fd, 0);
    ASSERT_EQ(0, ftruncate(fd, file_size));
    for (size_t offset = 0; offset < length; offset += file_size) {
        ASSERT_NE(MAP_FAILED, mmap(range.at(offset), file_size,
                                   PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_FIXED, fd, 0));
    }

    attach(1);
    ASSERT_EQ(UCS_OK, reg(range.at(1), length - 2, &memh));
    EXPECT_EQ(length, uct_pin_md_pinned_bytes(md()));
    /* Huge pages of the file may count more than once */
    EXPECT_GE(pinned(length), (long)length);
    EXPECT_EQ(UCS_OK, dereg(memh));
    expect_pinned(0);
    close(fd);
}

TEST_F(pin_md, full_table_is_no_memory)
{
    mapping buffer(3 * page_size);
    uct_mem_h memh[3];

    attach(2);
    ASSERT_EQ(UCS_OK, reg(buffer.at(0), 1, &memh[0]));
    ASSERT_EQ(UCS_OK, reg(buffer.at(page_size), 1, &memh[1]));
    EXPECT_EQ(UCS_ERR_NO_MEMORY, reg(buffer.at(2 * page_size), 1, &memh[2]));
    EXPECT_EQ(1, num_errors);
    EXPECT_EQ(UCS_ERR_NO_MEMORY, reg(buffer.at(2 * page_size), 1, &memh[2],
                                     UCT_MD_MEM_FLAG_HIDE_ERRORS));
    EXPECT_EQ(1, num_errors) << "HIDE_ERRORS must not log";
    EXPECT_EQ(2u, lower.live_count()) << "lower handles leaked";

    ASSERT_EQ(UCS_OK, dereg(memh[0]));
    ASSERT_EQ(UCS_OK, reg(buffer.at(2 * page_size), 1, &memh[0]));
    EXPECT_EQ(UCS_OK, dereg(memh[0]));
    EXPECT_EQ(UCS_OK, dereg(memh[1]));
}

TEST_F(pin_md, bad_ranges_fail_and_leave_nothing)
{
    mapping read_only(page_size, PROT_READ);
    mapping large(40 * MB);
    uct_mem_h memh;

    attach(1);
    ASSERT_EQ(0, mprotect(large.at(large.length - page_size), page_size,
                          PROT_NONE));
    EXPECT_EQ(UCS_ERR_IO_ERROR, reg(read_only.address, 1, &memh));
    EXPECT_EQ(UCS_ERR_IO_ERROR, reg((void*)page_size, 1, &memh));
    EXPECT_EQ(2, num_errors);
    /* The slots before the one that fails have to be emptied again */
    EXPECT_EQ(UCS_ERR_IO_ERROR, reg(large.address, large.length, &memh));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, reg(large.address, 0, &memh));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, reg(large.address, SIZE_MAX, &memh));
    expect_pinned(0);
    EXPECT_EQ(0u, uct_pin_md_pinned_bytes(md()));
    EXPECT_EQ(0u, lower.live_count());

    /* With max_regions 1, this fails if one of them kept its place */
    ASSERT_EQ(UCS_OK, reg(large.address, large.length / 2, &memh));
    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_F(pin_md, lower_failure_pins_nothing)
{
    mapping buffer(page_size);
    uct_mem_h memh;

    attach();
    lower.fail_reg(UCS_ERR_BUSY);
    EXPECT_EQ(UCS_ERR_BUSY, reg(buffer.address, 1, &memh));
    expect_pinned(0);
}

TEST_F(pin_md, invalidation_goes_to_the_lower_domain)
{
    mapping buffer(page_size);
    uct_abi_md_mem_dereg_params_t params = {};
    uct_completion_t comp                = {};

    attach();
    params.field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH |
                        UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS |
                        UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION;
    params.flags      = UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE;
    params.comp       = &comp;
    ASSERT_EQ(UCS_OK, reg(buffer.address, 1, &params.memh));

    lower.dereg_status = UCS_ERR_UNSUPPORTED;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_abi_md(md())->ops->mem_dereg(md(), &params));
    expect_pinned(page_size);

    lower.dereg_status = UCS_OK;
    EXPECT_EQ(UCS_OK, uct_abi_md(md())->ops->mem_dereg(md(), &params));
    EXPECT_EQ(&comp, lower.last_dereg.comp);
    EXPECT_EQ(params.flags, lower.last_dereg.flags);
    EXPECT_EQ(params.field_mask, lower.last_dereg.field_mask);
    expect_pinned(0);

    params.field_mask = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_abi_md(md())->ops->mem_dereg(md(), &params));
}

TEST_F(pin_md, close_unpins_what_is_left)
{
    mapping buffer(64 * MB);
    uct_mem_h memh;

    attach();
    ASSERT_EQ(UCS_OK, reg(buffer.at(0), 1, &memh));
    ASSERT_EQ(UCS_OK, reg(buffer.at(page_size), MB, &memh));
    ASSERT_EQ(UCS_OK, reg(buffer.at(8 * MB), 40 * MB, &memh));
    close_md();
    expect_pinned(0);
    EXPECT_EQ(1u, lower.close_count());
}

/* As of one device: what one process has the other cannot get, until it gives it back
 * or is killed */
TEST_F(pin_md, processes_share_what_the_device_allows)
{
    uct_pin_config_t config = {0, 0, 0, 0, 0, 3};
    mapping buffer(4 * page_size);
    uct_mem_h memh[3];
    int ready[2];
    char byte;

    ASSERT_EQ(0, pipe(ready));
    pid_t pid = fork();
    if (pid == 0) {
        fake_md own;
        uct_mem_h mine;

        if ((uct_pin_md_attach(own.md(), &config) != UCS_OK) ||
            (uct_abi_md(own.md())
                     ->ops->mem_reg(own.md(), buffer.address, 1,
                                    UCT_MD_MEM_ACCESS_ALL, &mine) != UCS_OK) ||
            (write(ready[1], "x", 1) != 1)) {
            _exit(1);
        }
        pause();
    }
    close(ready[1]);
    ASSERT_EQ(1, read(ready[0], &byte, 1)) << "the child has failed";
    close(ready[0]);

    attach(0, 0, 0, 0, 0, 3);
    ASSERT_EQ(UCS_OK, reg(buffer.at(0), 1, &memh[0]));
    ASSERT_EQ(UCS_OK, reg(buffer.at(page_size), 1, &memh[1]));
    EXPECT_EQ(UCS_ERR_NO_MEMORY, reg(buffer.at(2 * page_size), 1, &memh[2],
                                     UCT_MD_MEM_ACCESS_ALL |
                                             UCT_MD_MEM_FLAG_HIDE_ERRORS));
    EXPECT_EQ(UCS_OK, dereg(memh[1]));
    ASSERT_EQ(UCS_OK, reg(buffer.at(page_size), 1, &memh[1]));

    kill(pid, SIGKILL);
    EXPECT_EQ(pid, waitpid(pid, nullptr, 0));
    EXPECT_EQ(UCS_OK, reg(buffer.at(2 * page_size), 1, &memh[2]));
    EXPECT_EQ(UCS_ERR_NO_MEMORY, reg(buffer.at(3 * page_size), 1, &memh[2],
                                     UCT_MD_MEM_ACCESS_ALL |
                                             UCT_MD_MEM_FLAG_HIDE_ERRORS));
    expect_pinned(3 * page_size);
    EXPECT_EQ(0, num_errors);
}

TEST_F(pin_md, domains_are_independent)
{
    uct_pin_config_t config = {1, 2, 3, 0, 0, 0};
    mapping buffer(2 * page_size);
    uct_mem_h memh;
    fake_md other;

    attach();
    ASSERT_EQ(UCS_OK, uct_pin_md_attach(other.md(), &config));
    ASSERT_EQ(UCS_OK, reg(buffer.address, 2 * page_size, &memh));
    EXPECT_EQ(0u, uct_pin_md_pinned_bytes(other.md()));
    EXPECT_EQ(3u, uct_pin_md_config(other.md())->max_regions);
    other.now()->close(other.md());
    expect_pinned(2 * page_size);
    EXPECT_EQ(UCS_OK, dereg(memh));
}
