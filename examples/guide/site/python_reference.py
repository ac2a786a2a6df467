# SPDX-License-Identifier: Apache-2.0
"""Lets Sphinx import the Python package without building libdist, and reads its docstrings.

The constants of the C library come from the headers. Its functions are stand-ins, which are never called to compute
anything.
"""

import re
import sys
import types

import c_reference

ROOT = c_reference.ROOT
CODE_SPAN = re.compile(r"`+([^`]*)`+")


class StandIn:
    """Stands for a class or the result of a function of the C library."""

    def __init__(self, *arguments):
        pass

    def __disown__(self):
        return self

    def __int__(self):
        return 0


class Native(types.ModuleType):
    """Stands for the extension module."""

    def __init__(self, name, constants):
        super().__init__(name)
        self.constants = constants

    def __getattr__(self, name):
        if name in self.constants:
            return self.constants[name]
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (StandIn,), {})


def prepare():
    found = c_reference.api.parse(c_reference.api.HEADERS)
    constants = {one["name"]: one["value"] for enum in found["enums"] for one in enum["constants"]}
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    sys.modules["libdist._cdist"] = Native("libdist._cdist", constants)
    import libdist  # pylint: disable=import-outside-toplevel,unused-import


def escaped(line):
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(
        re.sub(r"([\\*|_])", r"\\\1", part) if i % 2 == 0 else f"``{part.strip('`')}``" for i, part in enumerate(parts)
    )


def written(block):
    """A paragraph: those of arguments, "timeout: ...", are items of a list."""
    text = " ".join(row.strip() for row in block.split("\n"))
    argument = re.match(r"([a-z_]+): ", text)
    if argument is None:
        return [escaped(text), ""]
    return [f"* ``{argument[1]}``: {escaped(text[argument.end():])}", ""]


def read_docstring(_app, _what, _name, _object, _options, lines):
    """Docstrings are plain text: paragraphs, code between backquotes, and code that is indented."""
    blocks, made = re.split(r"\n\s*\n", "\n".join(lines).strip("\n")), []
    for block in blocks:
        rows = block.split("\n")
        is_code = all(row.startswith("    ") for row in rows) or any(row.startswith("    ") for row in rows[1:])
        if is_code:
            made += ["::", "", *("    " + row for row in rows), ""]
        elif rows != [""]:
            made += written(block)
    lines[:] = made
