/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/base/uct_abi.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* What the rows say of release 1.X, in the words of theirs.c. Where a release
 * lacks something, neither program has the line. */

#define ABI_WORD sizeof(void*)

static void abi_print(const char *name, size_t value)
{
    printf("%s %zu\n", name, value);
}

static void abi_print_row(const uct_abi_t *abi)
{
    abi_print("slots", abi->num_slots);
    abi_print("ib_slots", abi->num_ib_slots);
    abi_print("reg_params", !!abi->has_reg_params);
    abi_print("reg_mem_type", !!abi->has_reg_mem_type);
    abi_print("attr.flags", abi->attr_flags);
    abi_print("attr.reg_mem_types", abi->attr_reg_mem_types);
    abi_print("attr.reg_cost", abi->attr_reg_cost);
    abi_print("attr.local_cpus", abi->attr_local_cpus);
    abi_print("attr.size", abi->attr_size);
    if (abi->attr_cache_mem_types != 0) {
        abi_print("attr.cache_mem_types", abi->attr_cache_mem_types);
    }
    abi_print("component.list", abi->component_list);
    abi_print("config.entry", !!abi->has_config_entry);
    abi_print("config.field", abi->config_field);
    printf("reg_methods %s\n",
           (abi->reg_methods == NULL) ? "" : abi->reg_methods);
}

static void abi_print_structs(const uct_abi_t *abi)
{
    abi_print("ops.close", offsetof(uct_abi_md_ops_t, close) / ABI_WORD);
    abi_print("ops.query", offsetof(uct_abi_md_ops_t, query) / ABI_WORD);
    abi_print("ops.mem_reg", offsetof(uct_abi_md_ops_t, mem_reg) / ABI_WORD);
    abi_print("ops.mem_dereg",
              offsetof(uct_abi_md_ops_t, mem_dereg) / ABI_WORD);
    abi_print("ops.mkey_pack",
              offsetof(uct_abi_md_ops_t, mkey_pack) / ABI_WORD);
    abi_print("md.ops", offsetof(uct_abi_md_t, ops));
    abi_print("md.component", offsetof(uct_abi_md_t, component));
    abi_print("component.name", offsetof(uct_abi_component_t, name));
    abi_print("component.md_open", offsetof(uct_abi_component_t, md_open));
    abi_print("component.rkey_unpack",
              offsetof(uct_abi_component_t, rkey_unpack));
    if (abi->num_ib_slots > 0) { /* both came with 1.16 */
        abi_print("component.rkey_compare",
                  offsetof(uct_abi_component_t, rkey_compare));
    }
    abi_print("dereg.flags", offsetof(uct_abi_md_mem_dereg_params_t, flags));
    abi_print("dereg.memh", offsetof(uct_abi_md_mem_dereg_params_t, memh));
    abi_print("dereg.comp", offsetof(uct_abi_md_mem_dereg_params_t, comp));
    abi_print("dereg.invalidate", UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE);
    if (abi->has_reg_params) {
        abi_print("reg.flags", offsetof(uct_abi_md_mem_reg_params_t, flags));
        abi_print("reg.dmabuf_fd",
                  offsetof(uct_abi_md_mem_reg_params_t, dmabuf_fd));
        abi_print("reg.dmabuf_offset",
                  offsetof(uct_abi_md_mem_reg_params_t, dmabuf_offset));
        abi_print("reg.field_fd", UCT_ABI_MD_MEM_REG_FIELD_DMABUF_FD);
    }
    if (abi->has_reg_mem_type) {
        abi_print("reg.mem_type",
                  offsetof(uct_abi_md_mem_reg_params_t, mem_type));
        abi_print("reg.field_mem_type", UCT_ABI_MD_MEM_REG_FIELD_MEM_TYPE);
    }
}

int main(int argc, char **argv)
{
    const uct_abi_t *abi = uct_abi_find(UCT_ABI_MAJOR,
                                        (argc > 1) ? atoi(argv[1]) : 0);

    if (abi == NULL) {
        fprintf(stderr, "1.%s: unknown\n", (argc > 1) ? argv[1] : "");
        return 1;
    }

    abi_print_row(abi);
    abi_print_structs(abi);
    return 0;
}
