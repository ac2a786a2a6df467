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
rm -rf "$docs/html"
"$build/docs-venv/bin/sphinx-build" -W --keep-going -q -c "$site" -d "$docs/doctrees" "$docs/pages" "$docs/html"
cp -R "$docs/doxygen/html" "$docs/html/doxygen"
"$python" "$site/links.py" "$docs/html"
echo "external links, which are not checked: $docs/pages/external-links.txt"
echo "$docs/html/index.html"
