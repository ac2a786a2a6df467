#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extracts the program in dist.h's opening comment, so that the code that readers copy first is compiled and run.

    opening_program.py DIST_H OUTPUT
"""
import pathlib
import re
import sys


def program_of(header):
    text = pathlib.Path(header).read_text(encoding="utf-8")
    block = re.search(r"^ \* A complete program:\n \*\n((?: \*     .*\n| \*\n)+)", text, re.MULTILINE)
    if block is None:
        sys.exit(f"{header}: there is no program at its head")
    return "".join(line[7:] + "\n" for line in block[1].rstrip(" *\n").splitlines())


if __name__ == "__main__":
    begin, end = "/* From dist.h. NOLINTBEGIN(misc-unused-parameters) */\n", "/* NOLINTEND(misc-unused-parameters) */\n"
    pathlib.Path(sys.argv[2]).write_text(begin + program_of(sys.argv[1]) + end, encoding="utf-8")
