#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	uct/ib/helper_md/device/device_fixture.h \
	uct/ib/helper_md/device/gpu.h \
	uct/ib/helper_md/device/mapping.h \
	uct/ib/helper_md/device/test_device.cc \
	uct/ib/helper_md/device/test_device_gpu.cc \
	uct/ib/helper_md/device/test_device_types.cc \
	uct/ib/helper_md/decorator_fixture.h \
	uct/ib/helper_md/fake_lower.h \
	uct/ib/helper_md/far_place.h \
	uct/ib/helper_md/generation_lower.h \
	uct/ib/helper_md/held_lock.h \
	uct/ib/helper_md/json_check.h \
	uct/ib/helper_md/log_capture.h \
	uct/ib/helper_md/monitor_fixture.h \
	uct/ib/helper_md/plain_config.h \
	uct/ib/helper_md/quiet_fork.h \
	uct/ib/helper_md/run_again.h \
	uct/ib/helper_md/test_allocator.cc \
	uct/ib/helper_md/test_config.cc \
	uct/ib/helper_md/test_decorator.cc \
	uct/ib/helper_md/test_deserted.cc \
	uct/ib/helper_md/test_device_limits.cc \
	uct/ib/helper_md/test_domains.cc \
	uct/ib/helper_md/test_events.cc \
	uct/ib/helper_md/test_generations.cc \
	uct/ib/helper_md/test_hear.cc \
	uct/ib/helper_md/test_interrupted.cc \
	uct/ib/helper_md/test_loader.cc \
	uct/ib/helper_md/test_monitor.cc \
	uct/ib/helper_md/test_monitor_kept.cc \
	uct/ib/helper_md/test_monitor_mappings.cc \
	uct/ib/helper_md/test_monitor_refused.cc \
	uct/ib/helper_md/test_node_domains.cc \
	uct/ib/helper_md/test_node_engine.cc \
	uct/ib/helper_md/test_preload_memory.cc \
	uct/ib/helper_md/test_range.cc \
	uct/ib/helper_md/test_report.cc \
	uct/ib/helper_md/test_site.cc \
	uct/ib/helper_md/test_trace_record.cc

gtest_SOURCES += \
	uct/ib/helper_md/own_ledger.cc

# A library to be opened and closed by a test; the path makes it a shared one
EXTRA_LTLIBRARIES = libtest_bss.la
CLEANFILES += libtest_bss.la
libtest_bss_la_SOURCES = uct/ib/helper_md/bss_module.c
libtest_bss_la_LDFLAGS = -module -avoid-version -rpath $(abs_builddir)
EXTRA_gtest_DEPENDENCIES += libtest_bss.la

# Where that library and the preloaded one lie. A header of this room rather than
# a definition for all: the others are the same in every build tree, and ccache
# has to see that.
test_paths_users = \
	united/uct_ib-1-3.$(OBJEXT) \
	united/uct_ib-2-3.$(OBJEXT) \
	united/uct_ib-3-3.$(OBJEXT)
CLEANFILES += uct/ib/test_paths.h
$(test_paths_users): uct/ib/test_paths.h
uct/ib/test_paths.h: Makefile
	$(AM_V_GEN)$(MKDIR_P) uct/ib && { \
	    echo '#define TEST_BSS_MODULE "$(abs_builddir)/.libs/libtest_bss.so"' && \
	    echo '#define TEST_PRELOAD_LIBRARY "$(abs_top_builddir)/src/uct/door/.libs/libucx_helper.so"' && \
	    echo '#define TEST_PRELOAD_LIBC "$(LIBC_VERSION)"'; } > $@.tmp && mv $@.tmp $@
