#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the programs of README.md as a stranger would: with the jar alone, in a folder of their own.

usage: readme_test.py JAVA JAVAC JAR [DIST_LAUNCH]
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def main(java, javac, jar, launch=None):
    text = (Path(__file__).resolve().parent / "README.md").read_text(encoding="utf-8")
    sources = re.findall(r"```java\n(.*?)```", text, re.DOTALL)
    found = [re.search(r"public class (\w+)", source) for source in sources]
    programs = {name[1]: source for name, source in zip(found, sources) if name}
    assert list(programs) == ["Hello", "Answers", "Train"], programs
    jar = Path(jar).resolve()
    with tempfile.TemporaryDirectory() as folder:
        for name, program in programs.items():
            (Path(folder) / f"{name}.java").write_text(program, encoding="utf-8")
            subprocess.run([javac, "-Xlint:all", "-Werror", "-cp", jar, f"{name}.java"], cwd=folder, check=True)

        def printed(*command):
            return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout

        for name in ("Hello", "Answers"):
            came = printed(java, "-cp", f"{jar}:.", name)
            expected = re.search(r"// ([\d. ]+)\n", programs[name])[1] + "\n"
            assert came == expected, (came, expected)
        if launch:
            came = printed(Path(launch).resolve(), "--ps", "1", "--workers", "2", "--", java, "-cp", f"{jar}:.", "Train")
            expected = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
            assert came == expected, (came, expected)


if __name__ == "__main__":
    main(*sys.argv[1:])
