#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tables of the guide list every environment variable that the sources read and every status, and that
its pages name only functions that exist.

usage: tables.py ROOT API_JSON
"""

import json
import re
import sys
from pathlib import Path

READERS = re.compile(r'getenv|environment_text|given_or\(|text_of\("|check_variable\("')
LITERAL = re.compile(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"')
# Literals in these files that are not names of variables.
OTHERS = {"MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_SINGLE"}


def listed(page):
    """Returns the names in the first column of the tables on a page."""
    rows = re.findall(r"^\| (`[^|]*) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([A-Z0-9_]+)`", row)]


def variables(root):
    found = set()
    for folder in ("core", "capi"):
        for path in (root / folder).rglob("*.[ch]pp"):
            text = path.read_text(encoding="utf-8")
            if READERS.search(text):
                found |= set(LITERAL.findall(re.sub(r'"[A-Z]+", RLIMIT_|limit\("[A-Z]+"\)', "", text)))
    return found - OTHERS


def compared(page, wanted):
    there = set(listed(page))
    for name in sorted(wanted - there):
        yield f"{page.name} does not list {name}"
    for name in sorted(there - wanted):
        yield f"{page.name} lists {name}, which does not exist"


def unknown(guide, functions):
    for page in sorted(guide.glob("*.md")):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r"\b(dist_\w+)\(", line):
                if name not in functions:
                    yield f"{page.name}:{number}: there is no {name}()"


def main(root, api):
    found = json.loads(api.read_text(encoding="utf-8"))
    enums = found["enums"]
    statuses = next(enum["constants"] for enum in enums if enum["constants"][0]["name"] == "DIST_OK")
    guide = root / "examples" / "guide"
    faults = [
        *compared(guide / "environment.md", variables(root)),
        *compared(guide / "errors.md", {one["name"] for one in statuses}),
        *unknown(guide, {one["name"] for one in found["functions"]}),
    ]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
