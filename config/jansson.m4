#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#

# HELPER_MD_CHECK_JANSSON: jansson, with which ucx-helper merges reports.
AC_DEFUN([HELPER_MD_CHECK_JANSSON], [
    HELPER_MD_CHECK_DEP([jansson], [JANSSON], [jansson.h],
                        [json_t *object = json_object(); json_decref(object)],
                        [-ljansson], [libjansson-dev])
])
