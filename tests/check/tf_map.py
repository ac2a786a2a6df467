#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that TF_DISTRIBUTE.md has one row for each TensorFlow name and names only existing libdist functions.

usage: tf_map.py TF_DISTRIBUTE_MD TF_NAMES_TXT API_JSON
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "capi"))
import api  # noqa: E402  the one parser of the headers

THERE = re.compile(r"same$|different because \S+ \S+")
NOT_THERE = re.compile(r"not offered because \S+ \S+|not yet: \S+ \S+")
OURS = re.compile(r"\b(?:dist|DIST)_\w+")
CODE = re.compile(r"`([^`]+)`")


def rows_of(page: str):
    """Yields the cells of each table row with its line number, without table headings."""
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("| ") and not line.startswith("| TensorFlow "):
            yield number, [cell.strip() for cell in line.strip("|").split(" | ")]


def faults_of(page: str, wanted: list[str], declared: set[str]):
    found: dict[str, int] = {}
    for number, cells in rows_of(page):
        if len(cells) != 3:
            yield number, f"{len(cells)} cells; a row has TensorFlow's names, libdist's, and how alike they are"
            continue
        theirs, ours, verdict = cells
        for name in CODE.findall(theirs):
            if name in found:
                yield number, f"{name} stands in line {found[name]} too"
            found[name] = number
        if THERE.match(verdict):
            if not OURS.search(ours):
                yield number, f"'{verdict}', but no name of libdist's"
        elif not NOT_THERE.match(verdict):
            yield number, f"'{verdict}' is not 'same', 'different because ...', 'not offered because ...', 'not yet: ...'"
    for number, line in enumerate(page.splitlines(), 1):
        for name in OURS.findall(line):
            if name not in declared and not name.endswith("_"):
                yield number, f"{name} is not in the headers"
    for name in sorted(set(wanted) - found.keys()):
        yield 0, f"{name} has no row"
    for name in sorted(found.keys() - set(wanted)):
        yield found[name], f"{name} is not in the list of names"


def main(page: Path, names: Path, api_json: Path) -> int:
    wanted = [line for line in names.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    faults = list(faults_of(page.read_text(encoding="utf-8"), wanted, api.names(api.read(api_json))))
    for number, fault in faults:
        print(f"{page.name}:{number}: {fault}")
    return 1 if faults or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
