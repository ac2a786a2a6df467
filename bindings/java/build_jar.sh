#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes a jar of Java sources and other files: `build_jar.sh JAVAC OUT.jar CLASSPATH [NAME=FILE...] SOURCE...`, where
# FILE becomes entry NAME. Meson's own jar() gives javac one file at a time, which sources that need one another across
# folders do not survive.
set -eu
javac=$1
out=$2
classpath=$3
shift 3

content=$(mktemp -d)
trap 'rm -rf "$content"' EXIT
while :; do
  case $1 in
    *=*)
      mkdir -p "$content/$(dirname "${1%%=*}")"
      cp "${1#*=}" "$content/${1%%=*}"
      shift ;;
    *) break ;;
  esac
done
"$javac" -encoding UTF-8 --release 17 -g -parameters -Xlint:all,-processing -Werror -cp "$classpath" -p "$classpath" -d "$content" "$@"
"$(dirname "$javac")/jar" --create --file "$out" --date 1980-01-01T00:00:02Z -C "$content" .
