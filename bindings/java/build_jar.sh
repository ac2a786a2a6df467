#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes a jar of Java sources: `build_jar.sh JAVAC OUT.jar CLASSPATH SOURCE...`. Meson's own jar() gives javac
# one file at a time, which sources that need one another across folders do not survive.
set -eu
javac=$1
out=$2
classpath=$3
shift 3

classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
"$javac" -encoding UTF-8 --release 17 -Xlint:all,-processing -cp "$classpath" -d "$classes" "$@"
"$(dirname "$javac")/jar" --create --file "$out" --date 1980-01-01T00:00:02Z -C "$classes" .
