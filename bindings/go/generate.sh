#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes the generated Go code from dist.i: `generate.sh`. With --check it only compares, and skips (77) where
# SWIG is not the pinned version, whose output is what is committed.
#
# The pin is SWIG 4.1.0, Debian 12's package "swig". Other versions name things differently.
set -eu
pinned=4.1.0
cd "$(dirname "$0")/.." # the output names its input by this path
committed=go/internal/cdist

found=$(swig -version 2>/dev/null | sed -n 's/^SWIG Version //p')
if [ "$found" != "$pinned" ]; then
  echo "SWIG $pinned is needed; found: ${found:-none}"
  exit 77
fi

generate() {
  swig -go -cgo -intgosize 64 -c++ -package cdist -module cdist -I../include \
    -o "$1/cdist_wrap.cxx" -outdir "$1" dist.i
  sed -i 's/swigDirectorLookup(swig_c)\.(\*_swig_DirectorCallbacks)/theCallbacks.Load()/' "$1/cdist.go" # see dist_go.i
  python3 go/prune.py "$1"
}

if [ "${1:-}" = --check ]; then
  fresh=$(mktemp -d)
  trap 'rm -rf "$fresh"' EXIT
  generate "$fresh"
  for file in "$fresh"/*; do
    if ! diff -u "$committed/${file##*/}" "$file"; then
      echo "the committed code is not what dist.i and the headers give: run bindings/go/generate.sh"
      exit 1
    fi
  done
else
  generate "$committed"
fi
