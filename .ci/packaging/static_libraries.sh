#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# static_libraries.sh FOLDER: builds FOLDER/libtbb.a and FOLDER/libhwloc.a from Debian's sources of the installed packages,
# unless it has done so. Debian has no libtbb.a, and its libhwloc.a needs libudev. The objects are position-independent and
# contain no paths of this machine.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
built=$(dpkg-query -W -f '${source:Package}=${source:Version}\n' libtbb-dev libhwloc-dev && sha256sum <"$0")
[ "$built" != "$(cat "$folder/complete" 2>/dev/null)" ] || exit 0
flags="-O2 -fPIC -ffile-prefix-map=$folder=."

"$here/../debian_source.sh" libtbb-dev "$folder/onetbb"
"$here/../debian_source.sh" libhwloc-dev "$folder/hwloc"
set -x
cmake -S "$folder/onetbb/source" -B "$folder/onetbb/build" -G Ninja -DCMAKE_BUILD_TYPE=None \
  "-DCMAKE_CXX_FLAGS=$flags -fno-gnu-unique -DNDEBUG" -DBUILD_SHARED_LIBS=OFF -DTBB_ENABLE_IPO=OFF -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF \
  -DTBB_DISABLE_HWLOC_AUTOMATIC_SEARCH=ON
cmake --build "$folder/onetbb/build"
cp "$folder"/onetbb/build/*/libtbb.a "$folder/"

# Detects CPUs, caches and NUMA nodes, and no other devices.
cd "$folder/hwloc/source"
./configure --quiet --enable-static --disable-shared --with-pic --disable-io --disable-libudev --disable-libxml2 "CFLAGS=$flags"
make --silent -C include
make --silent -C hwloc
cp hwloc/.libs/libhwloc.a "$folder/"
echo "$built" >"$folder/complete"
