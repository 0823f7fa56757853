#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

#
# HELPER_MD_CHECK_GTEST: GoogleTest and a compiler for C++17, for the unit tests
# only. Substitutes GTEST_CPPFLAGS, GTEST_CXXFLAGS, GTEST_LIBS, sets the
# conditional HAVE_GTEST.
#
AC_DEFUN([HELPER_MD_CHECK_GTEST], [
    AC_ARG_WITH([gtest],
        [AS_HELP_STRING([--with-gtest=DIR], [where GoogleTest is installed (default: the system's; no: no unit tests)])],
        [], [with_gtest=check])
    AS_CASE([$with_gtest],
        [yes|no|check], [GTEST_CPPFLAGS="" helper_md_gtest_ldflags=""],
        [GTEST_CPPFLAGS="-isystem $with_gtest/include"
         helper_md_gtest_ldflags="-L$with_gtest/lib "])
    GTEST_CXXFLAGS="-std=gnu++17"
    GTEST_LIBS="${helper_md_gtest_ldflags}-lgtest_main -lgtest -lpthread"

    helper_md_have_gtest=no
    AS_IF([test "x$with_gtest" != xno], [
        AC_LANG_PUSH([C++])
        helper_md_save_CPPFLAGS=$CPPFLAGS
        helper_md_save_CXXFLAGS=$CXXFLAGS
        helper_md_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GTEST_CPPFLAGS"
        CXXFLAGS="$CXXFLAGS $GTEST_CXXFLAGS"
        LIBS="$GTEST_LIBS $LIBS"
        AC_MSG_CHECKING([for GoogleTest with C++17])
        AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <gtest/gtest.h>
static_assert(__cplusplus >= 201703L);
TEST(configure, links) { EXPECT_TRUE(true); }]])],
            [helper_md_have_gtest=yes])
        AC_MSG_RESULT([$helper_md_have_gtest])
        CPPFLAGS=$helper_md_save_CPPFLAGS
        CXXFLAGS=$helper_md_save_CXXFLAGS
        LIBS=$helper_md_save_LIBS
        AC_LANG_POP([C++])
        AS_IF([test $helper_md_have_gtest = no],
            [AS_IF([test "x$with_gtest" = xcheck],
                [AC_MSG_WARN([no GoogleTest: no unit tests; on Debian: apt-get install g++ libgtest-dev])],
                [AC_MSG_ERROR([GoogleTest is missing; on Debian: apt-get install g++ libgtest-dev])])])
    ])
    AC_SUBST([GTEST_CPPFLAGS])
    AC_SUBST([GTEST_CXXFLAGS])
    AC_SUBST([GTEST_LIBS])
    AM_CONDITIONAL([HAVE_GTEST], [test $helper_md_have_gtest = yes])
])
