#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_SOURCES += \
	ucs/datastruct/test_itree.cc \
	ucs/datastruct/test_queues.cc
