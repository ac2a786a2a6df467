#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks rules for all source files: the license on the first line, and nothing that is unfinished."""

import re
import sys
from pathlib import Path

FOLDERS = ["core", "capi", "include", "bindings", "examples", "tests"]
SOURCES = {".c", ".h", ".cpp", ".hpp", ".i", ".go", ".java", ".py"}
GENERATED = re.compile(r"^(bindings/(go/internal/cdist|java/target)/)")
# The headers say worker for a process, replica for a copy of the function, and group for members of a collective.
# Examples must compile with any C library for Linux.
GLIBC_ONLY = re.compile(r"_GNU_SOURCE|<(argp|argz|envz|error|err|execinfo|fts|obstack|printf)\.h>")
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|/(?:home|root|work)/")


def faults_of(name: str, text: str) -> list[str]:
    lines = text.splitlines()
    head = lines[1] if lines and lines[0].startswith("#!") and len(lines) > 1 else lines[0] if lines else ""
    faults = []
    if "SPDX-License-Identifier: Apache-2.0" not in head:
        faults.append("1: begins without SPDX-License-Identifier: Apache-2.0")
    for number, line in enumerate(lines, 1):
        if LEFTOVERS.search(line) and name != "tests/check/files.py":
            faults.append(f"{number}: unfinished, or of one machine only: {line.strip()}")
        if name.startswith("examples/") and GLIBC_ONLY.search(line):
            faults.append(f"{number}: not every C library has it: {line.strip()}")
    return faults


def main(root: Path) -> int:
    faults = []
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in SOURCES and path.is_file() and not GENERATED.match(name):
            faults += [f"{name}:{fault}" for fault in faults_of(name, path.read_text(encoding="utf-8"))]
    for folder in sorted((root / "core").iterdir()):
        if folder.is_dir() and any(folder.iterdir()) and not (folder / "README.md").is_file():
            faults.append(
                f"core/{folder.name}: no README.md that says its purpose, invariant and entry point"
            )
    for line in faults:
        print(line)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
