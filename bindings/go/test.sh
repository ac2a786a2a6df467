#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the Go tests against a build tree: `test.sh BUILD_ROOT GO [go test's arguments]`.
set -eu
build=$1
go=$2
shift 2
cd "$(dirname "$0")"

export PKG_CONFIG_PATH="$build/meson-uninstalled${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export LD_LIBRARY_PATH="$build/capi${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export GOCACHE="$build/go-cache" GOPATH="$build/go-path" GOTOOLCHAIN=local GOPROXY=off GOFLAGS=

# Go does not look into headers outside its module: their hash in the flags makes it compile again when they
# have changed.
headers=$(cat ../../include/dist/*.h | sha256sum | cut -c 1-16)
export CGO_CPPFLAGS="-DDIST_HEADERS_$headers"

"$go" vet . ./examples/...
exec "$go" test -count=1 -timeout=120s "$@" ./...
