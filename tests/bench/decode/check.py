#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that dist_bench_decode runs its sides and reports errors: check.py DIST_BENCH_DECODE NAME=PROGRAM ...

The sides are those of the build. If a program fails, finds a wrong sum or prints nothing, the run must fail and name
it."""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import made_up  # noqa: E402  (after the path is set)

SPREAD = r" +\d+\.\d+ +\( *\d+\.\d+ to +\d+\.\d+\)"
PRODUCTS = ", products of oneDNN"
QUOTA = ", a quota of 1 CPUs"
ROWS = ["2 members", "2 members" + PRODUCTS, "4 members" + PRODUCTS, "2 members" + QUOTA, "4 members" + QUOTA]
NO_FLOOR = ["4 members" + PRODUCTS, "2 members" + QUOTA]


def main(bench, *sides):
    names = [side.partition("=")[0] for side in sides]
    status, output = made_up.run(bench, "--quick", *sides)
    assert status == 0 and "Results are right" in output, status
    rows = re.split(r"^(\d+ members.*)$", output, flags=re.MULTILINE)[1:]
    for row, title, lines in zip(ROWS, rows[::2], rows[1::2], strict=True):
        if title.startswith(f"{row}: skipped, since "):
            assert "quota" in row or title.endswith("this build has no oneDNN"), title
            continue
        assert title == row, (title, row)
        for index, name in enumerate(names):
            floor = "" if row in NO_FLOOR else r" +[\d.]+"
            speed = SPREAD + floor if index else ""
            assert re.search(rf"^  {re.escape(name)}{SPREAD} +\d+\.\d\d +\d+\.\d\d{speed}$", lines, re.MULTILINE), (row, name)

    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "side"
        for text in "exit 2", "true", "echo @tokens 3 1 1", "echo @tokens 3 1 1 1; exit 1":
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
            status, output = made_up.run(bench, "--quick", sides[0], f"made up={program}")
            assert status == 2 and "made up failed" in output, (text, status, output)
        status, output = made_up.run(bench, "--quick", sides[0], f"absent={folder}/no-such-program")
        assert status == 2 and "absent failed" in output, (status, output)

    for arguments in (), ("no-side",):
        status, output = made_up.run(bench, *arguments)
        assert status == 2 and "usage" in output, (status, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
