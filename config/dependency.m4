#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

#
# HELPER_MD_CHECK_DEP(NAME, PREFIX, HEADER, CALL, LIBS, DEBIAN-PACKAGE)
#
# Looks for a library that the helper cannot do without: CALL, an expression,
# must compile with HEADER and link with LIBS. Adds --with-NAME=DIR; sets and
# substitutes PREFIX_CFLAGS and PREFIX_LIBS; otherwise stops and names the
# Debian package to install.
#
AC_DEFUN([HELPER_MD_CHECK_DEP], [
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1=DIR], [where $1 is installed (default: the system's)])],
        [], [with_$1=yes])
    AS_CASE([$with_$1],
        [no], [AC_MSG_ERROR([$1 is required, it cannot be left out])],
        [yes|''], [$2_CFLAGS=""
                   $2_LIBS="$5"],
        [$2_CFLAGS="-isystem $with_$1/include"
         $2_LIBS="-L$with_$1/lib -Wl,-rpath,$with_$1/lib $5"])

    helper_md_save_CPPFLAGS=$CPPFLAGS
    helper_md_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $$2_CFLAGS"
    LIBS="$$2_LIBS $LIBS"
    AC_MSG_CHECKING([for $1])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stddef.h>
#include <$3>]], [[$4;]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$3 or $5 is missing or too old; on Debian: apt-get install $6])])
    CPPFLAGS=$helper_md_save_CPPFLAGS
    LIBS=$helper_md_save_LIBS
    AC_SUBST([$2_CFLAGS])
    AC_SUBST([$2_LIBS])
])
