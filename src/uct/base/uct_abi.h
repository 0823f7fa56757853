/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_ABI_H_
#define UCT_ABI_H_

#include <uct/api/uct.h>
#include <ucs/sys/math.h>

#include <string.h>

/*
 * UCX's internal layouts that libucx-dev does not ship: a memory domain's
 * operation table and attributes, the component, and the parameters of
 * registrations. They changed from release to release, so each generation has a
 * row in uct_abi.c. The running UCX selects the row, not the headers that this
 * was built with. `test/abi/run` compares the rows with UCX's sources.
 */

BEGIN_C_DECLS

/** The major release that the rows are of. */
#define UCT_ABI_MAJOR 1

/** Slots of the largest operation table, with what IB's adds behind it. */
#define UCT_ABI_MAX_SLOTS 14

/** Slots that are named below; others are only copied. */
#define UCT_ABI_NAMED_SLOTS 9

/** Bytes of the largest domain attributes, and some. */
#define UCT_ABI_MD_ATTR_MAX 1024

/** Room for the text of a release. */
#define UCT_ABI_VERSION_MAX 32

/** What differs between releases. All sizes and offsets are bytes. */
typedef struct uct_abi {
    unsigned   minor_min;        /**< first release of the generation: 1.X */
    unsigned   minor_max;        /**< last one */
    const char *tag;             /**< of the source that this was read from */
    unsigned   num_slots;        /**< of struct uct_md_ops */
    unsigned   num_ib_slots;     /**< behind them in IB's own table */
    int        has_reg_params;   /**< mem_reg() takes parameters, not flags,
                                      and query() the attributes' version 2 */
    int        has_reg_mem_type; /**< they may tell the type of the memory */
    size_t     attr_flags;       /**< where each lies in the attributes */
    size_t     attr_reg_mem_types;
    size_t     attr_cache_mem_types; /**< 0: not there */
    size_t     attr_reg_cost;
    size_t     attr_local_cpus;
    size_t     attr_size;        /**< of the attributes */
    size_t     component_list;   /**< where struct uct_component is linked */
    int        has_config_entry; /**< options are read by table entry, not by
                                      table */
    size_t     config_field;     /**< size of one option's description */
    const char *reg_methods;     /**< IB's REG_METHODS unless set, NULL: it has
                                      no cache of its own */
    double     hit_cost;         /**< seconds that UCP assumes for a hit of
                                      UCX's own cache */
    double     hit_cost_proto;   /**< the same with UCX_PROTO_ENABLE=y */
} uct_abi_t;

/** Fields of @ref uct_abi_md_mem_reg_params_t that are set. */
enum {
    UCT_ABI_MD_MEM_REG_FIELD_FLAGS         = UCS_BIT(0),
    UCT_ABI_MD_MEM_REG_FIELD_DMABUF_FD     = UCS_BIT(1),
    UCT_ABI_MD_MEM_REG_FIELD_DMABUF_OFFSET = UCS_BIT(2),
    UCT_ABI_MD_MEM_REG_FIELD_MEM_TYPE      = UCS_BIT(3)
};

/** Parameters of a registration from 1.14 on: `uct_md_mem_reg_params_t`. The
 *  last field came with 1.22; its bit is not set before. */
typedef struct uct_abi_md_mem_reg_params {
    uint64_t          field_mask;
    uint64_t          flags;
    int               dmabuf_fd;
    size_t            dmabuf_offset;
    ucs_memory_type_t mem_type;
} uct_abi_md_mem_reg_params_t;

/** Fields of @ref uct_abi_md_mem_dereg_params_t that are set. */
enum {
    UCT_ABI_MD_MEM_DEREG_FIELD_MEMH       = UCS_BIT(0),
    UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS      = UCS_BIT(1),
    UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION = UCS_BIT(2)
};

/** The region must be unreachable for the peer once `comp` has been called. */
#define UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE UCS_BIT(0)

/** Flags of a domain that can invalidate: in all, or (from 1.15 on) for remote
 *  memory access and for atomics. */
#define UCT_ABI_MD_FLAGS_INVALIDATE (UCS_BIT(8) | UCS_BIT(11) | UCS_BIT(12))

/** Parameters of a deregistration: `uct_md_mem_dereg_params_t`. */
typedef struct uct_abi_md_mem_dereg_params {
    uint64_t         field_mask;
    unsigned         flags;
    uct_mem_h        memh;
    uct_completion_t *comp;
} uct_abi_md_mem_dereg_params_t;

/** Slots that the helper passes through. */
typedef void (*uct_abi_opaque_func_t)(void);

/** Operation table of a memory domain: `struct uct_md_ops`. @ref
 *  uct_abi_t::has_reg_params selects a slot's type. UCX's table may end
 *  anywhere behind the named slots: copy it with @ref uct_abi_md_ops_copy. */
typedef struct uct_abi_md_ops {
    void                  (*close)(uct_md_h md);
    /* uct_md_attr_t, from 1.14 on their version 2 */
    ucs_status_t          (*query)(uct_md_h md, void *attr);
    uct_abi_opaque_func_t mem_alloc;
    uct_abi_opaque_func_t mem_free;
    ucs_status_t          (*mem_advise)(uct_md_h md, uct_mem_h memh,
                                        void *address, size_t length,
                                        uct_mem_advice_t advice);
    union {
        ucs_status_t      (*mem_reg)(uct_md_h md, void *address, size_t length,
                                     unsigned flags, uct_mem_h *memh_p);
        ucs_status_t      (*mem_reg_params)(
                uct_md_h md, void *address, size_t length,
                const uct_abi_md_mem_reg_params_t *params, uct_mem_h *memh_p);
    };
    ucs_status_t          (*mem_dereg)(
            uct_md_h md, const uct_abi_md_mem_dereg_params_t *params);
    uct_abi_opaque_func_t mem_query;
    uct_abi_opaque_func_t mkey_pack;
    uct_abi_opaque_func_t rest[UCT_ABI_MAX_SLOTS - UCT_ABI_NAMED_SLOTS];
} uct_abi_md_ops_t;

/** Memory domain: `struct uct_md`. */
typedef struct uct_abi_md {
    const uct_abi_md_ops_t *ops;
    uct_component_h        component;
} uct_abi_md_t;

/** Same as uct_md_open(). */
typedef ucs_status_t (*uct_abi_md_open_func_t)(uct_component_h component,
                                               const char *md_name,
                                               const uct_md_config_t *config,
                                               uct_md_h *md_p);

/** Head of `struct uct_component`; the last function came with 1.16. */
typedef struct uct_abi_component {
    char                   name[UCT_COMPONENT_NAME_MAX];
    uct_abi_opaque_func_t  query_md_resources;
    uct_abi_md_open_func_t md_open;
    uct_abi_opaque_func_t  cm_open;
    uct_abi_opaque_func_t  rkey_unpack;
    uct_abi_opaque_func_t  rkey_ptr;
    uct_abi_opaque_func_t  rkey_release;
    uct_abi_opaque_func_t  rkey_compare;
} uct_abi_component_t;

/** Attributes of a domain that the helper uses. */
typedef struct uct_abi_md_attr {
    uint64_t          flags;         /**< UCT_MD_FLAG_xx */
    uint64_t          reg_mem_types; /**< bits of ucs_memory_type_t */
    ucs_linear_func_t reg_cost;      /**< seconds over bytes */
    ucs_cpu_set_t     local_cpus;
} uct_abi_md_attr_t;

/** Release of the running UCX. */
typedef struct uct_abi_version {
    unsigned major;
    unsigned minor;
    char     text[UCT_ABI_VERSION_MAX]; /**< for example "1.13.1", or
                                             "unknown" */
} uct_abi_version_t;

/** The generation in force; set by @ref uct_abi_select, before any domain. */
extern const uct_abi_t *uct_abi_running;

/**
 * Read the release of the loaded libucp; libuct and libucs have no such
 * function.
 *
 * @param [out] version  Always filled; 0.0 if there is no libucp.
 */
void uct_abi_version_get(uct_abi_version_t *version);

/** @return The generation of release @a major.@a minor, NULL if unknown. */
const uct_abi_t *uct_abi_find(unsigned major, unsigned minor);

/** @return Row @a index of the generations, oldest first; NULL behind the last
 *          one. */
const uct_abi_t *uct_abi_row(unsigned index);

/** Set the generation in force, before any domain is decorated. Not
 *  thread-safe. */
void uct_abi_select(const uct_abi_t *abi);

/**
 * Make sure that a generation is in force. Loads libucp if the program has not,
 * as in tests of domains.
 *
 * @return Nonzero if there is one.
 */
int uct_abi_is_known(void);

/**
 * Query a domain through @a ops, in the form of the running UCX.
 *
 * @return What the domain returns.
 */
ucs_status_t uct_abi_md_query(const uct_abi_md_ops_t *ops, uct_md_h md,
                              uct_abi_md_attr_t *attr);

/** Copy the table @a src of a domain of @a component with exactly its slots;
 *  others become NULL. */
void uct_abi_md_ops_copy(uct_abi_md_ops_t *dst, const uct_abi_md_ops_t *src,
                         uct_component_h component);

/** Register host memory with @a flags through @a ops, in the form of the
 *  running UCX. */
ucs_status_t uct_abi_mem_reg_flags(const uct_abi_md_ops_t *ops, uct_md_h md,
                                   void *address, size_t length,
                                   unsigned flags, uct_mem_h *memh_p);

/** Deregister through @a ops.
 *
 * @param [in] comp  Not NULL: invalidate, and call this then. */
ucs_status_t uct_abi_mem_dereg(const uct_abi_md_ops_t *ops, uct_md_h md,
                               uct_mem_h memh, uct_completion_t *comp);

/** @return The layout behind the handle @a md; the domain stays UCX's. */
static inline uct_abi_md_t *uct_abi_md(uct_md_h md)
{
    return (uct_abi_md_t*)md;
}

/** @return Name of @a component, NUL-terminated. */
static inline const char *uct_abi_component_name(uct_component_h component)
{
    return ((const uct_abi_component_t*)component)->name;
}

/** @return Name of the component that opened @a md, NUL-terminated. */
static inline const char *uct_abi_md_component_name(uct_md_h md)
{
    return uct_abi_component_name(uct_abi_md(md)->component);
}

/** @return The flags among the attributes @a attr of the running UCX. */
static inline uint64_t *uct_abi_md_attr_flags(void *attr)
{
    return (uint64_t*)((char*)attr + uct_abi_running->attr_flags);
}

/** Set attributes so that UCP registers host memory with the domain and lets
 *  its own cache keep it. */
static inline void uct_abi_md_attr_add_host(void *attr)
{
    const size_t host = UCS_BIT(UCS_MEMORY_TYPE_HOST);

    *uct_abi_md_attr_flags(attr) |= UCT_MD_FLAG_REG;
    *(uint64_t*)((char*)attr + uct_abi_running->attr_reg_mem_types) |= host;
    if (uct_abi_running->attr_cache_mem_types != 0) {
        *(uint64_t*)((char*)attr + uct_abi_running->attr_cache_mem_types) |=
                host;
    }
}

/** @return The cost of a registration among them. */
static inline ucs_linear_func_t *uct_abi_md_attr_reg_cost(void *attr)
{
    return (ucs_linear_func_t*)((char*)attr + uct_abi_running->attr_reg_cost);
}

/** @return UCT_MD_MEM_xx of a registration with @a params. */
static inline unsigned
uct_abi_md_mem_reg_flags(const uct_abi_md_mem_reg_params_t *params)
{
    return (params->field_mask & UCT_ABI_MD_MEM_REG_FIELD_FLAGS) ?
           (unsigned)params->flags : 0;
}

/** Register through @a ops as the caller asked: with @a params, or with
 *  @a flags if there are none. */
static inline ucs_status_t
uct_abi_mem_reg_as_asked(const uct_abi_md_ops_t *ops, uct_md_h md,
                         void *address, size_t length, unsigned flags,
                         const uct_abi_md_mem_reg_params_t *params,
                         uct_mem_h *memh_p)
{
    return (params != NULL) ?
           ops->mem_reg_params(md, address, length, params, memh_p) :
           ops->mem_reg(md, address, length, flags, memh_p);
}

/**
 * Define an operation that registers in both forms, _name with flags and
 * _name_params: _register(md, address, length, flags, params, memh_p), where
 * params is NULL in the first.
 */
#define UCT_ABI_MD_MEM_REG(_name, _register) \
    static ucs_status_t _name(uct_md_h md, void *address, size_t length, \
                              unsigned flags, uct_mem_h *memh_p) \
    { \
        return _register(md, address, length, flags, NULL, memh_p); \
    } \
    static ucs_status_t _name##_params( \
            uct_md_h md, void *address, size_t length, \
            const uct_abi_md_mem_reg_params_t *params, uct_mem_h *memh_p) \
    { \
        return _register(md, address, length, \
                         uct_abi_md_mem_reg_flags(params), params, memh_p); \
    }

/** Put such an operation into a table, in the form of the running UCX. */
#define UCT_ABI_MD_SET_MEM_REG(_ops, _name) \
    do { \
        if (uct_abi_running->has_reg_params) { \
            (_ops)->mem_reg_params = _name##_params; \
        } else { \
            (_ops)->mem_reg = _name; \
        } \
    } while (0)

/** Copy the fields of @a params that are set to @a full; the others become NULL
 *  or 0. */
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

/** One of those that @a comp waits for has ended; after the last it is called. */
static inline void uct_abi_complete(uct_completion_t *comp)
{
    if (--comp->count == 0) {
        comp->func(comp);
    }
}

/** Nobody can reach the region any more: tell so if @a full, which has been
 *  unpacked, asks for it. */
static inline void
uct_abi_md_mem_dereg_complete(const uct_abi_md_mem_dereg_params_t *full)
{
    if ((full->flags & UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE) &&
        (full->comp != NULL)) {
        uct_abi_complete(full->comp);
    }
}

END_C_DECLS

#endif
