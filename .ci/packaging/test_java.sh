#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Uses the jar in a Maven project and in a fat jar, and runs the programs in a new system that has only a JRE, also with a
# read-only root.
#
# usage: test_java.sh JAVA ROOTS TREE VERSION, as root. JAVA has the jar and the Maven repository.
set -eu
java=$1 roots=$2 tree=$3 version=$4
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
recipes=$(cd "$(dirname -- "$0")" && pwd)
. "$recipes/roots.sh"

# Each replica must print the same sum: `sums N COMMAND...` with N replicas.
sums() {
  local replicas=$1 output
  shift
  output=$("$@")
  echo "$output"
  [ "$(grep -c ': \(the sum is \)\?10$' <<<"$output")" -eq "$replicas" ] || { echo "not $replicas replicas with 10" >&2; exit 1; }
}

echo "== a Maven project"
project=$roots/$release-maven
rm -rf "$project"
mkdir -p "$project/src/main/java" "$project/m2"
cp "$tree/examples/guide/Hello.java" "$tree/bindings/java/examples/Worker.java" "$project/src/main/java/"
# Maven would take a jar of this version that it has seen before, so it gets another local repository.
[ ! -d ~/.m2/repository ] || cp -a ~/.m2/repository/. "$project/m2"
rm -rf "$project/m2/org/libdist"
cp "$tree/tests/consumers/pom.xml" "$project/"
maven() {
  mvn -q -B -f "$project" "-Dmaven.repo.local=$project/m2" "-Dlibdist.repository=$java/repository" "-Dlibdist.version=$version" "$@"
}
maven compile
sums 4 maven exec:exec -Dexec.executable=java '-Dexec.args=-cp %classpath Hello'
jar=$project/m2/org/libdist/libdist-java/$version/libdist-java-$version.jar
cmp "$jar" "$java/libdist-java-$version.jar"

echo "== a new system with a JRE"
new_root "$roots" "$release-java" "$release" openjdk-17-jre-headless
root=$roots/$release-java
mkdir "$root/programs" "$root/natives"
cp "$jar" "$root/programs/libdist-java.jar"
cp -r "$project/target/classes" "$root/programs/classes"
mkdir "$project/fat"
(cd "$project/fat" && jar --extract --file "$jar" && rm -r META-INF/MANIFEST.MF module-info.class)
jar --create --file "$root/programs/fat.jar" --main-class Hello -C "$project/fat" . -C "$project/target/classes" .
unzip -q -j "$jar" 'native/linux-*-glibc/*' -d "$root/natives"
is_bare "$root"
found=$(find "$root/usr" \( -name 'libtbb.*' -o -name 'libhwloc.*' -o -name 'libisal.*' -o -name 'libgrpc*' -o -name javac \))
[ -z "$found" ] || { echo "the root has more than a JRE: $found" >&2; exit 1; }

path=/programs/libdist-java.jar:/programs/classes
# Two workers with two replicas each, over gRPC: `workers COMMAND...` runs COMMAND for each of them.
workers() {
  local task config first second ports
  ports=$(python3 -c 'import socket
with socket.socket() as one, socket.socket() as two:
    one.bind(("127.0.0.1", 0)); two.bind(("127.0.0.1", 0))
    print(one.getsockname()[1], two.getsockname()[1])')
  config="{\"cluster\": {\"worker\": [\"127.0.0.1:${ports% *}\", \"127.0.0.1:${ports#* }\"]}"
  for task in 0 1; do
    "$@" env DIST_REPLICAS=2 DIST_TRANSPORT=grpc \
      "TF_CONFIG=$config, \"task\": {\"type\": \"worker\", \"index\": $task}}" \
      java -cp "$path" "${options[@]}" Worker >"$project/worker$task" &
    if [ $task -eq 0 ]; then first=$!; else second=$!; fi
  done
  wait "$first"
  wait "$second"
  cat "$project/worker0" "$project/worker1"
}
options=()

sums 4 in_root "$root" java -cp "$path" Hello
sums 4 in_root "$root" java -jar /programs/fat.jar
sums 4 workers in_root "$root"
path=/programs/fat.jar sums 4 workers in_root "$root"
left=$(find "$root/tmp" -name 'libdist*')
[ -z "$left" ] || { echo "temporary files stay: $left" >&2; exit 1; }

# Runs a command in the root, which is read-only, with what MOUNT (shell commands) mounts.
read_only() { # MOUNT COMMAND...
  unshare --mount --fork bash -eu -c '
    . "$1/roots.sh"
    root=$2 mounts=$3
    shift 3
    mount --bind "$root" "$root"
    mount -o remount,bind,ro "$root"
    eval "$mounts"
    in_root "$root" "$@"' - "$recipes" "$root" "$@"
}

# The program must fail, and its message contain each WORD.
fails() { # WORD... -- COMMAND...
  local words=() output
  while [ "$1" != -- ]; do
    words+=("$1")
    shift
  done
  shift
  ! output=$("$@" 2>&1) || { echo "this did not fail: $*" >&2; exit 1; }
  echo "$output"
  for word in "${words[@]}"; do
    grep -qF -e "$word" <<<"$output" || { echo "the message does not have: $word" >&2; exit 1; }
  done
}

echo "== a read-only root"
advice='Set -Djava.io.tmpdir=DIR to a folder in which files can be written and executed'
fails 'from the folder /tmp (java.io.tmpdir)' 'Read-only file system' "$advice" -- read_only : java -cp "$path" Hello
fails 'from the folder /tmp (java.io.tmpdir)' 'mounted with noexec' "$advice" -- \
  read_only 'mount -t tmpfs -o noexec tmpfs "$root/tmp"' java -cp "$path" Hello
sums 4 read_only 'mount -t tmpfs tmpfs "$root/mnt"' java -Djava.io.tmpdir=/mnt -cp "$path" Hello
sums 4 read_only : java -Ddist.native=/natives -cp "$path" Hello
options=(-Ddist.native=/natives)
sums 4 workers read_only :
echo "== the jar works"
