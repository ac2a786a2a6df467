#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the program with a build tree's libdist: `build.sh BUILD_ROOT GO OUT`. Go looks itself what has changed.
set -eu
build=$1
go=$2
out=$(realpath "$3")
cd "$(dirname "$0")"

export PKG_CONFIG_PATH="$build/meson-uninstalled${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export GOCACHE="$build/go-cache" GOPATH="$build/go-path" GOTOOLCHAIN=local GOPROXY=off GOFLAGS=
# It does not look into headers outside its module: their hash in the flags does.
headers=$(cat ../../../../include/dist/*.h | sha256sum | cut -c 1-16)
export CGO_CPPFLAGS="-DDIST_HEADERS_$headers"

exec "$go" build -o "$out" .
