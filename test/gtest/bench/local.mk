#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	bench/test_paced.cc \
	bench/test_sim.cc
