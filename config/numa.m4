#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# HELPER_MD_CHECK_NUMA: libnuma, to keep the helper thread near the device.
AC_DEFUN([HELPER_MD_CHECK_NUMA], [
    HELPER_MD_CHECK_DEP([numa], [NUMA], [numa.h], [return numa_available()],
                        [-lnuma], [libnuma-dev])
])
