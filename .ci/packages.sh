# SPDX-License-Identifier: Apache-2.0
# Sourced by ./dev: the Debian packages that its commands need, and provide(), which installs them.

# Group, Debian package, how to detect it, what it is for.
packages='
core    g++                  cmd:c++          C++20 and C11 compiler
core    meson                cmd:meson        build system
core    ninja-build          cmd:ninja        runs the build
core    pkg-config           cmd:pkg-config   finds libraries
core    libtbb-dev           pc:tbb           oneTBB: parallel loops and reductions
core    libhwy-dev           pc:libhwy        Highway: SIMD kernels
core    rapidjson-dev        pc:RapidJSON     RapidJSON: writes traces
library libhwloc-dev         pc:hwloc         hwloc: cores, caches and NUMA nodes
library libisal-dev          pc:libisal       ISA-L: checksums of checkpoints on x86-64
library libgloo-dev          h:gloo/context.h Gloo: a transport between workers
nettle  nettle-dev           pc:nettle        nettle: SHA-256
grpc    libgrpc++-dev        pc:grpc++        gRPC: workers in several processes
grpc    libssl-dev           pc:openssl       OpenSSL: reasons of TLS failures
build   libcmocka-dev        pc:cmocka        cmocka: the C and C++ tests
build   libdnnl-dev          h:oneapi/dnnl/dnnl.h oneDNN: examples/tensor_parallel
test    abigail-tools        cmd:abidiff      compares the binary interface with the recorded one
test    cmake                cmd:cmake        a CMake project that uses the installed library
test    git                  cmd:git          a Meson project that gets libdist by its wrap file
test    openssl              cmd:openssl      certificates for the tests of TLS
test    swig                 cmd:swig         generates the Java and Python bindings
test    default-jdk-headless cmd:javac        Java binding
test    maven                cmd:mvn          fetches the jars of the Java inference host and tests
test    python3-onnx         py:onnx          writes the models for that host
test    python3-dev          pc:python3       Python binding
test    python3-numpy        py:numpy         tensors of the Python binding
test    python3-venv         py:ensurepip     for the Python packages of tests/requirements.txt
host    libmicrohttpd-dev    pc:libmicrohttpd libmicrohttpd: examples/inference_host
host    libcjson-dev         pc:libcjson      cJSON: examples/inference_host
go      golang-go            cmd:go           Go binding
picture python3-matplotlib   py:matplotlib    draws charts
lint    clang                cmd:clang++      a second compiler
lint    clang-format         cmd:clang-format layout of the sources
lint    clang-tidy           cmd:clang-tidy   static analysis
prose   codespell            cmd:codespell    finds misspelled words
fuzz    clang                cmd:clang++      builds the fuzz targets
fuzz    libclang-rt-dev      clang:fuzzer     libFuzzer and the sanitizers of clang
tsan    cmake                cmd:cmake        builds oneTBB
tsan    dpkg-dev             cmd:dpkg-source  unpacks the source of oneTBB
pack    git                  cmd:git          archives a commit
pack    xz-utils             cmd:xz           compresses it
pack    python3-venv         py:ensurepip     for the Python packages that build and check packages
debian  dpkg-dev             cmd:dpkg-buildpackage builds Debian packages
debian  debhelper            cmd:dh           their usual steps
debian  dh-python            cmd:dh_python3   Python part of Debian packages
debian  chrpath              cmd:chrpath      removes a path from dist-info
debian  lintian              cmd:lintian      checks Debian packages
debian  debootstrap          cmd:debootstrap  a new system in which they are tried
debian  swig                 cmd:swig         generates the Python binding
debian  python3-dev          pc:python3       Python binding
static  cmake                cmd:cmake        builds oneTBB
static  dpkg-dev             cmd:dpkg-source  unpacks the sources of oneTBB and hwloc
static  make                 cmd:make         builds hwloc
go-test debootstrap          cmd:debootstrap  a new system in which the Go module is tried
java    swig                 cmd:swig         generates the Java binding
java    default-jdk-headless cmd:javac        Java binding
java    maven                cmd:mvn          builds the jars
java    debootstrap          cmd:debootstrap  a new system in which the jar is tried
java    unzip                cmd:unzip        takes the libraries out of the jar, to test this
python  swig                 cmd:swig         generates the Python binding
python  python3-dev          pc:python3       Python binding
python  debootstrap          cmd:debootstrap  a new system in which the wheels are tried
docs    doxygen              cmd:doxygen      reference of the headers
docs    golang-go            cmd:go           reference of the Go package
docs    default-jdk-headless cmd:javac        reference of the Java package
docs    swig                 cmd:swig         classes that the Java package uses
docs    python3-numpy        py:numpy         reference of the Python package
docs    python3-venv         py:ensurepip     for the Python packages of the documentation site
'

is_there() { # cmd:NAME, pc:PKG-CONFIG-MODULE, h:HEADER, py:MODULE or clang:RUNTIME
  case $1 in
    cmd:*) command -v "${1#cmd:}" >/dev/null 2>&1 ;;
    pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
    h:*) printf '#include <%s>\n' "${1#h:}" | c++ -E -x c++ - >/dev/null 2>&1 ;;
    clang:*) compgen -G "$(clang --print-runtime-dir 2>/dev/null)/libclang_rt.${1#clang:}*" >/dev/null ;;
    py:*) "$python" -c "from importlib.util import *; exit(find_spec('${1#py:}') is None)" 2>/dev/null ;;
  esac
}

# Installs the missing packages of the groups, after it has said which they are and how large. Sets installed=yes if any
# was missing.
provide() { # GROUP...
  local group package check use missing= named= root= size
  # Keep neither the downloaded packages nor apt's own caches: both would take as much disk as a third of the packages.
  local apt='apt-get -q -o APT::Keep-Downloaded-Packages=false -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache='
  while read -r group package check use; do
    [[ -n $group && " $* " == *" $group "* ]] && ! is_there "$check" || continue
    missing+=" $package"
    named+=$'\n'"  $package: $use"
  done <<<"$packages"
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null 2>&1 || die "these Debian packages are missing, and there is no apt-get to install them:$named"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || die "these Debian packages are missing; installing them needs root or sudo:$named"
    root=sudo
  fi
  say "dev: the following packages are missing and will be installed:$named"
  run $root $apt update
  # shellcheck disable=SC2086
  size=$(LC_ALL=C $root $apt install --no-install-recommends --assume-no $missing 2>/dev/null |
    sed -n 's/^.* \([0-9]*\) newly installed.*/\1 packages with their dependencies/p
      s/^Need to get \([^/]*\).* of archives.*/, \1 to download/p
      s/^After this operation, \(.*\) of additional disk.*/, \1 on disk/p' | tr -d '\n') || :
  say "dev: installing $size"
  # shellcheck disable=SC2086
  run $root env DEBIAN_FRONTEND=noninteractive $apt -y install --no-install-recommends $missing
  installed=yes
}

# Runs a script that fetches something, and makes the file STAMP when it has all of it. Failing is no error.
fetch() { # STAMP SKIPPED COMMAND...
  local stamp=$1 skipped=$2 before
  shift 2
  own "$build"
  mkdir -p "$build"
  before=$(stat -L -c %i.%Y "$stamp" 2>/dev/null || :)
  run "$@" || say "dev: $1 failed; continuing without it, which skips $skipped"
  [ "$before" = "$(stat -L -c %i.%Y "$stamp" 2>/dev/null || :)" ] || installed=yes
}
