#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages into new systems: builds programs in one, and runs them in another, which has no compiler.
#
# usage: test_debian.sh PACKAGES ROOTS TREE [RELEASE], as root. RELEASE (default: this machine's) is a name such as bookworm.
set -eu
packages=$1 roots=$2 tree=$3
release=${4:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
. "$(dirname -- "$0")/roots.sh"

copy_packages() { # ROOT NAME...
  local root=$1 name
  shift
  mkdir -p "$root/packages"
  for name; do cp "$packages/${name}_"*.deb "$root/packages/"; done
  install_into "$root" $(cd "$root" && printf '/%s ' packages/*.deb)
}

echo "== $release: build programs with libdist-dev"
new_root "$roots" "$release-dev" "$release" g++ pkg-config cmake make
dev=$roots/$release-dev
copy_packages "$dev" libdist1 libdist-dev
mkdir "$dev/consumer"
cp "$tree"/tests/consumers/{main.c,main.cpp,CMakeLists.txt} "$dev/consumer/"
cp "$tree/examples/worker.c" "$dev/consumer/"
in_root "$dev" sh -eu -c '
  cd /consumer
  cc -std=c11 main.c $(pkg-config --cflags --libs dist) -o c
  c++ -std=c++17 main.cpp $(pkg-config --cflags --libs dist) -o cpp
  cc -std=c11 worker.c $(pkg-config --cflags --libs dist) -o worker
  apt-get -qq -y --no-install-recommends install libhwloc-dev libisal-dev libtbb-dev >/dev/null 2>&1
  cmake -S . -B cmake >/dev/null
  cmake --build cmake >/dev/null
  for program in ./c ./cpp cmake/consumer cmake/consumer_static; do $program; done'

echo "== $release: run them in a system without a compiler"
new_root "$roots" "$release-user" "$release"
user=$roots/$release-user
copy_packages "$user" libdist1
is_bare "$user"
mkdir "$user/programs"
cp "$dev"/consumer/{c,cpp,worker} "$user/programs/"
cp "$tree"/bindings/python/examples/{all_reduce,worker}.py "$user/programs/"
in_root "$user" /programs/c
in_root "$user" /programs/cpp

copy_packages "$user" libdist-grpc dist-tools python3-libdist
is_bare "$user"
in_root "$user" dist-info
in_root "$user" python3 -m libdist
in_root "$user" python3 /programs/all_reduce.py
in_root "$user" dist-launch -n 2 -- /programs/worker
in_root "$user" dist-launch -n 2 -- python3 /programs/worker.py

echo "== $release: remove the packages"
in_root "$user" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge libdist1 >/dev/null 2>&1
left=$(find "$user/usr" "$user/etc" "$user/var/lib/dpkg/info" -xdev -iname '*libdist*' -o -name 'dist-*' -path '*/bin/*')
[ -z "$left" ] || { echo "purging the packages left $left" >&2; exit 1; }
echo "== $release: the packages work"
