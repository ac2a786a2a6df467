#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Downloads the jars of jars.txt into a folder: `fetch_jars.sh FOLDER`. Maven downloads them from the
# repositories that the user has configured. A jar whose checksum differs from jars.txt is rejected.
set -eu
list=$(dirname -- "$0")/jars.txt
folder=$1
! cmp -s "$list" "$folder/complete" || exit 0
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

coming=$folder.coming
rm -rf "$folder" "$coming"
trap 'rm -rf "$coming"' EXIT
mkdir -p "$coming"
coming=$(cd "$coming" && pwd)
grep -v '^#' "$list" | while read -r sum jar; do
  artifact=${jar#*:}
  mvn -q -B "$plugin:copy" "-Dartifact=$jar" "-DoutputDirectory=$coming"
  echo "$sum  $coming/${artifact%:*}-${artifact#*:}.jar" | sha256sum --check --strict --quiet
done
cp "$list" "$coming/complete"
mv "$coming" "$folder"
