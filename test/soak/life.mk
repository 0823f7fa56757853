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
	$(HELPER_LIBS)
