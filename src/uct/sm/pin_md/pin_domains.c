/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/debug/log_def.h>

/** Decorated domains in a process at most. */
#define UCT_PIN_MD_MAX_DOMAINS 64

/* Which decorator belongs to a domain. Its table cannot tell, because another
 * decorator on top points md->ops at a table of its own. An entry with md set
 * is constant until that domain is closed, so a look-up takes no lock. */
static struct {
    _Atomic(uct_md_h)      md;
    _Atomic(uct_pin_md_t*) pin;
} uct_pin_md_entries[UCT_PIN_MD_MAX_DOMAINS];

uct_pin_md_t *uct_pin_md_find(uct_md_h md)
{
    unsigned i;

    for (i = 0; i < UCT_PIN_MD_MAX_DOMAINS; ++i) {
        /* acquire [P-ENTRY]: pairs with uct_pin_md_publish() */
        if (ucs_load_acquire(&uct_pin_md_entries[i].md) == md) {
            return ucs_load_relaxed(&uct_pin_md_entries[i].pin);
        }
    }

    return NULL;
}

ucs_status_t uct_pin_md_publish(uct_pin_md_t *pin)
{
    uct_pin_md_t *expected;
    unsigned i;

    for (i = 0; i < UCT_PIN_MD_MAX_DOMAINS; ++i) {
        expected = NULL;
        /* acquire [P-FREE]: pairs with uct_pin_md_unpublish(). The
         * release orders nothing: what the entry means is told by md */
        if (ucs_cas_acq_rel(&uct_pin_md_entries[i].pin, &expected, pin)) {
            /* release [P-ENTRY]: pairs with uct_pin_md_find(), which sees
             * the decorator where it finds md */
            ucs_store_release(&uct_pin_md_entries[i].md, pin->md);
            return UCS_OK;
        }
    }

    ucs_warn("pin_md: more than %d domains, memory will not be pinned",
             UCT_PIN_MD_MAX_DOMAINS);
    return UCS_ERR_EXCEEDS_LIMIT;
}

void uct_pin_md_unpublish(uct_pin_md_t *pin)
{
    unsigned i;

    for (i = 0; i < UCT_PIN_MD_MAX_DOMAINS; ++i) {
        if (ucs_load_relaxed(&uct_pin_md_entries[i].pin) == pin) {
            ucs_store_relaxed(&uct_pin_md_entries[i].md, NULL);
            /* release [P-FREE]: pairs with uct_pin_md_publish(), so
             * that md is cleared before the reuse */
            ucs_store_release(&uct_pin_md_entries[i].pin, NULL);
        }
    }
}
