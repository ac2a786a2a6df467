#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the program with libdist from a build tree: `build.sh BUILD_ROOT GO OUT`. Go tracks changes itself.
set -eu
build=$1
go=$2
out=$(realpath "$3")
cd "$(dirname "$0")"

export PKG_CONFIG_PATH="$build/meson-uninstalled${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export GOCACHE="$build/go-cache" GOPATH="$build/go-path" GOTOOLCHAIN=local GOPROXY=off GOFLAGS=
# Go does not track headers outside its module. Their hash in the flags makes it recompile after a change.
headers=$(cat ../../../../include/dist/*.h | sha256sum | cut -c 1-16)
export CGO_CPPFLAGS="-DDIST_HEADERS_$headers"

exec "$go" build -o "$out" .
