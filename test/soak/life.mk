#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

EXTRA_PROGRAMS += life
life_SOURCES = \
	life.c \
	life.h \
	life_cancel.c \
	life_changes.c \
	life_domain.c \
	life_fork.c \
	life_init.c \
	life_ledger.c \
	life_patch.c \
	life_proc.c \
	life_signals.c \
	life_unmaps.c \
	life_uses.c \
	life_watch.c \
	own_ledger.h
life_LDFLAGS = $(BASE_LDFLAGS)
life_LDADD = \
	$(top_builddir)/src/uct/sm/pin_md/libuct_pin_md.la \
	$(top_builddir)/src/uct/ib/helper_md/libuct_helper_engine.la \
	$(top_builddir)/src/ucs/predict/libucs_predict.la \
	$(top_builddir)/src/ucs/trace/libucs_trace.la \
	$(top_builddir)/src/ucs/sys/libucs_helper_sys.la \
	$(UCX_LIBS) $(URING_LIBS) $(UNWIND_LIBS) $(NUMA_LIBS) -lpthread -ldl -lm
