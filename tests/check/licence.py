#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a jar or wheel contains the license, unchanged, or that the sources of the wheel include it.

usage: licence.py LICENSE ENTRY ARCHIVE       the name of the license in the archive must end in ENTRY
       licence.py BINDINGS_PYTHON
"""

import re
import sys
import zipfile
from pathlib import Path


def wheel_sources(folder: Path) -> int:
    """Checks that pyproject.toml includes LICENSE in wheels and that backend.py provides it to meson-python."""
    pyproject = (folder / "pyproject.toml").read_text(encoding="utf-8")
    parts = re.search(r"^PARTS = \[(.*)\]$", (folder / "backend.py").read_text(encoding="utf-8"), re.MULTILINE)[1]
    if 'license-files = ["LICENSE"]' in pyproject and '"LICENSE"' in parts:
        return 0
    print(f"{folder}: a wheel would be without the licence")
    return 1


def archived(licence: Path, entry: str, archive: Path) -> int:
    with zipfile.ZipFile(archive) as opened:
        found = [opened.read(name) for name in opened.namelist() if name.endswith(entry)]
    if found == [licence.read_bytes()]:
        return 0
    print(f"{archive}: {'another text under' if found else 'no'} {entry}")
    return 1


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(wheel_sources(Path(sys.argv[1])))
    sys.exit(archived(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
