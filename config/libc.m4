#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# HELPER_MD_CHECK_LIBC
#
# The version of the C library's oldest symbols on this processor, with which
# programs ask for mmap() and the like (GLIBC_2.2.5 on x86-64).
AC_DEFUN([HELPER_MD_CHECK_LIBC], [
    AC_CHECK_TOOL([NM], [nm], [:])
    AC_CACHE_CHECK([for the version of mmap in the C library],
        [helper_md_cv_libc_version],
        [AC_LINK_IFELSE(
            [AC_LANG_PROGRAM([[#include <sys/mman.h>]],
                [[return mmap(0, 1, 0, 0, -1, 0) == MAP_FAILED;]])],
            [helper_md_cv_libc_version=`$NM -D conftest$EXEEXT |
                $SED -n 's/.* mmap@@*\(GLIBC_@<:@0-9.@:>@*\)$/\1/p'`])])
    AS_IF([test -z "$helper_md_cv_libc_version"],
        [AC_MSG_ERROR([the C library gives its symbols no versions: it is not
                       the GNU one])])
    AC_SUBST([LIBC_VERSION], [$helper_md_cv_libc_version])
])
