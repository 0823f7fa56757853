#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# The release against which the tests are run; others of the same minor version
# have the same layouts but are not tried.
m4_define([HELPER_MD_UCX_TESTED], [1.13.1])

#
# HELPER_MD_CHECK_UCX: headers and libraries of UCX, 1.13 or later. Whether the
# helper knows the inside of the UCX that a job runs with is decided at run
# time (src/uct/base/uct_abi.h). Substitutes UCX_CPPFLAGS, UCX_LIBS, UCP_LIBS.
#
AC_DEFUN([HELPER_MD_CHECK_UCX], [
    AC_ARG_WITH([ucx],
        [AS_HELP_STRING([--with-ucx=DIR], [where UCX is installed (default: the system's)])],
        [], [with_ucx=yes])
    AS_CASE([$with_ucx],
        [no], [AC_MSG_ERROR([UCX is required, it cannot be left out])],
        [yes|''], [UCX_CPPFLAGS="" helper_md_ucx_ldflags=""],
        [UCX_CPPFLAGS="-isystem $with_ucx/include"
         helper_md_ucx_ldflags="-L$with_ucx/lib -Wl,-rpath,$with_ucx/lib "])

    helper_md_save_CPPFLAGS=$CPPFLAGS
    helper_md_save_LDFLAGS=$LDFLAGS
    helper_md_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $UCX_CPPFLAGS"
    LDFLAGS="$LDFLAGS $helper_md_ucx_ldflags"
    AC_CHECK_HEADERS([ucm/api/ucm.h ucs/config/parser.h uct/api/uct.h ucp/api/ucp.h], [],
        [AC_MSG_ERROR([UCX's headers are missing; on Debian: apt-get install libucx-dev])])
    AC_CHECK_MEMBERS([ucs_rcache_params_t.alignment], [], [],
        [[#include <ucs/memory/rcache.h>]])
    HELPER_MD_CHECK_UCX_LIB([ucm], [ucm_set_event_handler])
    HELPER_MD_CHECK_UCX_LIB([ucs], [ucs_status_string])
    HELPER_MD_CHECK_UCX_LIB([uct], [uct_md_open])
    HELPER_MD_CHECK_UCX_LIB([ucp], [ucp_get_version])
    HELPER_MD_CHECK_UCX_VERSION
    CPPFLAGS=$helper_md_save_CPPFLAGS
    LDFLAGS=$helper_md_save_LDFLAGS
    LIBS=$helper_md_save_LIBS

    UCX_LIBS="${helper_md_ucx_ldflags}-luct -lucs -lucm"
    UCP_LIBS="${helper_md_ucx_ldflags}-lucp"
    AC_SUBST([UCX_CPPFLAGS])
    AC_SUBST([UCX_LIBS])
    AC_SUBST([UCP_LIBS])
])

# HELPER_MD_CHECK_UCX_LIB(LIBRARY, FUNCTION); libucm leaves symbols to libucs
AC_DEFUN([HELPER_MD_CHECK_UCX_LIB], [
    AC_CHECK_LIB([$1], [$2], [:],
        [AC_MSG_ERROR([lib$1 of UCX is missing; on Debian: apt-get install libucx-dev])],
        [-lucs -lucm])
])

# The exact release is asked of pkg-config, as the headers tell major and minor
# only; without pkg-config the helper settles for those.
AC_DEFUN([HELPER_MD_CHECK_UCX_VERSION], [
    AC_COMPUTE_INT([helper_md_ucx_major], [UCP_API_MAJOR],
        [[#include <ucp/api/ucp_version.h>]], [helper_md_ucx_major=0])
    AC_COMPUTE_INT([helper_md_ucx_minor], [UCP_API_MINOR],
        [[#include <ucp/api/ucp_version.h>]], [helper_md_ucx_minor=0])
    AC_MSG_CHECKING([version of UCX])
    UCX_VERSION="$helper_md_ucx_major.$helper_md_ucx_minor"
    AS_IF([test "x$with_ucx" != xyes],
        [PKG_CONFIG_PATH="$with_ucx/lib/pkgconfig:$PKG_CONFIG_PATH"
         export PKG_CONFIG_PATH])
    helper_md_ucx_release=`${PKG_CONFIG-pkg-config} --modversion ucx 2>/dev/null`
    AS_CASE([$helper_md_ucx_release], ["$UCX_VERSION".*],
        [UCX_VERSION=$helper_md_ucx_release])
    AC_MSG_RESULT([$UCX_VERSION])
    AS_IF([test $helper_md_ucx_major -eq 1 && test $helper_md_ucx_minor -lt 13],
        [AC_MSG_ERROR([UCX $UCX_VERSION is too old, 1.13 is the first that the helper knows])])
    AS_IF([test "$UCX_VERSION" != "HELPER_MD_UCX_TESTED"],
        [AC_MSG_WARN([the tests are run with UCX HELPER_MD_UCX_TESTED, this one is $UCX_VERSION; at run time the helper stays off with a UCX that it does not know])])
    AC_SUBST([UCX_VERSION])
])
