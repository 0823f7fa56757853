/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/api/v2/uct_v2.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_md.h>
#include <ucs/config/parser.h>

#include <stddef.h>
#include <stdio.h>

/* What the headers of a UCX source tree say. The names that a tree lacks are
 * found by test/abi/run, which defines HAS_xx for the others. */

#define ABI_WORD sizeof(void*)

#ifdef HAS_ATTR_V2
typedef uct_md_attr_v2_t abi_attr_t;
#  define ABI_ATTR(_field) offsetof(abi_attr_t, _field)
#else
typedef uct_md_attr_t abi_attr_t;
#  define ABI_ATTR(_field) offsetof(abi_attr_t, cap._field)
#endif

typedef ucs_status_t (*abi_reg_flags_t)(uct_md_h, void*, size_t, unsigned,
                                        uct_mem_h*);
typedef ucs_status_t abi_fill_entry_t(void*, ucs_config_global_list_entry_t*,
                                      const char*, int);

static void abi_print(const char *name, size_t value)
{
    printf("%s %zu\n", name, value);
}

static void abi_print_row(void)
{
    abi_print("slots", sizeof(uct_md_ops_t) / ABI_WORD);
    abi_print("reg_params",
              !__builtin_types_compatible_p(
                      __typeof__(((uct_md_ops_t*)NULL)->mem_reg),
                      abi_reg_flags_t));
    abi_print("attr.flags", ABI_ATTR(flags));
    abi_print("attr.reg_mem_types", ABI_ATTR(reg_mem_types));
    abi_print("attr.reg_cost", offsetof(abi_attr_t, reg_cost));
    abi_print("attr.local_cpus", offsetof(abi_attr_t, local_cpus));
    abi_print("attr.size", sizeof(abi_attr_t));
#ifdef HAS_ATTR_V2
    abi_print("attr.cache_mem_types", ABI_ATTR(cache_mem_types));
#endif
    abi_print("component.list", offsetof(struct uct_component, list));
    abi_print("config.entry",
              __builtin_types_compatible_p(
                      __typeof__(ucs_config_parser_fill_opts),
                      abi_fill_entry_t));
    abi_print("config.field", sizeof(ucs_config_field_t));
}

static void abi_print_structs(void)
{
    abi_print("ops.close", offsetof(uct_md_ops_t, close) / ABI_WORD);
    abi_print("ops.query", offsetof(uct_md_ops_t, query) / ABI_WORD);
    abi_print("ops.mem_reg", offsetof(uct_md_ops_t, mem_reg) / ABI_WORD);
    abi_print("ops.mem_dereg", offsetof(uct_md_ops_t, mem_dereg) / ABI_WORD);
    abi_print("ops.mkey_pack", offsetof(uct_md_ops_t, mkey_pack) / ABI_WORD);
    abi_print("md.ops", offsetof(struct uct_md, ops));
    abi_print("md.component", offsetof(struct uct_md, component));
    abi_print("component.name", offsetof(struct uct_component, name));
    abi_print("component.md_open", offsetof(struct uct_component, md_open));
    abi_print("component.rkey_unpack",
              offsetof(struct uct_component, rkey_unpack));
#ifdef HAS_RKEY_COMPARE
    abi_print("component.rkey_compare",
              offsetof(struct uct_component, rkey_compare));
#endif
    abi_print("dereg.flags", offsetof(uct_md_mem_dereg_params_t, flags));
    abi_print("dereg.memh", offsetof(uct_md_mem_dereg_params_t, memh));
    abi_print("dereg.comp", offsetof(uct_md_mem_dereg_params_t, comp));
    abi_print("dereg.invalidate", UCT_MD_MEM_DEREG_FLAG_INVALIDATE);
#ifdef HAS_REG_PARAMS
    abi_print("reg.flags", offsetof(uct_md_mem_reg_params_t, flags));
    abi_print("reg.dmabuf_fd", offsetof(uct_md_mem_reg_params_t, dmabuf_fd));
    abi_print("reg.dmabuf_offset",
              offsetof(uct_md_mem_reg_params_t, dmabuf_offset));
    abi_print("reg.field_fd", UCT_MD_MEM_REG_FIELD_DMABUF_FD);
#endif
#ifdef HAS_REG_MEM_TYPE
    abi_print("reg_mem_type", 1);
    abi_print("reg.mem_type", offsetof(uct_md_mem_reg_params_t, mem_type));
    abi_print("reg.field_mem_type", UCT_MD_MEM_REG_FIELD_MEM_TYPE);
#else
    abi_print("reg_mem_type", 0);
#endif
}

int main(void)
{
    abi_print_row();
    abi_print_structs();
    return 0;
}
