#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the Go tests against a build tree: `test.sh BUILD_ROOT GO plain|race|cgocheck2 [go test's arguments]`; or one of the
# examples: `test.sh BUILD_ROOT GO run EXAMPLE [its arguments]`; or go in another module: `test.sh BUILD_ROOT GO in FOLDER [its
# arguments]`. It skips (77) where Go is too old.
set -eu
build=$1
go=$2
kind=$3
shift 3
cd "$(dirname "$0")"

needed=$(sed -n 's/^go //p' go.mod)
found=$("$go" env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
if [ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
  echo "Go $needed is needed, for iterators and cleanups; found $found"
  exit 77
fi

export PKG_CONFIG_PATH="$build/meson-uninstalled${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export LD_LIBRARY_PATH="$build/capi${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PATH="$build/capi/tools:$PATH" # dist-info
export GOCACHE="$build/go-cache" GOPATH="$build/go-path" GOTOOLCHAIN=local GOPROXY=off GOFLAGS=

# Go does not look into headers outside its module: their hash in the flags makes it compile again when they
# have changed.
headers=$(cat ../../include/dist/*.h | sha256sum | cut -c 1-16)
export CGO_CPPFLAGS="-DDIST_HEADERS_$headers"

case $kind in
  run)
    example=$1
    shift
    exec "$go" run "./examples/$example" "$@"
    ;;
  in)
    cd "$1"
    shift
    exec "$go" "$@"
    ;;
  plain)
    "$go" vet . ./cmd/... ./examples/... ./internal/infoprogram
    unformatted=$("$("$go" env GOROOT)/bin/gofmt" -l ./*.go cmd examples distprom internal/infoprogram)
    if [ -n "$unformatted" ]; then
      echo "gofmt would change: $unformatted"
      exit 1
    fi
    ;;
  race) set -- -race -short "$@" ;;
  cgocheck2)
    export GOEXPERIMENT=cgocheck2
    set -- -short "$@"
    ;;
esac
exec "$go" test -count=1 -timeout=600s "$@" ./...
