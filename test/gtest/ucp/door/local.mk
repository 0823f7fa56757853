#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucp/door/fake_ucp.h \
	ucp/door/test_posted.cc \
	ucp/door/test_receives.cc \
	ucp/door/test_ring.cc \
	ucp/door/test_threads.cc \
	ucp/door/test_wanted.cc

gtest_SOURCES += \
	ucp/door/test_entries.cc
