#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the host together with the C engine, for Meson: `build.sh BUILD_ROOT GO ARCHIVE LIBS OUTPUT
# [arguments of go build]`. ARCHIVE is the engine's static library and LIBS its dependencies. The script
# writes a dependency file, OUTPUT.d.
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

# Escapes spaces in paths, as pkg-config, ninja and make expect it.
escaped() { printf '%s\n' "$@" | sed 's/ /\\ /g'; }

# Go does not track headers outside its module. Put the header's hash into the flags, so that a change
# recompiles the package.
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
rm -f "$output" # Go does not track archives either; removing the output forces a link
in_module build -o "$output" "$@" .
files=$(in_module list -deps -f '{{if not .Standard}}{{$dir := .Dir}}{{$dir}}
{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .CgoFiles}}{{$dir}}/{{.}}
{{end}}{{range .HFiles}}{{$dir}}/{{.}}
{{end}}{{range .CXXFiles}}{{$dir}}/{{.}}
{{end}}{{end}}' .)
escaped "$output:" "$files" "$engine/model.h" "$root"/include/dist/*.h | tr '\n' ' ' >"$output.d"
