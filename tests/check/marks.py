#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that names of the C API in the messages of core and capi are in backquotes: marks.py ROOT API.json

Bindings replace such names by their own (core/base/status.hpp). A name without backquotes would stay C's, and a
backquoted function that the headers do not have would have no name in any language.
"""

import json
import re
import sys
from pathlib import Path

LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"(?:\s|//.*)*)+')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
NAME = re.compile(r"\b(?:dist_[a-z]\w*|DIST_[A-Z]\w*|NULL|[a-z]\w*->\w+|[a-z]+(?:_[a-z]+)*_ns)\b|%s\(\)")
COMMENT = re.compile(r"(?m)^\s*//.*$|(?<=[;{},)]) +//.*$|^#.*$")
# Variables of the environment have one name in all languages.
ENVIRONMENT = re.compile(
    r"DIST_(?:TRANSPORT|REPLICAS|RENDEZVOUS|RANK|SIZE|JOB_\w+|PLAINTEXT|TLS_\w+|BIND_ADDRESS|LEASE_SECONDS|MODULE_FOLDER"
    r"|RESTART)\b"
)
# Reports and metrics, which name what a program of C would call, and programs of their own.
OTHERS = re.compile(r"explain|metrics\.cpp|^capi/tools/|^core/trace/|base/os/library\.cpp")


def faults_of(name: str, text: str, functions: set[str]):
    text = COMMENT.sub("", text)
    for found in LITERALS.finditer(text):
        message = "".join(part[1] for part in LITERAL.finditer(found[0]))
        for marked in re.findall(r"`(dist_\w+)\(\)`", message):
            if marked not in functions:
                yield f"{name}: {marked}() is not in the headers: {message}"
        rest = ENVIRONMENT.sub("", re.sub(r"`[^`]*`", "", message))
        if " " in rest.strip() and (left := NAME.search(rest)):
            yield f"{name}: {left[0]} is not in backquotes: {message}"


def main(root: Path, api: Path) -> int:
    functions = {one["name"] for one in json.loads(api.read_text("utf-8"))["functions"]}
    faults, files = [], 0
    for path in sorted([*root.glob("core/**/*.?pp"), *root.glob("capi/**/*.?pp")]):
        name = path.relative_to(root).as_posix()
        if not OTHERS.search(name):
            files += 1
            faults += faults_of(name, path.read_text("utf-8"), functions)
    assert files > 300, "the sources are not there"
    assert list(faults_of("", 'f("dist_run(): %d");', functions)) and list(faults_of("", '"`dist_nothing()`"', functions))
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
