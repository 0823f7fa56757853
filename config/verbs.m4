#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

#
# HELPER_MD_CHECK_VERBS: libibverbs, optional. The helper reaches the device
# only through UCX and links no verbs; tests that look at a device do.
# Substitutes VERBS_LIBS, sets the conditional HAVE_VERBS.
#
AC_DEFUN([HELPER_MD_CHECK_VERBS], [
    AC_ARG_WITH([verbs],
        [AS_HELP_STRING([--without-verbs], [leave out the tests that look at a verbs device])],
        [], [with_verbs=check])
    helper_md_have_verbs=no
    AS_IF([test "x$with_verbs" != xno],
        [AC_CHECK_HEADER([infiniband/verbs.h],
            [AC_CHECK_LIB([ibverbs], [ibv_get_device_list],
                [helper_md_have_verbs=yes])])
         AS_IF([test "x$with_verbs:$helper_md_have_verbs" = xyes:no],
            [AC_MSG_ERROR([libibverbs is missing; on Debian: apt-get install libibverbs-dev])])])
    AS_IF([test $helper_md_have_verbs = yes], [VERBS_LIBS=-libverbs],
        [VERBS_LIBS=""])
    AC_SUBST([VERBS_LIBS])
    AM_CONDITIONAL([HAVE_VERBS], [test $helper_md_have_verbs = yes])
])
