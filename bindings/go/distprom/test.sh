#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tests the module distprom: `test.sh BUILD_ROOT GO`. Go downloads the packages that it requires as the user has configured,
# and verifies them by go.sum. It skips (77) where they cannot be had.
set -eu
cd "$(dirname "$0")"
if ! GOPATH="$1/go-path" GOTOOLCHAIN=local "$2" mod download; then
  echo "the packages that distprom/go.mod requires are not available"
  exit 77
fi
../test.sh "$1" "$2" in distprom vet .
exec ../test.sh "$1" "$2" in distprom test -count=1 .
