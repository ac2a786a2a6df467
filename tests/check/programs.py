#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs in the opening comments of the public headers.

    programs.py SOURCE C_COMPILER CXX_COMPILER

SOURCE is the source tree. Each header must open with a program: an indented block in its first comment that has a
statement. Further programs of that comment are compiled too. A program is complete, with main(), or a part
of a function. `...` stands for omitted code. programs.h and programs.hpp declare the names that a program leaves to the
reader: those for all headers first, then those for one header.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
C_FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter"]
CXX_FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter"]
COMMENT = re.compile(r" */[/*].*")
STATEMENT = re.compile(r"\);$|=.*;$")  # tables have none
OMITTED = re.compile(r"(?:, )?\.\.\.")
# A function of the program, which goes before the one that holds the rest. It ends at a brace in the first column.
FUNCTION = re.compile(r"(?:static|dist_status|int) .*[^;]$")
HEADING = re.compile(r"^// ---- (\S+)$", re.MULTILINE)


def opening_comment(text, is_c):
    """Yields the lines of the first comment with their numbers, without the characters that mark them as a comment."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if is_c:
            if inside and line.startswith(" */"):
                return
            if inside:
                yield number, line[3:]
            inside = inside or line == "/**"
        elif line.startswith("//"):
            yield number, line[3:]
        elif number > 1:
            return


def programs(text, is_c):
    """The programs: lists of line number and line. None stands for a first block that is not a program."""
    block, first = [], True
    for number, line in [*opening_comment(text, is_c), (0, "-")]:
        if line.startswith("    ") or not line and block:
            block.append((number, line[4:]))
        elif block:
            if any(STATEMENT.search(COMMENT.sub("", code)) for _, code in block):
                yield block
            elif first:
                yield None
            block, first = [], False


def parts(program):
    """Divides a program into functions and the rest."""
    if any(line.startswith("int main(") for _, line in program):
        return program, []
    functions, rest, inside = [], [], False
    for number, line in program:
        inside = inside or FUNCTION.match(COMMENT.sub("", line)) is not None
        (functions if inside or line.startswith("#include") else rest).append((number, line))
        inside = inside and line != "}"
    return functions, rest


def placed(lines, name):
    """The lines, such that the compiler's messages name the header."""
    return "".join(f'#line {number} "{name}"\n{OMITTED.sub("", line)}\n' for number, line in lines)


def declarations(file):
    """The declarations for all headers, and those for each header by its name."""
    common, *sections = HEADING.split(file.read_text(encoding="utf-8"))
    return common, dict(zip(sections[::2], sections[1::2]))


def compiled(command, text, suffix):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / f"programs{suffix}"
        file.write_text(text, encoding="utf-8")
        return subprocess.run([*command, "-fsyntax-only", file], check=False).returncode == 0


def main(source, cc, cxx):
    include = source / "include"
    faults = count = 0
    together = ""  # the programs in C++, each in a namespace of its own: one compilation is faster
    texts = {".h": declarations(HERE / "programs.h"), ".hpp": declarations(HERE / "programs.hpp")}
    unused = {suffix: set(own) for suffix, (_, own) in texts.items()}
    for path in sorted((include / "dist").rglob("*.h*")):
        name = path.relative_to(include).as_posix()
        common, own = texts[path.suffix]
        unused[path.suffix].discard(name)
        found = list(programs(path.read_text(encoding="utf-8"), path.suffix == ".h"))
        if not found or found[0] is None:
            faults += 1
            print(f"{name} does not open with a program")
        for program in filter(None, found):
            count += 1
            functions, rest = parts(program)
            text = placed(functions, path) + "void program(void);\nvoid program(void) {\n" + placed(rest, path) + "}\n"
            if path.suffix == ".hpp":
                together += f"#include <{name}>\nnamespace program_{count} {{\n{own.get(name, '')}\n{text}}}\n"
                continue
            text = f"#include <dist/dist.h>\n#include <{name}>\n{common}\n{own.get(name, '')}\n{text}"
            faults += not compiled([*cc, *C_FLAGS, f"-I{include}"], text, ".c")
    faults += not compiled([*cxx, *CXX_FLAGS, f"-I{include}"], texts[".hpp"][0] + together, ".cpp")
    for suffix, names in unused.items():
        for name in sorted(names):
            faults += 1
            print(f"programs{suffix} has declarations for {name}, which does not exist")
    print(f"{count} programs")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2].split(), sys.argv[3].split()))
