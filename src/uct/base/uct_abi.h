/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_ABI_H_
#define UCT_ABI_H_

#include <uct/api/uct.h>
#include <ucs/config/parser.h>

/**
 * @file uct_abi.h
 *
 * What the helper has to know of libuct's inside and libucx-dev does not ship:
 * the operation table of a memory domain, the component and the parameters of
 * a deregistration. Layouts follow UCX v1.13 (src/uct/base/uct_md.h,
 * src/uct/base/uct_component.h, src/uct/api/v2/uct_v2.h). They hold for the
 * versions that @ref uct_abi_is_supported accepts and for no other; nothing
 * here may be used before that check has passed.
 */

BEGIN_C_DECLS

/** First and last UCX release (major, minor) that these layouts describe. */
#define UCT_ABI_MAJOR     1
#define UCT_ABI_MINOR_MIN 13
#define UCT_ABI_MINOR_MAX 13

/** Fields of @ref uct_abi_md_mem_dereg_params_t that are set. */
enum {
    UCT_ABI_MD_MEM_DEREG_FIELD_MEMH       = UCS_BIT(0),
    UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS      = UCS_BIT(1),
    UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION = UCS_BIT(2)
};

/** The region must be unreachable for the peer once `comp` has been called. */
#define UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE UCS_BIT(0)

/** Parameters of a deregistration: `uct_md_mem_dereg_params_t`. */
typedef struct uct_abi_md_mem_dereg_params {
    uint64_t         field_mask;
    unsigned         flags;
    uct_mem_h        memh;
    uct_completion_t *comp;
} uct_abi_md_mem_dereg_params_t;

/** Slots that the helper hands through without looking at their arguments. */
typedef void (*uct_abi_opaque_func_t)(void);

/** Operation table of a memory domain: `struct uct_md_ops`, 11 slots. */
typedef struct uct_abi_md_ops {
    void                  (*close)(uct_md_h md);
    ucs_status_t          (*query)(uct_md_h md, uct_md_attr_t *attr);
    uct_abi_opaque_func_t mem_alloc;
    uct_abi_opaque_func_t mem_free;
    uct_abi_opaque_func_t mem_advise;
    ucs_status_t          (*mem_reg)(uct_md_h md, void *address, size_t length,
                                     unsigned flags, uct_mem_h *memh_p);
    ucs_status_t          (*mem_dereg)(uct_md_h md,
                                       const uct_abi_md_mem_dereg_params_t *params);
    uct_abi_opaque_func_t mem_query;
    uct_abi_opaque_func_t mkey_pack;
    uct_abi_opaque_func_t is_sockaddr_accessible;
    uct_abi_opaque_func_t detect_memory_type;
} uct_abi_md_ops_t;

/** Memory domain: `struct uct_md`. */
typedef struct uct_abi_md {
    const uct_abi_md_ops_t *ops;
    uct_component_h        component;
} uct_abi_md_t;

/** Head of `struct uct_component`; only the name is ever read. */
typedef struct uct_abi_component {
    char name[UCT_COMPONENT_NAME_MAX];
} uct_abi_component_t;


/** @return The layout behind the handle @a md; the domain stays UCX's. */
static inline uct_abi_md_t *uct_abi_md(uct_md_h md)
{
    return (uct_abi_md_t*)md;
}


/** @return Name of the component that opened @a md, NUL-terminated. */
static inline const char *uct_abi_md_component_name(uct_md_h md)
{
    return ((const uct_abi_component_t*)uct_abi_md(md)->component)->name;
}


/** Take from @a params the fields that are set, into @a full; the others become
 *  NULL or 0. */
static inline void
uct_abi_md_mem_dereg_unpack(const uct_abi_md_mem_dereg_params_t *params,
                            uct_abi_md_mem_dereg_params_t *full)
{
    uint64_t mask = params->field_mask;

    full->field_mask = mask;
    full->memh  = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_MEMH) ? params->memh :
                                                             NULL;
    full->flags = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS) ? params->flags : 0;
    full->comp  = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION) ?
                  params->comp : NULL;
}


/**
 * @return Nonzero if the layouts in this file describe UCX release
 *         @a major.@a minor, as told by ucp_get_version() or
 *         uct_get_version-like calls of the running library.
 */
static inline int uct_abi_is_supported(unsigned major, unsigned minor)
{
    return (major == UCT_ABI_MAJOR) && (minor >= UCT_ABI_MINOR_MIN) &&
           (minor <= UCT_ABI_MINOR_MAX);
}

END_C_DECLS

#endif
