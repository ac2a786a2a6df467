#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports wording that is often hard to read, and misspelled words. It is advice: the exit status is always 0.

It reads Markdown, comments and string literals of the files that differ from the branch main, or of all files with
--all. Each line of the report is FILE:LINE, the pattern, and the text. Misspelled words are codespell's, if installed.

usage: prose.py [--all] [FILE...]
"""

import collections
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = r"(?:^|(?<=[.:;] ))"  # start of a sentence
PATTERNS = {
    "starts with What, Who, Whoever or Those": START + r"(?:What|Who|Whoever|Those)\b(?![^.]*\?)",
    '"where" for "if" or "when"': r"(?:,|\bbut|\bnot|\bexcept|\bonly) where\b",
    "who, whoever, nobody or somebody as a noun": r"\b(?:of|by|for|to|from|with) who\b|\b(?:whoever|nobody|somebody)\b",
    "possessive after of": r"\bof (?:the )?[a-z]+'s\b",
    '"but for"': r"\bbut for\b",
    '"is over", "has come", "is told"': r"\b(?:is|are) (?:over|told)\b|\b(?:has|have) come\b",
    '"says" for "specifies"': r"\b(?:says|say) (?:how|which|where|what|whether)\b",
    '"alone" for "only"': r"\b[a-z]+s? alone\b",
    '"is to" for "should"': r"\b(?:is|are) to (?!be\b)[a-z]+\b",
    "tag ending": r"(?:where|if|as|that) there (?:is|are) (?:none|one|any)\b|, and (?:is|has) none\b",
    "come to, come of, let go, give up": r"\b(?:comes? (?:to|of)|lets? go|gives? (?:up|back))\b",
    "affair, none but, so does, and its like, by hand": r"\baffairs?\b|\bnone but\b|\bso does\b|\band its like\b|\bby hand\b",
    "sentence without a verb": START + r"(?:Of|Under) (?:a|an|the) [a-z ]{1,25}[:.](?= |$)",
}
PATTERNS = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}

C_FILES = {".c", ".cpp", ".h", ".hpp", ".go", ".java", ".i"}
HASH_FILES = {".sh", ".build", ".txt", ".ini", ".yml"}
C_TEXT = re.compile(r"//(.*)|/\*|\"((?:[^\"\\]|\\.)*)\"")
GENERATED = ("bindings/go/internal/", "tests/golden/cases/", "tests/fuzz/corpus/", "tests/check/prose.py")


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def c_texts(lines: list[str]):
    """Comments and string literals of C, C++, Go and Java, by line."""
    inside = False
    for number, line in enumerate(lines, 1):
        at = 0
        while at < len(line):
            if inside:
                end = line.find("*/", at)
                yield number, line[at : end if end >= 0 else len(line)].strip(" *")
                inside, at = end < 0, (end + 2 if end >= 0 else len(line))
            elif (found := C_TEXT.search(line, at)) is None:
                break
            else:
                inside, at = found[0] == "/*", found.end()
                if not inside and " " in (text := found[1] or found[2] or "").strip():
                    yield number, text.strip(" /")


def python_texts(path: Path):
    """Comments and strings."""
    with path.open("rb") as file:
        try:
            for token in tokenize.tokenize(file.readline):
                if token.type in (tokenize.COMMENT, tokenize.STRING):
                    for offset, line in enumerate(token.string.splitlines()):
                        yield token.start[0] + offset, line.strip(" #\"'")
        except (tokenize.TokenError, SyntaxError):
            return


def texts(path: Path):
    if path.suffix == ".py":
        yield from python_texts(path)
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return
    if path.suffix in C_FILES:
        yield from c_texts(lines)
    elif path.suffix == ".md":
        code = False
        for number, line in enumerate(lines, 1):
            code ^= line.startswith("```")
            if not code:
                yield number, line.strip(" >#*-|")
    elif path.suffix in HASH_FILES or path.name in ("dev", "run"):
        for number, line in enumerate(lines, 1):
            if "#" in line:
                yield number, line.split("#", 1)[1].strip()


def chosen(arguments: list[str]) -> list[str]:
    names = [argument for argument in arguments if argument != "--all"]
    if names:
        return [str(Path(name).resolve().relative_to(ROOT)) for name in names]
    if "--all" in arguments:
        return git("ls-files")
    base = (git("merge-base", "HEAD", "main") or ["HEAD"])[0]
    return git("diff", "--name-only", "--diff-filter=d", base) + git("ls-files", "--others", "--exclude-standard")


def main(arguments: list[str]) -> None:
    names = [name for name in chosen(arguments) if not name.startswith(GENERATED) and (ROOT / name).is_file()]
    counts = collections.Counter()
    for name in names:
        for number, text in texts(ROOT / name):
            for pattern, expression in PATTERNS.items():
                if expression.search(text):
                    counts[pattern] += 1
                    print(f"{name}:{number}: {pattern}: {text[:100]}")
    codespell = shutil.which("codespell")
    if codespell and names:
        found = subprocess.run([codespell, "--", *names], cwd=ROOT, capture_output=True, text=True, check=False).stdout
        print(found, end="")
        counts["misspelled words"] = len(found.splitlines())
    print(f"\n{len(names)} files" + ("" if codespell else "; codespell is not installed"))
    for pattern, count in counts.most_common():
        print(f"{count:6}  {pattern}")


if __name__ == "__main__":
    main(sys.argv[1:])
