/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "helper_md_int.h"
#include "session.h"

#include <stdlib.h>

/*
 * A forked child has no helper thread, and its cache is frozen as at the fork.
 * It may still use the domain: its own registrations go to the domain below. It
 * never deregisters its parent's, which would undo them for the parent.
 */

/* A registration of the child itself */
typedef struct uct_helper_child_memh {
    ucs_list_link_t list;
    uct_mem_h       memh;
} uct_helper_child_memh_t;

static ucs_status_t
uct_helper_child_register(uct_md_h uct_md, void *address, size_t length,
                          unsigned flags,
                          const uct_abi_md_mem_reg_params_t *params,
                          uct_mem_h *memh_p)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uct_helper_child_memh_t *own;
    ucs_status_t status;

    own = malloc(sizeof(*own));
    if (own == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_abi_mem_reg_as_asked(md->lower, uct_md, address, length, flags,
                                      params, &own->memh);
    if (status != UCS_OK) {
        free(own);
        return status;
    }

    *memh_p = own->memh;
    pthread_mutex_lock(&md->child_lock);
    ucs_list_add_tail(&md->child_memhs, &own->list);
    pthread_mutex_unlock(&md->child_lock);
    return UCS_OK;
}

UCT_ABI_MD_MEM_REG(uct_helper_child_mem_reg, uct_helper_child_register)

/* @return Nonzero if the registration was the child's; the caller then undoes
 * it. */
static int uct_helper_child_take(uct_helper_md_t *md, uct_mem_h memh)
{
    uct_helper_child_memh_t *own, *found = NULL;
    int is_own;

    pthread_mutex_lock(&md->child_lock);
    ucs_list_for_each(own, &md->child_memhs, list) {
        if (own->memh == memh) {
            found = own;
            ucs_list_del(&found->list);
            break;
        }
    }
    pthread_mutex_unlock(&md->child_lock);
    is_own = (found != NULL);
    free(found);
    return is_own;
}

static ucs_status_t
uct_helper_child_mem_dereg(uct_md_h uct_md,
                           const uct_abi_md_mem_dereg_params_t *params)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uct_abi_md_mem_dereg_params_t full;

    uct_abi_md_mem_dereg_unpack(params, &full);
    if (uct_helper_child_take(md, full.memh)) {
        return md->lower->mem_dereg(uct_md, params);
    }

    /* Who waits for its end would wait for ever */
    uct_abi_md_mem_dereg_complete(&full);
    return UCS_OK;
}

/* Cache and thread stay as they are: threads that do not exist here may hold
 * their locks */
static void uct_helper_child_close(uct_md_h uct_md)
{
    uct_helper_md_t *md           = uct_helper_md_of(uct_md);
    const uct_abi_md_ops_t *lower = md->lower;

    uct_abi_md(uct_md)->ops = lower;
    lower->close(uct_md);
}

void uct_helper_child_enter(uct_helper_md_t *md)
{
    uct_helper_session_process();
    /* Other threads of the child may do the same; all write the same values */
    pthread_mutex_lock(&md->child_lock);
    UCT_ABI_MD_SET_MEM_REG(&md->ops, uct_helper_child_mem_reg);
    md->ops.mem_dereg = uct_helper_child_mem_dereg;
    md->ops.close     = uct_helper_child_close;
    pthread_mutex_unlock(&md->child_lock);
}
