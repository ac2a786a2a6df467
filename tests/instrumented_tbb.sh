#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# instrumented_tbb.sh PREFIX: builds Debian's source of the installed oneTBB with ThreadSanitizer and installs it into
# PREFIX, unless it is there. With an oneTBB that is not instrumented, ThreadSanitizer reports a race for every use of it.
set -eu
prefix=$1
work=$prefix/work
[ ! -f "$prefix/lib/pkgconfig/tbb.pc" ] || exit 0
"$(dirname -- "$0")/../.ci/debian_source.sh" libtbb-dev "$work"
set -x
cd "$work"
cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DTBB_SANITIZE=thread -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DTBBMALLOC_PROXY_BUILD=OFF \
  -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib
cmake --build build
cmake --install build
