/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_FAKE_LOWER_H_
#define TEST_FAKE_LOWER_H_

#include <uct/base/uct_abi.h>

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

/**
 * A memory domain that registers nothing: it counts calls, remembers what is
 * registered, fails on demand, and can hold registrations at a gate. It may be
 * called from several threads.
 */
class fake_lower {
public:
    struct region {
        void     *address;
        size_t   length;
        unsigned flags;
    };

    explicit fake_lower(const char *component = "fake", uint64_t flags = 0) :
        m_flags(flags)
    {
        memset(&m_ops, 0, sizeof(m_ops));
        memset(&m_component, 0, sizeof(m_component));
        strncpy(m_component.name, component, sizeof(m_component.name) - 1);
        m_ops.close          = close;
        m_ops.query          = query;
        m_ops.mem_reg        = mem_reg;
        m_ops.mem_dereg      = mem_dereg;
        m_md.super.ops       = &m_ops;
        m_md.super.component = (uct_component_h)&m_component;
        m_md.self            = this;
    }

    fake_lower(const fake_lower&) = delete;
    fake_lower &operator=(const fake_lower&) = delete;

    uct_md_h md()
    {
        return (uct_md_h)&m_md.super;
    }

    /** The table that the domain was opened with. */
    const uct_abi_md_ops_t *ops() const
    {
        return &m_ops;
    }

    /** The table that is in force: that one, or what decorates the domain. */
    const uct_abi_md_ops_t *now() const
    {
        return m_md.super.ops;
    }

    /** By that table, which must register it. */
    uct_mem_h reg(void *address, size_t length,
                  unsigned flags = UCT_MD_MEM_ACCESS_ALL)
    {
        uct_mem_h memh = nullptr;

        EXPECT_EQ(UCS_OK, now()->mem_reg(md(), address, length, flags, &memh));
        return memh;
    }

    /** The counterpart. What is not in the mask must not be looked at. */
    ucs_status_t dereg(uct_mem_h memh)
    {
        uct_abi_md_mem_dereg_params_t params;

        memset(&params, 0xff, sizeof(params));
        params.field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH;
        params.memh       = memh;
        return now()->mem_dereg(md(), &params);
    }

    /** The next @a count registrations return @a status. */
    void fail_reg(ucs_status_t status, unsigned count = 1)
    {
        std::lock_guard<std::mutex> guard(m_lock);
        m_fail_status = status;
        m_fail_count  = count;
    }

    /** From now on registrations of @a address wait at the gate. */
    void shut_gate(void *address)
    {
        std::lock_guard<std::mutex> guard(m_lock);
        m_gate_address = address;
        m_gate_shut    = true;
    }

    /** Returns when @a count registrations wait at the gate. */
    void await_at_gate(unsigned count = 1)
    {
        std::unique_lock<std::mutex> guard(m_lock);
        m_changed.wait(guard, [&] { return m_at_gate >= count; });
    }

    void open_gate()
    {
        std::lock_guard<std::mutex> guard(m_lock);
        m_gate_shut = false;
        m_changed.notify_all();
    }

    /** Registrations that are inside the domain, at the gate. */
    unsigned at_gate()
    {
        return read(m_at_gate);
    }

    /** Called in each registration, which fails if that fails, and in each
     *  deregistration, with the domain's lock held. */
    std::function<ucs_status_t(void*, size_t)> on_reg;
    std::function<void(void*, size_t)>         on_dereg;

    /** Returns when there have been @a count deregistrations in all. */
    void await_dereg(unsigned count)
    {
        std::unique_lock<std::mutex> guard(m_lock);
        m_changed.wait(guard, [&] { return m_dereg_count >= count; });
    }

    /** The same, for no longer than this. @return Whether there have been. */
    bool await_dereg(unsigned count, std::chrono::milliseconds limit)
    {
        std::unique_lock<std::mutex> guard(m_lock);
        return m_changed.wait_for(guard, limit,
                                  [&] { return m_dereg_count >= count; });
    }

    unsigned reg_count()
    {
        return read(m_reg_count);
    }

    unsigned dereg_count()
    {
        return read(m_dereg_count);
    }

    unsigned invalidate_count()
    {
        return read(m_invalidate_count);
    }

    unsigned close_count()
    {
        return read(m_close_count);
    }

    /** Deregistrations of what is not registered; always an error. */
    unsigned bad_dereg_count()
    {
        return read(m_bad_dereg_count);
    }

    size_t live_count()
    {
        std::lock_guard<std::mutex> guard(m_lock);
        return m_live.size();
    }

    bool is_live(uct_mem_h memh)
    {
        std::lock_guard<std::mutex> guard(m_lock);
        return m_live.count(memh) != 0;
    }

    region find(uct_mem_h memh)
    {
        std::lock_guard<std::mutex> guard(m_lock);
        return m_live.at(memh);
    }

    unsigned last_reg_flags()
    {
        return read(m_last_reg_flags);
    }

    void *last_reg_address()
    {
        return read(m_last_reg_address);
    }

    /** Parameters of the latest deregistration, and where they lay. */
    const uct_abi_md_mem_dereg_params_t *last_dereg_params()
    {
        return read(m_last_dereg_params);
    }

protected:
    struct md_t {
        uct_abi_md_t super;
        fake_lower   *self;
    };

    static fake_lower *of(uct_md_h md)
    {
        return reinterpret_cast<md_t*>(md)->self;
    }

    template <typename T> T read(const T &value)
    {
        std::lock_guard<std::mutex> guard(m_lock);
        return value;
    }

    static void close(uct_md_h md)
    {
        std::lock_guard<std::mutex> guard(of(md)->m_lock);
        ++of(md)->m_close_count;
    }

    static ucs_status_t query(uct_md_h md, void *to)
    {
        auto attr = (uct_md_attr_t*)to;

        memset(attr, 0, sizeof(*attr));
        attr->cap.flags         = UCT_MD_FLAG_REG | of(md)->m_flags;
        attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr->reg_cost.c        = 16e-6;
        attr->reg_cost.m        = 0.06e-9;
        memset(&attr->local_cpus, 0xff, sizeof(attr->local_cpus));
        return UCS_OK;
    }

    static ucs_status_t mem_reg(uct_md_h md, void *address, size_t length,
                                unsigned flags, uct_mem_h *memh_p)
    {
        return of(md)->register_it(address, length, flags, memh_p);
    }

    ucs_status_t register_it(void *address, size_t length, unsigned flags,
                             uct_mem_h *memh_p)
    {
        std::unique_lock<std::mutex> guard(m_lock);

        ++m_reg_count;
        m_last_reg_flags   = flags;
        m_last_reg_address = address;
        if (m_gate_shut && (address == m_gate_address)) {
            ++m_at_gate;
            m_changed.notify_all();
            m_changed.wait(guard, [&] { return !m_gate_shut; });
            --m_at_gate;
        }

        if (m_fail_count > 0) {
            --m_fail_count;
            return m_fail_status;
        }

        if (on_reg) {
            ucs_status_t status = on_reg(address, length);
            if (status != UCS_OK) {
                return status;
            }
        }

        *memh_p               = (uct_mem_h)(m_next_handle += 16);
        m_live[*memh_p] = {address, length, flags};
        m_changed.notify_all();
        return UCS_OK;
    }

    static ucs_status_t mem_dereg(uct_md_h md,
                                  const uct_abi_md_mem_dereg_params_t *params)
    {
        fake_lower *self       = of(md);
        uct_completion_t *comp = nullptr;

        {
            std::lock_guard<std::mutex> guard(self->m_lock);
            self->m_last_dereg_params = params;
            auto found = self->m_live.end();
            if (params->field_mask & UCT_ABI_MD_MEM_DEREG_FIELD_MEMH) {
                found = self->m_live.find(params->memh);
            }
            if (found == self->m_live.end()) {
                ++self->m_bad_dereg_count;
                return UCS_ERR_INVALID_PARAM;
            }

            region gone = found->second;
            self->m_live.erase(found);
            if (self->on_dereg) {
                self->on_dereg(gone.address, gone.length);
            }

            ++self->m_dereg_count;
            if ((params->field_mask & UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS) &&
                (params->flags & UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE)) {
                ++self->m_invalidate_count;
                comp = params->comp;
            }
            self->m_changed.notify_all();
        }

        if ((comp != nullptr) && (--comp->count == 0)) {
            comp->func(comp);
        }
        return UCS_OK;
    }

    uct_abi_md_ops_t                    m_ops;
    uct_abi_component_t                 m_component;
    md_t                                m_md;
    uint64_t                            m_flags;
    std::mutex                          m_lock; /* protects what follows */
    std::condition_variable             m_changed;
    std::map<uct_mem_h, region>         m_live;
    uintptr_t                           m_next_handle       = 0x1000;
    unsigned                            m_last_reg_flags    = 0;
    void                                *m_last_reg_address = nullptr;
    unsigned                            m_reg_count         = 0;
    unsigned                            m_dereg_count       = 0;
    unsigned                            m_invalidate_count  = 0;
    unsigned                            m_close_count       = 0;
    unsigned                            m_bad_dereg_count   = 0;
    unsigned                            m_fail_count        = 0;
    ucs_status_t                        m_fail_status       = UCS_OK;
    void                                *m_gate_address     = nullptr;
    bool                                m_gate_shut         = false;
    unsigned                            m_at_gate           = 0;
    const uct_abi_md_mem_dereg_params_t *m_last_dereg_params = nullptr;
};

#endif
