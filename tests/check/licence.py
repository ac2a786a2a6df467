#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A jar or wheel holds the licence, word for word, under a name that ends so.

usage: licence.py LICENSE ENTRY ARCHIVE
"""

import sys
import zipfile
from pathlib import Path


def main(licence: Path, entry: str, archive: Path) -> int:
    with zipfile.ZipFile(archive) as opened:
        found = [opened.read(name) for name in opened.namelist() if name.endswith(entry)]
    if found == [licence.read_bytes()]:
        return 0
    print(f"{archive}: {'another text under' if found else 'no'} {entry}")
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
