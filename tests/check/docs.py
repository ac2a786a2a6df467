#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of the headers is documented, with the same fields, so that nobody has to guess who owns what.

usage: docs.py API_JSON
"""

import json
import re
import sys
from pathlib import Path

FIELDS = ["Context", "Blocks", "Owns", "Errors", "Since"]
TENSOR_FIELDS = ["Shape", "Order"]
# The short form, for a function that is like another one but for what it works on.
LIKE = re.compile(r"As (dist_\w+)\(\), .*Context \w+\..*Blocks \w+\..*Since \d+\.\d+\.$", re.DOTALL)


def missing(function: dict, names: set[str]) -> list[str]:
    comment = function["comment"]
    if comment is None or "fields" not in comment:
        return ["any comment"]
    if like := LIKE.match(comment["text"]):
        return [] if like[1] in names else [f"{like[1]}(), which it refers to"]
    has_tensor = any(one["type"] in ("dist_tensor", "dist_reduce_op") for one in function["parameters"])
    fields = comment["fields"]
    lacking = [field for field in FIELDS + TENSOR_FIELDS * has_tensor if field not in fields]
    if not re.fullmatch(r"\d+\.\d+", fields.get("Since", "0.0")):
        lacking.append("a version after Since")
    return lacking


def main(api: Path) -> int:
    functions = json.loads(api.read_text(encoding="utf-8"))["functions"]
    names = {function["name"] for function in functions}
    faults = 0
    for function in functions:
        if lacking := missing(function, names):
            faults += 1
            print(f"{function['file']}:{function['line']}: {function['name']}() lacks {', '.join(lacking)}")
    return 1 if faults or not functions else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
