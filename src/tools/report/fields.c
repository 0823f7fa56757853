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
    TOOL_FIELD(in_use_byte_seconds, REAL),
    TOOL_FIELD(in_use_peak_bytes, WHOLE),
    TOOL_FIELD(uses, WHOLE),
    TOOL_FIELD(on_time, WHOLE),
    TOOL_FIELD(late, WHOLE),
    TOOL_FIELD(missed, WHOLE),
    TOOL_FIELD(cold, WHOLE),
    TOOL_FIELD(wasted, WHOLE),
    TOOL_FIELD(evicted, WHOLE),
    TOOL_FIELD(invalidated, WHOLE),
    TOOL_FIELD(heard, TOLD_WHOLE),
    TOOL_FIELD(heard_lost, TOLD_WHOLE),
    TOOL_FIELD(announced, TOLD_WHOLE),
    TOOL_FIELD(announced_on_time, TOLD_WHOLE),
    TOOL_FIELD(announced_late, TOLD_WHOLE),
    TOOL_FIELD(idle_steps, TOLD_WHOLE),
    TOOL_FIELD(helper_cpu_seconds, REAL),
    TOOL_FIELD(helper_switches, TOLD_WHOLE),
    TOOL_FIELD(lost_seconds, TOLD),
    TOOL_FIELD(late_seconds, TOLD),
    TOOL_FIELD(helper_lost_seconds, TOLD),
    TOOL_FIELD(max_slowdown, TOLD_MOST),
    TOOL_FIELD(price_j, TOLD_PRICE),
    TOOL_FIELD(soft_ceiling_bytes, TOLD_WHOLE),
    TOOL_FIELD(soft_ceiling_raises, TOLD_WHOLE),
    TOOL_FIELD(floors, TOLD_WHOLE),
    TOOL_FIELD(registrations, TOLD_WHOLE),
    TOOL_FIELD(repinned, TOLD_WHOLE),
    TOOL_FIELD(prefetched, TOLD_WHOLE),
    TOOL_FIELD(covers, TOLD_WHOLE),
    TOOL_FIELD(spared, TOLD_WHOLE),
    TOOL_FIELD(spared_seconds, TOLD),
    TOOL_FIELD(hit_ns_p50, MEAN),
    TOOL_FIELD(hit_ns_p99, WORST),
    TOOL_FIELD_MODEL(register_model),
    TOOL_FIELD_MODEL(deregister_model),
    {NULL, NULL, TOOL_FIELD_WHOLE, 0, 0}
};
