#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the programs of the guide print in every language what its pages show.

usage: test_guide.py MODULES LAUNCH HELLO SERVE WORKER

MODULES is the folder with the modules of libdist, and LAUNCH is dist-launch. Each of the others is a command line, as one text.

The other pages show the output of a program in the blocks after the comment <!-- output NAME -->. It must be the output of
NAME.c, NAME.cpp, NAME.go, Name.java and NAME.py, if the page includes them. The test runs those in the language of HELLO,
with the same command line. The order of the lines does not matter, because replicas print at the same time.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "examples" / "guide"
BLOCK = r"```text\n(.*?)```"


def shown(page):
    """Returns the lines of output that a page of "Get started" shows."""
    return sorted(re.search(BLOCK, (GUIDE / page).read_text(encoding="utf-8"), re.DOTALL)[1].splitlines())


def printed(command, modules):
    done = subprocess.run(
        command, env={**os.environ, "DIST_MODULE_FOLDER": modules}, capture_output=True, text=True, timeout=240
    )
    if done.returncode != 0:
        print(done.stderr)
        done.check_returncode()
    return sorted(done.stdout.splitlines())


def source_of(name, hello):
    """Returns the file of a program in the language of the program hello."""
    if hello.endswith(".java"):
        return name.title().replace("_", "") + ".java"
    suffix = Path(hello).suffix or (".cpp" if hello.endswith("_cpp") else ".c")
    return name + suffix


def programs(hello, trace):
    """Yields the pages, the programs that they show in one language, and the output that they show."""
    *start, path = shlex.split(hello)
    for page in sorted(GUIDE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for name in dict.fromkeys(re.findall(r"<!-- output (\w+) -->", text)):
            source = source_of(name, path)
            if f"({source})" in text:
                file = name + "_cpp" if path.endswith("_cpp") else name if source.endswith(".c") else source
                blocks = re.findall(rf"<!-- output {name} -->\n+{BLOCK}", text, re.DOTALL)
                lines = "".join(blocks).splitlines()
                yield page.name, [*start, str(Path(path).with_name(file)), trace], sorted(lines)


def untested():
    """Yields the programs that a page includes, but whose output neither this test nor test_guide_pages.py compares."""
    others = "".join((GUIDE / path).read_text(encoding="utf-8") for path in ("../meson.build", "../../tests/examples/test_guide_pages.py"))
    for page in sorted(GUIDE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        outputs = {"hello", "serve", "worker", *re.findall(r"<!-- output (\w+) -->", text)}
        for file in re.findall(r"<!-- code(?: [\w-]+)? -->\n\[[^]]*\]\((\w+)\.\w+\)", text):
            if file.lower() not in outputs and f"/{file}" not in others and f"'{file}'" not in others:
                yield f"{page.name} includes {file}, but has no comment <!-- output {file.lower()} -->"


def main(modules, launch, hello, serve, worker):
    faults = list(untested())
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"  # for the program that writes one
        checks = [
            ("first-program.md", shlex.split(hello), shown("first-program.md")),
            ("serve.md", shlex.split(serve), shown("serve.md")),
            ("two-processes.md", [launch, "-n", "2", "--replicas", "2", "--", *shlex.split(worker)], shown("two-processes.md")),
            *programs(hello, str(trace)),
        ]
        for page, command, wanted in checks:
            print("#", page, " ".join(command))
            lines = printed(command, modules)
            if lines != wanted or not wanted:
                faults.append("\n  ".join([f"{page} shows", *wanted, "but the program prints", *lines]))
        if not json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]:
            faults.append("the trace is empty")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
