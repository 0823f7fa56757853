#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucp/wire/test_wire_sim.cc \
	ucp/wire/test_wire_ucp.cc
