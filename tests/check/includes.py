#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the include direction: each part of the library may include only itself and the parts below it."""

import re
import sys
from pathlib import Path

BELOW = {  # part of core/ -> the parts directly below it
    "base": [],
    "kernel": ["base"],
    "trace": ["base"],
    "cluster": ["base"],
    "value": ["kernel"],
    "layout": ["value"],
    "net": ["cluster"],
    "net/rpc": ["net", "value"],
    "net/membership": ["net/rpc"],
    "comm": ["kernel", "trace", "net"],
    "collective": ["comm", "layout"],
    "async": ["collective"],
    "cross_replica": ["value"],
    "input": ["value"],
    "checkpoint": ["value"],
    "ps": ["net/rpc", "layout", "trace", "checkpoint"],
    "run": ["async", "cross_replica"],
    "serve": ["run"],
    "strategy": ["serve", "input", "checkpoint"],
}
# The public headers that core/ may include: the types of the C API, and the interface of link modules.
KNOWN = ("dist/types.h", "dist/experimental/links.h")
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".i"}
INCLUDE = re.compile(r'^\s*[#%]\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# Headers of an operating system. Only core/base/os may include them.
SYSTEM = re.compile(
    r"^(linux|sys|asm|mach|netinet|arpa)/|^(unistd|pthread|sched|signal|dlfcn|poll|fcntl)\.h$|^windows\.h$"
)


def part_of(folders: tuple[str, ...]) -> str:
    """Returns the part to which a folder below core/ belongs: the longest path that BELOW has, or the first folder."""
    below = "/".join(folders[:2])
    return below if below in BELOW else folders[0]


def reachable(part: str) -> set[str]:
    parts = {part}
    for lower in BELOW[part]:
        parts |= reachable(lower)
    return parts


def fault(path: Path, quote: str, name: str) -> str | None:
    """Returns why `path` must not include `name`, or None. `path` is relative to the root."""
    top = path.parts[0]
    target = name.split("/")
    if top == "core":
        part = part_of(path.parts[1:-1])
        if part not in BELOW:
            return f"core/{part} has no place in the include direction: add it to tests/check/includes.py"
        if target[0] == "capi" or (target[0] == "dist" and name not in KNOWN):
            return f"of what lies above it, the core knows {' and '.join(KNOWN)} alone"
        if target[0] == "core" and (other := part_of(tuple(target[1:-1]))) not in reachable(part):
            return f"core/{part} stands below core/{other}"
        if SYSTEM.match(name) and path.parts[:3] != ("core", "base", "os"):
            return "what an operating system offers is wrapped in core/base/os"
        if quote == '"' and target[0] not in ("core", "dist", "hwy"):
            return "a quoted include is written from the root: core/..., dist/types.h"
    elif (
        top == "include"
        or top in ("bindings", "examples")
        or path.parts[:2] in (("tests", "abi"), ("tests", "consumers"))
    ):
        if target[0] in ("core", "capi"):
            return f"{'/'.join(path.parts[:2])} sees include/ alone"
    return None


def main(root: Path) -> int:
    faults = 0
    for part in BELOW:
        if not (root / "core" / part).is_dir():
            faults += 1
            print(f"core/{part} is not there: take it out of tests/check/includes.py")
    files = [
        p
        for top in ("core", "capi", "include", "bindings", "examples", "tests")
        for p in sorted((root / top).rglob("*"))
    ]
    for path in files:
        if path.suffix not in SUFFIXES:
            continue
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            reason = fault(path.relative_to(root), match[1], match[2])
            if reason:
                faults += 1
                line = text.count("\n", 0, match.start(2)) + 1
                print(f"{path.relative_to(root)}:{line}: includes {match[2]}: {reason}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
