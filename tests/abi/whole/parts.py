#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each header has a baseline and an experimental part, and that a program sees the parts that it requests.

    parts.py INCLUDE API_JSON --c COMPILER... --cxx COMPILER...
    parts.py INCLUDE API_JSON --faces --cxx COMPILER...      instead, each header below dist.hpp

Programs include a header without DIST_EXPERIMENTAL, with it, or with it only the first or the second time. They use the
declarations of the visible parts (a few names for dist.hpp and its headers), and declare the invisible names as
something else. After dist.h, experimental names are macros (experimental_hints.h), and the compiler must report each
use with a hint.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import tempfile

HINT = "experimental: put #define DIST_EXPERIMENTAL before #include <dist/dist.h>"
CAN_HINT = "#if !__has_attribute(unavailable)\n#error no\n#endif\n"
WARNINGS = ["-Wall", "-Wextra", "-Wundef", "-pedantic", "-Werror", "-Wno-unused-value"]
KINDS = ("functions", "structs", "callbacks", "aliases", "handles")


class Headers:
    def __init__(self, found):
        self.all = [(kind, one) for kind in KINDS for one in found[kind]]
        self.constants = [(enum, one["name"]) for enum in found["enums"] for one in enum["constants"]]
        self.names = sorted({one["file"] for _, one in self.all} | {enum["file"] for enum in found["enums"]})

    def used(self, header, experimental):
        """Declarations that compile where a program sees a part of a header; of dist.h: of all of them."""
        lines = []
        for kind, one in self.all:
            if header in (one["file"], "dist.h") and one["experimental"] == experimental:
                name = one["name"]
                # Of a handle there are pointers alone.
                what = f"(void)&{name};" if kind == "functions" else f"{{ {name} *seen = 0; (void)seen; }}"
                lines.append(f"  {what.replace('{ DLManagedTensor', '{ struct DLManagedTensor')}")
        for enum, name in self.constants:
            if header in (enum["file"], "dist.h") and enum["experimental"] == experimental:
                lines.append(f"  (void){name};")
        return f"void use_{'more' if experimental else 'base'}(void) {{\n" + "\n".join(lines) + "\n}\n"

    def hidden(self, header):
        """Declarations that compile where a program sees no experimental part."""
        names = {one["name"] for _, one in self.all if one["experimental"]}
        names |= {name for enum, name in self.constants if enum["experimental"]}
        undo = "#undef {0}\n" if header == "dist.h" else ""
        mine = undo + "typedef struct mine_{0} {0};\n"
        return "".join(mine.format(name) for name in sorted(names - {"DLManagedTensor"}))

    def each_experimental(self):
        """Lines that each use one experimental function or type."""
        for kind, one in self.all:
            name = one["name"]
            if one["experimental"] and name != "DLManagedTensor":
                use = f"(void)&{name};" if kind == "functions" else f"{name} *seen = 0; (void)seen;"
                yield f"void use_{name}(void) {{ {use} }}\n"


def compiled(compiler, language, standard, include, text):
    """What a compiler has to say; "" where it takes the program."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program")
        program.write_text(text, encoding="utf-8")
        options = [f"-std={standard}", *WARNINGS, "-Wno-missing-declarations", "-I", include, "-x", language]
        if "clang" in compiler:
            options.append("-ferror-limit=0")
        command = [*compiler.split(), *options, "-fsyntax-only", str(program)]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return run.stdout or f"exit status {run.returncode}" if run.returncode else ""


def face_programs():
    """The same of the C++ face: a free function, and C's functions below it."""
    macro, undo, face = "#define DIST_EXPERIMENTAL\n", "#undef DIST_EXPERIMENTAL\n", "#include <dist/dist.hpp>\n"
    base = "void use_base(dist::replica &one) { one.barrier(); }\n"
    more = "void use_more() { (void)&dist::get_strategy; (void)&dist_get_strategy; }\n"
    mine = "namespace dist { struct get_strategy; struct metric {}; }\n"
    yield "dist.hpp without the macro", face + base + mine, True
    yield "dist.hpp's rest without the macro", face + more, False
    yield "dist.hpp with the macro", macro + face + base + more, True
    yield "dist.hpp without and with it", face + base + macro + face + more, True
    yield "dist.hpp with and without it", macro + face + undo + face + base + more, True
    yield "dist.h, then dist.hpp", "#include <dist/dist.h>\n" + face + base + mine, True
    yield "dist.h, then dist.hpp with it", "#include <dist/dist.h>\n" + macro + face + base + more, True
    yield "dist.hpp, then dist.h with it", face + macro + "#include <dist/dist.h>\nauto seen = &dist_get_strategy;\n", True


def face_header_programs(include_dir):
    """The headers below dist.hpp."""
    macro, face = "#define DIST_EXPERIMENTAL\n", "#include <dist/dist.hpp>\n"
    base = "void use_base(dist::replica &one) { one.barrier(); }\n"
    more = "void use_more() { (void)&dist::get_strategy; (void)&dist_get_strategy; }\n"
    for path in sorted(pathlib.Path(include_dir, "dist", "hpp").glob("*.hpp")):
        one = f"#include <dist/hpp/{path.name}>\n"
        yield f"{path.name} without the macro", one, True
        yield f"{path.name} without and with it", one + macro + one + "auto seen = &dist_get_strategy;\n", True
        yield f"{path.name}, then all with it", one + macro + face + base + more, True
        yield f"dist.h, then {path.name}", "#include <dist/dist.h>\n" + one, True


def programs(headers, function, language):
    """Names, programs, and whether they compile."""
    macro, undo = "#define DIST_EXPERIMENTAL\n", "#undef DIST_EXPERIMENTAL\n"
    for name in [*headers.names, "dist.h"]:
        include = f"#include <dist/{name}>\n"
        base, more = headers.used(name, False), headers.used(name, True)
        yield f"{name} without the macro", include + headers.hidden(name) + base, True
        yield f"{name} with the macro", macro + include + base + more, True
        yield f"{name} without and with it", include + base + macro + include + more, True
        yield f"{name} with and without it", macro + include + undo + include + base + more, True
        yield f"{name}, then all with it", include + macro + "#include <dist/dist.h>\n" + base + more, True
        yield f"all, then {name} with it", "#include <dist/dist.h>\n" + macro + include + base + more, True
    if language == "c++":
        yield from face_programs()
    call = f"void call(void) {{ (void)&{function}; }}\n"
    yield f"{function} without the macro", "#include <dist/dist.h>\n" + call, False
    yield f"{function} with the macro", macro + "#include <dist/dist.h>\n" + call, True


def unexplained(compiler, language, standard, include, lines):
    """Which of the lines, after dist.h (in C++ dist.hpp), are not reported with the hint."""
    face = "#include <dist/dist.hpp>\n" if language == "c++" else "\n"
    text = face + "#include <dist/dist.h>\n" + "".join(lines)
    said = compiled(compiler, language, standard, include, text)
    seen = {int(at) for at in re.findall(r"^[^\n:]*program:(\d+):[^\n]*error: [^\n]*" + re.escape(HINT), said, re.M)}
    return [line for number, line in enumerate(lines, 3) if number not in seen]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("include")
    arguments.add_argument("api", type=pathlib.Path)
    arguments.add_argument("--faces", action="store_true")
    arguments.add_argument("--c", nargs="+", default=[])
    arguments.add_argument("--cxx", nargs="+", default=[])
    given = arguments.parse_args()
    found = json.loads(given.api.read_text(encoding="utf-8"))
    headers, wrong = Headers(found), 0
    function = next(one["name"] for one in found["functions"] if one["experimental"])
    ways = [(one, "c", "c99") for one in given.c] + [(one, "c++", "c++17") for one in given.cxx]
    if given.faces:
        cases = [(way, case) for way in ways for case in face_header_programs(given.include)]
    else:
        cases = [(way, case) for way in ways for case in programs(headers, function, way[1])]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        answers = pool.map(lambda each: compiled(*each[0], given.include, each[1][1]), cases)
        for ((compiler, _, standard), (name, _, good)), said in zip(cases, answers):
            if good != (said == ""):
                wrong += 1
                print(f"{compiler} -std={standard}: {name}: {said[:2000] or 'compiles'}")
        lines, hints = list(headers.each_experimental()), 0
        for way in ways:
            if compiled(*way, given.include, CAN_HINT):
                continue
            hints += 1
            for line in unexplained(*way, given.include, lines):
                wrong += 1
                print(f"{way[0]}: no hint at: {line}", end="")
    return 1 if wrong or not headers.names or not lines or not hints else 0


if __name__ == "__main__":
    raise SystemExit(main())
