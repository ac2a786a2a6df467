#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the output of dist_bench_workers and its errors: check.py DIST_BENCH_WORKERS TRANSPORT with|without (Gloo).

check.py DIST_BENCH_WORKERS peers: checks how it treats its peers, with simulated ones. A working peer has turns. A peer
that does not start, dies or keeps running is omitted with a message. A wrong result ends the run."""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import made_up  # noqa: E402  (after the path is set)

SIZES = [4, 1 << 10, 8 << 10, 64 << 10, 1 << 20]
BARE = {"gRPC: round trip", "gRPC: exchange"}
BY_HAND = {"shared memory by hand"}
GLOO = {"ring", "bcube", "halving-doubling", "chunked ring"}


def floor_of(transport, name, size):
    if transport == "shm":
        return 0.9
    if transport == "gloo" and name.startswith("Gloo "):
        return 0.9 if size >= 1 << 20 else 1
    return 0.8 if (transport, name) == ("grpc", "gRPC: exchange") and size >= 1 << 20 else None


def check_row(row, transport, with_gloo):
    """Checks that every side has a time for every round and that the fastest form of each library is compared."""
    sides = {side["name"]: side for side in row["sides"]}
    for side in sides.values():
        assert len(side["round_us"]) == 2 and min(side["round_us"]) > 0, side
    of_gloo = {name: side["median_us"] for name, side in sides.items() if name.startswith("Gloo ")}
    assert bool(of_gloo) == with_gloo and {name.split(", ")[1] for name in of_gloo} <= GLOO, of_gloo
    beside = BY_HAND if transport == "shm" else BARE
    assert set(sides) == {"libdist", *beside, *of_gloo}, set(sides)
    best = {min(of_gloo, key=of_gloo.get)} if of_gloo else set()
    compared = {c["with"]: c for c in row["comparisons"]}
    assert set(compared) == beside | best, compared
    for c in compared.values():
        assert 0 < c["ratio_min"] <= c["ratio"] <= c["ratio_max"], c
        assert c.get("floor") == floor_of(transport, c["with"], row["bytes"]) and c.get("verdict", "") == "", c


def check_judged(bench, folder):
    """Checks that the table, the file and the exit status agree on whether a floor was missed in one round."""
    path = folder / "judged.json"
    status, output = made_up.run(bench, "--workers", "2", "--rounds", "1", "--json", path)
    rows = json.loads(path.read_text())["rows"]
    judged = [c for row in rows for c in row["comparisons"] if "floor" in c]
    assert len(rows) == len(SIZES) + 1 and len(judged) == 2, rows
    for c in judged:
        assert abs(c["speed"] * c["ratio"] - 1) < 0.01, c
        held = c["speed"] >= 0.95 * c["floor"]
        assert abs(c["speed"] - 0.95 * c["floor"]) < 0.01 or held == (c["verdict"] in ("goal", "met", "level")), c
    missed = sum(c["verdict"] == "MISSED" for c in judged)
    assert status == (missed > 0) and output.count("MISSED") == missed, (status, judged)
    assert f"Floors: {2 - missed} of 2 held." in output, output


def with_peers(bench, folder, *peers):
    """Runs with these (group, label, command). Returns exit status and output; run.json has the JSON."""
    path = made_up.list_of(folder, *peers)
    return made_up.run(bench, "--workers", "2", "--quick", "--peers", path, "--json", folder / "run.json")


def check_peers(bench):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        def peer(group, kind):
            return made_up.peer(group, kind, r"all_reduce f32 \d+ out_of_place hot")

        status, output = with_peers(
            bench,
            folder,
            peer("mpi", "good"),
            peer("tensorflow", "dies0"),
            peer("jax", "dies5"),
            peer("oneccl", "spins"),
            *made_up.absent(folder),
        )
        assert status == 0, status
        report = json.loads((folder / "run.json").read_text())
        assert len(report["rows"]) == len(SIZES), report
        for row in report["rows"]:
            sides = {side["name"]: side["round_us"] for side in row["sides"] if " of 2" in side["name"]}
            assert sides == {"good of 2, slow": [2000.5] * 2, "good of 2, fast": [1000.5] * 2}, sides
            assert "good of 2, fast" in {c["with"] for c in row["comparisons"]}, row["comparisons"]
        skipped = "\n".join(report["peers_skipped"])
        for words in "dies0", "dies5", "out of luck", "no-such-program", "does not sleep after its turn", "pip: missing":
            assert words in skipped and words in output, (words, skipped)

        status, output = with_peers(bench, folder, peer("mpi", "wrong"))
        assert status == 2 and "wrong result" in output, (status, output)


def main(bench, transport, gloo="without"):
    if transport == "peers":
        return check_peers(bench)
    with_gloo = gloo == "with"
    if transport == "gloo" and not with_gloo:
        status, output = made_up.run(bench, "--workers", "2", "--quick", "--transport", "gloo")
        assert status == 2 and "this build has no Gloo" in output, (status, output)
        return None
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "run.json"
        status, output = made_up.run(bench, "--workers", "2", "--quick", "--transport", transport, "--json", path)
        assert status == 0, status
        report = json.loads(path.read_text())
        if transport == "grpc":
            check_judged(bench, pathlib.Path(name))
    assert report["workers"] == 2 and report["transport"] == transport, report
    assert [row["bytes"] for row in report["rows"]] == SIZES, report
    for row in report["rows"]:
        check_row(row, transport, with_gloo)
    for wrong in (["--workers", "1"], ["--workers", "2", "--transport", "pigeon"]):
        status, output = made_up.run(bench, *wrong)
        assert status == 2 and "usage" in output, (status, output)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
