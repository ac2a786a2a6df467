#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that types which only experimental functions use are declared in an experimental header.

usage: stable_types.py API_JSON
"""
import json
import sys
from pathlib import Path

TYPES = ("structs", "callbacks", "handles", "aliases", "enums")


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
    """Returns the types that the stable functions use, directly or through other types."""
    declared = {one["name"]: one for kind in TYPES for one in api[kind] if kind != "handles"}
    names, left = set(), [one for one in api["functions"] if not one["experimental"]]
    while left:
        for name in set(types_in(left.pop())) - names:
            names.add(name)
            left.append(declared.get(name, {}))
    return names


def main(api: Path) -> int:
    found = json.loads(api.read_text(encoding="utf-8"))
    names = reached(found)
    wrong = [
        f"{one['file']}:{one['line']}: no stable function uses {one['name']}"
        for kind in TYPES
        for one in found[kind]
        if not one["experimental"] and one["name"] and one["name"] not in names
    ]
    print(*wrong, sep="\n")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
