/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"

#define TOOL_FIELD(_name, _kind) \
    {NULL, #_name, TOOL_FIELD_##_kind, offsetof(tool_report_t, _name), \
     offsetof(tool_report_t, uses)}
#define TOOL_FIELD_IN(_object, _key, _name, _kind, _weight) \
    {_object, _key, TOOL_FIELD_##_kind, offsetof(tool_report_t, _name), \
     offsetof(tool_report_t, _weight)}
#define TOOL_FIELD_HELD(_key, _why) \
    TOOL_FIELD_IN(NULL, _key "_byte_seconds", held[UCS_REGCACHE_HELD_##_why], \
                  REAL, uses)
#define TOOL_FIELD_LOST(_key, _why) \
    TOOL_FIELD_IN(NULL, "lost_" _key "_seconds", \
                  lost[UCS_REGCACHE_LOST_##_why], REAL, uses)
#define TOOL_FIELD_MODEL(_name) \
    TOOL_FIELD_IN(#_name, "a_seconds_per_page", _name.a_seconds_per_page, \
                  TERM, _name.samples), \
    TOOL_FIELD_IN(#_name, "b_seconds", _name.b_seconds, TERM, \
                  _name.samples), \
    TOOL_FIELD_IN(#_name, "samples", _name.samples, SAMPLES, _name.samples)

const tool_field_t tool_fields[] = {
    TOOL_FIELD(rank, ID),
    TOOL_FIELD(pid, ID),
    TOOL_FIELD(host, TEXT),
    TOOL_FIELD(command, TEXT),
    TOOL_FIELD(policy, TEXT),
    TOOL_FIELD(ucx_version, TEXT),
    TOOL_FIELD(lower_domain, PARTS),
    TOOL_FIELD_IN("modelled_cost", "base_seconds", modelled_base_seconds,
                  ADDED, uses),
    TOOL_FIELD_IN("modelled_cost", "per_page_seconds",
                  modelled_per_page_seconds, ADDED, uses),
    TOOL_FIELD(elapsed_seconds, LONGEST),
    TOOL_FIELD(pinned_peak_bytes, WHOLE),
    TOOL_FIELD(pinned_byte_seconds, REAL),
    TOOL_FIELD(leave_pinned_bytes, WHOLE),
    TOOL_FIELD(leave_pinned_peak_bytes, WHOLE),
    TOOL_FIELD(leave_pinned_byte_seconds, REAL),
    TOOL_FIELD(in_use_peak_bytes, WHOLE),
    TOOL_FIELD(uses, WHOLE),
    TOOL_FIELD(on_time, WHOLE),
    TOOL_FIELD(late, WHOLE),
    TOOL_FIELD(missed, WHOLE),
    TOOL_FIELD(cold, WHOLE),
    TOOL_FIELD(wasted, WHOLE),
    TOOL_FIELD(evicted, WHOLE),
    TOOL_FIELD(invalidated, WHOLE),
    TOOL_FIELD(heard, WHOLE),
    TOOL_FIELD(heard_lost, WHOLE),
    TOOL_FIELD(announced, WHOLE),
    TOOL_FIELD(announced_on_time, WHOLE),
    TOOL_FIELD(announced_late, WHOLE),
    TOOL_FIELD(idle_steps, WHOLE),
    TOOL_FIELD(helper_cpu_seconds, REAL),
    TOOL_FIELD(helper_switches, WHOLE),
    TOOL_FIELD(lost_seconds, REAL),
    TOOL_FIELD(max_slowdown, LONGEST),
    TOOL_FIELD(price_j, PRICE),
    TOOL_FIELD(soft_ceiling_bytes, WHOLE),
    TOOL_FIELD(soft_ceiling_raises, WHOLE),
    TOOL_FIELD(registrations, WHOLE),
    TOOL_FIELD(repinned, WHOLE),
    TOOL_FIELD(prefetched, WHOLE),
    TOOL_FIELD(covers, WHOLE),
    TOOL_FIELD(spared, WHOLE),
    TOOL_FIELD(spared_seconds, REAL),
    TOOL_FIELD_HELD("in_use", IN_USE),
    TOOL_FIELD_HELD("soon", SOON),
    TOOL_FIELD_HELD("ahead", AHEAD),
    TOOL_FIELD_HELD("unknown", UNKNOWN),
    TOOL_FIELD_HELD("late", LATE),
    TOOL_FIELD_HELD("other", OTHER),
    TOOL_FIELD(registered_ahead, WHOLE),
    TOOL_FIELD(ahead_seconds, REAL),
    TOOL_FIELD_LOST("first", FIRST),
    TOOL_FIELD_LOST("unforetold", UNFORETOLD),
    TOOL_FIELD_LOST("late", LATE),
    TOOL_FIELD_LOST("room", ROOM),
    TOOL_FIELD_LOST("waited", WAITED),
    TOOL_FIELD_LOST("released", RELEASED),
    TOOL_FIELD(hit_ns_p50, MEAN),
    TOOL_FIELD(hit_ns_p99, WORST),
    TOOL_FIELD_MODEL(register_model),
    TOOL_FIELD_MODEL(deregister_model),
    {NULL, NULL, TOOL_FIELD_WHOLE, 0, 0}
};
