#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fetch.sh BUILD: makes BUILD/go-toolchain if the installed Go is older than the binding needs. The tool chain is a Go
# module: Go fetches it as the user has configured, and verifies it by go.sum.
set -eu
here=$(dirname -- "$0")
build=$(cd "$1" && pwd)
needed=$(sed -n 's/^go //p' "$here/../go/go.mod")
found=$(GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
[ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ] || exit 0
[ ! -x "$build/go-toolchain/bin/go" ] || exit 0
module=$(sed -n 's/^require \(.*\) \(.*\)/\1@\2/p' "$here/go.mod")
module=${module%-*}-$(go env GOARCH)
(cd "$here" && GOMODCACHE=$build/go-modules go mod download -modcacherw "$module")
chmod -R a+x "$build/go-modules/$module/bin" "$build/go-modules/$module/pkg/tool" # modules hold no executable files
ln -sfn "go-modules/$module" "$build/go-toolchain"
