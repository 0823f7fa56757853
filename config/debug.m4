#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

#
# HELPER_MD_DEBUG_DEFAULTS: to be called before AC_PROG_CC, which otherwise
# sets -O2 where the user has set nothing.
#
AC_DEFUN([HELPER_MD_DEBUG_DEFAULTS], [
    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [check the invariants by assertions; -O0 -g unless CFLAGS is set])],
        [], [enable_debug=no])
    AC_ARG_ENABLE([coverage],
        [AS_HELP_STRING([--enable-coverage], [count executed lines, for gcov and lcov; -O0 -g unless CFLAGS is set])],
        [], [enable_coverage=no])
    AS_IF([test "x$enable_debug" != xno || test "x$enable_coverage" != xno],
        [: ${CFLAGS="-O0 -g"}
         : ${CXXFLAGS="-O0 -g"}])
])

#
# HELPER_MD_DEBUG: substitutes BASE_CPPFLAGS, adds to BASE_CFLAGS and
# BASE_LDFLAGS. ENABLE_ASSERT is the switch of UCX's own ucs_assert().
#
AC_DEFUN([HELPER_MD_DEBUG], [
    AS_IF([test "x$enable_debug" != xno],
        [BASE_CPPFLAGS="-DENABLE_ASSERT=1"],
        [BASE_CPPFLAGS="-DNDEBUG"])
    AS_IF([test "x$enable_coverage" != xno],
        [BASE_CFLAGS="$BASE_CFLAGS --coverage -fprofile-update=atomic"
         BASE_CXXFLAGS="$BASE_CXXFLAGS --coverage -fprofile-update=atomic"
         BASE_LDFLAGS="$BASE_LDFLAGS --coverage"])
    AC_SUBST([BASE_CPPFLAGS])
    AC_SUBST([BASE_LDFLAGS])
])
