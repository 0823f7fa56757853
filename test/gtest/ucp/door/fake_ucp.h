/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_DOOR_FAKE_UCP_H_
#define TEST_DOOR_FAKE_UCP_H_

#include <ucp/door/door.h>
#include <ucp/door/slot.h>

#include <ucp/api/ucp.h>
#include <ucp/api/ucp_compat.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/*
 * A UCP of which each function writes down what it was called with, does what
 * the test says, and returns what the test says. The door of the test program
 * is opened over it, once, with a listener that the test looks into.
 */
namespace fake_ucp {

struct call {
    std::string           name;
    std::vector<uint64_t> arguments;
};

extern std::vector<call> calls;
/* What a call does before it returns; taken off when it is called */
extern std::function<void()> inside;
extern uint64_t answer;
/* Many threads may call: nothing is written down, and nothing done inside */
extern std::atomic<bool> is_crowded;
extern std::atomic<unsigned> idle_steps;
extern std::atomic<uint64_t> spare_ns; /* as the latest one was told */
extern std::atomic<uint64_t> time; /* ns, what the door is told, and one more */
extern std::function<void()> in_idle_step;
extern ucs_idle_outcome_t idle_outcome;
/* What is to be told; everything, unless a test says otherwise */
extern ucs_operation_wants_t wants;
/* What the listener was told of receives that wait */
extern std::vector<std::pair<uintptr_t, size_t>> posted;
extern const ucp_door_reader_t *reader;
std::map<std::string, ucp_door_func_t> &functions();

template<class T> uint64_t word(T value)
{
    uint64_t bits = 0;

    memcpy(&bits, &value, sizeof(value));
    return bits;
}

template<class R> R result()
{
    if constexpr (!std::is_void<R>::value) {
        R value;

        memcpy(&value, &answer, sizeof(value));
        return value;
    }
}

template<class Tag, class F> struct function;

template<class Tag, class R, class... A> struct function<Tag, R(A...)> {
    static R call(A... arguments)
    {
        std::function<void()> once;

        if (is_crowded) {
            return result<R>();
        }
        calls.push_back({Tag::name(), {word(arguments)...}});
        std::swap(once, inside);
        if (once) {
            once();
        }
        return result<R>();
    }

    function()
    {
        functions()[Tag::name()] = (ucp_door_func_t)call;
    }
};

/* Every entry point of the door */
#define FAKE_UCP_FUNCTIONS(_do) \
    _do(ucp_am_recv_data_nbx) _do(ucp_am_send_nb) _do(ucp_am_send_nbx) \
    _do(ucp_atomic_fetch_nb) _do(ucp_atomic_op_nbx) _do(ucp_atomic_post) \
    _do(ucp_get) _do(ucp_get_nb) _do(ucp_get_nbi) _do(ucp_get_nbx) \
    _do(ucp_mem_map) _do(ucp_mem_unmap) \
    _do(ucp_put) _do(ucp_put_nb) _do(ucp_put_nbi) _do(ucp_put_nbx) \
    _do(ucp_request_cancel) _do(ucp_request_check_status) \
    _do(ucp_request_free) _do(ucp_request_is_completed) \
    _do(ucp_request_release) _do(ucp_request_test) \
    _do(ucp_tag_msg_recv_nb) _do(ucp_tag_msg_recv_nbx) _do(ucp_tag_recv_nb) \
    _do(ucp_tag_recv_nbr) _do(ucp_tag_recv_nbx) \
    _do(ucp_tag_recv_request_test) _do(ucp_tag_send_nb) _do(ucp_tag_send_nbr) \
    _do(ucp_tag_send_nbx) _do(ucp_tag_send_sync_nb) \
    _do(ucp_tag_send_sync_nbx) _do(ucp_worker_progress)

} // namespace fake_ucp

/* The names that the door's entry points have here (slot.h) */
#define FAKE_UCP_SYMBOL(_name) \
    extern "C" decltype(_name) _name __asm__("door_" #_name);
FAKE_UCP_FUNCTIONS(FAKE_UCP_SYMBOL)

class test_door : public ::testing::Test {
protected:
    static uint64_t now();
    static ucs_idle_outcome_t idle_step(uint64_t spare_ns);
    static void posted(uintptr_t address, size_t length);
    static uint64_t wait(uint64_t ns);
    void SetUp() override;

    /* What was told since the last look */
    static std::vector<ucs_operation_t> heard();

    /* All that was told is one operation, of this kind and data */
    static ucs_operation_t only(ucs_operation_kind_t kind, const void *address,
                                size_t length);

    static unsigned progress(unsigned count);

    template<class T> static T *made_up(uintptr_t bits)
    {
        return (T*)bits;
    }

    ucp_ep_h ep         = made_up<struct ucp_ep>(0xe100);
    ucp_worker_h worker = made_up<struct ucp_worker>(0xe200);
    ucp_rkey_h rkey     = made_up<struct ucp_rkey>(0xe300);
    void *request       = made_up<void>(0xe4000);
    char buffer[65536]  = {};
};

#endif
