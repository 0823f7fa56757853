/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "fake_ucp.h"

#include <cerrno>

/*
 * Receives: UCP gets what the program gave, and each end is told once, when the
 * program tests or frees the request.
 */

class test_door_receive : public test_door {
protected:
    void SetUp() override
    {
        test_door::SetUp();
        param            = {};
        fake_ucp::answer = fake_ucp::word(request);
    }

    ucs_status_ptr_t post()
    {
        return ucp_tag_recv_nbx(worker, buffer, sizeof(buffer), 5, 6, &param);
    }

    uint32_t expect_posted()
    {
        return only(UCS_OPERATION_RECEIVE, buffer, sizeof(buffer)).id;
    }

    static void expect_end(uint32_t id)
    {
        auto all = heard();

        ASSERT_EQ(1u, all.size());
        EXPECT_EQ((uint32_t)UCS_OPERATION_RECEIVED, all[0].kind);
        EXPECT_EQ(id, all[0].id);
        EXPECT_EQ(0u, all[0].label);
    }

    ucp_request_param_t param;
    int mine;
};

/* With their completion function, of a newer UCX as well */
TEST_F(test_door_receive, parameters_are_the_programs)
{
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                         UCP_OP_ATTR_FIELD_USER_DATA | (1u << 9);
    ucp_request_param_t before = param;

    EXPECT_EQ(request, post());
    EXPECT_EQ(fake_ucp::word(&param), fake_ucp::calls.back().arguments[5]);
    EXPECT_EQ(request, ucp_am_recv_data_nbx(worker, &mine, buffer, 8, &param));
    EXPECT_EQ(fake_ucp::word(&param), fake_ucp::calls.back().arguments[4]);
    EXPECT_EQ(0, memcmp(&before, &param, sizeof(param)));
    ucp_request_free(request);
    heard();
}

/* Once UCP has it, for it may find the message there and register at once; not
 * of one that is over by then, is short or is not a buffer */
TEST_F(test_door_receive, what_waits_for_its_message_is_told)
{
    bool was_told = true;

    fake_ucp::inside = [&]() { was_told = !fake_ucp::posted.empty(); };
    errno            = 0;
    post();
    EXPECT_FALSE(was_told);
    EXPECT_EQ(0, errno);
    ASSERT_EQ(1u, fake_ucp::posted.size());
    EXPECT_EQ((uintptr_t)buffer, fake_ucp::posted[0].first);
    EXPECT_EQ(sizeof(buffer), fake_ucp::posted[0].second);

    fake_ucp::answer = 0;
    post();
    fake_ucp::answer = fake_ucp::word(UCS_STATUS_PTR(UCS_ERR_NO_MEMORY));
    post();
    fake_ucp::answer = fake_ucp::word(request);
    ucp_tag_recv_nbx(worker, buffer, 4095, 5, 6, &param);
    EXPECT_EQ(1u, fake_ucp::posted.size());
    ucp_request_free(request);
    heard();
}

TEST_F(test_door_receive, over_at_once)
{
    for (uint64_t answer : {(uint64_t)0,
                            fake_ucp::word(UCS_STATUS_PTR(
                                    UCS_ERR_NO_MEMORY))}) {
        fake_ucp::answer = answer;
        EXPECT_EQ(answer, fake_ucp::word(post()));
        auto all = heard();
        ASSERT_EQ(2u, all.size());
        EXPECT_EQ((uint32_t)UCS_OPERATION_RECEIVE, all[0].kind);
        EXPECT_EQ((uint32_t)UCS_OPERATION_RECEIVED, all[1].kind);
        EXPECT_EQ(all[0].id, all[1].id);
        EXPECT_LT(all[0].time, all[1].time);
    }
}

TEST_F(test_door_receive, active_message)
{
    EXPECT_EQ(request, ucp_am_recv_data_nbx(worker, &mine, buffer,
                                            sizeof(buffer), &param));
    uint32_t id = expect_posted();
    EXPECT_NE(0u, id);
    ucp_request_free(request);
    expect_end(id);
}

/* A receive is over when the program has tested, cancelled or freed its request */
TEST_F(test_door_receive, by_request)
{
    ucp_tag_recv_info_t info;
    uint32_t id;

    auto post_nb = [&]() {
        fake_ucp::answer = fake_ucp::word(request);
        EXPECT_EQ(request, ucp_tag_recv_nb(worker, buffer, sizeof(buffer),
                                           ucp_dt_make_contig(1), 5, 6,
                                           nullptr));
        return expect_posted();
    };

    id = post_nb();
    fake_ucp::answer = fake_ucp::word((int)UCS_INPROGRESS);
    EXPECT_EQ(UCS_INPROGRESS, ucp_request_check_status(request));
    EXPECT_EQ(UCS_INPROGRESS, ucp_request_test(request, &info));
    EXPECT_EQ(UCS_INPROGRESS, ucp_tag_recv_request_test(request, &info));
    fake_ucp::answer = 0;
    EXPECT_EQ(0, ucp_request_is_completed(request));
    EXPECT_EQ(0u, heard().size());
    EXPECT_EQ(UCS_OK, ucp_request_check_status(request));
    expect_end(id);
    ucp_request_free(request);
    EXPECT_EQ(0u, heard().size());

    id = post_nb();
    fake_ucp::answer = 0;
    EXPECT_EQ(UCS_OK, ucp_request_test(request, &info));
    expect_end(id);
    id = post_nb();
    fake_ucp::answer = 0;
    EXPECT_EQ(UCS_OK, ucp_tag_recv_request_test(request, &info));
    expect_end(id);
    id = post_nb();
    EXPECT_NE(0, ucp_request_is_completed(request));
    expect_end(id);
    id = post_nb();
    ucp_request_cancel(worker, request);
    expect_end(id);
    id = post_nb();
    ucp_request_release(request);
    expect_end(id);
    id = post_nb();
    ucp_request_free(request);
    expect_end(id);
}

TEST_F(test_door_receive, by_the_program_s_own_request)
{
    fake_ucp::answer = UCS_OK;
    EXPECT_EQ(UCS_OK, ucp_tag_recv_nbr(worker, buffer, sizeof(buffer),
                                       ucp_dt_make_contig(1), 5, 6, &mine));
    uint32_t id = expect_posted();
    EXPECT_EQ(UCS_OK, ucp_request_check_status(&mine));
    expect_end(id);

    fake_ucp::answer = fake_ucp::word((int)UCS_ERR_NO_MEMORY);
    EXPECT_EQ(UCS_ERR_NO_MEMORY,
              ucp_tag_recv_nbr(worker, buffer, sizeof(buffer),
                               ucp_dt_make_contig(1), 5, 6, &mine));
    EXPECT_EQ(2u, heard().size());
}

/* More receives than there is room for: the end of each is told once */
TEST_F(test_door_receive, more_than_there_is_room_for)
{
    const unsigned count = 3000;
    unsigned told        = 0;

    for (unsigned i = 0; i < count; ++i) {
        fake_ucp::answer = 0x100000 + 256 * i;
        EXPECT_EQ((void*)fake_ucp::answer, post());
        told += heard().size();
    }
    for (unsigned i = 0; i < count; ++i) {
        ucp_request_free((void*)(uintptr_t)(0x100000 + 256 * i));
        told += heard().size();
    }
    EXPECT_EQ(2 * count, told);
}
