#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch_packages.sh VENV [LIST]: creates a virtual environment with the packages of LIST (requirements.txt).
set -eu
list=${2:-$(dirname -- "$0")/requirements.txt}
venv=$1
! cmp -s "$list" "$venv/complete" || exit 0
python=/usr/bin/python3 # Debian's, which finds Debian's Python packages
[ -x "$python" ] || python=python3
"$python" -m venv --clear --system-site-packages "$venv"
"$venv/bin/pip" install -q --no-deps --require-hashes -r "$list"
cp "$list" "$venv/complete"
