#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each header by itself.

usage: headers.py INCLUDE LANGUAGE HEADER... -- COMPILER ARGUMENT...
"""

import subprocess
import sys
from pathlib import Path


def main(include: str, language: str, headers: list[str], compiler: list[str]) -> int:
    failed = 0
    for header in headers:
        command = [*compiler, "-I", include, "-include", str(Path("dist", header)), "-x", language]
        if subprocess.run([*command, "-fsyntax-only", "/dev/null"], check=False).returncode != 0:
            print(f"{header} does not compile: {' '.join(command)}", flush=True)
            failed += 1
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    split = sys.argv.index("--")
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:split], sys.argv[split + 1 :]))
