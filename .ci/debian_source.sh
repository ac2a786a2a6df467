#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian_source.sh PACKAGE FOLDER: unpacks Debian's source of the installed PACKAGE into FOLDER/source. apt verifies it. The
# lists and settings of the system's apt do not change.
set -eu
package=$1
mkdir -p "$2/lists/partial"
folder=$(cd "$2" && pwd)
command -v apt-get >/dev/null 2>&1 || { echo "debian_source.sh: fetching Debian's source of $package needs apt-get" >&2 && exit 1; }
set -x
origin=$(dpkg-query -W -f '${source:Package}=${source:Version}' "$package")
mirror=$(apt-cache policy "$package" | awk '$2 ~ /^https?:/ { sub("/", " ", $3); print $2, $3; exit }')
printf 'deb-src %s\n' "$mirror" >"$folder/sources.list"
apt=(apt-get -q -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$folder/lists")
cd "$folder"
"${apt[@]}" update
rm -rf source ./*.dsc
"${apt[@]}" source --download-only "$origin"
dpkg-source --no-check -x ./*.dsc source
