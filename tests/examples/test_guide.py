#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the programs of "Get started" print in every language what its pages show.

usage: test_guide.py MODULES LAUNCH HELLO SERVE WORKER

MODULES is the folder with the modules of libdist, and LAUNCH is dist-launch. Each of the others is a command line, as one text.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "examples" / "guide"


def shown(page):
    """The lines of output that a page shows."""
    return sorted(re.search(r"```text\n(.*?)```", (GUIDE / page).read_text(encoding="utf-8"), re.DOTALL)[1].splitlines())


def printed(command, modules):
    environment = {**os.environ, "DIST_MODULE_FOLDER": modules}
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True, timeout=240)
    return sorted(done.stdout.splitlines())


def main(modules, launch, hello, serve, worker):
    commands = {
        "first-program.md": shlex.split(hello),
        "serve.md": shlex.split(serve),
        "two-processes.md": [launch, "-n", "2", "--replicas", "2", "--", *shlex.split(worker)],
    }
    faults = 0
    for page, command in commands.items():
        lines, wanted = printed(command, modules), shown(page)
        if lines != wanted:
            faults += 1
            print(page, "shows", *wanted, f"but {' '.join(command)} prints", *lines, sep="\n  ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
