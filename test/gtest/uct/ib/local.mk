#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_SOURCES += \
	uct/ib/decorator_fixture.h \
	uct/ib/engine_fixture.h \
	uct/ib/engine_world.h \
	uct/ib/fake_lower.h \
	uct/ib/far_place.h \
	uct/ib/json_check.h \
	uct/ib/log_capture.h \
	uct/ib/monitor_fixture.h \
	uct/ib/node/node_fixture.h \
	uct/ib/plain_config.h \
	uct/ib/node/test_busy.cc \
	uct/ib/node/test_ledger.cc \
	uct/ib/node/test_node.cc \
	uct/ib/node/test_node_damage.cc \
	uct/ib/node/test_node_domains.cc \
	uct/ib/node/test_node_engine.cc \
	uct/ib/node/test_node_processes.cc \
	uct/ib/node/test_place.cc \
	uct/ib/own_ledger.cc \
	uct/ib/quiet_fork.h \
	uct/ib/test_allocator.cc \
	uct/ib/test_clock.cc \
	uct/ib/test_config.cc \
	uct/ib/test_decorator.cc \
	uct/ib/test_deserted.cc \
	uct/ib/test_engine.cc \
	uct/ib/test_engine_memory.cc \
	uct/ib/test_engine_order.cc \
	uct/ib/test_events.cc \
	uct/ib/test_itree.cc \
	uct/ib/test_keep.cc \
	uct/ib/test_limits.cc \
	uct/ib/test_listener.cc \
	uct/ib/test_merge.cc \
	uct/ib/test_monitor.cc \
	uct/ib/test_monitor_kept.cc \
	uct/ib/test_monitor_mappings.cc \
	uct/ib/test_monitor_refused.cc \
	uct/ib/test_process.cc \
	uct/ib/test_queues.cc \
	uct/ib/test_range.cc \
	uct/ib/test_report.cc \
	uct/ib/test_sink.cc \
	uct/ib/test_site.cc \
	uct/ib/test_thread.cc \
	uct/ib/test_trace_record.cc

# A library to be opened and closed by a test; the path makes it a shared one
EXTRA_LTLIBRARIES = libtest_bss.la
CLEANFILES += libtest_bss.la
libtest_bss_la_SOURCES = uct/ib/bss_module.c
libtest_bss_la_LDFLAGS = -module -avoid-version -rpath $(abs_builddir)
EXTRA_gtest_DEPENDENCIES = libtest_bss.la
AM_CPPFLAGS += -DTEST_BSS_MODULE='"$(abs_builddir)/.libs/libtest_bss.so"'
