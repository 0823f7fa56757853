#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucp/pipeline/pipeline_fixture.h \
	ucp/pipeline/pipeline_world.h \
	ucp/pipeline/test_pipeline_new.cc \
	ucp/pipeline/test_pipeline_read.cc \
	ucp/pipeline/test_pipeline_refused.cc \
	ucp/pipeline/test_pipeline_random.cc \
	ucp/pipeline/test_pipeline_ring.cc \
	ucp/pipeline/test_pipeline_ucp.cc

gtest_SOURCES += \
	ucp/pipeline/test_pipeline.cc
