#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the output of test_observe is a valid trace and valid Prometheus text.

usage: observe.py TEST_OBSERVE
"""

import json
import re
import subprocess
import sys
from collections import Counter

REPLICAS, LATE = 4, 2
# The tag a"b\\c<newline><tab><1><ff><c0 80><ed a0 80><euro> as libdist writes it: each byte that is not UTF-8
# becomes U+FFFD, and control characters are escaped.
TAG = 'a"b\\c\\n\\t\\x01' + "\ufffd" * 6 + "\u20ac"
# The Prometheus format has its own escape for newlines in labels.
STRATEGY = TAG.replace("\\n", "\n").replace("\\t", "\t")


def output(program: str, what: str) -> str:
    return subprocess.run([program, what], check=True, capture_output=True).stdout.decode("utf-8", errors="strict")


def check_slices(events: list[dict]) -> None:
    """Checks the rules of the format: required fields, and that slices of a thread are nested or disjoint."""
    for event in events:
        assert event["ph"] in "MXBsfbe", event
        assert event["pid"] == 0 and 0 <= event["tid"] < REPLICAS, event
        assert isinstance(event["name"], str), event
        if event["ph"] != "M":
            assert event["ts"] > 0, event
    for thread in range(REPLICAS):
        slices = sorted(
            ((e["ts"], -e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == thread), key=lambda s: s
        )
        open_ends: list[float] = []
        for begin, minus_duration in slices:
            end = round(begin - minus_duration, 3)
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 0.0015, (thread, begin, end, open_ends)
            open_ends.append(end)


def check_trace(program: str) -> None:
    trace = json.loads(output(program, "trace"))
    events = trace["traceEvents"]
    check_slices(events)
    names = Counter((e["ph"], e["name"]) for e in events)
    assert names["M", "process_name"] == 1 and names["M", "thread_name"] == REPLICAS, names
    assert names["X", "run"] == 2 * REPLICAS, names
    assert names["X", "all_reduce"] == REPLICAS + 1, names  # one call was rejected
    assert not any(e["ph"] == "B" for e in events), "all is over"

    # Each asynchronous event that begins also ends, on the same replica.
    begins = {e["id"]: e for e in events if e["ph"] == "b"}
    over = {e["id"]: e for e in events if e["ph"] == "e"}
    assert begins.keys() == over.keys() and len(begins) == 3 * REPLICAS
    for i, begin in begins.items():
        assert over[i]["tid"] == begin["tid"] and over[i]["ts"] >= begin["ts"] and over[i]["name"] == begin["name"]
        assert begin["args"]["bytes"] == 256 and begin["args"]["status"] == "OK" and "last" in begin["args"], begin
    rounds = Counter((e["args"]["tag"], e["args"]["sequence"]) for e in begins.values())
    assert rounds == {("later", 1): REPLICAS, ("planned", 1): REPLICAS, ("planned", 2): REPLICAS}, rounds

    sums = [e for e in events if e["ph"] == "X" and e["name"] == "all_reduce" and "bytes" in e["args"]]
    assert [e["tid"] for e in sums].index(LATE) == REPLICAS - 1, "in order of coming"
    for event in sums:
        a = event["args"]
        assert (a["tag"], a["op"], a["dtype"], a["bytes"], a["status"]) == (TAG, "SUM", "f32", 64, "OK"), event
        assert (a["run"], a["sequence"], a["group"], a["last"]) == (1, 1, 0, LATE), event
        assert a["late_ns"] > 0 and a["waited_ns"] >= 0, event
    refused = [e for e in events if e["ph"] == "X" and e["name"] == "all_reduce" and "bytes" not in e["args"]]
    assert [(e["tid"], e["args"]["status"]) for e in refused] == [(1, "INVALID_ARGUMENT")], refused

    barriers = [e for e in events if e["name"] == "barrier"]
    pair = [e for e in barriers if e["args"]["group"] != 0]
    assert sorted(e["tid"] for e in pair) == [1, 3], pair
    assert sum(e["args"]["status"] == "ABORTED" for e in barriers) == REPLICAS - 1, barriers
    runs = [e["args"] for e in events if e["name"] == "run"]
    assert Counter(r["status"] for r in runs) == {"OK": REPLICAS, "DATA_LOSS": 1, "ABORTED": REPLICAS - 1}, runs

    # An arrow leads from the last member that arrived to a slice of a member that waited for it.
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts and starts.keys() == ends.keys()
    first = sums[0]
    assert any(s["tid"] == LATE and ends[i]["tid"] == first["tid"] for i, s in starts.items())
    for i, start in starts.items():
        for event in (start, ends[i]):
            around = [
                e for e in events
                if e["ph"] == "X" and e["tid"] == event["tid"] and e["ts"] <= event["ts"] <= e["ts"] + e["dur"] + 0.001
            ]
            assert any(e["name"] not in ("run",) for e in around), event


def check_live(program: str) -> None:
    lines = output(program, "live").splitlines()
    assert len(lines) == 20, len(lines)
    for line in lines:
        events = json.loads(line)["traceEvents"]
        check_slices(events)
        for event in events:
            if event["name"] == "all_reduce" and event["ph"] == "X":
                assert event["args"].get("tag", "even") == "even", event
            # At most the function and one collective inside it have not ended.
        for thread in range(REPLICAS):
            assert sum(e["ph"] == "B" and e["tid"] == thread for e in events) <= 2


LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"(dist_[a-z_]+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\d+(?:\.\d+)?)")


def check_metrics(program: str) -> None:
    page = output(program, "metrics")
    assert page.endswith("\n")
    kinds: dict[str, str] = {}
    samples: dict[tuple[str, str], float] = {}
    family = None
    for line in page[:-1].split("\n"):
        if help_line := re.fullmatch(r"# HELP (\w+) (\S.*)", line):
            family = help_line[1]
            assert family not in kinds, f"{family} twice"
        elif type_line := re.fullmatch(r"# TYPE (\w+) (counter|gauge)", line):
            assert type_line[1] == family, line
            kinds[type_line[1]] = type_line[2]
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, f"no sample: {line!r}"
            assert sample[1] == family and family in kinds, line
            assert (kinds[family] == "counter") == family.endswith("_total"), line
            labels = sample[2].split(",", 1)
            strategy = labels[0][len('strategy="') : -1]
            assert strategy.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") == STRATEGY, line
            key = (family, labels[1] if len(labels) > 1 else "")
            assert key not in samples, f"{line} twice"
            samples[key] = float(sample[3])

    assert samples["dist_replicas", ""] == REPLICAS
    assert samples["dist_memory_held_bytes", ""] > 0
    for replica in range(REPLICAS):
        of = f'replica="{replica}"'
        assert samples["dist_runs_total", of] == 2
        assert samples["dist_run_seconds_total", of] >= samples["dist_collective_wait_seconds_total", of] > 0
        assert samples["dist_collectives_total", of + ',collective="all_reduce"'] == 4
        assert samples["dist_collective_bytes_total", of + ',collective="all_reduce"'] == 64 + 3 * 256
        barriers = 1 + (replica % 2) + (replica != 1)
        assert samples["dist_collectives_total", of + ',collective="barrier"'] == barriers, samples
        failed, status = ("INVALID_ARGUMENT", "DATA_LOSS") if replica == 1 else ("ABORTED", "ABORTED")
        assert samples["dist_collective_errors_total", f'{of},status="{failed}"'] == 1
        assert samples["dist_run_errors_total", f'{of},status="{status}"'] == 1


if __name__ == "__main__":
    check_trace(sys.argv[1])
    check_live(sys.argv[1])
    check_metrics(sys.argv[1])
