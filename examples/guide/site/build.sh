#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh BUILD PYTHON: builds the documentation site in BUILD/docs/html with the packages of requirements.txt.
# A warning, a reference to an unknown name and a broken internal link are errors.
set -eu
site=$(cd -- "$(dirname -- "$0")" && pwd)
root=$site/../../..
build=$1
python=$2
docs=$build/docs

"$root/tests/fetch_packages.sh" "$build/docs-venv" "$site/requirements.txt"
"$python" "$root/tests/check/reference.py" "$root" "$docs/doxygen"
"$python" "$site/collect.py" "$docs/pages"

# Go: a page of the site. Java: javadoc, which needs the classes that SWIG generates. Python: Sphinx imports the package.
go run "$site/go_reference.go" "$root/bindings/go" >"$docs/pages/reference/go.md"
rm -rf "$docs/java"
internal=$docs/java/generated/org/libdist/internal
mkdir -p "$internal"
swig -java -c++ -package org.libdist.internal "-I$root/include" -o "$docs/java/wrap.cxx" -outdir "$internal" "$root/bindings/dist.i"
javadoc -quiet -notimestamp -Xdoclint:none -encoding UTF-8 -d "$docs/java/html" \
  -sourcepath "$root/bindings/java/src/main/java:$docs/java/generated" org.libdist

rm -rf "$docs/html"
"$build/docs-venv/bin/sphinx-build" -W --keep-going -q -c "$site" -d "$docs/doctrees" "$docs/pages" "$docs/html"
cp -R "$docs/doxygen/html" "$docs/html/doxygen"
cp -R "$docs/java/html" "$docs/html/java"
"$python" "$site/links.py" "$docs/html"
echo "external links, which are not checked: $docs/pages/external-links.txt"
echo "$docs/html/index.html"
