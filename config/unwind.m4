#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# HELPER_MD_CHECK_UNWIND: libunwind, whose cached walk takes call-site stacks.
AC_DEFUN([HELPER_MD_CHECK_UNWIND], [
    HELPER_MD_CHECK_DEP([unwind], [UNWIND], [libunwind.h],
                        [void *frame; return unw_backtrace(&frame, 1)],
                        [-lunwind], [libunwind-dev])
])
