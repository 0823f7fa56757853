#!/bin/sh
#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Makes ./configure from the sources. Needs autoconf, automake and libtool.
#
set -e
cd "$(dirname "$0")"
mkdir -p config/aux
exec autoreconf --force --install
