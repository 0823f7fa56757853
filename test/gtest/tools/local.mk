#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	tools/replay_fixture.h \
	tools/test_keep_or_drop.cc \
	tools/test_rent.cc \
	tools/test_replay.cc \
	tools/test_replay_repeat.cc \
	tools/test_tuning.cc
