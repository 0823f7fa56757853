#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# HELPER_MD_CHECK_URING: liburing 2.2 or later, which is the first that knows
# sparse buffer tables; pin_md takes its pins through one.
AC_DEFUN([HELPER_MD_CHECK_URING], [
    HELPER_MD_CHECK_DEP([uring], [URING], [liburing.h],
                        [return io_uring_register_buffers_sparse(NULL, 1)],
                        [-luring], [liburing-dev])
])
