#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the reference of the public headers with doxygen and checks that it is complete.

    reference.py SOURCE OUTPUT

SOURCE is the source tree. OUTPUT/html/index.html is the reference; OUTPUT/xml contains the same as XML. The following
are errors: a doxygen warning, a function without an entry, an experimental function whose entry is not marked as
experimental, and a comment that names an undeclared function.

Doxygen reads copies of the headers with comments in its own syntax. Doxyfile contains its other settings.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
# The fields of a comment become titled paragraphs. Each error becomes a line.
FIELD = re.compile(r"^ \* (Shape|Order|Context|Blocks|Owns|Errors|Since) +", re.MULTILINE)
ERROR = re.compile(r"^ \*          ([A-Z_]{5,}|any)  +", re.MULTILINE)
TRAILING = re.compile(r"([,;0-9]) +/\* (.*) \*/$", re.MULTILINE)
BLOCK = re.compile(r"^( *)/\*\*(?!<)(.*?)\*/", re.MULTILINE | re.DOTALL)


def marked(block):
    """Marks the comment of an experimental declaration as such."""
    if "@file" in block[2]:
        return block[0]
    return f"{block[1]}/**{block[2].rstrip()}\n{block[1]} *\n{block[1]} * @experimental\n{block[1]} */"


def c_header(text, experimental):
    text = FIELD.sub(r" * @par \1\n * ", text)
    text = ERROR.sub(r" * @n \1: ", text)
    text = TRAILING.sub(r"\1 /**< \2 */", text)
    return BLOCK.sub(marked, text) if experimental else text


def cxx_header(text):
    text = re.sub(r"^ *// (SPDX|----|@).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^( *)// ?", r"\1/// ", text, flags=re.MULTILINE)
    return re.sub(r"([;{)]) +// ", r"\1 ///< ", text)


def copy_headers(source, to):
    """Writes the copies of the headers for doxygen."""
    include = source / "include"
    for path in sorted(include.glob("dist/**/*.h*")):
        copy = to / path.relative_to(include)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        experimental = path.parent.name == "experimental"
        copy.write_text(c_header(text, experimental) if path.suffix == ".h" else cxx_header(text), encoding="utf-8")


def entries(folder):
    """The functions of the C headers in doxygen's XML: name, and whether the entry is marked as experimental."""
    found = {}
    for path in folder.glob("*_8h.xml"):
        for entry in xml.etree.ElementTree.parse(path).iter("memberdef"):
            if entry.get("kind") == "function":
                marks = entry.findall("detaileddescription//xreftitle")
                found[entry.findtext("name")] = any(mark.text == "Experimental" for mark in marks)
    return found


def faults(source, folder):
    sys.path.insert(0, str(source / "capi"))
    import api  # pylint: disable=import-outside-toplevel

    found = api.parse(api.HEADERS)
    there, names = entries(folder), api.names(found)
    for function in found["functions"]:
        where = f"{function['file']}:{function['line']}: {function['name']}()"
        if function["name"] not in there:
            yield f"{where} is missing in the reference"
        elif there[function["name"]] != function["experimental"]:
            yield f"{where} is {'not ' if function['experimental'] else ''}marked as experimental in the reference"
    for path in sorted((source / "include").glob("dist/**/*.h")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r"\b(dist_\w+)\(\)", line):
                if name not in names:
                    yield f"{path.name}:{number}: there is no {name}()"
    if not found["functions"]:
        yield "the headers have no functions"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("source", type=pathlib.Path)
    arguments.add_argument("output", type=pathlib.Path)
    given = arguments.parse_args()
    source, output = given.source.resolve(), given.output.resolve()
    for name in "headers", "html", "xml":
        shutil.rmtree(output / name, ignore_errors=True)
    copy_headers(source, output / "headers")
    environment = {**os.environ, "DIST_HEADERS": str(output / "headers"), "DIST_OUTPUT": str(output)}
    command = ["doxygen", str(HERE / "Doxyfile")]
    made = subprocess.run(command, env=environment, check=False, stderr=subprocess.PIPE, text=True)
    if made.returncode != 0:
        # Doxygen reports some warnings several times.
        print("\n".join(dict.fromkeys(made.stderr.splitlines())))
        return made.returncode
    wrong = list(faults(source, output / "xml"))
    print("\n".join(wrong) if wrong else output / "html" / "index.html")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
