#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the binary interface of the stable headers equals the committed one, except for additions.

    abi.py API_JSON STABLE_ABI                  compares; exits with 77 without libabigail, gcc or x86-64
    abi.py --write API_JSON STABLE_ABI          rewrites stable.abi after an addition

The script compiles the declarations of dist.h and tf.h with fixed flags into a library of empty functions and compares
the types that libabigail reads from it, so the comparison does not depend on the build. Appending a field to a struct is
allowed. A function that is missing in stable.abi is an error. tests/check/symbols.py checks that libdist.so exports the
functions.
"""
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

COMPILE = ["gcc", "-std=c11", "-g", "-gdwarf-4", "-O0", "-shared", "-fPIC", "-w"]
# The lines by which abidiff reports an appended field, and changes of the types around it. Every other line
# is a difference.
APPENDED = re.compile(
    r"\s*(Functions changes summary: 0 Removed, .*|Variables changes summary: 0 Removed, 0 Changed, .*"
    r"|\d+ functions? with some indirect sub-type change:|\[C\] 'function .*|parameter \d+ of type '.*' has sub-type changes:"
    r"|in (pointed to|unqualified underlying) type '.*|underlying type 'struct \w+' changed:"
    r"|type size changed from \d+ to \d+ \(in bits\)|\d+ data member insertions?:|'\w.* \w+', at offset \d+ \(in bits\)( at .*)?|)"
)


def library_of(declared, folder):
    """Builds a library with the stable functions, which do nothing."""
    lines = ["#include <dist/dist.h>", "#include <dist/tf.h>"]
    for function in declared["functions"]:
        if not function["experimental"]:
            parameters = ", ".join(f"{one['text']} {one['name']}" for one in function["parameters"]) or "void"
            lines.append(f"{function['returns']['text']} {function['name']}({parameters}) {{ __builtin_trap(); }}")
    source, library = pathlib.Path(folder, "stable.c"), pathlib.Path(folder, "stable.so")
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    include = pathlib.Path(__file__).resolve().parents[3] / "include"
    subprocess.run([*COMPILE, "-I", include, "-o", library, source.name], check=True, cwd=folder)
    return library


def main(arguments):
    write = arguments[:1] == ["--write"]
    api, committed = map(pathlib.Path, arguments[write:])
    if platform.machine() != "x86_64" or not all(map(shutil.which, ("gcc", "abidw", "abidiff"))):
        print("x86-64, gcc and libabigail's abidw and abidiff are needed (Debian: abigail-tools)")
        return 77
    declared = json.loads(api.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        library = library_of(declared, folder)
        if write:
            options = ["--no-corpus-path", "--no-comp-dir-path", "--short-locs", "--no-show-locs"]
            subprocess.run(["abidw", *options, "--out-file", committed, library], check=True)
            return 0
        found = subprocess.run(["abidiff", committed, library], stdout=subprocess.PIPE, text=True)
        differences = [line for line in found.stdout.splitlines() if not APPENDED.fullmatch(line)]
        # 4 means that something differs. Other bits are more serious.
        if found.returncode == 0 or (found.returncode == 4 and not differences):
            return 0
        print(found.stdout, *differences[:1], sep="\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
