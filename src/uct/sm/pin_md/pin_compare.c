/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pin_md_int.h"
#include "pin_verify.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/proc/cancel.h>

#include <stdio.h>
#include <stdlib.h>


/* The pinned region of a handle, NULL if there is nothing to look at */
static uct_pin_region_t *uct_pin_md_visible(const uct_pin_md_t *pin,
                                            uct_mem_h memh)
{
    uct_pin_region_t *region = memh;

    return ((pin != NULL) && pin->config.verify &&
            uct_pin_md_is_owner(pin) && (region->ring != NULL)) ?
           region : NULL;
}

int uct_pin_md_compare(uct_md_h md, uct_mem_h memh,
                       uct_pin_difference_t *difference)
{
    uct_pin_md_t *pin        = uct_pin_md_find(md);
    uct_pin_region_t *region = uct_pin_md_visible(pin, memh);
    int cancel, differs;

    if (region == NULL) {
        return 0;
    }

    cancel  = ucs_cancel_disable();
    differs = uct_pin_verify_compare(region, pin->page_size, difference);
    ucs_cancel_restore(cancel);
    return differs;
}

void uct_pin_md_history(uct_md_h md, uct_mem_h memh, char *text, size_t max)
{
    uct_pin_region_t *region = uct_pin_md_visible(uct_pin_md_find(md), memh);

    if (region == NULL) {
        snprintf(text, max, "not pinned by this process");
        return;
    }

    uct_pin_verify_history(region, text, max);
}

void uct_pin_md_stale(uct_md_h md, uct_mem_h memh,
                      const uct_pin_difference_t *difference)
{
    char history[512];

    uct_pin_md_history(md, memh, history, sizeof(history));
    ucs_error("pin_md: stale registration: the byte at %p is 0x%02x through "
              "the registration and 0x%02x through the virtual address; %s",
              (void*)difference->address, difference->seen, difference->shown,
              history);
    abort();
}
