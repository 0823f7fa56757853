#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucs/node/node_fixture.h \
	ucs/node/test_ledger.cc \
	ucs/node/test_node.cc \
	ucs/node/test_node_damage.cc \
	ucs/node/test_node_processes.cc
