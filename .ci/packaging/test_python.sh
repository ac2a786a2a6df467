#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheels into a new system that has only Python and pip, and runs programs there.
#
# usage: test_python.sh WHEELS ROOTS TREE, as root. WHEELS/others has NumPy, grpcio and protobuf.
set -eu
wheels=$1 roots=$2 tree=$3
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
. "$(dirname -- "$0")/roots.sh"

new_root "$roots" "$release-python" "$release" python3-pip
root=$roots/$release-python
mkdir "$root/wheels" "$root/programs"
cp "$wheels"/*.whl "$wheels"/others/*.whl "$root/wheels/"
cp "$tree"/bindings/python/examples/{all_reduce,worker}.py "$tree/tests/guests/packages_program.py" "$root/programs/"
is_bare "$root"
pip() { in_root "$root" pip install -q --root-user-action=ignore --break-system-packages --no-index --find-links /wheels "$@"; }

echo "== libdist alone"
pip libdist
in_root "$root" python3 -m libdist | tee "$root/told"
grep -qx 'grpc  *no' "$root/told"
in_root "$root" python3 /programs/all_reduce.py

echo "== libdist-grpc"
pip libdist-grpc
in_root "$root" python3 -m libdist | tee "$root/told"
grep -qx 'grpc  *yes' "$root/told"
loaded=$(in_root "$root" python3 -c '
import libdist, pathlib
assert libdist.has_feature("grpc"), "no gRPC"
print(*{line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if ".so" in line}, sep="\n")')
for library in tbb hwloc isal grpc absl_base nettle ssl; do
  echo "$loaded" | grep -q "/libdist[_a-z]*\.libs/lib$library-" || { echo "lib$library is not the wheel's" >&2; exit 1; }
done
in_root "$root" env PYTHONPATH=/programs python3 /programs/packages_program.py replicas,workers

echo "== beside grpcio"
pip grpcio protobuf
for steps in grpc,protobuf,replicas,workers,grpc replicas,workers,grpc,protobuf,workers; do
  echo "$steps"
  in_root "$root" python3 /programs/packages_program.py "$steps"
done
echo "== the wheels work"
