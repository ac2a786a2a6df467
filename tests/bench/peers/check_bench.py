#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how dist_bench treats its peers and bindings, with simulated ones: check_bench.py DIST_BENCH.

A working peer is measured, and its fastest form counts (for bindings, that of each). A peer that does not start, dies
or keeps running is omitted with a message. A wrong result ends the run."""

import json
import os
import pathlib
import sys
import tempfile

import made_up

ROW = "all_reduce f32 1 KiB in place x2, hot"


def run(bench, folder, peers, row=ROW, option="--peers"):
    """Runs with these (group, label, command) next to libdist. Returns exit status and output; run.json has the JSON."""
    path = made_up.list_of(folder, *peers)
    return made_up.run(
        bench, "--quick", "--replicas", "2", "--filter", row, option, path, "--json", folder / "run.json"
    )


def main(bench):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        status, output = run(
            bench,
            folder,
            [
                made_up.peer("mpi", "good"),
                made_up.peer("oneccl", "dies0"),
                made_up.peer("jax", "spins"),
                *made_up.absent(folder),
            ],
        )
        assert status == 0, status
        report = json.loads((folder / "run.json").read_text())
        groups = {c["group"]: c for row in report["rows"] for c in row["comparisons"] if c["group"]}
        assert set(groups) == {"mpi"}, groups
        sides = {side["name"]: side["median_us"] for side in report["rows"][0]["sides"]}
        assert groups["mpi"]["with"] == "good of 2, fast" and sides["good of 2, fast"] == 1000.5, groups
        assert sides["good of 2, slow"] == 2000.5, sides
        assert all(row["hop_us"] > 0 for row in report["rows"]), report["rows"]
        printed = output[output.index("\nrow, ") : output.index("took no part")].splitlines()
        table = [line for line in printed if not line.startswith("dist_bench:")]
        assert max(map(len, table)) <= 100, max(table, key=len)
        skipped = "\n".join(report["peers_skipped"])
        for words in "out of luck", "no-such-program", "does not sleep after its turn", "pip: missing":
            assert words in skipped and words in output, (words, skipped)

        # Another way to start a peer counts as another peer of its group.
        other = ("mpi", "other", "@BENCH@" + sys.executable, *made_up.peer("mpi", "good")[3:])
        status, output = run(bench, folder, [other])
        assert status == 0 and "good of 2, fast" in output, (status, output)

        # A missing peer that only the benchmark uses is named, too.
        status, output = run(bench, folder, [other, ("-", "bench only", "sources", "@BENCH@")])
        assert status == 0 and "bench only: not installed (sources)" in output, (status, output)

        # Work loops judge peers with tensors: in f32, and inference engines also in bf16.
        for row, floors in {
            "all_reduce f32 64 KiB in place x2, work loop": {"mpi": 4.5, "vllm": 1.3, "deepspeed": 0.95},
            "all_reduce bf16 64 KiB in place x2, work loop": {"mpi": None, "vllm": 1.3, "deepspeed": 0.95},
            "all_reduce bf16 1 MiB in place x2, hot": {"mpi": None, "vllm": None, "deepspeed": None},
        }.items():
            status, output = run(bench, folder, [made_up.peer(group, "good") for group in floors], row)
            assert status == 0, status
            report = json.loads((folder / "run.json").read_text())
            (measured,) = report["rows"]
            seen = {c["group"]: c.get("floor") for c in measured["comparisons"] if c["group"]}
            assert seen == floors, (row, seen)

        status, output = run(bench, folder, [made_up.peer("mpi", "wrong")])
        assert status == 2 and "wrong result" in output, (status, output)

        # A binding's form without a name is compared with C, the others with C on host threads; Python has no floor.
        def binding(language):
            return (language, language, *made_up.peer(language, "good", forms=("", "slow", "fast"))[2:])

        status, output = run(
            bench,
            folder,
            [binding("go"), binding("python"), ("-", "java", "JDK")],
            "all_reduce f32 4 B x2, hot",
            "--bindings",
        )
        assert status == 0, status
        report = json.loads((folder / "run.json").read_text())
        assert "java: not installed (JDK)" in report["bindings_skipped"] and "JDK" in output, report["bindings_skipped"]
        rows = {row["threads"]: row for row in report["rows"] if row["operation"] == "bindings_all_reduce"}
        seen = {t: [(c["group"], c["with"], c.get("floor")) for c in row["comparisons"]] for t, row in rows.items()}
        assert seen == {
            "library": [("go", "good of 2", 3), ("python", "good of 2", None)],
            "host": [
                ("go", "good of 2, slow", 3),
                ("go", "good of 2, fast", 3),
                ("python", "good of 2, slow", None),
                ("python", "good of 2, fast", None),
            ],
        }, seen
        for row in rows.values():
            c_us = row["sides"][0]["median_us"]
            assert all(c["unit"] == "times_c" and c["ratio"] > 1 for c in row["comparisons"]), (c_us, row)


if __name__ == "__main__":
    if len(os.sched_getaffinity(0)) < 2:
        print("peers take part only where each rank has a CPU")
        sys.exit(77)  # Meson: skipped
    main(sys.argv[1])
