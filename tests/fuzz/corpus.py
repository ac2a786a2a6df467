#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts a corpus between the text of corpus/TARGET and the folder of files that libFuzzer needs.

    corpus.py unpack TEXT FOLDER    writes each input as a file
    corpus.py pack FOLDER TEXT      writes the files of a folder as a text

A line of the text is an input in hexadecimal, and a name if a person gave the file one. libFuzzer names files by the
SHA-1 of their contents, which does not count as a name.
"""

import hashlib
import re
import sys
from pathlib import Path


def unpack(text, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for line in text.read_text("ascii").splitlines():
        digits, _, name = line.partition(" ")
        data = bytes.fromhex(digits.replace("-", ""))
        (folder / (name or hashlib.sha1(data).hexdigest())).write_bytes(data)


def pack(folder, text):
    lines = []
    for path in folder.iterdir():
        name = "" if re.fullmatch(r"[0-9a-f]{40}", path.name) else f" {path.name}"
        lines.append((path.read_bytes().hex() or "-") + name + "\n")  # "-": the empty input
    text.write_text("".join(sorted(lines)), "ascii")


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("pack", "unpack"):
        print(__doc__, file=sys.stderr)
        return 2
    (pack if arguments[0] == "pack" else unpack)(Path(arguments[1]), Path(arguments[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
