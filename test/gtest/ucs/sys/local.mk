#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

gtest_tests += \
	ucs/sys/address_space.h \
	ucs/sys/test_clock.cc \
	ucs/sys/test_dead.cc \
	ucs/sys/test_fork_mutex.cc \
	ucs/sys/test_hash.cc \
	ucs/sys/test_listeners.cc \
	ucs/sys/test_lock.cc \
	ucs/sys/test_log.cc \
	ucs/sys/test_maps.cc \
	ucs/sys/test_own_fd.cc \
	ucs/sys/test_own_memory.cc \
	ucs/sys/test_process.cc \
	ucs/sys/test_scout.cc \
	ucs/sys/test_sink.cc \
	ucs/sys/test_spawn.cc \
	ucs/sys/test_stack.cc \
	ucs/sys/test_stream.cc \
	ucs/sys/test_thread.cc \
	ucs/sys/test_thread_jobs.cc
