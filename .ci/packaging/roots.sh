# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of packages: minimal systems (debootstrap) that have neither a compiler nor sources of libdist.

# Makes the new root ROOTS/NAME of a Debian release, with PACKAGEs of Debian.
new_root() { # ROOTS NAME RELEASE PACKAGE...
  local roots=$1 name=$2 release=$3
  shift 3
  mkdir -p "$roots"
  if [ ! -f "$roots/$release.tar" ]; then
    echo "+ debootstrap --variant=minbase $release"
    rm -rf "${roots:?}/$release.new"
    debootstrap --variant=minbase "$release" "$roots/$release.new" >"$roots/debootstrap.log" 2>&1 ||
      { tail "$roots/debootstrap.log" >&2; return 1; }
    tar -C "$roots/$release.new" -cf "$roots/$release.tar.new" .
    rm -rf "${roots:?}/$release.new"
    mv "$roots/$release.tar.new" "$roots/$release.tar"
  fi
  rm -rf "${roots:?}/$name"
  mkdir "$roots/$name"
  tar -C "$roots/$name" -xf "$roots/$release.tar"
  [ $# -eq 0 ] || install_into "$roots/$name" "$@"
}

# Installs packages of Debian, or files below the root.
install_into() { # ROOT PACKAGE|FILE...
  local root=$1
  shift
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  in_root "$root" apt-get -qq -o Acquire::http::Timeout=30 -o Acquire::Retries=3 update
  in_root "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >"$root/apt.log" 2>&1 ||
    { tail "$root/apt.log" >&2; return 1; }
}

# Programs look for processes in /proc and for CPUs in /sys, and exchange memory in /dev/shm.
in_root() { # ROOT COMMAND...
  local root=$1
  shift
  unshare --mount --fork sh -eu -c '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' - "$root" "$@"
}

# What the root must not have for its programs to depend on packages only.
is_bare() { # ROOT
  local found
  found=$(in_root "$1" sh -c 'command -v cc c++ gcc g++ clang swig meson' || :)
  found+=$(find "$1" -xdev \( -name dist.h -o -name libdist.a -o -name meson.build \) -print)
  [ -z "$found" ] || { echo "the root is not bare: $found" >&2; return 1; }
}
