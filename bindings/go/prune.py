#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Removes from the Go code that SWIG generated what the package does not use: prune.py [--check] FOLDER

cgo and the compilers examine every generated function when a user builds the package for the first time, and SWIG
generates many that nobody calls, such as the getters of options. FOLDER has cdist.go and cdist_wrap.cxx, which are
rewritten; --check fails if that would change them. A declaration stays if the package's sources name it (of the tests
only export_test.go), or if a declaration that stays does. A method also needs a file that names its class and calls a
method of that name. SWIG's types, one for each argument, become the types that they stand for.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
DECLARATION = re.compile(
    r"(?:^//.*\n)*^(?:func|type|var) (?:[^{(\n]*|.*[^{(\n])\n"  # on one line
    r"|(?:^//.*\n)*^(?:func|type|var) .*[{(]\n(?:.*\n)*?^[})]\n",
    re.MULTILINE,
)
METHOD = re.compile(r"^func \(\w+ \*?(\w+)\) (\w+)", re.MULTILINE)
INTERFACE = re.compile(r"^type (?!_swig_)(\w+) interface \{", re.MULTILINE)
NAMED = re.compile(r"^(?:func|type|var) (\w+)", re.MULTILINE)
INNER = re.compile(r"Swigcptr|SwigIs\w+|DirectorInterface|Error")  # methods that the generated code calls


class Package:
    """What the hand-written sources use."""

    def __init__(self, texts):
        self.names = [set(re.findall(r"\bcdist\.(\w+)", text)) for text in texts]
        self.members = [set(re.findall(r"\.(\w+)\b", text)) for text in texts]

    def uses(self, class_name, member):
        own = {class_name, "New" + class_name, "Delete" + class_name}
        return any(member in members and own & names for names, members in zip(self.names, self.members))


class Pruned:
    """The declarations of cdist.go that stay."""

    def __init__(self, text, package):
        self.package = package
        self.live = {"init"}.union(*package.names)
        waiting, self.kept = DECLARATION.findall(text), {}
        while True:
            more = {one: self.cut(one) for one in waiting if self.stays(one)}
            if not more:
                return
            self.kept.update(more)
            for one in more.values():
                self.live.update(re.findall(r"\w+", one))
            waiting = [one for one in waiting if one not in more]

    def stays(self, declaration):
        method = METHOD.search(declaration)
        if not method:
            return "//export " in declaration or NAMED.search(declaration)[1] in self.live
        owner, name = method.groups()
        return owner in self.live and (owner.startswith("_swig_Director") or self.member_stays(owner.removeprefix("Swigcptr"), name))

    def member_stays(self, class_name, name):
        return bool(INNER.fullmatch(name)) or self.package.uses(class_name, name)

    def cut(self, declaration):
        """Of a class's interface the members that stay; everything else whole."""
        interface = INTERFACE.search(declaration)
        if not interface:
            return declaration
        return re.sub(r"\n\t(\w+)\(.*", lambda line: line[0] if self.member_stays(interface[1], line[1]) else "", declaration)


def prune_go(text, package):
    """The text, and the C functions that it calls."""
    preamble, marker, body = text.partition('\nimport "C"\n')
    pruned = Pruned(body, package)
    body = DECLARATION.sub(lambda one: pruned.kept.get(one[0], ""), body)
    body = re.sub(r"\n{3,}", "\n\n", body)
    wrappers = set(re.findall(r"\bC\.(_wrap_\w+)", body))
    types = {name: base for base, name in re.findall(r"^typedef (.*) (swig_type_\d+);", preamble, re.MULTILINE)}
    lines = [line for line in preamble.splitlines() if not re.match(r"typedef .* swig_type_\d+;", line)]
    lines = [line for line in lines if not line.startswith("extern ") or "_wrap_" not in line or re.search(r"\b_wrap_\w+", line)[0] in wrappers]
    preamble = re.sub(r"\bswig_type_\d+\b", lambda name: types[name[0]], "\n".join(lines) + "\n")
    body = re.sub(r"\bC\.(swig_type_\d+)\b", lambda name: "C." + types[name[1]].replace(" ", ""), body)
    return preamble + marker[1:] + body, wrappers


def prune_wrapper(text, wrappers):
    function = re.compile(r"^\S.*?\b(_wrap_\w+)\(.*\{\n(?:.*\n)*?^\}\n+", re.MULTILINE)
    return function.sub(lambda one: one[0] if one[1] in wrappers else "", text)


def main(arguments):
    folder = pathlib.Path(arguments[-1])
    tests = {path for path in HERE.glob("*_test.go") if path.name != "export_test.go"}
    files = sorted({*HERE.glob("*.go")} - tests)
    before = {name: (folder / name).read_text(encoding="utf-8") for name in ("cdist.go", "cdist_wrap.cxx")}
    code, wrappers = prune_go(before["cdist.go"], Package([path.read_text(encoding="utf-8") for path in files]))
    after = {"cdist.go": code, "cdist_wrap.cxx": prune_wrapper(before["cdist_wrap.cxx"], wrappers)}
    if arguments[0] == "--check":
        sizes = {name: text.count("\n") for name, text in before.items()}
        print(f"the package calls {len(wrappers)} generated functions; lines: {sizes}")
        if after != before:
            print("some generated code has no use: run bindings/go/generate.sh")
            return 1
        return 0
    for name, text in after.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
