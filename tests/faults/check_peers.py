#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how dist_faults judges peers.

check_peers.py DIST_FAULTS                 with simulated peers, each of which ends differently
check_peers.py DIST_FAULTS --processes     the same for faults of processes
check_peers.py DIST_FAULTS LIST LABEL      checks that a real peer of peers.list can play a cell

In all cases, no process or file of a peer may be left behind."""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

PEER = """
import os, signal, sys, time
kind, pids = sys.argv[1:3]
with open(os.path.join(pids, kind + "-" + str(os.getpid())), "w"):
    pass
def say(*words):
    print(*words, sep="\\t", flush=True)
def write(folder, event, words=""):
    with open(os.path.join(folder, "0"), "a") as file:
        file.write(f"{event} {time.monotonic() * 1e6} {words}\\n")
print("noise of a library")
say("@ready", "Made-up " + kind, "")
for line in sys.stdin:
    command, *words = line.rstrip("\\n").split("\\t")
    if command == "quit":
        break
    if command == "can":
        say(*(["@no", "too shy"] if kind == "refuses" else ["@yes"]))
        continue
    folder = words[2]
    say("@begun", "0")
    write(folder, "here", os.getpid())
    if kind == "never":
        sys.exit("out of luck")
    write(folder, "cause")
    if kind == "named":
        write(folder, "back", "error rank 1 did not come")
        write(folder, "next", "right")
    elif kind == "error":
        write(folder, "back", "error 11 of 12 ranks: timed out")
        write(folder, "next", "error closed")
    elif kind == "silent":
        write(folder, "back", "wrong")
        write(folder, "next", "wrong")
    elif kind == "killed":
        os.abort()
    elif kind == "orphan":
        if os.fork() == 0:
            os.setsid()
            with open(os.path.join(pids, "orphan-" + str(os.getpid())), "w"):
                time.sleep(1000)
        time.sleep(0.2)
        os.abort()
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
"""
SAW = {"named": "named", "error": "error", "silent": "silent", "killed": "killed", "orphan": "killed", "hang": "hang"}
NEXT = {"named": "right", "error": "error closed", "silent": "wrong", "killed": "", "orphan": "", "hang": ""}
FILTER = "stalled: all_reduce, blocking"
# A peer that plays the faults of processes. Each fault has its own result in rank 0, its own delay after the
# cause, and its own result of the next collective. Each collective multiplies the delay. Rank 1 is a process
# that has stopped or that never starts. The shared memory of rank 0 must be removed with it.
PROCESSES_PEER = """
import mmap, os, signal, sys, time
WAYS, LATER, pids = eval(sys.argv[1]), 3e5, sys.argv[2]
TIMES = {"all_reduce": 1, "reduce_to_root": 2, "broadcast": 10, "all_gather": 20, "barrier": 30}
def say(*words):
    print(*words, sep="\\t", flush=True)
def write(folder, rank, event, at, words=""):
    with open(os.path.join(folder, str(rank)), "a") as file:
        file.write(f"{event} {at} {words}\\n")
def note():
    with open(os.path.join(pids, "rank-" + str(os.getpid())), "w"):
        pass
note()
say("@ready", "Made-up", "")
for line in sys.stdin:
    command, *words = line.rstrip("\\n").split("\\t")
    if command == "quit":
        break
    fault, collective = words[:2]
    if fault not in WAYS or command == "can":
        say(*(["@yes"] if fault in WAYS else ["@no", "no " + fault]))
        continue
    folder, (saw, words, after, next_words) = words[2], WAYS[fault]
    say("@begun", "0")
    now = time.monotonic() * 1e6
    if fault != "never_started" and os.fork() == 0:
        note()
        write(folder, 1, "here", now, os.getpid())
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)
    with open("/dev/shm/dist_faults-made-up-" + str(os.getpid()), "w+b") as file:
        file.truncate(4096)
        shared = mmap.mmap(file.fileno(), 4096)
    write(folder, 0, "here", now, os.getpid())
    if saw == "killed":
        time.sleep(0.5)  # as many looks of the harness as a library's start takes
    cause = now + (LATER if fault in ("late", "never_started") else 0)
    write(folder, 0, "cause", cause)
    if saw == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if saw != "hang":
        write(folder, 0, "back", cause + after * TIMES[collective], words)
        write(folder, 0, "next", cause + after, next_words)
    time.sleep(1000)
"""
LOST = "error a rank has left"
WAYS = {
    "early_return": ("error", "error Connection closed by peer", 3000, LOST),
    "error_returned": ("named", "error worker 1 has failed: no row 7", 2000, LOST),
    "other_collective": ("named", "error task:1 called all_gather", 1500, "right"),
    "other_op": ("silent", "wrong", 100, "right"),
    "other_dtype": ("silent", "right", 100, "right"),
    "other_shape": ("killed", "", 0, ""),
    "other_root": ("error", "error timed out after 11 s", 2000, "error timed out"),
    "other_order": ("hang", "", 0, ""),
    "late": ("error", "error deadline exceeded", 4000, "error closed"),
    "killed": ("named", "error /job:worker/replica:0/task:1 is down", 5000, LOST),
    "exited": ("error", "error /job:worker/replica:0/task:0: reset", 6000, LOST),
    "stopped": ("named", "error rank 1 does not answer", 7000, LOST),
    "never_started": ("error", "error timed out", 8000, LOST),
}


def run(faults, folder, peers, *more, code=0):
    """Plays one cell of all peers of a list, or the cells selected by `more`. Returns the output and the JSON."""
    report = folder / "run.json"
    what = more or ("--quick", "--filter", FILTER)
    done = subprocess.run(
        [faults, "--report", *what, "--peers", peers, "--json", report],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == code, done.returncode
    return done.stdout, json.loads(report.read_text())


def lives(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def check_made_up(faults, folder):
    script, pids = folder / "peer.py", folder / "pids"
    script.write_text(PEER)
    pids.mkdir()
    lines = [("mpi", kind, sys.executable, script, kind, pids, "@RANKS@") for kind in [*SAW, "refuses", "never"]]
    lines += [("mpi", "absent", folder / "no-such-program"), ("-", "missing", "pip: missing")]
    lines += [("mpi", "bench only", "@BENCH@" + sys.executable, script, "named", pids, "@RANKS@")]
    lines += [("-", "missing of the bench", "sources", "@BENCH@")]
    peers = folder / "peers.list"
    peers.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    output, report = run(faults, folder, peers)

    cells = {cell["peer"]: cell for cell in report["peers"]}
    assert "bench only" not in cells, cells
    for kind, saw in SAW.items():
        cell = cells[kind]
        assert (cell["saw"], cell["next"], cell["leftovers"]) == (saw, NEXT[kind], 0), cell
        assert [witness["rank"] for witness in cell["witnesses"]] == [0], cell
        assert (cell["witnesses"][0]["us"] is None) == (saw == "hang"), cell
    for kind, words in ("refuses", "too shy"), ("never", "out of luck"), ("absent", "no-such-program"):
        assert words in cells[kind]["not_played"] and words in output, cells[kind]
    assert report["peers_missing"] == ["missing: not installed (pip: missing)"], report["peers_missing"]
    table = output[output.index("hangs\n") :]
    for words in "named", "error", "silent", "killed", "hang":
        assert f" {words}" in table, words
    started = [name.name for name in pids.iterdir()]
    assert len({name for name in started if name.startswith("orphan-")}) == 3, started
    left = [name for name in started if lives(name.rpartition("-")[2])]
    assert not left, left


def check_processes(faults, folder):
    script, pids = folder / "peer.py", folder / "pids"
    script.write_text(PROCESSES_PEER)
    pids.mkdir()
    lines = [
        ("mpi", "all", "@PROCESSES@" + sys.executable, script, repr(WAYS), pids),
        ("mpi", "few", "@PROCESSES@" + sys.executable, script, repr({"killed": WAYS["killed"]}), pids),
        ("mpi", "of one process", sys.executable, script, repr(WAYS), pids),
        ("-", "absent", "pip: absent", "@PROCESSES@"),
        ("-", "absent of one process", "pip: other"),
    ]
    peers = folder / "peers.list"
    peers.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    output, report = run(faults, folder, peers, "--workers", "--processes", "--quick")

    assert {cell["peer"] for cell in report["peers"]} == {"all", "few"}, report["peers"]
    cells = {cell["fault"]: cell for cell in report["peers"] if cell["peer"] == "all"}
    assert set(cells) == set(WAYS), cells
    for fault, (saw, message, after, next_words) in WAYS.items():
        cell = cells[fault]
        assert (cell["saw"], cell["next"], cell["leftovers"]) == (saw, next_words, 0), cell
        (witness,) = cell["witnesses"]
        assert (witness["rank"], witness["message"]) == (0, message), cell
        assert (witness["us"] is None) == (saw == "hang"), cell
    times = {(each["peer"], each["fault"]): each for each in report["times"]}
    for fault, (saw, _, after, _) in WAYS.items():
        returned = saw not in ("killed", "hang")
        assert times["all", fault]["returns"] == returned, times["all", fault]
        after *= 10 if fault == "other_root" else 1  # the quick run plays a broadcast for this fault
        assert not returned or abs(times["all", fault]["p50_us"] - after) < 1, times["all", fault]
        assert times["libdist", fault]["returns"] > 0, times["libdist", fault]
    for cell in report["peers"]:
        assert cell["peer"] == "all" or cell["fault"] == "killed" or cell["not_played"] == "no " + cell["fault"], cell
    assert report["peers_missing"] == ["absent: not installed (pip: absent)"], report["peers_missing"]
    check_table(output)

    # All collectives. No cell of libdist matches the filter, so the run fails.
    output, report = run(faults, folder, peers, "--workers", "--processes", "--filter", ", few", code=1)
    (times,) = report["times"]
    assert times["returns"] == 5 and abs(times["p50_us"] - 50000) < 1 and abs(times["p99_us"] - 150000) < 1, times
    assert "  named 50 ms / 150 ms\n" in output, output
    started = [name.name.rpartition("-")[2] for name in pids.iterdir()]
    left = [process for process in started if lives(process)]
    assert not left, left
    shared = [process for process in started if pathlib.Path(f"/dev/shm/dist_faults-made-up-{process}").exists()]
    assert not shared, shared


def check_table(output):
    """Checks the table's results of both peers for each fault."""
    table = {row.split()[0]: row for row in output[output.index("hangs\n") :].splitlines() if row.strip()}
    for fault, words in {
        "early_return": "error 3 ms",
        "error_returned": "named 2 ms",
        "other_collective": "named 1.5 ms +",
        "other_op": "silent +",
        "other_order": "hang",
        "other_root": "error 20 ms",
        "killed": "named 5 ms",
        "never_started": "error 8 ms",
    }.items():
        assert f"  {words}  " in table[fault] + "  ", (fault, table[fault])
        assert "  named " in table[fault], table[fault]


def check_real(faults, folder, everything, label):
    peers = folder / "peers.list"
    with open(everything, encoding="utf-8") as lines:
        mine = [line for line in lines if line.split("\t")[1] == label]
    peers.write_text("".join(mine))
    processes = "@PROCESSES@" in mine[0]
    more = ("--workers", "--processes", "--quick", "--filter", "killed: ") if processes else ()
    _, report = run(faults, folder, peers, *more)
    (cell,) = report["peers"]
    assert cell["saw"] in SAW.values() and cell["leftovers"] == 0, cell
    assert cell["witnesses"], cell


def main(faults, *real):
    with tempfile.TemporaryDirectory() as name:
        if real == ("--processes",):
            check_processes(faults, pathlib.Path(name))
        elif real:
            check_real(faults, pathlib.Path(name), *real)
        else:
            check_made_up(faults, pathlib.Path(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
