#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For pom.xml: `build_natives.sh BUILD OUT` builds libdist and its Java binding in Meson's folder BUILD, which is made
# where there is none, and copies to OUT what goes into a jar: OUT/native/..., OUT/java/... (SWIG's classes).
set -eu
build=$1
out=$2
root=$(cd "$(dirname "$0")/../.." && pwd)

if [ ! -f "$build/build.ninja" ]; then
  meson setup "$build" "$root" -Djava=enabled -Dtests=disabled -Dexamples=disabled -Dgo=disabled -Dpython=disabled
fi
meson compile -C "$build" libdist-java.jar

rm -rf "$out"
mkdir -p "$out/java/org/libdist/internal"
(cd "$out" && jar --extract --file "$build/bindings/java/libdist-java.jar" native)
cp "$build"/bindings/java/*.java "$out/java/org/libdist/internal"
