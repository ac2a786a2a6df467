#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How dist_faults judges peers: check_peers.py DIST_FAULTS, tried with made-up ones, of which each ends in another
way; check_peers.py DIST_FAULTS LIST LABEL: that a real one of peers.list plays a cell.

Either way nothing may be left of them."""

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


def run(faults, folder, peers):
    """The output and the JSON of one cell of all peers of a list."""
    report = folder / "run.json"
    done = subprocess.run(
        [faults, "--report", "--quick", "--filter", FILTER, "--peers", peers, "--json", report],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.returncode
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
    peers = folder / "peers.list"
    peers.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    output, report = run(faults, folder, peers)

    cells = {cell["peer"]: cell for cell in report["peers"]}
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


def check_real(faults, folder, everything, label):
    peers = folder / "peers.list"
    with open(everything, encoding="utf-8") as lines:
        peers.write_text("".join(line for line in lines if line.split("\t")[1] == label))
    _, report = run(faults, folder, peers)
    (cell,) = report["peers"]
    assert cell["saw"] in SAW.values() and cell["leftovers"] == 0, cell
    assert cell["witnesses"], cell


def main(faults, *real):
    with tempfile.TemporaryDirectory() as name:
        if real:
            check_real(faults, pathlib.Path(name), *real)
        else:
            check_made_up(faults, pathlib.Path(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
