#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the output of dist_bench_split and how it treats its peer, with simulated ones: check.py DIST_BENCH_SPLIT
DATA.

Rounds in which the peer's two threads are fast enough are judged, others are not. A peer that does not start is omitted
with a message. A wrong result ends the run."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import made_up  # noqa: E402  (after the path is set)

SPREAD = r"\d+\.\d+ +\( *\d+\.\d+ to +\d+\.\d+\)"


def run(bench, data, *peer):
    return made_up.run(bench, "--quick", data / "weights.safetensors", data / "reference.safetensors", *peer)


def peer(kind, *forms):
    return [1 if word == "@RANKS@" else word for word in made_up.peer("-", kind, "encode .*", forms)[2:]]


def lines_of(output, name):
    return [line for line in output.splitlines() if line.startswith(name)]


def check_table(output, peer):
    """Checks one table."""
    for name in "libdist, 1 device ", "libdist, 2 devices ":
        (line,) = lines_of(output, name)
        speed = rf"  +{SPREAD} +0\.9" if peer else ""
        assert re.fullmatch(rf"{name} *{SPREAD}{speed}", line), line
    (line,) = lines_of(output, "2 devices' collectives")
    assert re.fullmatch(rf".*: {SPREAD} +0\.05", line), line
    assert re.search(rf"waiting for the later device: {SPREAD}\n", output), output
    assert re.search(r"within \d\.\de-0[67] of ONNX Runtime's", output), output


def main(bench, data):
    data = pathlib.Path(data)
    status, output = run(bench, data)
    assert status == 0 and "takes no part: it is not installed" in output, (status, output)
    check_table(output, peer=False)

    status, output = run(bench, data, *map(str, peer("good", "slow", "fast")))  # two are twice as fast as one
    assert status == 0 and "too few: 2 rounds in which its two threads were at least" in output, (status, output)
    check_table(output, peer=True)
    assert len(lines_of(output, "good of 1, 1 thread ")) == 1 and len(lines_of(output, "good of 1, 2 threads ")) == 1

    status, output = run(bench, data, *map(str, peer("good", "fast", "fast")))
    assert status == 0 and "Not judged: 2 rounds in which its two threads were less than" in output, (status, output)
    check_table(output, peer=True)

    status, output = run(bench, data, "no-such-program")
    assert status == 0 and "ONNX Runtime takes no part: it did not start (no-such-program" in output, (status, output)
    for kind, words in ("wrong", "wrong result"), ("dies3", "out of luck"), ("spins", "does not sleep"):
        status, output = run(bench, data, *map(str, peer(kind, "slow", "fast")))
        assert status == 2 and words in output, (kind, status, output)

    status, output = made_up.run(bench)
    assert status == 2 and "usage" in output, (status, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
