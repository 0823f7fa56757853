#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucs/datastruct/test_dq.cc \
	ucs/datastruct/test_heap.cc \
	ucs/datastruct/test_itree.cc

gtest_SOURCES += \
	../inside/datastruct_inside.c \
	../inside/datastruct_inside.h
