#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

#
# HELPER_MD_SANITIZERS: --enable-asan (with UBSan) and --enable-tsan, which
# exclude each other; both go to all that is built but the preload stub and
# the MPI programs, UBSan to C alone: what is undefined in the tests themselves
# is not worth the double time that they compile with it. Sets the conditionals
# ENABLE_ASAN, ENABLE_TSAN, SANITIZED.
#
AC_DEFUN([HELPER_MD_SANITIZERS], [
    AC_ARG_ENABLE([asan],
        [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer and UndefinedBehaviorSanitizer])],
        [], [enable_asan=no])
    AC_ARG_ENABLE([tsan],
        [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])],
        [], [enable_tsan=no])
    helper_md_sanitize_c=
    AS_CASE([$enable_asan:$enable_tsan],
        [no:no], [helper_md_sanitize=""],
        [yes:no], [helper_md_sanitize="-fsanitize=address -fno-sanitize-recover=all"
                  helper_md_sanitize_c="-fsanitize=undefined"],
        [no:yes], [helper_md_sanitize="-fsanitize=thread"],
        [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
    AS_IF([test -n "$helper_md_sanitize"],
        [HELPER_MD_CHECK_SANITIZE([$helper_md_sanitize $helper_md_sanitize_c])
         # gcc warns of values that only its own instrumentation leaves unset
         helper_md_sanitize="$helper_md_sanitize -fno-omit-frame-pointer -g -Wno-maybe-uninitialized"
         BASE_CFLAGS="$BASE_CFLAGS $helper_md_sanitize $helper_md_sanitize_c"
         BASE_CXXFLAGS="$BASE_CXXFLAGS $helper_md_sanitize"
         BASE_LDFLAGS="$BASE_LDFLAGS $helper_md_sanitize $helper_md_sanitize_c"])
    AM_CONDITIONAL([ENABLE_ASAN], [test "x$enable_asan" = xyes])
    AM_CONDITIONAL([ENABLE_TSAN], [test "x$enable_tsan" = xyes])
    AM_CONDITIONAL([SANITIZED], [test -n "$helper_md_sanitize"])
])

# HELPER_MD_CHECK_SANITIZE(FLAGS): the runtime library may be missing.
AC_DEFUN([HELPER_MD_CHECK_SANITIZE], [
    helper_md_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $1"
    AC_MSG_CHECKING([whether $CC links with $1])
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([the compiler or its runtime library lacks $1])])
    CFLAGS=$helper_md_save_CFLAGS
])
