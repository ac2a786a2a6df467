#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the last constant of each enum in the headers, such as LAST_DTYPE, so that tests can iterate over enums.

    enums.py OUTPUT API_JSON
"""
import json
import pathlib
import sys

# Enums whose constants have only the prefix DIST_. "": no constant is written for the limits.
NAMES = {"DIST_OK": "STATUS", "DIST_F16": "DTYPE", "DIST_MAX_NDIM": ""}


def name_of(names):
    """Returns the common prefix without DIST_: "COLLECTIVE" for DIST_COLLECTIVE_NONE and so on; "" if there is none."""
    if names[0] in NAMES:
        return NAMES[names[0]]
    common = []
    for words in zip(*(name.split("_")[1:] for name in names)):
        if len(set(words)) > 1:
            break
        common.append(words[0])
    return "_".join(common)


def main(output, declared):
    lines = ["/* Written by tests/enums.py from the headers. */", "#ifndef TESTS_ENUMS_H", "#define TESTS_ENUMS_H"]
    for enum in json.loads(declared.read_text(encoding="utf-8"))["enums"]:
        name = name_of([one["name"] for one in enum["constants"]])
        last = max(enum["constants"], key=lambda one: one["value"])
        if name:
            lines.append(f"#define LAST_{name} {last['name']}")
    output.write_text("\n".join(lines + ["#endif\n"]), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
