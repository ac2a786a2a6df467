#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a manual page from what a program prints for --help, so that there is only one text to maintain.

usage: man.py PROGRAM VERSION PURPOSE
"""

import subprocess
import sys
from pathlib import Path


def escaped(line: str) -> str:
    text = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def page(name: str, version: str, purpose: str, usage: str) -> str:
    synopsis, *lines = usage.rstrip("\n").split("\n")
    out = [f'.TH {name.upper()} 1 "" "libdist {version}" "libdist"']
    out += [".SH NAME", f"{escaped(name)} \\- {escaped(purpose)}"]
    out += [".SH SYNOPSIS", escaped(synopsis.removeprefix("Usage: "))]
    # As it is printed: lines of at most 80 columns.
    out += [".SH DESCRIPTION", ".in 0", ".nf", *map(escaped, lines), ".fi"]
    return "\n".join(out) + "\n"


def main() -> None:
    program, version, purpose = sys.argv[1:]
    usage = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    sys.stdout.write(page(Path(program).name, version, purpose, usage))


if __name__ == "__main__":
    main()
