#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the glossary of ARCHITECTURE.md, and that names in the code use its terms.

A term stands once, and there are at most 50. Words that a term has replaced must not return in names of the core, the C
layer and the model checker; comments and strings may use them in their ordinary meanings.
"""

import re
import sys
from pathlib import Path

MOST_TERMS = 50
FOLDERS = ["core", "capi", "tests/model"]
INSTEAD = {  # part of a name -> the term of the glossary
    "crowd": "oversubscribed",
    "formation": "membership",
    "poison": "abort state",
    "promise": "future",
    "seat": "local rank",
    "tenant": "idle handler",
    "verdict": "diagnosis",
}
# Comments, and string and character literals.
OTHER_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def without_other_text(text: str) -> str:
    """Returns the text with comments and literals removed, and all line ends kept."""
    return OTHER_TEXT.sub(lambda match: "\n" * match[0].count("\n"), text)


def faults_of_glossary(text: str) -> list[str]:
    section = text.split("\n## Glossary\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")][1:]
    terms = [term.strip() for row in rows for term in row.split(",")]
    twice = sorted({term for term in terms if terms.count(term) > 1})
    faults = [f"glossary: {term} stands there more than once" for term in twice]
    if len(rows) > MOST_TERMS:
        faults.append(f"glossary: {len(rows)} terms, but a reader can learn at most {MOST_TERMS}. Remove some.")
    for word, term in INSTEAD.items():
        if word in terms:
            faults.append(f"glossary: {word} is a term again, but {term} has replaced it")
        if not re.search(rf"\b{term}\b", section):
            faults.append(f"glossary: {term} is not a term, but tests/check/glossary.py asks for it")
    return faults


def faults_of_names(text: str) -> list[tuple[int, str, str]]:
    faults = []
    for number, line in enumerate(without_other_text(text).splitlines(), 1):
        for name in NAME.findall(line):
            for word in (w.lower() for w in WORD.findall(name)):
                term = INSTEAD.get(word) or INSTEAD.get(word.rstrip("s")) or INSTEAD.get(re.sub("ed$", "", word))
                if term:
                    faults.append((number, name, term))
    return faults


def main(root: Path) -> int:
    faults = faults_of_glossary((root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*.[ch]pp")):
        for number, name, term in faults_of_names(path.read_text(encoding="utf-8")):
            faults.append(f'{path.relative_to(root)}:{number}: {name}: the glossary has "{term}"')
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
