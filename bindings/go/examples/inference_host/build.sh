#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the host beside the engine in C, as Meson asks for it: `build.sh BUILD_ROOT GO ARCHIVE LIBS OUTPUT [go build's
# arguments]`. ARCHIVE has the engine, LIBS are what it needs. OUTPUT.d says what the host is made of.
set -eu
build=$1
go=$2
archive=$(realpath "$3")
libs=$4
output=$(realpath -m "$5")
shift 5
here=$(realpath "$(dirname "$0")")
root=$(realpath "$here/../../../..")
engine=$root/examples/inference_host

# As pkg-config, ninja and make have paths with spaces.
escaped() { printf '%s\n' "$@" | sed 's/ /\\ /g'; }

# Go does not look into headers outside its module: their hash in the flags makes it compile again when they have changed.
header=$(sha256sum <"$engine/model.h" | cut -c 1-16)
mkdir -p "$output.pc"
cat >"$output.pc/inference_engine.pc" <<END
Name: inference_engine
Description: The sentence encoder of examples/inference_host
Version: 0
Requires: dist
Cflags: -I$(escaped "$engine") -DINFERENCE_ENGINE_$header
Libs: $(escaped "$archive") $libs -Wl,-rpath,$(escaped "$build")/capi
END
export PKG_CONFIG_PATH="$output.pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"

in_module() { "$here/../../test.sh" "$build" "$go" in "$here" "$@"; }
case " $* " in
  *' -race '*) in_module vet . ;; # for the tests
esac
rm -f "$output" # nor does it look into archives: what is not there it links
in_module build -o "$output" "$@" .
files=$(in_module list -deps -f '{{if not .Standard}}{{$dir := .Dir}}{{$dir}}
{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .CgoFiles}}{{$dir}}/{{.}}
{{end}}{{range .HFiles}}{{$dir}}/{{.}}
{{end}}{{range .CXXFiles}}{{$dir}}/{{.}}
{{end}}{{end}}' .)
escaped "$output:" "$files" "$engine/model.h" "$root"/include/dist/*.h | tr '\n' ' ' >"$output.d"
