/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_ITEMS_H_
#define UCX_HELPER_TOOL_REPLAY_ITEMS_H_

#include "replay_trace.h"

/**
 * @file replay_items.h
 *
 * The last part of making a trace ready: distinct ranges of pages, segments
 * between their ends, which items contain which, and when each is used.
 */

/** @return The start of the page that an address is in. */
static inline uint64_t replay_page_down(const replay_trace_t *trace,
                                        uint64_t address)
{
    return address & ~(uint64_t)(trace->page_size - 1);
}

/** @return The first start of a page that is not below an address; the last
 *          there is, if none is. */
static inline uint64_t replay_page_up(const replay_trace_t *trace,
                                      uint64_t address)
{
    uint64_t mask = trace->page_size - 1;

    return (address > UINT64_MAX - mask) ? ~mask : (address + mask) & ~mask;
}

/** Fill items and all after it in @a trace; leaves out unmaps that touch no
 *  item. */
void replay_items_make(replay_trace_t *trace);

#endif
