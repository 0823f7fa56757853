#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucp/firehose/firehose_protocol.h \
	ucp/firehose/firehose_world.h \
	ucp/firehose/test_firehose.cc \
	ucp/firehose/test_firehose_buckets.cc \
	ucp/firehose/test_firehose_hit.cc \
	ucp/firehose/test_firehose_message.cc \
	ucp/firehose/test_firehose_protocol.cc \
	ucp/firehose/test_firehose_random.cc \
	ucp/firehose/test_firehose_threads.cc

gtest_SOURCES += \
	../inside/firehose_inside.c \
	../inside/firehose_inside.h
