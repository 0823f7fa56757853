#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The engine a second time, with a scheduling point before each atomic
# operation and with simulated memory, threads and clock.

EXTRA_PROGRAMS += schedules
EXTRA_LIBRARIES = libschedules_engine.a

libschedules_engine_a_SOURCES = \
	schedules_hooks.h \
	schedules_point.h \
	schedules_sim/ucs/sys/atomic.h \
	../../src/ucs/predict/lru.c \
	../../src/ucs/predict/callsite.c \
	../../src/ucs/predict/condition.c \
	../../src/ucs/predict/cost.c \
	../../src/ucs/predict/order.c \
	../../src/ucs/predict/signature.c \
	../../src/uct/ib/helper_md/dq.c \
	../../src/uct/ib/helper_md/engine.c \
	../../src/uct/ib/helper_md/engine_dereg.c \
	../../src/uct/ib/helper_md/engine_keep.c \
	../../src/uct/ib/helper_md/engine_look.c \
	../../src/uct/ib/helper_md/engine_merge.c \
	../../src/uct/ib/helper_md/engine_node.c \
	../../src/uct/ib/helper_md/engine_order.c \
	../../src/uct/ib/helper_md/engine_paper.c \
	../../src/uct/ib/helper_md/engine_put.c \
	../../src/uct/ib/helper_md/engine_reg.c \
	../../src/uct/ib/helper_md/engine_room.c \
	../../src/uct/ib/helper_md/engine_stats.c \
	../../src/uct/ib/helper_md/engine_step.c \
	../../src/uct/ib/helper_md/engine_stock.c \
	../../src/uct/ib/helper_md/extents.c \
	../../src/uct/ib/helper_md/heap.c \
	../../src/uct/ib/helper_md/hist.c \
	../../src/uct/ib/helper_md/index.c \
	../../src/uct/ib/helper_md/itree.c \
	../../src/uct/ib/helper_md/rq.c
# Few regions make a lot here, so that a walk that takes no break is told from one
# that does
libschedules_engine_a_CPPFLAGS = -DUCT_HELPER_LOT=4 \
	-I$(srcdir)/schedules_sim \
	-include $(srcdir)/schedules_hooks.h $(AM_CPPFLAGS)
libschedules_engine_a_CFLAGS = $(AM_CFLAGS)

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
schedules_LDADD = libschedules_engine.a $(UCX_LIBS) -lpthread -lm
