#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_SOURCES += \
	uct/ib/engine_world.h \
	uct/ib/fake_lower.h \
	uct/ib/json_check.h \
	uct/ib/log_capture.h \
	uct/ib/test_clock.cc \
	uct/ib/test_config.cc \
	uct/ib/test_decorator.cc \
	uct/ib/test_engine.cc \
	uct/ib/test_itree.cc \
	uct/ib/test_queues.cc \
	uct/ib/test_report.cc \
	uct/ib/test_site.cc \
	uct/ib/test_thread.cc
