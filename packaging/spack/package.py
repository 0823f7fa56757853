# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class UcxHelperMd(AutotoolsPackage):
    """A helper memory domain for UCX that keeps pinned only the memory that is
    about to be communicated."""

    # No site of its own: the tarball that "make dist" makes lies in the folder
    # that spack is called in, and what it is compared with is its maker's to say
    homepage = "file://ucx-helper-md"
    url = f"file://{os.getcwd()}/ucx-helper-md-0.1.0.tar.xz"
    manual_download = True

    license("BSD-3-Clause")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("ucx@1.13:1.23")
    depends_on("liburing@2.3:")
    depends_on("jansson")
    depends_on("zlib-api")

    def configure_args(self):
        return [
            "--with-openmpi-cc=no",
            "--with-mpich-cc=no",
            "--without-gtest",
        ]
