#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

EXTRA_PROGRAMS += oracle
oracle_SOURCES = \
	oracle.c \
	oracle.h \
	oracle_common.c \
	oracle_disturb.c \
	oracle_elsewhere.c \
	oracle_row.c \
	oracle_twin.c \
	oracle_world.c \
	own_ledger.h
oracle_CPPFLAGS = $(AM_CPPFLAGS) \
	-DORACLE_STUB='"$(abs_top_builddir)/src/uct/door/.libs/libucx_helper.so"'
oracle_LDADD = \
	$(top_builddir)/src/uct/sm/pin_md/libuct_pin_md.la \
	$(HELPER_LIBS)
EXTRA_oracle_DEPENDENCIES = oracle_bss.so

# Loaded at run time, from beside the program
EXTRA_DIST += oracle_bss.c
CLEANFILES += oracle_bss.so
oracle_bss.so: oracle_bss.c
	$(AM_V_CCLD)$(CC) $(CFLAGS) -shared -fPIC -o $@ $(srcdir)/oracle_bss.c
