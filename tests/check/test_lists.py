#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests lists.py on small sources: complete lists, and every kind of incomplete one.

usage: test_lists.py API_JSON
"""
import pathlib
import sys
import tempfile

import lists

ALL = "SUM, MEAN, MIN, MAX, PROD, USER"


def constants(names):
    return ", ".join(f"DIST_REDUCE_{name}" for name in names.split(", "))


FEW = constants("SUM, MEAN, MIN, MAX, PROD")
# Each source with parts of the expected error messages, in order.
CASES = [
    (f"// @every operator\nint a[] = {{{constants(ALL)}}};", []),
    (f"// @every operator but USER: it is no fold\nint a[] = {{{FEW}}};", []),
    (f"/* @every operator but USER,\n * PROD */\nint a[] = {{{constants('SUM, MEAN, MIN, MAX')}}};", []),
    (f"// @every operator\nint a[] = {{{FEW}}};", ["x.cpp:1: this list has no DIST_REDUCE_USER"]),
    (f"// @every operator\nint a[] = {{{FEW} /* DIST_REDUCE_USER */}};", ["has no DIST_REDUCE_USER"]),
    (f"// @every operator but USER\nint a[] = {{{constants(ALL)}}};", ["leaves USER out, and the list has it"]),
    (f"// @every operator but USER, SUMS\nint a[] = {{{FEW}}};", ["leaves SUMS out, which is no operator"]),
    (f"\nint a[] = {{{constants(ALL)}}};", ["x.cpp:2: this names 6 of 6 operators"]),
    (f"// @every operator\nint a[] = {{{constants(ALL)}}};\nint b[] = {{{constants(ALL)}}};", ["x.cpp:3: this names"]),
    ("// @every color\nint a[] = {1};", ["@every color: marks speak of"]),
    ("// @every operator", ["has no DIST_REDUCE_" + name for name in ALL.split(", ")]),
    ('// @every operator\nchar *a[] = {"sum", "mean", "min", "max", "prod", "user"};', []),
]


def main(declared):
    sets = lists.listed(lists.api.read(declared))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.cpp"
        for text, expected in CASES:
            path.write_text(text, encoding="utf-8")
            source = lists.Source(path, "x.cpp", sets)
            found = [*source.faults_of_marks(), *source.faults_without_mark()]
            if len(found) != len(expected) or not all(words in fault for words, fault in zip(expected, found)):
                wrong += 1
                print(f"{text}\nhas the faults {found}, expected {expected}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
