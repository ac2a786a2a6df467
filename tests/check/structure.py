#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports the size of the core's classes, include cycles, the lines of each folder, and the terms of the glossary.

It is a report, not a check: the exit status is 0 unless a file cannot be parsed.

A class is counted together with the classes nested in it (Impl, State), wherever they are defined, and with its
friends. Defaulted and deleted functions do not count. Classes with more than 30 functions or 15 members are marked.

It needs libclang for Python (apt: python3-clang-14) and a build folder that Meson has set up.

usage: structure.py [BUILD_FOLDER]      (default: build)
"""

import json
import multiprocessing
import re
import shlex
import sys
from collections import Counter, defaultdict
from pathlib import Path

import clang.cindex
from clang.cindex import AvailabilityKind, CursorKind

ROOT = Path(__file__).resolve().parents[2]
MANY_FUNCTIONS = 30
MANY_MEMBERS = 15
CLASSES = {CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.CLASS_TEMPLATE}
SCOPES = {CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL}
FUNCTIONS = {
    CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
    CursorKind.DESTRUCTOR,
    CursorKind.CONVERSION_FUNCTION,
    CursorKind.FUNCTION_TEMPLATE,
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"(core/[^"]+)"', re.MULTILINE)
# Options that name outputs, and those that clang does not know.
SKIPPED = re.compile(r"^-(o|c|MD|MQ|MF|Winvalid-pch|include)$|^-(fcf-protection|fconcepts)")


def is_counted(cursor) -> bool:
    return not (cursor.is_default_method() or cursor.availability == AvailabilityKind.NOT_AVAILABLE)


def read_class(cursor, found: dict) -> None:
    functions = members = 0
    friends = []
    for child in cursor.get_children():
        if child.kind in FUNCTIONS:
            functions += is_counted(child)
        elif child.kind == CursorKind.FIELD_DECL:
            members += 1
        elif child.kind == CursorKind.FRIEND_DECL:
            for friend in child.get_children():
                if friend.kind == CursorKind.TYPE_REF:
                    friends.append(friend.referenced.get_usr())
                elif friend.kind in CLASSES:
                    friends.append(friend.get_usr())
                else:
                    functions += 1
        elif child.kind in CLASSES and child.is_definition():
            read_class(child, found)
    place = Path(cursor.location.file.name).resolve().relative_to(ROOT)
    parent = cursor.semantic_parent
    found[cursor.get_usr()] = {
        "name": qualified(cursor),
        "place": f"{place}:{cursor.location.line}",
        "functions": functions,
        "members": members,
        "parent": parent.get_usr() if parent is not None and parent.kind in CLASSES else None,
        "friends": friends,
    }


def qualified(cursor) -> str:
    names = []
    while cursor is not None and cursor.kind != CursorKind.TRANSLATION_UNIT:
        if cursor.kind != CursorKind.NAMESPACE and cursor.spelling:
            names.append(cursor.spelling)
        cursor = cursor.semantic_parent
    return "::".join(reversed(names))


def read_scope(cursor, found: dict) -> None:
    for child in cursor.get_children():
        if child.location.file is None:
            if child.kind not in SCOPES:
                continue
        elif not Path(child.location.file.name).resolve().is_relative_to(ROOT / "core"):
            continue
        if child.kind in SCOPES:
            read_scope(child, found)
        elif child.kind in CLASSES and child.is_definition():
            read_class(child, found)


def read_source(entry: dict) -> tuple[str, dict, list[str]]:
    words = shlex.split(entry["command"])[1:]
    arguments = ["-I" + str(ROOT)]
    skip_next = False
    for word in words:
        if skip_next:
            skip_next = False
        elif SKIPPED.match(word):
            skip_next = word in ("-o", "-MQ", "-MF", "-include")
        elif word.startswith("-") and not word.startswith(("-W", "-m")):
            if word.startswith("-I") and not word.startswith("-I/"):
                word = "-I" + str(Path(entry["directory"]) / word[2:])
            arguments.append(word)
    options = clang.cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
    source = str((Path(entry["directory"]) / entry["file"]).resolve())
    unit = clang.cindex.Index.create().parse(source, args=arguments, options=options)
    errors = [str(d) for d in unit.diagnostics if d.severity >= clang.cindex.Diagnostic.Error]
    found: dict = {}
    read_scope(unit.cursor, found)
    return source, found, errors


def sums(classes: dict) -> list[tuple[int, int, dict]]:
    inside = defaultdict(list)
    for usr, entry in classes.items():
        if entry["parent"]:
            inside[entry["parent"]].append(usr)

    def with_nested(usr: str, seen: set) -> None:
        if usr in classes and usr not in seen:
            seen.add(usr)
            for nested in inside[usr]:
                with_nested(nested, seen)

    rows = []
    for usr, entry in classes.items():
        if entry["parent"]:
            continue
        counted: set = set()
        with_nested(usr, counted)
        for friend in [f for c in list(counted) for f in classes[c]["friends"]]:
            with_nested(friend, counted)
        rows.append((sum(classes[c]["functions"] for c in counted), sum(classes[c]["members"] for c in counted), entry))
    return sorted(rows, key=lambda row: (-row[0], -row[1], row[2]["name"]))


def print_classes(build: Path) -> int:
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    core = [c for c in commands if (Path(c["directory"]) / c["file"]).resolve().is_relative_to(ROOT / "core")]
    sources = {c["file"]: c for c in core if c["file"].endswith(".cpp")}
    if not sources:
        print(f"{build}/compile_commands.json has no sources of core")
        return 1
    classes: dict = {}
    failed = 0
    with multiprocessing.Pool() as pool:
        for source, found, errors in pool.imap_unordered(read_source, sources.values()):
            classes.update(found)
            failed += bool(errors)
            for error in errors[:3]:
                print(f"{source}: {error}", file=sys.stderr)
    rows = sums(classes)
    print(f"{len(rows)} classes in {len(sources)} sources, with the classes nested in them and their friends")
    print("functions  members  class")
    for functions, members, entry in rows:
        mark = "*" if functions > MANY_FUNCTIONS or members > MANY_MEMBERS else " "
        print(f"{functions:9}  {members:7} {mark} {entry['name']}  {entry['place']}")
    marked = sum(f > MANY_FUNCTIONS or m > MANY_MEMBERS for f, m, _ in rows)
    print(f"\n* {marked} classes with more than {MANY_FUNCTIONS} functions or {MANY_MEMBERS} members")
    return 1 if failed else 0


def cycles(edges: dict[str, list[str]]) -> list[list[str]]:
    """Returns the strongly connected components that have more than one file (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    result = []

    def visit(file: str) -> None:
        number[file] = lowest[file] = len(number)
        stack.append(file)
        for target in edges.get(file, []):
            if target not in number:
                visit(target)
            if target in stack:
                lowest[file] = min(lowest[file], lowest[target])
        if lowest[file] == number[file]:
            component = []
            while not component or component[-1] != file:
                component.append(stack.pop())
            if len(component) > 1:
                result.append(sorted(component))

    sys.setrecursionlimit(10000)
    for file in edges:
        if file not in number:
            visit(file)
    return result


def unit_of(name: str) -> str:
    return re.sub(r"(-inl)?\.[ch]pp$", "", name)


def print_files() -> None:
    lines: Counter = Counter()
    edges = {}
    for path in sorted((ROOT / "core").rglob("*.[ch]pp")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        lines["/".join(name.split("/")[:2])] += text.count("\n")
        edges[name] = INCLUDE.findall(text)
    units: dict[str, list[str]] = defaultdict(list)
    for name, targets in edges.items():
        units[unit_of(name)] += [unit_of(t) for t in targets]
    for kind, graph in (("files", edges), ("units (a header with its source)", units)):
        found = cycles(graph)
        print(f"\n{len(found)} include cycles of {kind}, with {sum(map(len, found))} {kind.split()[0]}")
        for cycle in sorted(found):
            print("  " + ", ".join(cycle))
    print(f"\n{sum(lines.values())} lines in {len(lines)} folders")
    for folder, count in lines.most_common():
        print(f"{count:7}  {folder}")


def print_glossary() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.split("## Glossary")[1].split("\n## ")[0]
    terms = [line for line in section.splitlines() if line.startswith("| ")][1:]
    print(f"\n{len(terms)} terms in the glossary")


def main() -> int:
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    status = print_classes(build)
    print_files()
    print_glossary()
    return status


if __name__ == "__main__":
    sys.exit(main())
