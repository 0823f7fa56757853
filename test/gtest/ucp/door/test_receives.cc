/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "fake_ucp.h"

#include <cerrno>
#include <thread>

/*
 * Ends of receives: the program's completion function is called as if there
 * were no door, and each end is told once.
 */

/* What the program's completion function was called with */
static struct {
    unsigned            calls;
    void               *request;
    ucs_status_t        status;
    ucp_tag_recv_info_t info;
    size_t              length;
    void               *user_data;
    bool                sends;
    unsigned            progresses;
} got;

static void tag_callback(void *request, ucs_status_t status,
                         const ucp_tag_recv_info_t *info, void *user_data)
{
    ++got.calls;
    got.request   = request;
    got.status    = status;
    got.info      = *info;
    got.user_data = user_data;
    if (got.sends) {
        ucp_tag_send_nb(nullptr, &got, 16, ucp_dt_make_contig(1), 0, nullptr);
    }
    for (unsigned i = 0; i < got.progresses; ++i) {
        EXPECT_EQ(0u, ucp_worker_progress(nullptr));
    }
}

static void am_callback(void *request, ucs_status_t status, size_t length,
                        void *user_data)
{
    ++got.calls;
    got.request   = request;
    got.status    = status;
    got.length    = length;
    got.user_data = user_data;
}

class test_door_receive : public test_door {
protected:
    void SetUp() override
    {
        test_door::SetUp();
        got   = {};
        param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                             UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.recv      = tag_callback;
        param.user_data    = &mine;
        fake_ucp::answer   = fake_ucp::word(request);
    }

    ucs_status_ptr_t post()
    {
        return ucp_tag_recv_nbx(worker, buffer, sizeof(buffer), 5, 6, &param);
    }

    /* What UCP was given at the latest call of a tagged receive */
    const ucp_request_param_t *given()
    {
        return (const ucp_request_param_t*)fake_ucp::calls.back().arguments[5];
    }

    /* The parameters are gone when the call is over, as UCX treats them */
    void keep_what_is_given()
    {
        fake_ucp::inside = [&]() { kept = *given(); };
    }

    void complete(ucs_status_t status, size_t length)
    {
        ucp_tag_recv_info_t info = {};

        info.length     = length;
        info.sender_tag = 55;
        kept.cb.recv(request, status, &info, kept.user_data);
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

    ucp_request_param_t param, kept;
    int mine;
};

TEST_F(test_door_receive, completion_function)
{
    ucp_request_param_t before = param;

    keep_what_is_given();
    EXPECT_EQ(request, post());
    EXPECT_EQ(0, memcmp(&before, &param, sizeof(param)));
    uint32_t id = expect_posted();
    EXPECT_NE(0u, id);
    EXPECT_EQ(0u, got.calls);

    complete(UCS_ERR_MESSAGE_TRUNCATED, 4711);
    EXPECT_EQ(1u, got.calls);
    EXPECT_EQ(request, got.request);
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, got.status);
    EXPECT_EQ(4711u, got.info.length);
    EXPECT_EQ(55u, got.info.sender_tag);
    EXPECT_EQ(&mine, got.user_data);
    expect_end(id);

    /* The request is no receive's any more */
    ucp_request_free(request);
    EXPECT_EQ(0u, heard().size());
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
    heard();
}

/* It may not call progress, but some do: such calls are not outermost, whatever
 * thread of UCX's the function is called by */
TEST_F(test_door_receive, no_idle_step_in_a_completion_function)
{
    keep_what_is_given();
    post();
    fake_ucp::answer = 0; /* nothing is ever found */
    got.progresses   = 40;
    complete(UCS_OK, 100);
    EXPECT_EQ(1u, got.calls);
    EXPECT_EQ(0u, fake_ucp::idle_steps);

    /* Afterwards the program waits itself */
    wait(1000);
    wait(100000);
    EXPECT_EQ(1u, fake_ucp::idle_steps);
}

/* UCX gives it NULL */
TEST_F(test_door_receive, completion_function_without_an_argument)
{
    param.op_attr_mask &= ~UCP_OP_ATTR_FIELD_USER_DATA;
    keep_what_is_given();
    post();
    expect_posted();
    complete(UCS_OK, 1);
    EXPECT_EQ(1u, got.calls);
    EXPECT_EQ(nullptr, got.user_data);
}

/* What the program set arrives, and nothing else is read of its block */
TEST_F(test_door_receive, parameters_are_the_programs)
{
    size_t length;

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_FLAGS |
                          UCP_OP_ATTR_FIELD_DATATYPE |
                          UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                          UCP_OP_ATTR_FIELD_RECV_INFO |
                          UCP_OP_ATTR_FIELD_REPLY_BUFFER |
                          UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.request          = request;
    param.flags            = 77;
    param.datatype         = ucp_dt_make_contig(2);
    param.memory_type      = UCS_MEMORY_TYPE_UNKNOWN;
    param.recv_info.length = &length;
    param.reply_buffer     = buffer;
    keep_what_is_given();
    ucp_tag_recv_nbx(worker, buffer, sizeof(buffer) / 2, 5, 6, &param);
    expect_posted();
    EXPECT_EQ(param.op_attr_mask, kept.op_attr_mask);
    EXPECT_EQ(param.request, kept.request);
    EXPECT_EQ(param.flags, kept.flags);
    EXPECT_EQ(param.datatype, kept.datatype);
    EXPECT_EQ(param.memory_type, kept.memory_type);
    EXPECT_EQ(param.recv_info.length, kept.recv_info.length);
    EXPECT_EQ(param.reply_buffer, kept.reply_buffer);
    complete(UCS_OK, 1);
    EXPECT_EQ(&mine, got.user_data);
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
    EXPECT_EQ(0u, got.calls);
}

/* Where the program denies immediate completion, UCX completes inside the call
 * and returns a request all the same */
TEST_F(test_door_receive, completed_inside_the_call)
{
    got.sends        = true;
    fake_ucp::inside = [&]() {
        kept = *given();
        complete(UCS_OK, 9);
    };
    EXPECT_EQ(request, post());
    EXPECT_EQ(1u, got.calls);
    EXPECT_EQ(&mine, got.user_data);

    /* What the completion function sent is the program's */
    auto all = heard();
    ASSERT_EQ(3u, all.size());
    EXPECT_EQ((uint32_t)UCS_OPERATION_RECEIVED, all[1].kind);
    EXPECT_EQ(all[0].id, all[1].id);
    EXPECT_EQ((uint32_t)UCS_OPERATION_SEND, all[2].kind);
}

TEST_F(test_door_receive, completed_by_another_thread)
{
    keep_what_is_given();
    post();
    auto posted = heard();
    ASSERT_EQ(1u, posted.size());
    std::thread([&]() { complete(UCS_OK, 1); }).join();
    auto all = heard();
    ASSERT_EQ(1u, all.size());
    EXPECT_EQ(posted[0].id, all[0].id);
    EXPECT_EQ(posted[0].thread, all[0].thread);
}

/* A field that this build does not know may lie behind what it would copy */
TEST_F(test_door_receive, parameters_of_a_newer_ucx_pass_as_they_are)
{
    param.op_attr_mask |= 1u << 9;
    EXPECT_EQ(request, post());
    EXPECT_EQ(&param, given());
    uint32_t id = expect_posted();
    ucp_request_free(request);
    expect_end(id);
}

TEST_F(test_door_receive, active_message)
{
    param.cb.recv_am = am_callback;
    fake_ucp::inside = [&]() {
        kept = *(const ucp_request_param_t*)
                fake_ucp::calls.back().arguments[4];
    };
    EXPECT_EQ(request, ucp_am_recv_data_nbx(worker, &mine, buffer,
                                            sizeof(buffer), &param));
    uint32_t id = expect_posted();
    kept.cb.recv_am(request, UCS_OK, 321, kept.user_data);
    EXPECT_EQ(1u, got.calls);
    EXPECT_EQ(321u, got.length);
    EXPECT_EQ(&mine, got.user_data);
    expect_end(id);
}

/* Without a completion function that takes an argument a receive is over when
 * the program has tested, cancelled or freed its request */
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

/* More receives than there is room for: all complete as the program meant */
TEST_F(test_door_receive, more_than_there_is_room_for)
{
    const unsigned count = 3000;
    std::vector<ucp_request_param_t> all(count);
    std::vector<int> arguments(count);
    unsigned completed = 0, told = 0;

    for (unsigned i = 0; i < count; ++i) {
        fake_ucp::answer = 0x100000 + 256 * i;
        param.user_data  = &arguments[i];
        fake_ucp::inside = [&]() { all[i] = *given(); };
        EXPECT_EQ((void*)fake_ucp::answer, post());
        told += heard().size();
    }
    for (unsigned i = 0; i < count; ++i) {
        ucp_tag_recv_info_t info = {};

        all[i].cb.recv(request, UCS_OK, &info, all[i].user_data);
        completed += (got.user_data == &arguments[i]);
        ucp_request_free((void*)(uintptr_t)(0x100000 + 256 * i));
        told += heard().size();
    }
    EXPECT_EQ(count, completed);
    EXPECT_EQ(2 * count, told);
}
