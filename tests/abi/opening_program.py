#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the program out of dist.h's opening, so that what a reader copies first is compiled and run.

    opening_program.py DIST_H OUTPUT
"""
import pathlib
import re
import sys


def main(header, output):
    text = pathlib.Path(header).read_text(encoding="utf-8")
    section = re.search(r"^ \* ---- 1\. A program -+\n(.*?)^ \* ---- |^ \* ---- 1\. A program -+\n(.*?)\*/", text,
                        re.DOTALL | re.MULTILINE)
    if section is None:
        sys.exit(f"{header}: there is no section 1, A program")
    lines = (section[1] or section[2]).splitlines()
    indented = [line for line in lines if line == " *" or line.startswith(" *     ")]
    # Up to the end of main(): what follows are rules.
    end = max(i for i, line in enumerate(indented) if line == " *     }")
    program = "\n".join(line[7:] for line in indented[: end + 1])
    pathlib.Path(output).write_text("/* From dist.h. */\n" + program + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
