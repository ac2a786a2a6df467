#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the comment of every function in the headers has the required fields, such as errors and ownership, and
that every type has a comment.

usage: docs.py API_JSON

types.h defines the default of each field. A comment must omit a field that has its default.
"""

import json
import re
import sys
from pathlib import Path

DEFAULTS = {"Context": "Any, concurrent.", "Blocks": "Never.", "Owns": "Nothing.", "Errors": "None.", "Since": "0.1"}
CONTEXT = re.compile(r"(?:Strategy|Replica|Logical device|Any)[,.:; ]|Any$|Like dist_")
TENSOR_FIELDS = ["Shape", "Order"]
# A description that refers to a similar function. It does not need fields of its own.
LIKE = re.compile(r"(?:As|Like) (dist_\w+)\(\)[,.]")


def gives_or_takes(function: dict) -> bool:
    outputs = any(one["name"].startswith("out_") and one["pointers"] > 1 for one in function["parameters"])
    return outputs or function["returns"]["pointers"] > 0 or function["name"].endswith("_destroy")


def faults_of(function: dict, names: dict[str, bool]):
    comment = function["comment"]
    if comment is None or "fields" not in comment:
        yield "has no comment"
        return
    fields = comment["fields"]
    for field, default in DEFAULTS.items():
        if fields.get(field) == default:
            yield f"repeats the default of {field}; omit the field"
    if not CONTEXT.match(fields.get("Context", "Any")):
        yield "has a Context that begins with none of the words that types.h defines"
    if not re.fullmatch(r"\d+\.\d+", fields.get("Since", "0.1")):
        yield "has no version number after Since"
    if like := LIKE.match(comment["text"]):
        if like[1] not in names:
            yield f"refers to {like[1]}(), which is not declared"
        elif names[like[1]] and not function["experimental"]:
            yield f"is stable but refers to {like[1]}(), which is experimental"
        return
    if function["returns"]["type"] == "dist_status" and "Errors" not in fields:
        yield "returns dist_status but has no Errors field"
    if gives_or_takes(function) and "Owns" not in fields:
        yield "returns, outputs or destroys an object but has no Owns field"
    if any(one["name"] == "timeout_ns" for one in function["parameters"]) and "Blocks" not in fields:
        yield "has a timeout but no Blocks field"
    if any(one["type"] in ("dist_tensor", "dist_reduce_op") for one in function["parameters"]):
        for field in TENSOR_FIELDS:
            if field not in fields:
                yield f"takes tensors or an operator but has no {field} field"


def main(api: Path) -> int:
    found = json.loads(api.read_text(encoding="utf-8"))
    functions = found["functions"]
    names = {function["name"]: function["experimental"] for function in functions}
    faults = 0
    for function in functions:
        for fault in faults_of(function, names):
            faults += 1
            print(f"{function['file']}:{function['line']}: {function['name']}() {fault}")
    for one in found["structs"] + found["callbacks"] + found["handles"] + found["enums"]:
        if (one["name"] or "").startswith("dist_") and not one["comment"]:
            faults += 1
            print(f"{one['file']}:{one['line']}: {one['name']} has no comment")
    return 1 if faults or not functions else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
