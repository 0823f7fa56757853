#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_SOURCES += \
	ucp/firehose/firehose_world.h \
	ucp/firehose/test_firehose.cc \
	ucp/firehose/test_firehose_buckets.cc \
	ucp/firehose/test_firehose_message.cc \
	ucp/firehose/test_firehose_random.cc
