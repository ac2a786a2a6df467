#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the traces of the workers of test_workers_trace can be combined as inspect.h specifies.

usage: workers_trace.py TEST_WORKERS_TRACE
"""

import json
import subprocess
import sys
from collections import Counter

# Workers of 2, 1 and 1 replicas; replica 2 is late in the sums, worker 0 in the sum from outside.
WORKER_OF = {0: 0, 1: 0, 2: 1, 3: 2}
LATE, ROUNDS, OUTSIDE = 2, 4, 4


def merged(program: str) -> list[dict]:
    out = subprocess.run([program, "trace"], check=True, capture_output=True).stdout.decode()
    traces = [json.loads(line) for line in out.splitlines()]
    assert len(traces) == 3 and all(t["displayTimeUnit"] == "ns" for t in traces)
    return [event for trace in traces for event in trace["traceEvents"]]


def check_places(events: list[dict]) -> None:
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    wanted = {(w, r): f"replica {r}" for r, w in WORKER_OF.items()}
    wanted |= {(w, OUTSIDE): "outside of replicas" for w in range(3)}
    assert names == wanted, names
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == {w: f"libdist worker {w}" for w in range(3)}, processes
    for event in events:
        assert (event["pid"], event["tid"]) in names, event


def check_ids(events: list[dict]) -> None:
    starts = Counter(e["id"] for e in events if e["ph"] == "s")
    ends = Counter(e["id"] for e in events if e["ph"] == "f")
    assert starts == ends and set(starts.values()) <= {1}, (starts, ends)
    of = {e["id"]: e["pid"] for e in events if e["ph"] == "s"}
    for event in events:
        if event["ph"] == "f":
            assert event["pid"] == of[event["id"]], event


def check_sums(events: list[dict]) -> None:
    sums = [e for e in events if e["name"] == "all_reduce" and e["tid"] != OUTSIDE]
    places = Counter((e["pid"], e["tid"], e["args"]["sequence"]) for e in sums)
    assert places == {(w, r, i + 1): 1 for r, w in WORKER_OF.items() for i in range(ROUNDS)}, places
    for event in sums:
        a = event["args"]
        size = 64 if a["sequence"] % 2 == 1 else 20000
        assert (a["tag"], a["op"], a["dtype"], a["bytes"], a["status"]) == ("grads", "SUM", "f32", size, "OK"), event
        assert (a["run"], a["group"], a["last"], a["last_worker"]) == (1, 0, LATE, 1), event
        # The replicas of worker 1 did not wait for it, because its worker has no other.
        assert (a["late_ns"] > 0) == (event["pid"] != 1), event
        inside = [e for e in events if e["name"] == "wait" and e["tid"] == event["tid"] and e["ts"] == event["ts"]]
        assert len(inside) == 1 and inside[0]["dur"] <= event["dur"], event


def check_outside(events: list[dict]) -> None:
    outside = [e for e in events if e["tid"] == OUTSIDE and e["ph"] == "X" and e["name"] != "wait"]
    assert sorted((e["pid"], e["name"]) for e in outside) == [(w, "all_reduce") for w in range(3)], outside
    for event in outside:
        a = event["args"]
        assert (a["op"], a["dtype"], a["bytes"], a["status"]) == ("SUM", "f32", 4, "OK"), event
        assert a["last_worker"] == 0 and "last" not in a and "group" not in a, event
        assert (a["late_ns"] > 0) == (event["pid"] != 0), event


def check_failures(events: list[dict]) -> None:
    barriers = [e for e in events if e["name"] == "barrier"]
    assert sorted(e["tid"] for e in barriers) == [0, 1, 2], barriers
    for event in barriers:
        assert event["ph"] == "X" and event["args"]["status"] == "ABORTED" and "last" not in event["args"], event


if __name__ == "__main__":
    everything = merged(sys.argv[1])
    check_places(everything)
    check_ids(everything)
    check_sums(everything)
    check_outside(everything)
    check_failures(everything)
