#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of dist.h is documented, with the same fields, so that nobody has to guess who owns what."""

import re
import sys
from pathlib import Path

FIELDS = ["Context", "Blocks", "Owns", "Errors", "Since"]
TENSOR_FIELDS = ["Shape", "Order"]
# A declaration with the comment right above it, if there is one.
FUNCTION = re.compile(
    r"(?:/\*\*((?:(?!\*/).)*)\*/\n)?DIST_API\s+((?:[^;]|\n)*?)\b(dist_\w+)\(([^;]*)\);", re.DOTALL
)
# The short form, for a function that is like another one but for what it works on.
LIKE = re.compile(r"\s*As (dist_\w+)\(\), .*Context \w+\..*Blocks \w+\..*Since \d+\.\d+\.\s*$", re.DOTALL)


def missing(comment: str | None, parameters: str, names: set[str]) -> list[str]:
    if comment is None:
        return ["any comment"]
    like = LIKE.match(comment)
    if like:
        return [] if like[1] in names else [f"{like[1]}(), which it refers to"]
    wanted = FIELDS + (TENSOR_FIELDS if re.search(r"\bdist_(tensor|reduce_op)\b", parameters) else [])
    found = set(re.findall(r"^ \* (\w+) {1,}\S", comment, re.MULTILINE))
    lacking = [field for field in wanted if field not in found]
    if "Since" in found and not re.search(r"^ \* Since +\d+\.\d+$", comment, re.MULTILINE):
        lacking.append("a version after Since")
    return lacking


def main(header: Path) -> int:
    text = header.read_text(encoding="utf-8")
    functions = list(FUNCTION.finditer(text))
    names = {f[3] for f in functions}
    if len(functions) != len(re.findall(r"^DIST_API\b", text, re.MULTILINE)) or not functions:
        print(f"{header.name}: {len(functions)} functions understood, DIST_API stands there more often")
        return 1
    faults = 0
    for function in functions:
        lacking = missing(function[1], function[4], names)
        if lacking:
            faults += 1
            line = text.count("\n", 0, function.start(3)) + 1
            print(f"{header.name}:{line}: {function[3]}() lacks {', '.join(lacking)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
