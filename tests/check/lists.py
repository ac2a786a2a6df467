#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists that are kept by hand of the collectives, dtypes and operators have every member that the headers declare.

usage: lists.py ROOT API_JSON

A comment before a list says what it lists, and which members it leaves out, after the colon for what reason:

    @every collective but NONE, RETURN: no program calls them
    @every replica function in this file

It speaks of the next pair of braces, or of the whole file. What can be listed is in `listed()`. A member counts as
named by its constant, by Collective::kName in C++, by its short name as a text, and in the sources of bindings by its
short name as it is. Whatever names most members of such an enum without a mark is a fault, too.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capi"))
import api  # noqa: E402  the one parser of the headers

FOLDERS = ("core", "capi", "include/dist/hpp", "bindings", "tests")
ENDINGS = {".c", ".h", ".cpp", ".hpp", ".cxx", ".i", ".go", ".java", ".py"}
# Written by programs, which tests of their own hold to the headers; and this file.
LEFT_OUT = re.compile(
    r"bindings/go/(enums|enums_words|internal/.*)|bindings/java/src/main/java/org/libdist/\w+|bindings/enums_table"
    r"|bindings/python/libdist/constants|tests/check/lists"
)
MARK = re.compile(
    r"@every (?P<what>[a-z]+(?: function)?)(?P<file> in this file)?(?: but (?P<but>\w+(?:,[\s*/#]+\w+)*))?"
    r"(?=[:.;]|\s*\*/|\s*$)",
    re.MULTILINE,
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
PYTHON_COMMENT = re.compile(r"#[^\n]*")
WORD = re.compile(r"\w+")
# From how many members on a block counts as a list of all of them, and how long it may be as one.
MOST_UNMARKED = {"collective": 8, "dtype": 11, "operator": 5}
MOST_LINES = 80


class Listed:
    """An enum, or some functions: what a mark can speak of."""

    def __init__(self, names, prefix):
        self.prefix = prefix
        self.names = {name[len(prefix) :]: name for name in names}

    def named_in(self, text, bare, texts):
        """The members that a piece of source names; `bare`: by their short names, too, `texts`: by texts of those."""
        words = set(WORD.findall(text))
        texts = {plain(one) for one in (re.findall(r'"(\w+)"', text) if texts else []) + list(words if bare else [])}
        for enumerator in re.findall(r"\bCollective::k(\w+)", text):
            texts.add("::" + enumerator.lower())
        return {
            short
            for short, name in self.names.items()
            if name in words or plain(short) in texts or "::" + plain(short) in texts
        }


def plain(word):
    return word.replace("_", "").lower()


def listed(found):
    """All that can be listed, by what marks call it."""
    enums = {enum["constants"][0]["name"]: [one["name"] for one in enum["constants"]] for enum in found["enums"]}
    sets = {
        "collective": Listed(enums["DIST_COLLECTIVE_NONE"], "DIST_COLLECTIVE_"),
        "dtype": Listed(enums["DIST_F16"], "DIST_"),
        "status": Listed(enums["DIST_OK"], "DIST_"),
        "operator": Listed(enums["DIST_REDUCE_SUM"], "DIST_REDUCE_"),
    }
    # Functions whose members meet; and those that only a replica can call, and that can fail.
    meeting, inside = [], []
    for function in found["functions"]:
        types = [one["type"] for one in function["parameters"]]
        if function["returns"]["type"] != "dist_status":
            continue
        if "dist_collective_options" in types:
            meeting.append(function["name"])
        if api.is_of_replica(function):
            inside.append(function["name"])
    sets["collective function"] = Listed(meeting, "dist_")
    sets["replica function"] = Listed(inside, "dist_")
    return sets


def without_comments(text, path):
    """The source with blanks for its comments, so that lines and places stay."""
    comment = PYTHON_COMMENT if path.suffix == ".py" else COMMENT
    return comment.sub(lambda one: re.sub(r"[^\n]", " ", one[0]), text)


def blocks_of(text):
    """(begin, end) of every pair of braces, the inner ones first."""
    opened, found = [], []
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            found.append((opened.pop(), brace.end()))
    return found


class Source:
    def __init__(self, path, shown, sets):
        self.path, self.shown, self.sets = path, shown, sets
        self.text = path.read_text(encoding="utf-8")
        self.code = without_comments(self.text, path)
        self.blocks = blocks_of(self.code)
        self.bare = shown.startswith("bindings")
        self.marked = []  # (begin, end, what)

    def at(self, place):
        return f"{self.shown}:{self.text.count(chr(10), 0, place) + 1}"

    def faults_of_marks(self):
        for mark in MARK.finditer(self.text):
            if mark["what"] not in self.sets:
                yield f"{self.at(mark.start())}: @every {mark['what']}: marks speak of {', '.join(self.sets)}"
                continue
            if mark["file"]:
                begin, end = 0, len(self.code)
            else:
                begin, end = min(
                    (block for block in self.blocks if block[0] >= mark.end()), default=(len(self.code),) * 2
                )
            self.marked.append((begin, end, mark["what"]))
            yield from self.faults_of(mark, self.code[begin:end])

    def faults_of(self, mark, code):
        kind = self.sets[mark["what"]]
        named = kind.named_in(code, self.bare, True)
        left_out = set(WORD.findall(mark["but"])) if mark["but"] else set()
        place = self.at(mark.start())
        for short in kind.names:
            if short not in named and short not in left_out:
                yield (
                    f"{place}: this list has no {kind.names[short]}: add it there, or to what the mark leaves out, "
                    "with the reason"
                )
            if short in named and short in left_out:
                yield f"{place}: the mark leaves {short} out, and the list has it"
        for short in sorted(left_out - set(kind.names)):
            yield f"{place}: the mark leaves {short} out, which is no {mark['what']} of the headers"

    def faults_without_mark(self):
        for what, most in MOST_UNMARKED.items():
            lists = [(begin, end) for begin, end, marked in self.marked if marked == what]
            for begin, end in self.blocks:
                if any(begin < other_end and other < end for other, other_end in lists):
                    continue
                code = self.code[begin:end]
                named = self.sets[what].named_in(code, self.bare, False)
                if len(named) > most and code.count("\n") <= MOST_LINES:
                    lists.append((begin, end))
                    yield (
                        f"{self.at(begin)}: this names {len(named)} of {len(self.sets[what].names)} {what}s: put "
                        f'"@every {what}" into a comment before it, so that none that is added later is forgotten here'
                    )


def main(root, declared):
    sets = listed(api.read(declared))
    faults, marks = [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            shown = path.relative_to(root).as_posix()
            if path.suffix not in ENDINGS or LEFT_OUT.match(shown) or not path.is_file():
                continue
            source = Source(path, shown, sets)
            faults += [*source.faults_of_marks(), *source.faults_without_mark()]
            marks += len(source.marked)
    print(f"{marks} lists")
    for fault in faults:
        print(fault)
    return 1 if faults or not marks else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
