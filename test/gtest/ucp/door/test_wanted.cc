/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "fake_ucp.h"

/*
 * What is too short to be registered is told while somebody learns from it.
 * Until then a call of it is handed on, and that is all.
 */

#define BYTES ucp_dt_make_contig(1)

class test_door_wanted : public test_door {
protected:
    static constexpr size_t LEAST = 16384;

    void SetUp() override
    {
        test_door::SetUp();
        ucs_store_relaxed(&fake_ucp::wants.least, LEAST);
        ucs_store_relaxed(&fake_ucp::wants.all, 0u);
        fake_ucp::answer = 0;
    }

    /* Every form that does not wait, with so many bytes each. @return How
     * many were called. */
    size_t call_all(size_t length)
    {
        fake_ucp::calls.clear();
        ucp_tag_send_nb(ep, buffer, length, BYTES, 7, nullptr);
        ucp_tag_send_nbr(ep, buffer, length, BYTES, 7, request);
        ucp_tag_send_nbx(ep, buffer, length, 7, &param);
        ucp_tag_send_sync_nb(ep, buffer, length, BYTES, 7, nullptr);
        ucp_tag_send_sync_nbx(ep, buffer, length, 7, &param);
        ucp_tag_recv_nb(worker, buffer, length, BYTES, 7, 7, nullptr);
        ucp_tag_recv_nbr(worker, buffer, length, BYTES, 7, 7, request);
        ucp_tag_recv_nbx(worker, buffer, length, 7, 7, &param);
        ucp_tag_msg_recv_nb(worker, buffer, length, BYTES, nullptr, nullptr);
        ucp_tag_msg_recv_nbx(worker, buffer, length, nullptr, &param);
        ucp_am_send_nb(ep, 7, buffer, length, BYTES, nullptr, 0);
        ucp_am_send_nbx(ep, 7, nullptr, 0, buffer, length, &param);
        ucp_am_recv_data_nbx(worker, nullptr, buffer, length, &param);
        ucp_put_nb(ep, buffer, length, 0, rkey, nullptr);
        ucp_put_nbi(ep, buffer, length, 0, rkey);
        ucp_put_nbx(ep, buffer, length, 0, rkey, &param);
        ucp_put(ep, buffer, length, 0, rkey);
        ucp_get_nb(ep, buffer, length, 0, rkey, nullptr);
        ucp_get_nbi(ep, buffer, length, 0, rkey);
        ucp_get_nbx(ep, buffer, length, 0, rkey, &param);
        ucp_get(ep, buffer, length, 0, rkey);
        ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, buffer, length, 0, rkey,
                          &param);
        return fake_ucp::calls.size();
    }

    /* Without their ends */
    static size_t heard_begin()
    {
        size_t count = 0;

        for (const auto &operation : heard()) {
            count += operation.kind != UCS_OPERATION_RECEIVED;
        }
        return count;
    }

    /* In a call of progress that UCP makes inside an operation */
    void progress_inside()
    {
        fake_ucp::inside = [&]() {
            for (unsigned i = 0; i < 40; ++i) {
                progress(0);
            }
        };
    }

    ucp_request_param_t param = {};
};

TEST_F(test_door_wanted, what_is_short_is_handed_on_unheard)
{
    EXPECT_EQ(22u, call_all(LEAST - 1));
    EXPECT_EQ(0u, heard().size());
    /* As are data that nobody could register */
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = ucp_dt_make_iov();
    fake_ucp::calls.clear();
    ucp_tag_send_nbx(ep, buffer, 1 << 20, 7, &param);
    EXPECT_EQ(1u, fake_ucp::calls.size());
    EXPECT_EQ(0u, heard().size());
}

TEST_F(test_door_wanted, what_is_long_is_always_told)
{
    EXPECT_EQ(22u, call_all(LEAST));
    EXPECT_EQ(22u, heard_begin());
    /* Elements have lengths of their own */
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = ucp_dt_make_contig(64);
    ucp_tag_send_nbx(ep, buffer, LEAST / 64, 7, &param);
    only(UCS_OPERATION_SEND, buffer, LEAST);
}

TEST_F(test_door_wanted, everything_is_told_from_the_moment_it_is_wanted)
{
    ucp_tag_send_nbx(ep, buffer, 8, 7, &param);
    ucs_operation_listen(&fake_ucp::wants, 1);
    ucp_tag_send_nbx(ep, buffer, 16, 7, &param);
    only(UCS_OPERATION_SEND, buffer, 16);
    EXPECT_EQ(22u, call_all(8));
    EXPECT_EQ(22u, heard_begin());
    /* By two, of whom one ends */
    ucs_operation_listen(&fake_ucp::wants, 1);
    ucs_operation_listen(&fake_ucp::wants, 0);
    ucp_tag_recv_nbx(worker, buffer, 8, 7, 7, &param);
    only(UCS_OPERATION_RECEIVE, buffer, 8);
    ucs_operation_listen(&fake_ucp::wants, 0);
    EXPECT_EQ(22u, call_all(8));
    EXPECT_EQ(0u, heard().size());
}

TEST_F(test_door_wanted, what_is_rare_is_always_told)
{
    ucp_mem_map_params_t params = {};

    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                        UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = buffer;
    params.length     = 64;
    ucp_mem_map(nullptr, &params, nullptr);
    only(UCS_OPERATION_MAP, buffer, 64);
    ucp_mem_unmap(nullptr, nullptr);
    only(UCS_OPERATION_UNMAP, nullptr, 0);
}

/* Its own was told, when everything was wanted */
TEST_F(test_door_wanted, the_end_of_a_receive_is_always_told)
{
    void *request = made_up<void>(0xe5000); /* of no test before */

    ucs_operation_listen(&fake_ucp::wants, 1);
    fake_ucp::answer = (uintptr_t)request;
    EXPECT_EQ(request, ucp_tag_recv_nbx(worker, buffer, 5000, 7, 7, &param));
    auto told = heard();
    ASSERT_EQ(1u, told.size());
    ucs_operation_listen(&fake_ucp::wants, 0);
    ucp_request_free(request);
    auto ended = heard();
    ASSERT_EQ(1u, ended.size());
    EXPECT_EQ(told[0].id, ended[0].id);
    EXPECT_EQ((uint32_t)UCS_OPERATION_RECEIVED, ended[0].kind);

    /* One that was not told has none */
    ucp_tag_recv_nbx(worker, buffer, 5000, 7, 7, &param);
    ucp_request_free(request);
    EXPECT_EQ(0u, heard().size());
}

/* As UCX does in operations that wait, and where it calls the program's function
 * at once: its lock is held */
TEST_F(test_door_wanted, no_idle_step_is_taken_inside_what_is_not_told)
{
    progress_inside();
    ucp_put(ep, buffer, 8, 0, rkey);
    progress_inside();
    ucp_get(ep, buffer, 8, 0, rkey);
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    progress_inside();
    ucp_tag_send_nbx(ep, buffer, 8, 7, &param);
    progress_inside();
    ucp_tag_recv_nbx(worker, buffer, 8, 7, 7, &param);
    progress_inside();
    ucp_tag_recv_nb(worker, buffer, 8, BYTES, 7, 7, nullptr);
    EXPECT_EQ(0u, fake_ucp::idle_steps);
    EXPECT_EQ(0u, heard().size());
}
