#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# instrumented_tbb.sh PREFIX: builds Debian's source of the installed oneTBB with ThreadSanitizer and installs it into
# PREFIX, unless it is there. With an oneTBB that is not instrumented, ThreadSanitizer reports a race for every use of it.
set -eu
prefix=$1
work=$prefix/work
[ ! -f "$prefix/lib/pkgconfig/tbb.pc" ] || exit 0
command -v apt-get >/dev/null 2>&1 || { echo "instrumented_tbb.sh: fetching Debian's source of oneTBB needs apt-get" >&2 && exit 1; }
set -x
version=$(dpkg-query -W -f '${source:Version}' libtbb-dev)
mirror=$(apt-cache policy libtbb-dev | awk '$2 ~ /^https?:/ { sub("/", " ", $3); print $2, $3; exit }')
mkdir -p "$work/lists/partial"
printf 'deb-src %s\n' "$mirror" >"$work/sources.list"
# Uses a separate list of sources and index. The system's files do not change.
apt=(apt-get -q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$work/lists")
cd "$work"
"${apt[@]}" update
"${apt[@]}" source --download-only "onetbb=$version"
dpkg-source --no-check -x onetbb_*.dsc source
cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DTBB_SANITIZE=thread -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DTBBMALLOC_PROXY_BUILD=OFF \
  -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib
cmake --build build
cmake --install build
