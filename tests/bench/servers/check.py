#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the output of dist_bench_servers and how it treats its peers, with simulated ones: check.py
DIST_BENCH_SERVERS.

A working peer has turns, and its fastest form counts. A peer that does not start, dies or keeps running is omitted with
a message. A wrong result ends the run."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import made_up  # noqa: E402  (after the path is set)

ROWS = [
    *(f"{what} {size}" for size in ("4 B", "64 KiB") for what in ("push", "pull")),
    "closure of nothing",
    "closure, push 4 B",
    "closure of nothing, 8 at a time",
    "closure, push 4 B, 8 at a time",
]
BESIDE = {row: ["a call of plain gRPC"] if row == "closure of nothing" else [] for row in ROWS[4:]}


def table_of(output):
    """Returns the lines of libdist and of the other sides, by row."""
    table = {}
    for line in output.splitlines():
        if ": libdist " in line:
            row = table.setdefault(line.split(": libdist ")[0], [])
        elif line.startswith("  ") and " (" in line and " to " in line:
            row.append(line.strip())
    return table


def with_peers(bench, folder, *peers):
    return made_up.run(bench, "--quick", "--peers", made_up.list_of(folder, *peers))


def check_peers(bench, folder):
    def peer(group, kind):
        return made_up.peer(group, kind, "(push|pull|closure|closure_push) f32 .*")

    status, output = with_peers(
        bench,
        folder,
        peer("tensorflow", "good"),
        peer("mpi", "dies0"),
        peer("jax", "dies5"),
        peer("oneccl", "spins"),
        *made_up.absent(folder),
    )
    assert status == 0, status
    for name, lines in table_of(output).items():
        good = [line for line in lines if line.startswith("good of 1, ")]
        assert len(good) == 1 and good[0].startswith("good of 1, fast") and " 1000.5 " in good[0], (name, lines)
        assert good[0].endswith(" 5") == (name in ROWS[5:]), (name, good)  # the floor
    skipped = output[output.index("took no part") :]
    for words in "dies0", "dies5", "out of luck", "no-such-program", "does not sleep after its turn", "pip: missing":
        assert words in skipped, (words, skipped)

    status, output = with_peers(bench, folder, peer("tensorflow", "wrong"))
    assert status == 2 and "wrong result" in output, (status, output)


def main(bench):
    status, output = made_up.run(bench, "--quick")
    table = table_of(output)
    assert status == 0 and list(table) == ROWS, (status, table)
    for name, lines in table.items():
        beside = BESIDE.get(name, ["plain gRPC"])
        assert [line[: len(b)] for line, b in zip(lines, beside, strict=True)] == beside, (name, lines)
        floors = [line for line in lines if line.endswith(" 0.7")]
        assert len(floors) == (name in ("push 4 B", "pull 4 B")), (name, lines)
    with tempfile.TemporaryDirectory() as folder:
        check_peers(bench, pathlib.Path(folder))
    status, output = made_up.run(bench, "--peers")
    assert status == 2 and "usage" in output, (status, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
