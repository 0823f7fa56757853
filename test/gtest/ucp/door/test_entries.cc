/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "fake_ucp.h"

#include <cerrno>
#include <set>
#include <thread>

namespace fake_ucp {

std::vector<call> calls;
std::function<void()> inside;
uint64_t answer;
std::atomic<bool> is_crowded;
std::atomic<unsigned> idle_steps;
std::atomic<uint64_t> spare_ns;
std::atomic<uint64_t> time;
std::function<void()> in_idle_step;
ucs_idle_outcome_t idle_outcome;
ucs_operation_wants_t wants;
std::vector<std::pair<uintptr_t, size_t>> posted;
const ucp_door_reader_t *reader;

std::map<std::string, ucp_door_func_t> &functions()
{
    static std::map<std::string, ucp_door_func_t> all;

    return all;
}

#define FAKE_UCP_DEFINE(_name) \
    struct tag_##_name { \
        static const char *name() { return #_name; } \
    }; \
    static function<tag_##_name, decltype(_name)> fake_##_name;
FAKE_UCP_FUNCTIONS(FAKE_UCP_DEFINE)

static ucp_door_func_t find(const char *, const char *name, const void *)
{
    auto found = functions().find(name);

    return (found == functions().end()) ? nullptr : found->second;
}

} // namespace fake_ucp

uint64_t test_door::now()
{
    return ++fake_ucp::time;
}

ucs_idle_outcome_t test_door::idle_step(uint64_t spare_ns)
{
    ++fake_ucp::idle_steps;
    fake_ucp::spare_ns = spare_ns;
    if (fake_ucp::in_idle_step) {
        fake_ucp::in_idle_step();
    }
    return fake_ucp::idle_outcome;
}

void test_door::posted(uintptr_t address, size_t length)
{
    if (!fake_ucp::is_crowded) {
        fake_ucp::posted.emplace_back(address, length);
    }
    errno = EAGAIN; /* of a system call, which is none of the program's */
}

void test_door::SetUp()
{
    static const ucp_door_listener_t listener = {UCP_DOOR_VERSION, now, idle_step,
                                                  posted, nullptr,
                                                  &fake_ucp::wants};

    ucs_store_relaxed(&fake_ucp::wants.all, 1u);
    ucs_store_relaxed(&fake_ucp::wants.least, UINT64_MAX);
    ucp_door_slots_find_by(fake_ucp::find);
    fake_ucp::reader = ucp_door_open(&listener);
    ASSERT_NE(nullptr, fake_ucp::reader);
    fake_ucp::inside       = nullptr;
    fake_ucp::in_idle_step = nullptr;
    fake_ucp::idle_outcome = UCS_IDLE_HEARD;
    fake_ucp::spare_ns     = 0;
    fake_ucp::is_crowded   = false;
    progress(1); /* what came before is no longer in a row */
    heard();
    fake_ucp::calls.clear();
    fake_ucp::posted.clear();
    fake_ucp::idle_steps = 0;
    fake_ucp::answer     = 0;
}

std::vector<ucs_operation_t> test_door::heard()
{
    std::vector<ucs_operation_t> all(4096);

    all.resize(fake_ucp::reader->drain(all.data(), all.size()));
    return all;
}

ucs_operation_t test_door::only(ucs_operation_kind_t kind, const void *address,
                                size_t length)
{
    auto all = heard();

    EXPECT_EQ(1u, all.size());
    if (all.empty()) {
        return ucs_operation_t();
    }
    EXPECT_EQ((uint32_t)kind, all[0].kind);
    EXPECT_EQ((uint64_t)(uintptr_t)address, all[0].address);
    EXPECT_EQ(length, all[0].length);
    EXPECT_NE(0u, all[0].label);
    EXPECT_NE(0u, all[0].time);
    return all[0];
}

unsigned test_door::progress(unsigned count)
{
    fake_ucp::answer = count;
    return ucp_worker_progress(made_up<struct ucp_worker>(0xe200));
}

/* The entry point calls UCP's function once, with what it was called with, and
 * returns what that returns */
#define EXPECT_FORWARDS(_name, ...) \
    do { \
        fake_ucp::calls.clear(); \
        fake_ucp::answer = 0x1234500; \
        forwards(#_name, _name, __VA_ARGS__); \
    } while (0)

template<class R, class... A, class... B>
static void forwards(const char *name, R (*entry)(A...), B... arguments)
{
    std::vector<uint64_t> given = {fake_ucp::word((A)arguments)...};

    if constexpr (std::is_void<R>::value) {
        entry(arguments...);
    } else {
        EXPECT_EQ(fake_ucp::word(fake_ucp::result<R>()),
                  fake_ucp::word(entry(arguments...))) << name;
    }
    ASSERT_EQ(1u, fake_ucp::calls.size()) << name;
    EXPECT_EQ(name, fake_ucp::calls[0].name);
    EXPECT_EQ(given, fake_ucp::calls[0].arguments) << name;
}

#define BYTES   ucp_dt_make_contig(1)
#define DOUBLES ucp_dt_make_contig(8)

TEST_F(test_door, sends)
{
    ucp_request_param_t param = {};
    auto cb                   = made_up<void(void*, ucs_status_t)>(0xc100);

    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = DOUBLES;
    EXPECT_FORWARDS(ucp_tag_send_nb, ep, buffer, 100, DOUBLES, 7, cb);
    only(UCS_OPERATION_SEND, buffer, 800);
    EXPECT_FORWARDS(ucp_tag_send_nbr, ep, buffer, 100, BYTES, 7, request);
    only(UCS_OPERATION_SEND, buffer, 100);
    EXPECT_FORWARDS(ucp_tag_send_nbx, ep, buffer, 100, 7, &param);
    only(UCS_OPERATION_SEND, buffer, 800);
    EXPECT_FORWARDS(ucp_tag_send_sync_nb, ep, buffer, 100, DOUBLES, 7, cb);
    only(UCS_OPERATION_SEND, buffer, 800);
    EXPECT_FORWARDS(ucp_tag_send_sync_nbx, ep, buffer, 100, 7, &param);
    only(UCS_OPERATION_SEND, buffer, 800);
    EXPECT_FORWARDS(ucp_am_send_nb, ep, 3, buffer, 100, DOUBLES, cb, 1);
    only(UCS_OPERATION_SEND, buffer, 800);
    EXPECT_FORWARDS(ucp_am_send_nbx, ep, 3, request, 16, buffer, 100, &param);
    EXPECT_EQ(0u, only(UCS_OPERATION_SEND, buffer, 800).id);
}

TEST_F(test_door, remote_memory)
{
    ucp_request_param_t param = {};
    auto cb                   = made_up<void(void*, ucs_status_t)>(0xc100);

    EXPECT_FORWARDS(ucp_put_nb, ep, buffer, 100, 0xabc, rkey, cb);
    only(UCS_OPERATION_PUT, buffer, 100);
    EXPECT_FORWARDS(ucp_put_nbi, ep, buffer, 100, 0xabc, rkey);
    only(UCS_OPERATION_PUT, buffer, 100);
    EXPECT_FORWARDS(ucp_put_nbx, ep, buffer, 100, 0xabc, rkey, &param);
    only(UCS_OPERATION_PUT, buffer, 100);
    EXPECT_FORWARDS(ucp_put, ep, buffer, 100, 0xabc, rkey);
    only(UCS_OPERATION_PUT, buffer, 100);
    EXPECT_FORWARDS(ucp_get_nb, ep, buffer, 100, 0xabc, rkey, cb);
    only(UCS_OPERATION_GET, buffer, 100);
    EXPECT_FORWARDS(ucp_get_nbi, ep, buffer, 100, 0xabc, rkey);
    only(UCS_OPERATION_GET, buffer, 100);
    EXPECT_FORWARDS(ucp_get_nbx, ep, buffer, 100, 0xabc, rkey, &param);
    only(UCS_OPERATION_GET, buffer, 100);
    EXPECT_FORWARDS(ucp_get, ep, buffer, 100, 0xabc, rkey);
    only(UCS_OPERATION_GET, buffer, 100);
    EXPECT_FORWARDS(ucp_atomic_post, ep, UCP_ATOMIC_POST_OP_ADD, 5, 8, 0xabc,
                    rkey);
    only(UCS_OPERATION_ATOMIC, nullptr, 0);
    EXPECT_FORWARDS(ucp_atomic_fetch_nb, ep, UCP_ATOMIC_FETCH_OP_FADD, 5,
                    buffer, 8, 0xabc, rkey, cb);
    only(UCS_OPERATION_ATOMIC, buffer, 8);
    EXPECT_FORWARDS(ucp_atomic_op_nbx, ep, UCP_ATOMIC_OP_ADD, buffer, 1, 0xabc,
                    rkey, &param);
    only(UCS_OPERATION_ATOMIC, buffer, 1);
}

/* What the program registers itself: an operation of its own kind, by what the
 * mask says is there */
TEST_F(test_door, memory_that_the_program_maps)
{
    ucp_mem_map_params_t params = {};
    auto context                = made_up<struct ucp_context>(0xc500);
    auto memh                   = made_up<struct ucp_mem>(0xc600);
    uint64_t all = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                   UCP_MEM_MAP_PARAM_FIELD_LENGTH;

    params.address     = buffer;
    params.length      = 5000;
    params.flags       = UCP_MEM_MAP_ALLOCATE;
    params.memory_type = UCS_MEMORY_TYPE_CUDA;
    params.field_mask  = all;
    EXPECT_FORWARDS(ucp_mem_map, context, &params, &memh);
    EXPECT_EQ(0u, only(UCS_OPERATION_MAP, buffer, 5000).id);

    for (uint64_t mask : {(uint64_t)UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                          (uint64_t)UCP_MEM_MAP_PARAM_FIELD_ADDRESS,
                          all | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                          all | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE}) {
        params.field_mask = mask;
        EXPECT_FORWARDS(ucp_mem_map, context, &params, &memh);
        only(UCS_OPERATION_MAP, nullptr, 0);
    }

    EXPECT_FORWARDS(ucp_mem_unmap, context, memh);
    EXPECT_EQ(0u, only(UCS_OPERATION_UNMAP, nullptr, 0).id);
}

TEST_F(test_door, requests)
{
    ucp_tag_recv_info_t info;

    EXPECT_FORWARDS(ucp_request_free, request);
    EXPECT_FORWARDS(ucp_request_release, request);
    EXPECT_FORWARDS(ucp_request_cancel, worker, request);
    EXPECT_FORWARDS(ucp_request_check_status, request);
    EXPECT_FORWARDS(ucp_request_is_completed, request);
    EXPECT_FORWARDS(ucp_request_test, request, &info);
    EXPECT_FORWARDS(ucp_tag_recv_request_test, request, &info);
    EXPECT_FORWARDS(ucp_worker_progress, worker);
    EXPECT_EQ(0u, heard().size());
}

TEST_F(test_door, receives_without_a_parameter_block)
{
    auto cb      = made_up<void(void*, ucs_status_t, ucp_tag_recv_info_t*)>(
            0xc200);
    auto message = made_up<struct ucp_recv_desc>(0xc300);

    EXPECT_FORWARDS(ucp_tag_recv_nb, worker, buffer, 8, DOUBLES, 1, 2, cb);
    only(UCS_OPERATION_RECEIVE, buffer, 64);
    fake_ucp::calls.clear();
    fake_ucp::answer = UCS_OK;
    EXPECT_EQ(UCS_OK, ucp_tag_recv_nbr(worker, buffer, 8, BYTES, 1, 2,
                                       request));
    EXPECT_EQ(fake_ucp::word(request), fake_ucp::calls.at(0).arguments.at(6));
    only(UCS_OPERATION_RECEIVE, buffer, 8);
    EXPECT_FORWARDS(ucp_tag_msg_recv_nb, worker, buffer, 8, DOUBLES, message,
                    cb);
    only(UCS_OPERATION_RECEIVE, buffer, 64);
}

/* Short ones are not followed, and their parameters pass as they are */
TEST_F(test_door, short_receives)
{
    ucp_request_param_t param = {};
    auto message              = made_up<struct ucp_recv_desc>(0xc300);

    EXPECT_FORWARDS(ucp_tag_recv_nbx, worker, buffer, 4095, 1, 2, &param);
    EXPECT_EQ(0u, only(UCS_OPERATION_RECEIVE, buffer, 4095).id);
    EXPECT_FORWARDS(ucp_tag_msg_recv_nbx, worker, buffer, 8, message, &param);
    EXPECT_EQ(0u, only(UCS_OPERATION_RECEIVE, buffer, 8).id);
    EXPECT_FORWARDS(ucp_am_recv_data_nbx, worker, request, buffer, 8, &param);
    EXPECT_EQ(0u, only(UCS_OPERATION_RECEIVE, buffer, 8).id);
    ucp_request_free((void*)0x1234500);
    EXPECT_EQ(0u, heard().size());
}

TEST_F(test_door, data_that_are_not_contiguous_or_not_known)
{
    ucp_request_param_t param = {};

    for (ucp_datatype_t datatype : {(ucp_datatype_t)UCP_DATATYPE_IOV,
                                    (ucp_datatype_t)0x5000 |
                                    UCP_DATATYPE_GENERIC,
                                    (ucp_datatype_t)UCP_DATATYPE_STRIDED}) {
        EXPECT_FORWARDS(ucp_tag_send_nb, ep, buffer, 100, datatype, 7, nullptr);
        only(UCS_OPERATION_SEND, nullptr, 0);
    }

    /* A size that no memory has */
    EXPECT_FORWARDS(ucp_tag_send_nb, ep, buffer, SIZE_MAX / 2, DOUBLES, 7,
                    nullptr);
    only(UCS_OPERATION_SEND, nullptr, 0);

    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type  = UCS_MEMORY_TYPE_CUDA;
    EXPECT_FORWARDS(ucp_tag_send_nbx, ep, buffer, 100, 7, &param);
    only(UCS_OPERATION_SEND, nullptr, 0);
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    EXPECT_FORWARDS(ucp_tag_send_nbx, ep, buffer, 100, 7, &param);
    only(UCS_OPERATION_SEND, buffer, 100);

    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    param.memh         = made_up<struct ucp_mem>(0xc400);
    EXPECT_FORWARDS(ucp_tag_send_nbx, ep, buffer, 100, 7, &param);
    only(UCS_OPERATION_SEND, nullptr, 0);

    /* What the mask does not name is not looked at */
    param.op_attr_mask = 0;
    param.datatype     = UCP_DATATYPE_IOV;
    EXPECT_FORWARDS(ucp_tag_send_nbx, ep, buffer, 100, 7, &param);
    only(UCS_OPERATION_SEND, buffer, 100);
}

static __attribute__((noinline)) void send_from_here(ucp_ep_h ep, void *buffer)
{
    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    __asm__ volatile("");
}

TEST_F(test_door, call_sites_have_labels_of_their_own)
{
    std::set<uint32_t> loop, sites;

    for (unsigned i = 0; i < 10; ++i) {
        send_from_here(ep, buffer + i);
    }
    for (const auto &operation : heard()) {
        loop.insert(operation.label);
    }
    EXPECT_EQ(1u, loop.size());

    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    ucp_tag_send_nb(ep, buffer, 128, BYTES, 7, nullptr);
    for (const auto &operation : heard()) {
        sites.insert(operation.label);
    }
    EXPECT_EQ(3u, sites.size());
    EXPECT_EQ(0u, sites.count(*loop.begin()));
}

/* UCX's own entry points call each other: one operation, not two */
TEST_F(test_door, what_ucp_calls_itself_is_not_told)
{
    ucp_request_param_t param = {};

    fake_ucp::inside = [&]() {
        ucp_tag_recv_nbx(worker, buffer, 8192, 1, 2, &param);
        ucp_tag_send_nbx(ep, buffer, 8192, 1, &param);
    };
    ucp_tag_recv_nb(worker, buffer, 8192, BYTES, 1, 2, nullptr);
    ASSERT_EQ(3u, fake_ucp::calls.size());
    EXPECT_EQ(fake_ucp::word(&param), fake_ucp::calls[1].arguments[5]);
    /* It was over at once */
    auto all = heard();
    ASSERT_EQ(2u, all.size());
    EXPECT_EQ(UCS_OPERATION_RECEIVE, all[0].kind);
    EXPECT_EQ(UCS_OPERATION_RECEIVED, all[1].kind);

    /* Afterwards the program is heard again */
    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    only(UCS_OPERATION_SEND, buffer, 64);
}

TEST_F(test_door, what_a_program_calls_from_progress_is_told)
{
    fake_ucp::inside = [&]() {
        ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    };
    EXPECT_EQ(1u, progress(1));
    only(UCS_OPERATION_SEND, buffer, 64);
}

/* Empty calls until the door looks at the clock, @a ns after the latest ones */
uint64_t test_door::wait(uint64_t ns)
{
    fake_ucp::time += ns;
    for (unsigned i = 0; i < 16; ++i) {
        progress(0);
    }
    return fake_ucp::spare_ns;
}

/* By a thread that has not taken one before: what they take is known of each */
#define TEST_IDLE(_name) \
    class test_door_##_name : public test_door { \
    protected: \
        void in_thread(); \
    }; \
    TEST_F(test_door_##_name, by_a_new_thread) \
    { \
        std::thread([&]() { in_thread(); }).join(); \
    } \
    void test_door_##_name::in_thread()

TEST_IDLE(idle_steps_after_empty_calls_in_a_row)
{
    for (unsigned round = 0; round < 5; ++round) {
        for (unsigned i = 0; i < 15; ++i) {
            EXPECT_EQ(0u, progress(0));
        }
        EXPECT_EQ(3u, progress(3));
    }
    EXPECT_EQ(0u, fake_ucp::idle_steps);

    for (unsigned i = 0; i < 15; ++i) {
        progress(0);
    }
    EXPECT_EQ(0u, fake_ucp::idle_steps);
    for (unsigned i = 0; i < 17; ++i) {
        progress(0); /* the first look says when the wait began */
    }
    EXPECT_EQ(1u, fake_ucp::idle_steps);
}

/* A step that finds nothing takes at most an eighth of a wait */
TEST_IDLE(an_idle_step_is_worth_its_time)
{
    fake_ucp::in_idle_step = [&]() { fake_ucp::time += 299; }; /* and a look */
    wait(100000);
    EXPECT_EQ(0u, fake_ucp::idle_steps);
    wait(100); /* what one takes is not known yet */
    EXPECT_EQ(1u, fake_ucp::idle_steps);
    wait(2000);
    EXPECT_EQ(1u, fake_ucp::idle_steps);
    wait(398); /* 2,400 with two looks */
    EXPECT_EQ(2u, fake_ucp::idle_steps);

    /* One that found work says nothing of the next */
    fake_ucp::in_idle_step = [&]() { fake_ucp::time += 50000; };
    wait(2400);
    EXPECT_EQ(3u, fake_ucp::idle_steps);
    wait(2400);
    EXPECT_EQ(4u, fake_ucp::idle_steps);

    /* Messages that come one after another, each sooner than a step is worth */
    for (unsigned i = 0; i < 100; ++i) {
        progress(1);
        wait(2000);
        wait(2000);
    }
    EXPECT_EQ(4u, fake_ucp::idle_steps);
}

/* The first step of a wait hears what was said, which takes longer. While nothing
 * comes of it, it is put off, but in a wait now and then, the more rarely the longer
 * that is so. */
TEST_IDLE(the_first_idle_step_is_put_off_while_nothing_comes_of_it)
{
    const ucp_request_param_t param = {};
    auto take = [&](uint64_t ns) {
        fake_ucp::in_idle_step = [=]() { fake_ucp::time += ns - 1; };
    };
    /* How long a wait has been when the first step is over, in steps of 100 ns */
    auto first = [&](bool is_said) {
        uint64_t began;

        progress(1);
        if (is_said) {
            ucp_tag_send_nbx(ep, buffer, 8, 1, &param);
        }
        take(is_said ? 1600 : 100);
        wait(0);
        began                = fake_ucp::time;
        fake_ucp::idle_steps = 0;
        while (fake_ucp::idle_steps == 0) {
            wait(100);
        }
        return fake_ucp::time - began;
    };

    take(100);
    wait(1000);
    wait(1000); /* what a step takes that finds nothing */
    for (unsigned round = 0; round < 2; ++round) {
        fake_ucp::idle_outcome = UCS_IDLE_HEARD;
        first(true);
        for (unsigned rest : {8, 16, 32, 64, 64}) {
            for (unsigned i = 1; i < rest; ++i) {
                uint64_t after = first(true);
                EXPECT_GE(after, 16 * 1600u + 1600) << i << " of " << rest;
                EXPECT_LE(after, 16 * 1600u + 2000) << i << " of " << rest;
            }
            EXPECT_LT(first(true), 4000u) << rest;
        }
        EXPECT_LT(first(false), 1600u) << "nothing to hear";
        /* What is of use once is tried soon again */
        fake_ucp::idle_outcome = UCS_IDLE_USED;
        first(true);
    }

    /* From the first that did something on, all are early */
    for (unsigned i = 0; i < 20; ++i) {
        EXPECT_LT(first(true), 4000u);
    }
    /* One that was not taken heard nothing, and says nothing */
    fake_ucp::idle_outcome = UCS_IDLE_NOT_TAKEN;
    for (unsigned i = 0; i < 20; ++i) {
        EXPECT_LT(first(true), 4000u);
    }
}

/* What was waited, less what steps took meanwhile; of each wait anew */
TEST_IDLE(an_idle_step_knows_how_long_the_wait_has_been)
{
    EXPECT_EQ(0u, wait(1000)); /* none yet */
    EXPECT_EQ(1001u, wait(1000)); /* a look at the clock is a nanosecond */
    EXPECT_EQ(2001u, wait(1000));
    fake_ucp::in_idle_step = [&]() { fake_ucp::time += 1500; };
    EXPECT_EQ(3001u, wait(1000));
    fake_ucp::in_idle_step = nullptr;
    EXPECT_EQ(2501u, wait(1000));
    fake_ucp::in_idle_step = [&]() { fake_ucp::time += 5000; };
    EXPECT_EQ(3501u, wait(1000));
    EXPECT_EQ(1001u, wait(1000));
    progress(1);
    wait(1000);
    EXPECT_EQ(1001u, wait(1000));
}

/* Nested calls of progress, as of a completion function that may not but does,
 * and those from inside an operation */
TEST_F(test_door, idle_steps_are_of_outermost_calls)
{
    for (unsigned i = 0; i < 40; ++i) {
        fake_ucp::inside = [&]() {
            for (unsigned k = 0; k < 40; ++k) {
                EXPECT_EQ(0u, progress(0));
            }
            fake_ucp::answer = 1;
        };
        EXPECT_EQ(1u, progress(0));
        fake_ucp::inside = [&]() {
            for (unsigned k = 0; k < 40; ++k) {
                progress(0);
            }
        };
        ucp_put(ep, buffer, 8, 0, rkey);
    }
    EXPECT_EQ(0u, fake_ucp::idle_steps);
}

/* A step that comes by progress itself neither nests nor is heard */
TEST_IDLE(an_idle_step_is_not_in_another)
{
    fake_ucp::in_idle_step = [&]() {
        errno = ENOMEM;
        ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
        for (unsigned k = 0; k < 40; ++k) {
            progress(0);
        }
    };
    errno = EAGAIN;
    for (unsigned i = 0; i < 32; ++i) {
        progress(0);
    }
    EXPECT_EQ(1u, fake_ucp::idle_steps);
    EXPECT_EQ(EAGAIN, errno);
    EXPECT_EQ(0u, heard().size());
}

/* From one place, which a thread remembers */
TEST_F(test_door, a_size_and_a_kind_have_labels_of_their_own)
{
    std::vector<uint32_t> first, again;

    /* The first call of all, which looks the function up, may come from there */
    ucp_tag_send_nb(ep, buffer, 8, BYTES, 7, nullptr);
    (void)heard();
    for (auto *labels : {&first, &again}) {
        for (size_t length : {8, 16, 4000, 5000}) {
            ucp_tag_send_nb(ep, buffer, length, BYTES, 7, nullptr);
        }
        for (const auto &operation : heard()) {
            labels->push_back(operation.label);
        }
    }
    ASSERT_EQ(4u, first.size());
    EXPECT_EQ(4u, std::set<uint32_t>(first.begin(), first.end()).size());
    EXPECT_EQ(first, again);
}

TEST_F(test_door, a_clock_is_read_without_a_call)
{
    /* The counter never comes so far */
    static ucs_clock_scale_t scale = {INT64_MAX, 12345, {1}};
    static const ucp_door_listener_t other = {
        UCP_DOOR_VERSION, [] () -> uint64_t { return 7; }, idle_step, posted,
        &scale, &fake_ucp::wants
    };

    ASSERT_NE(nullptr, ucp_door_open(&other));
    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    EXPECT_EQ(12345u, heard().at(0).time);
    ucs_store_relaxed(&scale.mult, uint64_t(0)); /* no such clock after all */
    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    EXPECT_EQ(7u, heard().at(0).time);
}

/* A thread may hold the loader's lock and wait for one that communicates */
TEST_F(test_door, all_is_looked_up_at_once)
{
    ucp_door_slots_find(nullptr);
    ucp_door_slots_find_by([](const char *, const char *name, const void *) {
        ADD_FAILURE() << name << " is looked up as it is called";
        return ucp_door_func_t(nullptr);
    });
    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    only(UCS_OPERATION_SEND, buffer, 64);
    ucp_put_nbi(ep, buffer, 64, 0, rkey);
    only(UCS_OPERATION_PUT, buffer, 64);
    progress(1);
}

TEST_F(test_door, another_version_hears_nothing)
{
    const ucp_door_listener_t other = {UCP_DOOR_VERSION + 1, nullptr, nullptr,
                                       nullptr, nullptr, nullptr};

    EXPECT_EQ(nullptr, ucp_door_open(&other));
    ucp_tag_send_nb(ep, buffer, 64, BYTES, 7, nullptr);
    only(UCS_OPERATION_SEND, buffer, 64);
}
