#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# HELPER_MD_CHECK_NUMA: libnuma, which knows how far each processor is from a
# device. Without it processors are near or far, as UCX tells.
AC_DEFUN([HELPER_MD_CHECK_NUMA], [
    AC_ARG_WITH([numa],
        [AS_HELP_STRING([--with-numa], [use libnuma (default: if it is there)])],
        [], [with_numa=check])
    helper_md_have_numa=no
    AS_IF([test "x$with_numa" != xno], [
        AC_CHECK_HEADER([numa.h],
            [AC_CHECK_LIB([numa], [numa_node_of_cpu],
                          [helper_md_have_numa=yes])])
        AS_IF([test "x$with_numa" = xyes && test $helper_md_have_numa = no],
            [AC_MSG_ERROR([numa.h or -lnuma is missing; on Debian: apt-get install libnuma-dev])])
    ])
    AS_IF([test $helper_md_have_numa = yes],
        [AC_DEFINE([HAVE_NUMA], [1], [libnuma is there])
         NUMA_LIBS=-lnuma],
        [NUMA_LIBS=])
    AC_SUBST([NUMA_LIBS])
])
