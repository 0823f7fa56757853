#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The engine a second time, with a scheduling point before each atomic
# operation and with simulated memory, threads and clock.

EXTRA_PROGRAMS += schedules
EXTRA_LIBRARIES = libschedules_cache.a

libschedules_cache_a_SOURCES = \
	schedules_hooks.h \
	schedules_point.h \
	schedules_sim/ucs/sys/atomic.h \
	../../src/ucs/predict/lru.c \
	../../src/ucs/predict/callsite.c \
	../../src/ucs/predict/condition.c \
	../../src/ucs/predict/cost.c \
	../../src/ucs/predict/newcomers.c \
	../../src/ucs/predict/order.c \
	../../src/ucs/predict/order_due.c \
	../../src/ucs/predict/order_keys.c \
	../../src/ucs/predict/plans.c \
	../../src/ucs/predict/signature.c \
	../../src/ucs/predict/tuning.c \
	../../src/ucs/datastruct/dq.c \
	../../src/ucs/regcache/account.c \
	../../src/ucs/regcache/admit.c \
	../../src/ucs/regcache/charge.c \
	../../src/ucs/regcache/events.c \
	../../src/ucs/regcache/get.c \
	../../src/ucs/regcache/regcache.c \
	../../src/ucs/regcache/state.c \
	../../src/ucs/regcache/valid.c \
	../../src/ucs/regcache/deregister.c \
	../../src/ucs/regcache/inspect.c \
	../../src/ucs/regcache/plan/wakeup.c \
	../../src/ucs/regcache/coalesce.c \
	../../src/ucs/regcache/cover.c \
	../../src/ucs/regcache/rest.c \
	../../src/ucs/regcache/plan/policy_order.c \
	../../src/ucs/regcache/plan/policy_overlap.c \
	../../src/ucs/regcache/plan/policy_paper.c \
	../../src/ucs/regcache/put.c \
	../../src/ucs/regcache/register.c \
	../../src/ucs/regcache/evict.c \
	../../src/ucs/regcache/floor.c \
	../../src/ucs/regcache/soft.c \
	../../src/ucs/regcache/stats.c \
	../../src/ucs/regcache/tuning.c \
	../../src/ucs/regcache/plan/await.c \
	../../src/ucs/regcache/plan/announcer.c \
	../../src/ucs/regcache/plan/announce.c \
	../../src/ucs/regcache/plan/announce_plan.c \
	../../src/ucs/regcache/plan/hear.c \
	../../src/ucs/regcache/plan/home.c \
	../../src/ucs/regcache/plan/idle.c \
	../../src/ucs/regcache/plan/init.c \
	../../src/ucs/regcache/plan/plan.c \
	../../src/ucs/regcache/plan/policy.c \
	../../src/ucs/regcache/plan/price.c \
	../../src/ucs/regcache/plan/serve.c \
	../../src/ucs/regcache/plan/step.c \
	../../src/ucs/regcache/plan/sweep.c \
	../../src/ucs/regcache/plan/terms.c \
	../../src/ucs/regcache/plan/uses.c \
	../../src/ucs/regcache/reserve.c \
	../../src/ucs/datastruct/extents.c \
	../../src/ucs/datastruct/heap.c \
	../../src/ucs/datastruct/hist.c \
	../../src/ucs/regcache/index.c \
	../../src/ucs/regcache/lru.c \
	../../src/ucs/datastruct/itree.c \
	../../src/ucs/regcache/plan/rq.c
# The simulator looks at the equations itself, and measures the lock without them
libschedules_cache_a_CPPFLAGS = -I$(srcdir)/schedules_sim \
	-include $(srcdir)/schedules_hooks.h $(AM_CPPFLAGS) -UENABLE_ASSERT
libschedules_cache_a_CFLAGS = $(AM_CFLAGS)

schedules_SOURCES = \
	schedules.c \
	schedules_inside.c \
	schedules_inside.h \
	schedules_program.c \
	schedules_program.h \
	schedules_sched.c \
	schedules_sched.h \
	schedules_trace.c \
	schedules_trace.h \
	schedules_world.c \
	schedules_world.h
schedules_CPPFLAGS = $(AM_CPPFLAGS)
# Fibers are switched by longjmp(), which the fortified one takes for an error
schedules_CFLAGS = $(AM_CFLAGS) -U_FORTIFY_SOURCE
schedules_LDADD = libschedules_cache.a $(UCX_LIBS) -lpthread -lm
