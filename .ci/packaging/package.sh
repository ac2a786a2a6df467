# SPDX-License-Identifier: Apache-2.0
# Sourced by ./dev: `./dev package`. Packages are built from the last commit and depend on nothing else in the tree, so that
# the same commit gives the same files.

package_usage() {
  cat <<'END'
usage: ./dev package NAME [--test]

Builds a package from the last commit into build/packages/. NAME is one of:

  source   libdist-VERSION.tar.xz with checksums and a list of its parts and dependencies (CycloneDX)
  debian   libdist1, libdist-dev, libdist-grpc, python3-libdist and dist-tools for the Debian that this machine runs
  java     libdist-java, a jar with native libraries for this architecture; its sources and Javadoc; and a Maven repository
           with them, build/packages/java/repository
  python   libdist, a wheel for this version of Python; libdist-grpc, a wheel for all versions; and a source archive
  go       a Go module with an archive of libdist for this architecture, and distprom; both are in build/packages/go/proxy,
           which Go can use as a proxy
  conan    a package in build/packages/conan, with the libraries of the system; this recipe has not been tried yet
  all      source, debian, java, python and go, and SHA256SUMS

  --test   then also checks the package as its users would use it. For debian, java, python and go, this needs root: it
           installs the packages into new systems in build/packages/roots. For source and debian, it also builds the
           package a second time and compares both
END
}

package() { # NAME [--test]
  local name=${1-} test=no
  case $#:${2-} in
    1:) ;;
    2:--test) test=yes ;;
    *) name=help ;;
  esac
  case $name in
    source | debian | java | python | go | conan | all) ;;
    *)
      package_usage
      exit 2
      ;;
  esac
  git -C "${top:-.}" rev-parse --quiet --verify HEAD >/dev/null 2>&1 || die "packages are built from a commit, but this is not a git repository"
  [ -z "$(git -C "${top:-.}" status --porcelain)" ] ||
    say "dev: there are uncommitted changes; the package is built from the last commit, which does not have them"
  recipes=$(cd "${top:-.}/.ci/packaging" && pwd)
  mkdir -p "$build/packages"
  out=$(cd "$build/packages" && pwd)
  version=$(git -C "${top:-.}" show HEAD:meson.build | sed -n "s/^  version: '\(.*\)',/\1/p")
  # Every time stamp in a package is the commit's.
  SOURCE_DATE_EPOCH=$(git -C "${top:-.}" log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  if [ "$name" = all ]; then set -- source debian java python go; else set -- "$name"; fi
  for name; do
    "package_$name"
    [ $test = no ] || "test_$name"
  done
  [ $# -eq 1 ] || checksums
}

checksums() {
  (cd "$out" && find . -maxdepth 2 -type f \( -name '*.tar.*' -o -name '*.cdx.json' -o -name '*.deb' -o -name '*.jar' -o -name '*.whl' \) |
    LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
  say "$out/SHA256SUMS"
}

# Python packages that are in no Debian, or only in a newer one.
package_tools() {
  provide pack
  fetch "$out/tools/complete" 'packages that need them' "${top}tests/fetch_packages.sh" "$out/tools" "$recipes/requirements.txt"
  [ -f "$out/tools/complete" ] || die "the tools of $recipes/requirements.txt could not be installed"
}

# Unpacks the source archive into DIR, which is new then.
unpack() { # DIR
  rm -rf "${1:?}"
  mkdir -p "$1"
  tar -xf "$out/libdist-$version.tar.xz" -C "$1" --strip-components=1
}

# ---- source ----------------------------------------------------------------------------------------

package_source() {
  package_tools
  say "+ git archive HEAD | xz > $out/libdist-$version.tar.xz"
  git -C "${top:-.}" archive --prefix="libdist-$version/" HEAD | xz -6 --threads=1 >"$out/libdist-$version.tar.xz"
  unpack "$out/source"
  run "$out/tools/bin/python" "$recipes/sbom.py" "$out/source" "$version" "$out/libdist-$version.cdx.json"
  (cd "$out" && run sha256sum "libdist-$version.tar.xz" "libdist-$version.cdx.json" >"libdist-$version.sha256")
}

# The archive is the same when it is made again, and contains all that the library is built from.
test_source() {
  local first
  first=$(cat "$out/libdist-$version.sha256")
  package_source
  [ "$first" = "$(cat "$out/libdist-$version.sha256")" ] || die "the source archive is not reproducible"
  (cd "$out" && run sha256sum --check "libdist-$version.sha256")
  provide core library nettle grpc
  rm -rf "$out/source-build"
  # shellcheck disable=SC2086
  run meson setup "$out/source-build" "$out/source" $part_of_it -Dexamples=disabled
  run meson compile -C "$out/source-build"
  run "$out/source-build/capi/tools/dist-info"
}

# ---- debian ----------------------------------------------------------------------------------------

package_debian() {
  package_source
  provide core library nettle grpc debian
  build_debian "$out/debian"
  run lintian --fail-on error,warning "$out"/debian/*.changes
}

build_debian() { # DIR
  local dir=$1/libdist-$version
  rm -rf "${1:?}"
  unpack "$dir"
  # No package contains examples, parts of which have other licenses and no readable source.
  rm -r "$dir/examples"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$1" -c "libdist-$version" |
    xz -6 --threads=1 >"$1/libdist_$version+ds.orig.tar.xz"
  cp -r "$dir/.ci/packaging/debian" "$dir/debian"
  # Debian's own revisions, which begin with 1, are newer than this one.
  {
    printf 'libdist (%s+ds-0dist1) unstable; urgency=medium\n\n' "$version"
    printf '  * Build of the developers of libdist. CHANGELOG.md lists the changes.\n\n'
    printf ' -- %s  %s\n' "$(sed -n 's/^Maintainer: //p' "$dir/debian/control")" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
  } >"$dir/debian/changelog"
  say "+ dpkg-buildpackage (in $dir, with its output in $1/log)"
  # Debian's own tools, not those that come first in the PATH of a developer.
  (cd "$dir" && PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg-buildpackage --no-sign >"$1/log" 2>&1) ||
    die "dpkg-buildpackage failed: see $1/log"
}

# The packages are the same when they are built in another folder and without ccache, and work in a new system.
test_debian() {
  local file
  CCACHE_DISABLE=1 build_debian "$out/debian-again"
  for file in "$out"/debian/*.deb; do
    run cmp "$file" "$out/debian-again/${file##*/}"
  done
  run "$recipes/test_debian.sh" "$out/debian" "$out/roots" "${top:-.}"
}

# ---- java ------------------------------------------------------------------------------------------

package_java() {
  local sources=$out/source/bindings/java natives=$out/source/build/natives file
  local repository=$out/java/repository/org/libdist/libdist-java/$version
  package_source
  provide core library nettle grpc java
  rm -rf "$out/java"
  mkdir -p "$repository"
  # A folder in the tree, as for ./dev build, so that ccache knows the files.
  # shellcheck disable=SC2086
  run meson setup "$out/source/build" "$out/source" $part_of_it -Dexamples=disabled -Djava=enabled -Dgrpc=enabled -Dgloo=disabled
  run "$sources/build_natives.sh" "$out/source/build" "$natives"
  PATH="$out/tools/bin:$PATH" run python "$recipes/natives.py" "$natives" "$version"
  sed -i "s|<tag>HEAD</tag>.*|<tag>$(git -C "${top:-.}" rev-parse HEAD)</tag>|" "$sources/pom.xml"
  run mvn -q -B -f "$sources" package -Dmaven.test.skip=true -Ddist.prepare=true "-Ddist.natives=$natives" \
    "-Dproject.build.outputTimestamp=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
  mv "$sources"/target/libdist-java-"$version"*.jar "$out/java/"
  ln "$out"/java/*.jar "$repository/"
  cp "$sources/pom.xml" "$repository/libdist-java-$version.pom"
  for file in "$repository"/*; do
    sha1sum "$file" | cut -d ' ' -f 1 >"$file.sha1"
  done
  run ls -l "$out"/java/*.jar
}

# The jar works in programs that Maven builds, in fat jars, and in a new system that has only a JRE.
test_java() { run "$recipes/test_java.sh" "$out/java" "$out/roots" "${top:-.}" "$version"; }

# ---- python ----------------------------------------------------------------------------------------

package_python() {
  local sources=$out/source/bindings/python
  package_source
  provide core library nettle grpc python
  rm -rf "$out/python"
  mkdir -p "$out/python/whole"
  (
    cd "$sources"
    # meson-python and what it calls are those of the tools.
    export PATH="$out/tools/bin:/usr/bin:/bin"
    run python -c 'import backend, sys; backend.build_sdist(sys.argv[1])' "$out/python"
    run python -c 'import backend, sys; backend.build_wheel(sys.argv[1], {"setup-args": sys.argv[2:]})' "$out/python/whole" \
      -Dgrpc=enabled -Dgloo=disabled -Dmpi=disabled
    run python "$recipes/wheels.py" "$out"/python/whole/*.whl "$out/python"
  )
}

# The wheels work in new systems, alone and beside other packages with a gRPC of their own.
test_python() {
  run "$out/tools/bin/pip" download -q -d "$out/python/others" --no-deps --only-binary :all: --require-hashes -r "$recipes/beside.txt"
  run "$recipes/test_python.sh" "$out/python" "$out/roots" "${top:-.}"
}

# ---- go --------------------------------------------------------------------------------------------

package_go() {
  local libdir dir=$out/go/archive
  package_source
  provide core library static
  rm -rf "$out/go"
  run "$recipes/static_libraries.sh" "$out/static"
  # A folder in the tree, as for ./dev build, so that ccache knows the files. The paths are those of the Debian packages, so
  # that libdist finds the module for gRPC that libdist-grpc installs.
  libdir=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  # shellcheck disable=SC2086
  run meson setup "$out/source/build" "$out/source" $part_of_it -Dexamples=disabled -Ddefault_library=static -Disal=disabled \
    -Dgrpc=disabled -Dgloo=disabled --prefix=/usr "--libdir=$libdir" -Dcpp_args=-fno-gnu-unique
  run meson compile -C "$out/source/build" libdist:static_library
  mkdir -p "$dir"
  # One object that defines only the functions of libdist, so that a program can contain another oneTBB or hwloc. objcopy
  # cannot hide unique symbols, so there are none (-fno-gnu-unique).
  run ld -r --force-group-allocation --whole-archive "$out/source/build/capi/libdist.a" --no-whole-archive \
    "$out/static/libtbb.a" "$out/static/libhwloc.a" -o "$dir/dist.o"
  run objcopy --wildcard --keep-global-symbol='dist_*' --strip-unneeded "$dir/dist.o"
  run ar rcsD "$dir/libdist.a" "$dir/dist.o"
  run "$python" "$recipes/go_module.py" "$out/source" "$version" "$dir/libdist.a" \
    libtbb-dev,libhwloc-dev,libhwy-dev,rapidjson-dev "$out/go/proxy"
}

# A program that gets the modules from the proxy works in a new system that has only a compiler and Go.
test_go() {
  local go
  provide go go-test
  fetch "$build/go-toolchain/bin/go" 'the test of the Go module' "${top}bindings/go-toolchain/fetch.sh" "$build"
  go=$build/go-toolchain/bin/go
  [ -x "$go" ] || go=go
  set -- "$out/go/proxy" "$out/roots" "${top:-.}" "$version" "$("$go" env GOROOT)"
  if compgen -G "$out/debian/*.deb" >/dev/null; then
    set -- "$@" "$out/debian"
  else
    say "dev: there are no Debian packages in $out/debian, so the Go module is not tried with gRPC"
  fi
  run "$recipes/test_go.sh" "$@"
}

# ---- conan -----------------------------------------------------------------------------------------

package_conan() {
  package_source
  provide core library
  export CONAN_HOME=$out/conan
  conan profile detect --force
  conan create "$out/source/.ci/packaging/conan" --test-folder=
}

conan() { run "$out/tools/bin/conan" "$@"; }

# A CMake project builds and runs programs with the package.
test_conan() {
  provide test
  conan test "$out/source/.ci/packaging/conan/test_package" "libdist/$version"
}
