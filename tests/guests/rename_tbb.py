#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a file and changes libtbb.so.12 to libtbb.so.99 in its dynamic section, which makes it another library.

usage: rename_tbb.py INPUT OUTPUT
"""

import sys
from pathlib import Path

OLD, NEW = b"\0libtbb.so.12\0", b"\0libtbb.so.99\0"


def main(source: str, target: str) -> int:
    data = Path(source).read_bytes()
    if OLD not in data:
        print(f"{source} does not name libtbb.so.12")
        return 1
    Path(target).write_bytes(data.replace(OLD, NEW))
    Path(target).chmod(0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
