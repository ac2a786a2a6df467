#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the description of the C headers (capi/api.py) into MyST pages with Sphinx's C directives, one for each header."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "capi"))
import api  # noqa: E402  the one parser of the headers

INCLUDE = ROOT / "include" / "dist"
FIELDS = ("Shape", "Order", "Context", "Blocks", "Owns", "Errors", "Since")
FIELD = re.compile(rf"({'|'.join(FIELDS)}) +\S")
ERROR = re.compile(r"([A-Z_]{5,}|any) {2,}(.*)")
FILE = re.compile(r"/\*\*\n \* @(?:file|mainpage)\n(.*?)\*/", re.DOTALL)
SECTION = re.compile(r"/\* ---- (.*?) -*-? ?\*/")
CODE_SPAN = re.compile(r"(`[^`]*`)")
NAME = re.compile(r"\b((?:dist|DIST)_\w+)\b(\(\))?")
EXPERIMENTAL = "This header is experimental: its functions may change or be removed in any version."


def document(header):
    """The page of a header, such as "run.h", relative to the reference of C."""
    return header.removesuffix(".h")


class Links:
    """Replaces names of declarations by references to them."""

    def __init__(self, found):
        self.roles = {}
        kinds = {"functions": "func", "structs": "struct", "callbacks": "type", "handles": "struct", "aliases": "type"}
        for kind, role in {**kinds, "enums": "enum", "macros": "macro"}.items():
            self.roles |= {one["name"]: role for one in found[kind] if one["name"]}
        for enum in found["enums"]:
            self.roles |= {one["name"]: "enumerator" for one in enum["constants"]}

    def reference(self, match):
        name, call = match[1], match[2] or ""
        role = self.roles.get(name)
        if role is None or (call and role not in ("func", "macro")):
            return match[0].replace("_", r"\_")
        return f"{{c:{role}}}`{name}`" + ("()" if call and role == "macro" else "")

    def status(self, name):
        return f"{{c:enumerator}}`{name} <DIST_{name}>`" if f"DIST_{name}" in self.roles else name

    def inline(self, text):
        """One paragraph."""
        parts = CODE_SPAN.split(text)
        for i, part in enumerate(parts):
            if i % 2 == 0:
                part = re.sub(r"([<\[\]])", r"\\\1", part)
                parts[i] = NAME.sub(self.reference, part)
            elif NAME.fullmatch(part.strip("`")):
                parts[i] = NAME.sub(self.reference, part.strip("`"))
        return "".join(parts)

    def prose(self, text):
        """Paragraphs, lists, and indented code as a comment has them."""
        pieces, in_list = [], False
        for block in re.split(r"\n\s*\n", text.strip("\n")):
            lines = block.split("\n")
            if all(line.startswith("    ") for line in lines) and not in_list:
                if pieces and pieces[-1].startswith("```"):
                    pieces[-1] = pieces[-1][: -len("```")] + "\n" + "\n".join(line[4:] for line in lines) + "\n```"
                    continue
                language = "c" if re.search(r"[;{}]\s*(//.*)?$", block, re.MULTILINE) else "text"
                pieces.append(f"```{language}\n" + "\n".join(line[4:] for line in lines) + "\n```")
            else:
                in_list = lines[0].lstrip().startswith("- ") or (in_list and lines[0].startswith("  "))
                pieces.append(self.inline(block))
        return "\n\n".join(pieces)


def body_of(comment):
    """The text of a comment without its fields."""
    lines, inside = [], False
    for line in comment["text"].split("\n"):
        inside = bool(FIELD.match(line)) or (inside and line.startswith("  "))
        if not inside:
            lines.append(line)
    return "\n".join(lines).strip("\n")


def field(name, text, links):
    lines = text.split("\n")
    if name != "Errors" or not any(ERROR.match(line) for line in lines):
        return f"{name}\n: {links.inline(' '.join(lines))}\n"
    items = []
    for line in lines:
        if match := ERROR.match(line):
            items.append([f"- {links.status(match[1])}: {match[2]}"])
        elif items:
            items[-1].append(line)
        else:
            items.append([line])
    shown = []
    for item in items:
        head, _, rest = " ".join(item).partition("`: ")
        shown.append(f"{head}`: {links.inline(rest)}" if rest else links.inline(head))
    return f"{name}\n: " + "\n  ".join(shown) + "\n"


def described(comment, links):
    if comment is None:
        return ""
    text = links.prose(body_of(comment))
    fields = comment.get("fields", {})
    return text + "\n\n" + "\n".join(field(name, fields[name], links) for name in FIELDS if name in fields)


def declared(kind, name):
    return kind + ("" if kind.endswith("*") else " ") + name


def parameters(one):
    return ", ".join(declared(p["text"], p["name"]) for p in one["parameters"]) or "void"


def directive(kind, signature, content="", colons=3):
    fence = ":" * colons
    return f"{fence}{{c:{kind}}} {signature}\n{content.strip()}\n{fence}\n"


def function(one, links):
    content = described(one["comment"], links)
    return directive("function", declared(one["returns"]["text"], f"{one['name']}({parameters(one)})"), content)


def callback(one, links):
    signature = declared(one["returns"]["text"], f"(*{one['name']})({parameters(one)})")
    return directive("type", signature, described(one["comment"], links))


def struct(one, links):
    content = described(one["comment"], links) + "\n"
    for member in one["fields"]:
        name = member["name"] + (f"[{member['size']}]" if "size" in member else "")
        if "function" in member:
            name = f"(*{name})({parameters(member['function'])})"
        content += directive("member", declared(member["text"], name), described(member["comment"], links)) + "\n"
    return directive("struct", one["name"], content, 4)


def enum(one, links):
    content = ""
    for constant in one["constants"]:
        value = hex(constant["value"]) if constant["hexadecimal"] else constant["value"]
        content += directive("enumerator", f"{constant['name']} = {value}", described(constant["comment"], links)) + "\n"
    if one["name"]:
        return directive("enum", one["name"], described(one["comment"], links) + "\n" + content, 4)
    return described(one["comment"], links) + "\n" + content


def handle(one, links):
    return directive("struct", one["name"], described(one["comment"], links))


def alias(one, links):
    return directive("type", f"{one['type']} {one['name']}", described(one["comment"], links))


def macro(one, links):
    given = "" if one["parameters"] is None else f"({', '.join(one['parameters'])})"
    if one["name"].endswith("_INIT"):
        content = links.inline(f"Initializes a {one['name'].removesuffix('_INIT').lower()} to its defaults.")
    elif one["text"] and len(one["text"]) < 60:
        content = f"Expands to `{one['text']}`."
    else:
        content = ""
    return directive("macro", one["name"] + given, content)


WRITERS = {
    "functions": function, "callbacks": callback, "structs": struct, "enums": enum, "handles": handle, "aliases": alias,
    "macros": macro,
}  # fmt: skip


def page(header, declarations, links):
    """The page of one header: its introduction, then the declarations in their order, below the headings of the header."""
    text = (INCLUDE / header).read_text(encoding="utf-8")
    introduction = re.sub(r"^ \* ?", "", FILE.search(text)[1], flags=re.MULTILINE)
    pieces = [f"# {header}\n", f"```c\n#include <dist/{header}>\n```\n"]
    if header.startswith("experimental/"):
        pieces.append(f":::{{warning}}\n{EXPERIMENTAL}\n:::\n")
    elif header not in ("dist.h", "tf.h"):
        pieces[1] = f"`#include <dist/dist.h>` includes `dist/{header}`.\n"
    pieces.append(links.prose(introduction) + "\n")
    headings = [
        (text.count("\n", 0, match.start()) + 1, f"## {match[1]}\n") for match in SECTION.finditer(text)
    ]
    written = [(line, piece) for line, piece in declarations]
    if written and headings and min(line for line, _ in written) < headings[0][0]:
        headings.insert(0, (0, "## Declarations\n"))
    elif written and not headings:
        headings = [(0, "## Declarations\n")]
    kept = []  # headings without declarations are left out
    for i, (line, heading) in enumerate(headings):
        end = headings[i + 1][0] if i + 1 < len(headings) else sys.maxsize
        if any(line <= at < end for at, _ in written):
            kept.append((line, heading))
    pieces += [piece for _, piece in sorted(kept + written, key=lambda one: one[0])]
    return "\n".join(pieces)


def summary(header):
    """The first sentence of a header's introduction."""
    introduction = FILE.search((INCLUDE / header).read_text(encoding="utf-8"))[1]
    text = " ".join(re.sub(r"^ \* ?", "", introduction, flags=re.MULTILINE).split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".").split(": ", 1)[0] if len(text) > 100 else text.rstrip(".")


def pages():
    """Returns the pages by document name, in the order of reading; the first is the overview."""
    found = api.parse(api.HEADERS)
    links, by_header = Links(found), {}
    for kind, writer in WRITERS.items():
        for one in found[kind]:
            by_header.setdefault(one["file"], []).append((one["line"], writer(one, links)))
    order = ["dist.h", *re.findall(r'^#include "(\w+\.h)"', (INCLUDE / "dist.h").read_text(encoding="utf-8"), re.MULTILINE)]
    order += sorted(set(by_header) - set(order), key=lambda name: (name.startswith("experimental/"), name))
    made = {document(header): page(header, by_header.get(header, []), links) for header in order}
    rows = "".join(f"| [`{h}`]({document(h)}.md) | {links.inline(summary(h))} |\n" for h in order)
    tree = "".join(f"{document(header)}\n" for header in order)
    overview = (
        "# C reference\n\nThese pages describe every declaration of the public headers. [types.h](types.md) states the "
        "defaults of the fields *Context*, *Blocks*, *Owns*, *Errors* and *Since*, and [dist.h](dist.md) the rules for "
        f"all functions.\n\n| header | subject |\n|---|---|\n{rows}\n```{{toctree}}\n:hidden:\n\n{tree}```\n"
    )
    return {"index": overview, **made}
