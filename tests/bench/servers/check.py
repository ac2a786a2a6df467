#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dist_bench_servers prints, and how it treats its peers, tried with made-up ones: check.py DIST_BENCH_SERVERS.

A good one has turns, and its fastest form counts; one that cannot be started, dies or keeps running is left out with a word; a
wrong result ends the run."""

import pathlib
import subprocess
import sys
import tempfile

PEER = """
import sys, threading
kind = sys.argv[1]
print("@ready", kind + " of " + sys.argv[2], *sys.argv[3:], sep="\\t", flush=True)
def spin():
    while True:
        pass
for asked, line in enumerate(sys.stdin):
    words = line.rstrip("\\n").split("\\t")
    if words[0] == "quit":
        break
    assert words[2] in ("push", "pull", "closure", "closure_push") and words[3] == "f32", words
    if kind.startswith("dies") and asked >= int(kind[4:]):
        print("out of luck", file=sys.stderr)
        sys.exit(1)
    if kind == "spins":
        threading.Thread(target=spin, daemon=True).start()
    if kind == "wrong":
        print("@failed", "wrong result", sep="\\t", flush=True)
    elif words[1] == "slow" and words[2] == "push":
        print("@no", "not offered", sep="\\t", flush=True)
    else:
        print("@times", *["2000.5" if words[1] == "slow" else "100.5"] * int(words[8]), sep="\\t", flush=True)
"""
ROWS = [
    *(f"{what} {size}" for size in ("4 B", "64 KiB") for what in ("push", "pull")),
    "closure of nothing",
    "closure, push 4 B",
    "closure of nothing, 8 at a time",
    "closure, push 4 B, 8 at a time",
]
BESIDE = {row: ["a call of plain gRPC"] if row == "closure of nothing" else [] for row in ROWS[4:]}


def run(bench, *arguments):
    done = subprocess.run(
        [bench, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(done.stdout)
    return done.returncode, done.stdout


def table_of(output):
    """The lines of libdist and what is beside it, by row."""
    table = {}
    for line in output.splitlines():
        if ": libdist " in line:
            row = table.setdefault(line.split(": libdist ")[0], [])
        elif line.startswith("  ") and " (" in line and " to " in line:
            row.append(line.strip())
    return table


def with_peers(bench, folder, *peers):
    (folder / "list").write_text("".join("\t".join(map(str, peer)) + "\n" for peer in peers))
    return run(bench, "--quick", "--peers", folder / "list")


def check_peers(bench, folder):
    script = folder / "peer.py"
    script.write_text(PEER)

    def peer(group, kind):
        return (group, kind, sys.executable, script, kind, "@RANKS@", "slow", "fast")

    status, output = with_peers(
        bench,
        folder,
        peer("tensorflow", "good"),
        peer("mpi", "dies0"),
        peer("jax", "dies5"),
        ("gloo", "absent", folder / "no-such-program"),
        peer("oneccl", "spins"),
        ("-", "missing", "pip: missing"),
    )
    assert status == 0, status
    for name, lines in table_of(output).items():
        good = [line for line in lines if line.startswith("good of 1, ")]
        assert len(good) == 1 and good[0].startswith("good of 1, fast") and " 100.5 " in good[0], (name, lines)
        assert good[0].endswith(" 5") == (name in ROWS[5:]), (name, good)  # the floor
    skipped = output[output.index("took no part") :]
    for words in "dies0", "dies5", "out of luck", "no-such-program", "does not sleep after its turn", "pip: missing":
        assert words in skipped, (words, skipped)

    status, output = with_peers(bench, folder, peer("tensorflow", "wrong"))
    assert status == 2 and "wrong result" in output, (status, output)


def main(bench):
    status, output = run(bench, "--quick")
    table = table_of(output)
    assert status == 0 and list(table) == ROWS, (status, table)
    for name, lines in table.items():
        beside = BESIDE.get(name, ["plain gRPC"])
        assert [line[: len(b)] for line, b in zip(lines, beside, strict=True)] == beside, (name, lines)
        floors = [line for line in lines if line.endswith(" 0.7")]
        assert len(floors) == (name in ("push 4 B", "pull 4 B")), (name, lines)
    with tempfile.TemporaryDirectory() as folder:
        check_peers(bench, pathlib.Path(folder))
    status, output = run(bench, "--peers")
    assert status == 2 and "usage" in output, (status, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
