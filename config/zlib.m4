#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# HELPER_MD_CHECK_ZLIB: zlib, with which ucx-helper reads gzip'ed traces.
AC_DEFUN([HELPER_MD_CHECK_ZLIB], [
    HELPER_MD_CHECK_DEP([zlib], [ZLIB], [zlib.h],
                        [gzclose(gzopen("trace.gz", "rb"))],
                        [-lz], [zlib1g-dev])
])
