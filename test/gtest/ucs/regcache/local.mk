#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucs/regcache/order_fixture.h \
	ucs/regcache/regcache_fixture.h \
	ucs/regcache/regcache_world.h \
	ucs/regcache/regions.h \
	ucs/regcache/test_ahead.cc \
	ucs/regcache/test_coalesce.cc \
	ucs/regcache/test_cover.cc \
	ucs/regcache/test_drops.cc \
	ucs/regcache/test_inspect.cc \
	ucs/regcache/test_limits.cc \
	ucs/regcache/test_lost_uses.cc \
	ucs/regcache/test_memory.cc \
	ucs/regcache/test_policy_order.cc \
	ucs/regcache/test_policy_overlap.cc \
	ucs/regcache/test_regcache.cc \
	ucs/regcache/test_regcache_lru.cc \
	ucs/regcache/test_room.cc \
	ucs/regcache/test_rq.cc \
	ucs/regcache/test_hear.cc \
	ucs/regcache/test_soft.cc \
	ucs/regcache/test_speculation.cc \
	ucs/regcache/test_use.cc \
	ucs/regcache/test_why.cc

gtest_SOURCES += \
	../inside/regcache_inside.c \
	../inside/regcache_inside.h
