#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the output of dist_bench_overlap, its errors, and how it treats its peers, with simulated ones:
check.py DIST_BENCH_OVERLAP TRANSPORT... A peer that fails is omitted with a message."""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import made_up  # noqa: E402  (after the path is set)

PEER = pathlib.Path(__file__).with_name("made_up_peer.py")
FORMS = ("copied", "in_buckets")
MODES = ("cpu", "device")
ROUNDS = 2
LIMIT, LEVEL = 0.8, 0.95  # within 5 % is level


def report_of(bench, folder, *arguments):
    """Returns exit status, output and file of a short run."""
    path = folder / "run.json"
    path.unlink(missing_ok=True)
    status, output = made_up.run(bench, "--workers", "2", "--quick", "--json", path, *arguments)
    assert status == 0, status
    return json.loads(path.read_text()), output


def check_sides(report, names):
    assert report["workers"] == 2 and report["rounds"] == ROUNDS, report
    assert [(side["name"], side["mode"]) for side in report["sides"]] == [(n, m) for n in names for m in MODES], report
    for side in report["sides"]:
        for times in side["step_ms"], side["compute_only_ms"]:
            assert len(times) == ROUNDS and min(times) > 0, side
        assert len(side["cpu_ms"]) == ROUNDS, side
        if side["mode"] == "device":  # a device does not finish early
            assert min(side["step_ms"] + side["compute_only_ms"]) >= report["compute_ms"], side


def check_judged(bench, folder):
    """Checks that the table and the exit status judge the limit like the values in the file."""
    path = folder / "judged.json"
    options = ("--rounds", "1", "--compute", "5", "--transport", "shm", "--json", path)
    status, output = made_up.run(bench, "--workers", "2", *options, "--peer", sys.executable, PEER, "slow")
    exposed = {(side["name"], side["mode"]): side["exposed_ms"] for side in json.loads(path.read_text())["sides"]}
    missed = judged = 0
    for mode in MODES:
        peer = min(exposed[f"made up, {form}", mode] for form in FORMS)
        if abs(peer) < 0.01:  # too close to 0 for the file's digits
            return
        if peer < 0:  # the disturbance exceeds it
            continue
        judged += 1
        missed += exposed["libdist, shm", mode] / peer > LIMIT / LEVEL
    assert status == (missed > 0) and output.count("MISSED") == missed, (status, exposed)
    assert output.count(" met") == judged - missed, (output, exposed)


def main(bench, *transports):
    libdist = [f"libdist, {transport}" for transport in transports]
    made_up_names = [f"made up, {form}" for form in FORMS]
    one = ("--transport", transports[0])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report, output = report_of(bench, folder)
        check_sides(report, libdist)
        assert report["peers_skipped"] == [], report
        for side in libdist:
            assert output.count(side) == len(MODES), output

        report, output = report_of(bench, folder, *one, "--peer", sys.executable, PEER, "good")
        check_sides(report, [libdist[0], *made_up_names])
        for kind, reason in ("dies", "ended with"), ("leaves", "ended with"), ("wrong", "a wrong mean in tensor 0"):
            report, output = report_of(bench, folder, *one, "--peer", sys.executable, PEER, kind)
            check_sides(report, libdist[:1])
            assert len(report["peers_skipped"]) == len(FORMS), report
            for skipped in report["peers_skipped"]:
                assert reason in skipped and skipped in output, (reason, skipped)
        check_judged(bench, folder)
    for wrong in (["--workers", "1"], ["--workers", "2", "--transport", "pigeon"], ["--workers", "2", "--compute", "0"]):
        status, output = made_up.run(bench, *wrong)
        assert status == 2 and "usage" in output, (status, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
