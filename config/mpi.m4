#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

#
# HELPER_MD_CHECK_MPI: compilers of both MPIs, for the tests and benchmarks that
# are MPI programs; the helper itself knows no MPI. Each is optional.
# Substitutes OMPICC and MPICHCC, sets the conditionals HAVE_OMPI, HAVE_MPICH.
#
AC_DEFUN([HELPER_MD_CHECK_MPI], [
    HELPER_MD_CHECK_MPI_CC([openmpi], [OMPICC], [mpicc.openmpi],
                           [OPEN_MPI], [libopenmpi-dev])
    HELPER_MD_CHECK_MPI_CC([mpich], [MPICHCC], [mpicc.mpich],
                           [MPICH_NUMVERSION], [libmpich-dev])
    AM_CONDITIONAL([HAVE_OMPI], [test -n "$OMPICC"])
    AM_CONDITIONAL([HAVE_MPICH], [test -n "$MPICHCC"])
])

#
# HELPER_MD_CHECK_MPI_CC(NAME, VARIABLE, DEFAULT, MACRO, DEBIAN-PACKAGE)
#
# MACRO, defined by this MPI's mpi.h and by no other's, tells that the compiler
# is not that of the other MPI under a shared name.
#
AC_DEFUN([HELPER_MD_CHECK_MPI_CC], [
    AC_ARG_WITH([$1-cc],
        [AS_HELP_STRING([--with-$1-cc=CC], [compiler for tests with $1 (default: $3; no: leave them out)])],
        [helper_md_mpi_asked=yes], [with_$1_cc=$3 helper_md_mpi_asked=no])
    AS_CASE([$with_$1_cc],
        [no], [$2=""],
        [yes], [AC_CHECK_PROG([$2], [$3], [$3])],
        [AC_CHECK_PROG([$2], [$with_$1_cc], [$with_$1_cc])])
    AS_IF([test -n "$$2"],
        [helper_md_save_CC=$CC
         CC=$$2
         AC_MSG_CHECKING([whether $$2 compiles for $1])
         AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#ifndef $4
#error "another MPI"
#endif]], [[return MPI_Init(0, 0);]])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             $2=""])
         CC=$helper_md_save_CC])
    AS_IF([test -z "$$2" && test "x$with_$1_cc" != xno],
        [AS_IF([test $helper_md_mpi_asked = yes],
            [AC_MSG_ERROR([$with_$1_cc does not compile for $1; on Debian: apt-get install $5])],
            [AC_MSG_NOTICE([no $1: its tests are left out])])])
    AC_SUBST([$2])
])
