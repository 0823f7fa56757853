/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
/*
 * Figures of a cache that add up over domains and ranks, each in one row: type, name,
 * its key in a report and what one of it is there. Included with UCS_FIGURE defined.
 */

UCS_FIGURE(uint64_t, pinned_peak_bytes, "pinned_peak_bytes", 1)
/* Integral over time */
UCS_FIGURE(double, pinned_byte_ns, "pinned_byte_seconds", 1e-9)

/* Union of the ranges seen that are still mapped */
UCS_FIGURE(uint64_t, leave_pinned_bytes, "leave_pinned_bytes", 1)
UCS_FIGURE(uint64_t, leave_pinned_peak_bytes, "leave_pinned_peak_bytes", 1)
UCS_FIGURE(double, leave_pinned_byte_ns, "leave_pinned_byte_seconds", 1e-9)

UCS_FIGURE(uint64_t, in_use_peak_bytes, "in_use_peak_bytes", 1)

UCS_FIGURE(uint64_t, regions_peak, "regions_peak", 1)
/* Integral over time of those that are registered */
UCS_FIGURE(double, region_ns, "region_seconds", 1e-9)
/* Registrations that leaving all pinned would hold */
UCS_FIGURE(uint64_t, leave_pinned_regions_peak, "leave_pinned_regions_peak", 1)

UCS_FIGURE(uint64_t, uses, "uses", 1)
/* Live when the use came; being registered, and it waited; seen before, registered by
 * the use itself; first use of the range */
UCS_FIGURE(uint64_t, on_time, "on_time", 1)
UCS_FIGURE(uint64_t, late, "late", 1)
UCS_FIGURE(uint64_t, missed, "missed", 1)
UCS_FIGURE(uint64_t, cold, "cold", 1)

/* Registered by the helper and dropped without a use; dropped to keep a ceiling; struck
 * by a memory event */
UCS_FIGURE(uint64_t, wasted, "wasted", 1)
UCS_FIGURE(uint64_t, evicted, "evicted", 1)
UCS_FIGURE(uint64_t, invalidated, "invalidated", 1)

/* Operations at UCP's entry points, and receives of at least the minimal size among
 * them: whose uses found them registered for that, or came while they were */
UCS_FIGURE(uint64_t, heard, "heard", 1)
UCS_FIGURE(uint64_t, announced, "announced", 1)
UCS_FIGURE(uint64_t, announced_on_time, "announced_on_time", 1)
UCS_FIGURE(uint64_t, announced_late, "announced_late", 1)
/* By threads that waited */
UCS_FIGURE(uint64_t, idle_steps, "idle_steps", 1)

/* Of the application's threads: in uses that registered or waited, and in what they
 * deregistered */
UCS_FIGURE(uint64_t, lost_ns, "lost_seconds", 1e-9)

/* What idle registrations may fill at most, in the end; 0: the policy has none */
UCS_FIGURE(uint64_t, soft_ceiling_bytes, "soft_ceiling_bytes", 1)
UCS_FIGURE(uint64_t, soft_ceiling_raises, "soft_ceiling_raises", 1)

/* Made in all; of regions that had been given up and not forgotten; of more than was
 * asked for */
UCS_FIGURE(uint64_t, registrations, "registrations", 1)
UCS_FIGURE(uint64_t, repinned, "repinned", 1)
UCS_FIGURE(uint64_t, covers, "covers", 1)
/* First uses that found theirs made by that, and what these would have taken, modelled */
UCS_FIGURE(uint64_t, spared, "spared", 1)
UCS_FIGURE(uint64_t, spared_ns, "spared_seconds", 1e-9)
