# SPDX-License-Identifier: Apache-2.0
"""Simulated peers, and runs of a benchmark with them, for the benchmarks' own tests."""

import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).with_name("made_up_peer.py")


def peer(group, kind, wanted=".*", forms=("slow", "fast")):
    """Returns (group, label, command) of one."""
    return (group, kind, sys.executable, PROGRAM, kind, "@RANKS@", wanted, *forms)


def absent(folder):
    """Returns two peers that do not take part: one without a program, and one that could not be installed."""
    return ("gloo", "absent", folder / "no-such-program"), ("-", "missing", "pip: missing")


def list_of(folder, *peers):
    """Writes a list of these peers, and returns its path."""
    path = folder / "peers.list"
    path.write_text("".join("\t".join(map(str, each)) + "\n" for each in peers))
    return path


def run(bench, *arguments):
    """Returns its exit status and its output, which is also printed."""
    done = subprocess.run([bench, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    return done.returncode, done.stdout
