#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

#
# HELPER_MD_WARNINGS: dialect and warnings. They go to BASE_CFLAGS and
# BASE_CXXFLAGS, not to CFLAGS: those belong to the user of configure, and
# -Werror must not decide configure's own checks. WARN_CFLAGS holds what the
# MPI compilers and the preload stub take as well. _GNU_SOURCE is defined empty:
# a source that defines it for itself, in the usual way, then repeats the same.
#
AC_DEFUN([HELPER_MD_WARNINGS], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [make every compiler warning an error])],
        [], [enable_werror=no])
    WARN_CFLAGS="-std=gnu11 -D_GNU_SOURCE= -Wall -Wextra -Wno-unused-parameter"
    WARN_CXXFLAGS="-Wall -Wextra -Wno-unused-parameter"
    AS_IF([test "x$enable_werror" = xyes],
        [WARN_CFLAGS="$WARN_CFLAGS -Werror"
         WARN_CXXFLAGS="$WARN_CXXFLAGS -Werror"])
    AC_SUBST([WARN_CFLAGS])
    BASE_CFLAGS="$WARN_CFLAGS -fvisibility=hidden"
    BASE_CXXFLAGS="$WARN_CXXFLAGS"
    AC_SUBST([BASE_CFLAGS])
    AC_SUBST([BASE_CXXFLAGS])
])
