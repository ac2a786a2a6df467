#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How dist_bench treats its peers, tried with made-up ones: check_bench.py DIST_BENCH.

A good one is measured and its fastest form counts; one that cannot be started, dies or keeps running is left out
with a word; a wrong result ends the run."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

PEER = """
import sys, threading
kind = sys.argv[1]
print("noise of a library")
print("@ready", "Made-up " + sys.argv[2], "slow", "fast", sep="\\t", flush=True)
def spin():
    while True:
        pass
for line in sys.stdin:
    words = line.rstrip("\\n").split("\\t")
    if words[0] == "quit":
        break
    if kind == "dies":
        print("out of luck", file=sys.stderr)
        sys.exit(1)
    if kind == "spins":
        threading.Thread(target=spin, daemon=True).start()
    if kind == "wrong":
        print("@failed", "wrong result", sep="\\t", flush=True)
        continue
    us = "2000.5" if words[1] == "slow" else "1000.5"
    print("@times", *[us] * int(words[8]), sep="\\t", flush=True)
"""
ROW = "all_reduce f32 1 KiB in place x2, hot"


def run(bench, folder, peers):
    """Exit status, output and JSON of a run with these (group, label, command) beside libdist."""
    (folder / "peers.list").write_text("".join("\t".join(map(str, peer)) + "\n" for peer in peers))
    done = subprocess.run(
        [bench, "--quick", "--replicas", "2", "--filter", ROW, "--peers", folder / "peers.list",
         "--json", folder / "run.json"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    print(done.stdout)
    return done.returncode, done.stdout


def main(bench):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        script = folder / "peer.py"
        script.write_text(PEER)

        def peer(group, kind):
            return (group, kind, sys.executable, script, kind, "@RANKS@")

        status, output = run(
            bench,
            folder,
            [
                peer("mpi", "good"),
                peer("oneccl", "dies"),
                ("gloo", "absent", folder / "no-such-program"),
                peer("jax", "spins"),
                ("-", "missing", "pip: missing"),
            ],
        )
        assert status == 0, status
        report = json.loads((folder / "run.json").read_text())
        groups = {c["group"]: c for row in report["rows"] for c in row["comparisons"] if c["group"]}
        assert set(groups) == {"mpi"}, groups
        sides = {side["name"]: side["median_us"] for side in report["rows"][0]["sides"]}
        assert groups["mpi"]["with"] == "Made-up 2, fast" and sides["Made-up 2, fast"] == 1000.5, groups
        assert sides["Made-up 2, slow"] == 2000.5, sides
        skipped = "\n".join(report["peers_skipped"])
        for words in "out of luck", "no-such-program", "does not sleep after its turn", "pip: missing":
            assert words in skipped and words in output, (words, skipped)

        status, output = run(bench, folder, [peer("mpi", "wrong")])
        assert status == 2 and "wrong result" in output, (status, output)


if __name__ == "__main__":
    if len(os.sched_getaffinity(0)) < 2:
        print("peers take part only where each rank has a CPU")
        sys.exit(77)  # Meson: skipped
    main(sys.argv[1])
