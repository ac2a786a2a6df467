#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of test_layout.c: the numbers in the headers, as a compiler reads them, next to those in
layout.txt.

    layout.py OUTPUT API_JSON LAYOUT_TXT
    layout.py --write COMPILER API_JSON LAYOUT_TXT      rewrites layout.txt after an addition

layout.txt has one line for every constant, and for the size and the offsets of every public struct on 64-bit systems. A
difference between the declarations in the headers and the file is an error.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def numbers(declared):
    """Returns the constants and the numbers of structs, each as name in layout.txt -> expression in C."""
    constants = {one["name"]: one["name"] for enum in declared["enums"] for one in enum["constants"]}
    for macro in declared["macros"]:
        if macro["parameters"] is None and re.fullmatch(r"-?\d+", macro["text"]):
            constants[macro["name"]] = macro["name"]
    structs = {}
    for struct in declared["structs"]:
        name = struct["name"]
        structs[f"sizeof {name}"] = f"sizeof({name})"
        structs |= {f"{name}.{one['name']}": f"offsetof({name}, {one['name']})" for one in struct["fields"]}
    return constants, structs


def initializers(declared):
    """Returns the structs that both a macro and a function initialize, with the macros."""
    functions = {one["name"] for one in declared["functions"]}
    macros = {one["name"] for one in declared["macros"]}
    for struct in declared["structs"]:
        name, macro = struct["name"], struct["name"].upper() + "_INIT"
        if macro in macros and f"{name}_init" in functions:
            yield name, macro


def tables(declared, pinned):
    constants, structs = numbers(declared)
    named = constants | structs
    faults = [f"{name} is not in layout.txt: layout.py --write adds it" for name in named if name not in pinned]
    faults += [f"{name} of layout.txt is gone from the headers" for name in pinned if name not in named]
    if faults:
        sys.exit("\n".join(faults))
    yield f"/* Written by layout.py. */\n{includes(declared)}"
    for table, listed in (("constants", constants), ("layout", structs)):
        yield f"static const number {table}[] = {{"
        yield from (f'    {{"{name}", (long long){text}, {pinned[name]}}},' for name, text in listed.items())
        yield "};"
    yield "static void compare_initializers(void) {"
    yield from (f"  CHECK_INIT({name}, {macro});" for name, macro in initializers(declared))
    yield "}\n"


def includes(declared):
    """Returns directives that include all headers with a declaration."""
    files = {one["file"] for kind in declared.values() for one in kind}
    return "".join(f"#include <dist/{file}>\n" for file in sorted(files))


def compiled(compiler, declared, named):
    """Returns the numbers that a compiler for this machine computes."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "all.c")
        lines = [f'  printf("{name} %lld\\n", (long long){text});' for name, text in named.items()]
        head = f"{includes(declared)}#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n"
        program.write_text(head + "\n".join(lines) + "\n}\n", encoding="utf-8")
        include = pathlib.Path(__file__).resolve().parents[3] / "include"
        run = str(pathlib.Path(folder, "all"))
        subprocess.run([*compiler.split(), "-I", str(include), str(program), "-o", run], check=True)
        return subprocess.run([run], check=True, capture_output=True, text=True).stdout


def main(first, *rest):
    api, listed = map(pathlib.Path, rest[-2:])
    declared = json.loads(api.read_text(encoding="utf-8"))
    if first == "--write":
        constants, structs = numbers(declared)
        listed.write_text(compiled(rest[0], declared, constants | structs), encoding="utf-8")
        return
    pinned = dict(line.rsplit(" ", 1) for line in listed.read_text(encoding="utf-8").splitlines())
    pathlib.Path(first).write_text("\n".join(tables(declared, pinned)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
