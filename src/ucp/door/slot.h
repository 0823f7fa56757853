/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_DOOR_SLOT_H_
#define UCP_DOOR_SLOT_H_

#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>

/*
 * The way from an entry point to UCP. Each has a slot whose first word is the
 * next function of a call: at first one that looks UCP's function up, then that
 * function while the door is shut, and the door's once it is open. So a call
 * past a shut door costs a load and a jump.
 */

BEGIN_C_DECLS

typedef void (*ucp_door_func_t)(void);

/** As @ref ucp_door_find. */
typedef ucp_door_func_t (*ucp_door_find_func_t)(const char *library,
                                                const char *name,
                                                const void *caller);

typedef struct ucp_door_slot {
    _Atomic(ucp_door_func_t) entry; /* where a call goes: first at first, then
                                       real or heard */
    _Atomic(ucp_door_func_t) real;  /* NULL: not looked up yet */
    const char               *name;
    ucp_door_func_t          first;
    ucp_door_func_t          heard;
} ucp_door_slot_t;

/**
 * Find the function that stands behind an entry point of the stub's: the next one, if
 * its library is in the global scope; else that of the caller's own libraries, perhaps
 * of another name as in a Python wheel; else that of @a library, if it is loaded. The
 * library of what is found stays loaded. Any thread; takes the loader's lock.
 *
 * @param [in] library  Its usual name.
 * @param [in] caller   An address in the caller.
 *
 * @return NULL if there is no such function.
 */
ucp_door_func_t ucp_door_find(const char *library, const char *name,
                              const void *caller);

/** Look up all of the door's functions in UCP. Any thread; takes the loader's lock.
 *  Called as the program reads UCP's options, so that no later call takes that lock:
 *  a thread may hold it, in a constructor, and wait for one that communicates. */
void ucp_door_slots_find(const void *caller);

/** Look up UCP's function, and direct later calls there or through the door. Any
 *  thread; takes the loader's lock. @return NULL if there is no such function. */
ucp_door_func_t ucp_door_slot_find(ucp_door_slot_t *slot, const void *caller);

/** From now on calls go through the door. Any thread. */
void ucp_door_slots_open(void);

/** For tests: set the look-up, before the first call. */
void ucp_door_slots_find_by(ucp_door_find_func_t find);

END_C_DECLS

/* An entry point jumps on, so that the return address behind it is the
 * program's: also in a build without optimization or with a sanitizer */
#ifdef __clang__
#  define UCP_DOOR_JUMPS __attribute__((no_sanitize("thread")))
#else
#  define UCP_DOOR_JUMPS __attribute__((optimize("O2"), no_sanitize_thread))
#endif

/* In a program of unit tests UCP's own functions are called, too: there the
 * entry points go by other names for the linker */
#ifdef UCP_DOOR_IN_TESTS
#  define UCP_DOOR_SYMBOL(_name) __asm__("door_" #_name)
#else
#  define UCP_DOOR_SYMBOL(_name)
#endif

/* The addresses of all slots lie in one section, whose bounds the linker knows.
 * Not the slots: compilers align what is large, and leave gaps. */
#define UCP_DOOR_SLOT(_slot) \
    static ucp_door_slot_t *const _slot##_address \
            __attribute__((section("ucp_door_slots"), used)) = &_slot;

/** UCP's function in what the door does: it was looked up before the door was opened
 *  for this slot. */
#define UCP_DOOR_REAL(_name) \
    ((__typeof__(&_name))ucs_load_relaxed(&_name##_slot.real))

/** Result of an entry point that returns a ucs_status_t or ucs_status_ptr_t if
 *  UCP lacks the function. */
#define UCP_DOOR_REFUSAL(_ret) ((_ret)(intptr_t)UCS_ERR_UNSUPPORTED)

/**
 * Define an entry point. What follows in the file is its `_heard` function, of
 * the same type, which does what the door does and calls UCP_DOOR_REAL(name).
 *
 * @param _refusal  What is returned if there is no such function in UCP.
 * @param _params   The parameters, in parentheses.
 * @param _args     Their names, in parentheses.
 */
#define UCP_DOOR_ENTRY(_ret, _name, _refusal, _params, _args) \
    _ret _name _params UCP_DOOR_SYMBOL(_name); \
    static _ret _name##_first _params; \
    static _ret _name##_heard _params; \
    static ucp_door_slot_t _name##_slot = { \
        .entry = (ucp_door_func_t)_name##_first, \
        .name  = #_name, \
        .first = (ucp_door_func_t)_name##_first, \
        .heard = (ucp_door_func_t)_name##_heard \
    }; \
    UCP_DOOR_SLOT(_name##_slot) \
    __attribute__((visibility("default"))) UCP_DOOR_JUMPS _ret _name _params \
    { \
        /* [O-REAL] The acquire pairs with the release of what found UCP's \
         * function: through the door, that function is there. */ \
        return ((__typeof__(&_name))ucs_load_acquire( \
                &_name##_slot.entry)) _args; \
    } \
    UCP_DOOR_JUMPS static _ret _name##_first _params \
    { \
        __typeof__(&_name) real = (__typeof__(&_name))ucp_door_slot_find( \
                &_name##_slot, __builtin_return_address(0)); \
        if (real == NULL) { \
            return _refusal; \
        } \
        return ((__typeof__(&_name))ucs_load_relaxed( \
                &_name##_slot.entry)) _args; \
    } \
    static _ret _name##_heard _params

/** The same of a function that calls neither the program nor an entry point of
 *  UCP that the door would hear: while @a _passes, which is asked at each call,
 *  it is called as if the door were shut. */
#define UCP_DOOR_PASSING_ENTRY(_ret, _name, _passes, _params, _args) \
    static _ret _name##_told _params; \
    UCP_DOOR_ENTRY(_ret, _name, UCP_DOOR_REFUSAL(_ret), _params, _args) \
    UCP_DOOR_JUMPS; \
    static _ret _name##_heard _params \
    { \
        return (_passes) ? UCP_DOOR_REAL(_name) _args : _name##_told _args; \
    } \
    static UCS_F_NOINLINE _ret _name##_told _params

#endif
