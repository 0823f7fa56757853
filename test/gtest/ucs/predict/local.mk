#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucs/predict/alloc_count.h \
	ucs/predict/order_fixture.h \
	ucs/predict/table_fixture.h \
	ucs/predict/test_callsite.cc \
	ucs/predict/test_callsite_model.cc \
	ucs/predict/test_condition.cc \
	ucs/predict/test_cost.cc \
	ucs/predict/test_delays.cc \
	ucs/predict/test_lru.cc \
	ucs/predict/test_newcomers.cc \
	ucs/predict/test_order.cc \
	ucs/predict/test_order_keys.cc \
	ucs/predict/test_plans.cc \
	ucs/predict/test_price.cc \
	ucs/predict/test_signature.cc \
	ucs/predict/test_walk.cc

gtest_SOURCES += \
	../inside/predict_inside.c \
	../inside/predict_inside.h \
	ucs/predict/alloc_count.cc
