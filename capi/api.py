#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parses the public C headers and writes their declarations as JSON. All scripts that read the headers use this parser.

    api.py [--output FILE] [HEADER...]          without headers: all public headers

    import api; declared = api.read(path)       the path of the JSON that this program wrote
    import api; declared = api.parse(api.HEADERS)

When a header includes another one of libdist, the parser reads that one in place of the directive. The result lists
each declaration once, in the order of a compiler:

    functions  name, returns, nodiscard, parameters, comment, file, line
    structs    name, fields, comment, file, line
    callbacks  name, returns, parameters, comment, ...: typedefs of function pointers
    handles    name, comment, ...: opaque structs
    aliases    name, type, comment, ...: typedefs of integer types
    enums      name (None for constants without a type), constants (name, value, hexadecimal,
               comment), comment, ...
    macros     name, parameters (None for object-like macros), text; without include guards and attributes

Each has `file` (the path below include/dist), `line` and `experimental`, which is true if `file` is in the folder
experimental.

The type of a parameter, field or result has four parts: `type` (the name without const), `const` (whether the
pointed-to type is const), `pointers` (the number of stars), and `text`, the complete C type. A field may also have
`size` (of an array) or `function` (returns and parameters of a function pointer). A comment has `text`. A doc block
(`/** */`) also has `fields`: Context, Blocks, Owns, Errors, Since and so on, each with its text.

The parser supports only the subset of C that the headers use. It reports everything else as an error with file and line
and never skips it.
"""
import argparse
import json
import pathlib
import re
import sys

TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/)|(?P<directive>^[ \t]*#(?:\\\n|[^\n])*?(?=/\*|\n|\Z))|(?P<space>\s+|\\\n)"
    r'|(?P<word>[A-Za-z_]\w*)|(?P<number>-?\d\w*)|(?P<mark>[{}()\[\];,*=]|"[^"\n]*")',
    re.DOTALL | re.MULTILINE,
)
INCLUDE = re.compile(r'#\s*include\s*"((?:\.\./)?\w+\.h)"')
DEFINE = re.compile(r"#\s*define\s+(\w+)(\([^)]*\))?(.*)", re.DOTALL)
BEGINS = ("#if", "#ifdef", "#ifndef")
SECTION = re.compile(r"/\* ---- .*-* ?\*/")
FILE = re.compile(r"/\*\*\s*\* @(file|mainpage)\b")
FIELD = re.compile(r"(\w+) +(\S.*)")
ATTRIBUTES = {"DIST_API", "DIST_NODISCARD"}
ENUM_MACROS = {"DIST_INT32", "DIST_FORCE_INT32"}
INCLUDE_DIST = pathlib.Path(__file__).resolve().parents[1] / "include" / "dist"
# Together, these include all public headers.
HEADERS = [INCLUDE_DIST / "dist.h", INCLUDE_DIST / "tf.h", *sorted((INCLUDE_DIST / "experimental").glob("*.h"))]


class Error(Exception):
    """Syntax that the parser does not support, with its file and line."""


class Token:
    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line


def tokens_of(name, text):
    """Splits a header into tokens, without the parts for C++ compilers."""
    at, line, skipping, found = 0, 1, 0, []
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Error(f"{name}:{line}: not understood: {text[at:at + 40]!r}")
        kind, word = match.lastgroup, match[0]
        begins = kind == "directive" and word.split()[0] in BEGINS
        skipped = skipping > 0 or (begins and "__cplusplus" in word)
        if skipped and begins:
            skipping += 1
        elif skipped and kind == "directive" and word.split()[0] == "#endif":
            skipping -= 1
        elif kind != "space" and not skipped:
            found.append(Token(kind, word, line))
        line += word.count("\n")
        at = match.end()
    return found


def comment_of(token):
    """Returns a comment's text without its delimiters, and the fields of a doc block."""
    if token is None:
        return None
    block = token.text.startswith("/**")
    lines = [line.strip() for line in token.text[3 if block else 2 : -2].split("\n")]
    lines = [re.sub(r"^\* ?", "", line) if i else line for i, line in enumerate(lines)]
    comment = {"text": "\n".join(lines).strip()}
    if block:
        comment["fields"] = doc_fields(lines)
    return comment


def doc_fields(lines):
    """Extracts the fields. A field starts with its capitalized name; the following indented lines continue it."""
    fields, name = {}, None
    for line in lines:
        match = FIELD.fullmatch(line) if line[:1].isupper() else None
        if match and match[1] in ("Context", "Blocks", "Owns", "Errors", "Since", "Shape", "Order"):
            name = match[1]
            fields[name] = match[2]
        elif name and line.startswith("  "):
            fields[name] += "\n" + line.strip()
        else:
            name = None
    return fields


class Parser:
    def __init__(self, path, found, seen):
        self.path, self.found, self.seen = path, found, seen
        self.experimental = path.parent.name == "experimental"
        self.name = f"experimental/{path.name}" if self.experimental else path.name
        self.tokens, self.at = tokens_of(self.name, path.read_text(encoding="utf-8")), 0
        self.conditions = 0  # the number of open #ifs

    # ---- Tokens ----

    def fail(self, what):
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        raise Error(f"{self.name}:{token.line}: {what}, found {token.text[:60]!r}")

    def peek(self, ahead=0):
        """Returns the next token that is not a comment, or None."""
        at = self.at
        while at < len(self.tokens):
            if self.tokens[at].kind != "comment":
                if ahead == 0:
                    return self.tokens[at]
                ahead -= 1
            at += 1
        return None

    def next(self):
        self.leading()
        if self.at == len(self.tokens):
            raise Error(f"{self.name}: ends in the middle of a declaration")
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, text):
        if self.peek() is None or self.peek().text != text:
            self.fail(f"{text!r} is wanted")
        return self.next()

    def has(self, text):
        token = self.peek()
        if token is None or token.text != text:
            return False
        self.next()
        return True

    def word(self):
        if self.peek() is None or self.peek().kind != "word":
            self.fail("a name is wanted")
        return self.next().text

    def trailing(self, line):
        """Returns the comment that follows on the same line, or None."""
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == "comment" and token.line == line:
                self.at += 1
                return token
        return None

    def leading(self):
        """Returns the comment before the next token, or None. Headings of sections and files do not count."""
        last = None
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "comment":
            last = self.tokens[self.at]
            self.at += 1
            if SECTION.fullmatch(last.text) or FILE.match(last.text):
                last = None
        return last

    # ---- Types ----

    def type(self):
        """Parses a type such as `const char *const *`, up to the declared name."""
        words = []
        while not words or words[-1] in ("const", "struct", "unsigned", "signed"):
            if self.peek() is None or self.peek().kind != "word":
                self.fail("a type is wanted")
            words.append(self.next().text)
        base, const, stars = words[-1], "const" in words, ""
        while self.peek() is not None and self.peek().text in ("*", "const"):
            stars += "*" if self.next().text == "*" else "const "
        text = " ".join(words) + (" " + stars.strip() if stars else "")
        return {"type": base, "const": const, "pointers": stars.count("*"), "text": text}

    def parameters(self):
        self.take("(")
        if self.peek().text == "void" and self.peek(1).text == ")":
            self.next()
            self.next()
            return []
        listed = []
        while True:
            one = self.type()
            listed.append({"name": self.word(), **one})
            if self.has(")"):
                return listed
            self.take(",")

    def function_pointer(self, returns):
        """Parses `(*name)(parameters)` after the return type."""
        self.take("(")
        self.take("*")
        name = self.word()
        self.take(")")
        return name, {"returns": returns, "parameters": self.parameters()}

    # ---- Declarations ----

    def place(self, line):
        return {"file": self.name, "line": line, "experimental": self.experimental}

    def parse(self):
        while True:
            comment = self.leading()
            token = self.peek()
            if token is None:
                return
            if token.kind == "directive":
                self.directive(self.next())
            elif token.text in ATTRIBUTES:
                self.function(comment)
            elif token.text == "typedef":
                self.typedef(comment)
            elif token.text == "enum":
                self.enum(comment)
            elif token.text == "struct":
                self.next()
                self.handle(self.word(), comment, token.line)
            else:
                self.fail("a declaration is wanted")

    def directive(self, token):
        if token.text.split()[0] in BEGINS:
            self.conditions += 1
        elif token.text == "#endif":
            if self.conditions == 0:
                raise Error(f"{self.name}:{token.line}: #endif without a condition")
            self.conditions -= 1
        if match := INCLUDE.match(token.text):
            parse_once(self.path.parent / match[1], self.found, self.seen)
        match = DEFINE.fullmatch(token.text)
        if match is None or match[1] in ATTRIBUTES | ENUM_MACROS or match[1].endswith("_H"):
            return
        text = " ".join(match[3].replace("\\\n", " ").split())
        parameters = None if match[2] is None else [one.strip() for one in match[2][1:-1].split(",")]
        self.found["macros"].append(
            {"name": match[1], "parameters": parameters, "text": text, **self.place(token.line)}
        )

    def function(self, comment):
        line, attributes = self.peek().line, set()
        while self.peek().text in ATTRIBUTES:
            attributes.add(self.next().text)
        returns = self.type()
        name = self.word()
        parameters = self.parameters()
        self.take(";")
        self.found["functions"].append(
            {
                "name": name,
                "returns": returns,
                "nodiscard": "DIST_NODISCARD" in attributes,
                "parameters": parameters,
                "comment": comment_of(comment),
                **self.place(line),
            }
        )

    def typedef(self, comment):
        line = self.take("typedef").line
        if self.peek().text == "enum":
            self.enum(comment)
            return
        if self.peek().text == "struct" and self.peek(2).text in ("{", self.peek(1).text):
            self.next()
            name = self.word()
            if self.has("{"):
                fields = self.fields()
                self.take(name)
                self.take(";")
                self.found["structs"].append(
                    {"name": name, "fields": fields, "comment": comment_of(comment), **self.place(line)}
                )
                return
            self.take(name)
            self.handle(name, comment, line)
            return
        kind = self.type()
        if self.peek().text == "(":
            name, function = self.function_pointer(kind)
            self.take(";")
            self.found["callbacks"].append(
                {"name": name, **function, "comment": comment_of(comment), **self.place(line)}
            )
            return
        name = self.word()
        self.take(";")
        self.found["aliases"].append(
            {"name": name, "type": kind["text"], "comment": comment_of(comment), **self.place(line)}
        )

    def handle(self, name, comment, line):
        self.take(";")
        self.found["handles"].append({"name": name, "comment": comment_of(comment), **self.place(line)})

    def fields(self):
        listed = []
        while True:
            comment = self.leading()
            if self.has("}"):
                return listed
            kind, field = self.type(), {}
            if self.peek().text == "(":
                name, function = self.function_pointer(kind)
                field = {"name": name, **kind, "function": function}
            else:
                field = {"name": self.word(), **kind}
                if self.has("["):
                    field["size"] = self.next().text
                    self.take("]")
            line = self.take(";").line
            field["comment"] = comment_of(self.trailing(line) or comment)
            listed.append(field)

    def enum(self, comment):
        """Parses constants without a type, or what follows `typedef` in the declaration of an enum type."""
        line = self.take("enum").line
        kind = None if self.peek().text == "{" else self.word()
        if kind:
            self.take("DIST_INT32")
        self.take("{")
        constants, value = [], 0
        while not self.has("}"):
            before = self.leading()
            if kind and self.has("DIST_FORCE_INT32"):
                self.take("(")
                self.word()
                self.take(")")
                continue
            name, hexadecimal = self.word(), False
            if self.has("="):
                token = self.next()
                if token.kind != "number":
                    self.fail("a number is wanted")
                value, hexadecimal = int(token.text, 0), token.text.startswith("0x")
            end = self.tokens[self.at - 1].line
            self.has(",")
            constants.append(
                {
                    "name": name,
                    "value": value,
                    "hexadecimal": hexadecimal,
                    "comment": comment_of(self.trailing(end) or before),
                }
            )
            value += 1
        if kind:
            self.take(kind)
        self.take(";")
        self.found["enums"].append(
            {"name": kind, "constants": constants, "comment": comment_of(comment), **self.place(line)}
        )


def parse_once(path, found, seen):
    path = path.resolve()
    if path not in seen:
        seen.add(path)
        Parser(path, found, seen).parse()


def parse(paths):
    """Returns the declarations of the headers."""
    kinds = ("functions", "structs", "callbacks", "handles", "aliases", "enums", "macros")
    found, seen = {kind: [] for kind in kinds}, set()
    for path in map(pathlib.Path, paths):
        parse_once(path, found, seen)
    # `struct dist_x;` and a typedef of it are the same handle.
    found["handles"] = list({one["name"]: one for one in found["handles"]}.values())
    return found


def read(path):
    """Reads the JSON that this program wrote."""
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def names(found):
    """Returns the names of all declarations."""
    named = {one["name"] for kind in found for one in found[kind]} - {None}
    return named | {one["name"] for enum in found["enums"] for one in enum["constants"]}


def is_of_replica(function):
    """Returns whether the first parameter is the calling replica."""
    first = (function["parameters"] or [None])[0]
    return first is not None and first["type"] == "dist_replica" and not first["const"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("headers", nargs="*", default=HEADERS)
    arguments.add_argument("--output")
    given = arguments.parse_args()
    try:
        text = json.dumps(parse(given.headers), indent=1, ensure_ascii=False) + "\n"
    except Error as error:
        sys.exit(str(error))
    if given.output:
        pathlib.Path(given.output).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
