/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_GENERATION_LOWER_H_
#define TEST_GENERATION_LOWER_H_

#include "fake_lower.h"

#include <cstddef>

/**
 * A memory domain in the layout of the generation that is in force: its table
 * ends where that release's ends, and behind it lies what must not be read.
 */
class generation_lower : public fake_lower {
public:
    static const uintptr_t BEHIND = 0xbad;

    explicit generation_lower(const char *component, uint64_t flags = 0,
                              uint64_t reg_mem_types =
                                      UCS_BIT(UCS_MEMORY_TYPE_HOST)) :
        fake_lower(component, flags | UCT_MD_FLAG_REG),
        m_reg_mem_types(reg_mem_types)
    {
        for (size_t i = 0; i < UCT_ABI_MAX_SLOTS; ++i) {
            slot(i) = (i < num_slots()) ? 0x1000 + i : BEHIND;
        }
        m_ops.close     = close;
        m_ops.query     = query;
        m_ops.mem_dereg = mem_dereg;
        if (uct_abi_running->has_reg_params) {
            m_ops.mem_reg_params = mem_reg_params;
        } else {
            m_ops.mem_reg = mem_reg;
        }
    }

    /** What is still decorated is closed, and nothing stays registered. */
    ~generation_lower()
    {
        if (now() != ops()) {
            now()->close(md());
            EXPECT_EQ(0u, live_count());
        }
    }

    void take_registration_away()
    {
        m_flags         = 0;
        m_reg_mem_types = 0;
    }

    size_t num_slots() const
    {
        return uct_abi_running->num_slots +
               (strcmp(m_component.name, "ib") ?
                0 : uct_abi_running->num_ib_slots);
    }

    /** As UCP calls it: with flags or parameters. */
    uct_mem_h reg(void *address, size_t length, unsigned flags)
    {
        uct_abi_md_mem_reg_params_t params;
        uct_mem_h memh = nullptr;

        if (!uct_abi_running->has_reg_params) {
            return (now()->mem_reg(md(), address, length, flags, &memh) ==
                    UCS_OK) ? memh : nullptr;
        }

        /* What is not in the mask must not be looked at */
        memset(&params, 0, sizeof(params));
        params.field_mask = UCT_ABI_MD_MEM_REG_FIELD_FLAGS;
        params.flags      = flags;
        asked_params      = &params;
        return reg_params(address, length, &params);
    }

    uct_mem_h reg_params(void *address, size_t length,
                         const uct_abi_md_mem_reg_params_t *params)
    {
        uct_mem_h memh = nullptr;

        return (now()->mem_reg_params(md(), address, length, params, &memh) ==
                UCS_OK) ? memh : nullptr;
    }

    /** @return Status of a query of the table in force, attributes in attr. */
    ucs_status_t query_now()
    {
        memset(attr, 0, sizeof(attr));
        return now()->query(md(), attr);
    }

    uintptr_t slot_of(const uct_abi_md_ops_t *ops, size_t i) const
    {
        return reinterpret_cast<const uintptr_t*>(ops)[i];
    }

    const uct_abi_md_mem_reg_params_t *asked_params  = nullptr;
    const uct_abi_md_mem_reg_params_t *passed_params = nullptr;
    uct_abi_md_mem_reg_params_t        last_params;
    alignas(std::max_align_t) char     attr[UCT_ABI_MD_ATTR_MAX];

private:
    uintptr_t &slot(size_t i)
    {
        return reinterpret_cast<uintptr_t*>(&m_ops)[i];
    }

    void fill(void *to)
    {
        ucs_linear_func_t cost = ucs_linear_func_make(16e-6, 0.06e-9);
        char *base             = (char*)to;

        memcpy(base + uct_abi_running->attr_flags, &m_flags, sizeof(m_flags));
        memcpy(base + uct_abi_running->attr_reg_mem_types, &m_reg_mem_types,
               sizeof(m_reg_mem_types));
        memcpy(base + uct_abi_running->attr_reg_cost, &cost, sizeof(cost));
        memset(base + uct_abi_running->attr_local_cpus, 0xff,
               sizeof(ucs_cpu_set_t));
    }

    static generation_lower *of(uct_md_h md)
    {
        return static_cast<generation_lower*>(fake_lower::of(md));
    }

    static ucs_status_t query(uct_md_h md, void *to)
    {
        of(md)->fill(to);
        return UCS_OK;
    }

    static ucs_status_t
    mem_reg_params(uct_md_h md, void *address, size_t length,
                   const uct_abi_md_mem_reg_params_t *params,
                   uct_mem_h *memh_p)
    {
        of(md)->passed_params = params;
        of(md)->last_params   = *params;
        return of(md)->register_it(address, length,
                                   uct_abi_md_mem_reg_flags(params), memh_p);
    }

    uint64_t m_reg_mem_types;
};

/** Puts a generation in force for the lifetime of the object. */
class generation_in_force {
public:
    explicit generation_in_force(unsigned minor)
    {
        uct_abi_is_known();
        m_before = uct_abi_running;
        uct_abi_select(uct_abi_find(UCT_ABI_MAJOR, minor));
    }

    ~generation_in_force()
    {
        uct_abi_select(m_before);
    }

private:
    const uct_abi_t *m_before;
};

#endif
