#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Uses the Go modules in a new system that has a C++ compiler and Go, and neither libdist nor pkg-config. Go gets the modules
# from their folder.
#
# usage: test_go.sh PROXY ROOTS TREE VERSION GOROOT [DEBIAN], as root. DEBIAN has the Debian packages; with them, two workers
# communicate over gRPC.
set -eu
proxy=$1 roots=$2 tree=$3 version=$4 goroot=$5 debian=${6-}
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
. "$(dirname -- "$0")/roots.sh"

new_root "$roots" "$release-go" "$release" gcc g++ libc6-dev
root=$roots/$release-go
found=$(in_root "$root" sh -c 'command -v go swig pkg-config' || :)
found+=$(find "$root/usr" "$root/lib" \( -name 'libtbb*' -o -name 'libhwloc*' -o -name 'libdist*' -o -name dist.h \) -print)
[ -z "$found" ] || { echo "the root has more than a compiler: $found" >&2; exit 1; }
cp -rL "$goroot" "$root/usr/local/go"
cp -r "$proxy" "$root/proxy"
mkdir "$root/first" "$root/worker"
cp "$tree/examples/guide/hello.go" "$root/first/"
cp "$tree/bindings/go/examples/worker/main.go" "$root/worker/"
cat >"$root/first/hello_test.go" <<'END_OF_TEST'
package main

import (
	"testing"

	"libdist.example/dist"
)

func TestReplicasSumTheirNumbers(t *testing.T) {
	strategy, err := dist.New(dist.Options{Replicas: 3, Threads: dist.LibraryThreads})
	if err != nil {
		t.Fatal(err)
	}
	defer strategy.Close()
	sums, err := dist.Collect(t.Context(), strategy, func(r *dist.Replica) (float32, error) {
		number := []float32{float32(r.ID())}
		err := dist.AllReduce(r, dist.Sum, number)
		return number[0], err
	})
	if err != nil || len(sums) != 3 || sums[0] != 3 || sums[2] != 3 {
		t.Fatal(sums, err)
	}
}
END_OF_TEST

in_folder() { # FOLDER COMMAND...
  local folder=$1
  shift
  in_root "$root" env -C "$folder" PATH=/usr/local/go/bin:/usr/bin:/bin GOPROXY=file:///proxy GONOSUMDB=libdist.example \
    GOFLAGS=-mod=mod GOTOOLCHAIN=local "$@"
}
sums() { # REPLICAS COMMAND...: each replica must print 10
  local replicas=$1 output
  shift
  output=$("$@")
  echo "$output"
  [ "$(grep -c '\(: the sum is\|[0-9] of [0-9]:\) 10$' <<<"$output")" -eq "$replicas" ] ||
    { echo "not $replicas replicas with 10" >&2; exit 1; }
}

echo "== a program that uses the module"
in_folder /first go mod init example.org/first
in_folder /first go get "libdist.example/dist@v$version"
in_folder /first go mod verify
echo "the first build, with the packages of Go that it needs:"
in_folder /first bash -c 'TIMEFORMAT="%U s of CPU time, %S s in the system, %R s"; time go build -o first .'
sums 4 in_root "$root" /first/first
needed=$(in_root "$root" ldd /first/first)
echo "$needed"
! grep -E 'libdist|libtbb|libhwloc' <<<"$needed" || { echo "the program needs libraries of the module" >&2; exit 1; }
ls -l "$root/first/first"
in_folder /first go test -v .

echo "== the archive is position-independent, and exports libdist only"
folder=$(in_folder /first go list -m -f '{{.Dir}}' libdist.example/dist)
archive=$folder/internal/cdist/libdist.a
in_root "$root" g++ -shared -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -Wl,-z,text -Wl,-z,defs -o /tmp/whole.so
exported=$(in_root "$root" nm --extern-only --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^dist_/')
[ -z "$exported" ] || { echo "the archive also exports $exported" >&2; exit 1; }
ls "$root$folder" "$root$folder/licenses"

echo "== vendored"
in_folder /first go mod vendor
in_folder /first env GOFLAGS=-mod=vendor go build -o vendored .
sums 4 in_root "$root" /first/vendored

echo "== without cgo, and for another platform"
for setting in CGO_ENABLED=0 GOARCH=riscv64; do
  ! said=$(in_folder /first env "$setting" GOFLAGS=-mod=mod go build . 2>&1) || { echo "$setting: this did not fail" >&2; exit 1; }
  echo "$said"
  grep -q 'undefined: libdist_needs_cgo__' <<<"$said"
done
grep -q 'undefined: this_module_of_libdist_is_for_linux_' <<<"$said"

if [ -n "$debian" ]; then
  echo "== two workers, with the module for gRPC of the Debian packages"
  in_folder /worker go mod init example.org/worker
  in_folder /worker go get "libdist.example/dist@v$version"
  in_folder /worker go build -o worker .
  mkdir "$root/packages"
  for name in libdist1 libdist-grpc dist-tools; do cp "$debian/${name}_"*.deb "$root/packages/"; done
  install_into "$root" $(cd "$root" && printf '/%s ' packages/*.deb)
  sums 4 in_root "$root" dist-launch -n 2 --replicas 2 -- /worker/worker
fi
echo "== the Go module works"
