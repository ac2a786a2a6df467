#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that baseline.txt lists exactly the functions that the headers declare without DIST_EXPERIMENTAL.

usage: baseline.py API_JSON BASELINE_TXT

The headers determine the baseline. The list makes changes to it visible in reviews. Types that only experimental
functions use must be experimental, too.
"""
import json
import sys
from pathlib import Path

TYPES = ("structs", "callbacks", "handles", "aliases")


def types_in(declared: dict):
    """Yields the names of the types in a declaration."""
    if "returns" in declared:
        yield declared["returns"]["type"]
    for one in declared.get("parameters", []):
        yield one["type"]
    for one in declared.get("fields", []):
        yield one["type"]
        yield from types_in(one.get("function", {}))


def reached(api: dict) -> set[str]:
    """Returns the types that the baseline functions use, directly or through other types."""
    declared = {one["name"]: one for kind in TYPES for one in api[kind] if kind != "handles"}
    names, left = set(), [one for one in api["functions"] if not one["experimental"]]
    while left:
        for name in set(types_in(left.pop())) - names:
            names.add(name)
            left.append(declared.get(name, {}))
    return names


def faults_of(api: dict, listed: list[str]):
    declared = {one["name"]: one["experimental"] for one in api["functions"]}
    for name in listed:
        if declared.get(name, True):
            yield f"{name} is listed, and " + ("is experimental" if name in declared else "is not declared")
    for name, experimental in declared.items():
        if not experimental and name not in listed:
            yield f"{name} is not listed, and is declared without DIST_EXPERIMENTAL"
    if len(listed) != len(set(listed)):
        yield "a name stands twice"
    names = reached(api)
    for one in (one for kind in TYPES for one in api[kind]):
        if not one["experimental"] and one["name"] not in names:
            yield f"{one['file']}:{one['line']}: {one['name']} is of no function of the baseline"


def main(api: Path, listed: Path) -> int:
    faults = list(faults_of(json.loads(api.read_text(encoding="utf-8")), listed.read_text(encoding="utf-8").split()))
    for fault in faults:
        print(f"{listed.name}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
