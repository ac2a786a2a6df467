#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the digits trainer, with one replica per CPU, with other programs that train the same network.

Programs take turns, round after round. Each trains once and reports the time without its start and its tests. A ratio
is the other program's time divided by libdist's in the same round. The output shows the median, the lowest and the
highest ratio.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

FLOOR, GOAL = 0.5, 0.7  # relative to the speed of the program that calls a compiled step
LEVEL = 0.05
LEAST_ACCURACY = 0.93  # below this, a program has not learned, and its time is meaningless
JUDGED = "step"


def busy_share(before, after, own_seconds):
    """Returns the share of CPU time that other programs used, from two readings of /proc/stat."""
    passed = sum(after) - sum(before)
    idle = sum(after[3:5]) - sum(before[3:5])
    if passed <= 0:
        return 0.0
    return max(0.0, (passed - idle - own_seconds * os.sysconf("SC_CLK_TCK")) / passed)


def cpu_times():
    with open("/proc/stat", encoding="ascii") as file:
        return [int(word) for word in file.readline().split()[1:9]]


def own_seconds():
    times = os.times()
    return times.children_user + times.children_system


def train_libdist(program, epochs, replicas):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "run.json"
        command = [program, "--epochs", epochs, "--replicas", replicas, "--report", report]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        told = json.loads(report.read_text(encoding="utf-8"))
    return {"seconds": sum(epoch["seconds"] for epoch in told["epochs"]), "accuracy": told["test_accuracy"]}


def train_other(command, epochs):
    """Runs a program. Its last line has an object for each form: {"step": {"seconds": 1.5, "accuracy": 0.98}, ...}."""
    done = subprocess.run([*command, str(epochs)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def verdict(ratio):
    if ratio >= GOAL:
        return "goal"
    if ratio >= FLOOR:
        return "met"
    return "level" if ratio >= FLOOR * (1 - LEVEL) else "MISSED"


def measure(chosen):
    """Returns a list of rounds: the time of each side, and the load by other programs."""
    replicas = len(os.sched_getaffinity(0))
    rounds = []
    for _ in range(chosen.rounds):
        times, used = cpu_times(), own_seconds()
        sides = {"libdist": train_libdist(chosen.program, chosen.epochs, replicas)}
        for name, *command in chosen.peer:
            for form, took in train_other(command, chosen.epochs).items():
                sides[f"{name}, {form}"] = took
        others = busy_share(times, cpu_times(), own_seconds() - used)
        for name, side in sides.items():
            if chosen.epochs >= 10 and side["accuracy"] < LEAST_ACCURACY:
                sys.exit(f"{name} has learned too little: {side['accuracy']:.3f}")
        rounds.append({"sides": sides, "others": others})
    return replicas, rounds


def show(chosen, replicas, rounds):
    """Prints the table. Returns 1 if the floor was missed."""
    print(f"{chosen.epochs} epochs, {replicas} replicas on {replicas} CPUs, {len(rounds)} rounds")
    own = [one["sides"]["libdist"]["seconds"] for one in rounds]
    print(f"{'libdist':24} {statistics.median(own):8.3f} s")
    missed = False
    for name in rounds[0]["sides"]:
        if name == "libdist":
            continue
        theirs = [one["sides"][name]["seconds"] for one in rounds]
        ratios = [b / a for a, b in zip(own, theirs)]
        ratio = statistics.median(ratios)
        judged = name.endswith(f", {JUDGED}")
        word = f"floor {FLOOR} goal {GOAL}: {verdict(ratio)}" if judged else "shown beside"
        missed = missed or (judged and verdict(ratio) == "MISSED")
        print(
            f"{name:24} {statistics.median(theirs):8.3f} s   libdist is {ratio:5.2f} x as fast "
            f"({min(ratios):.2f}..{max(ratios):.2f})   {word}"
        )
    print(f"other programs took up to {max(one['others'] for one in rounds):.0%} of the CPUs")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="train_digits")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--json", help="a file for all figures")
    parser.add_argument("--peer", nargs="+", action="append", default=[], metavar="WORD", help="a name and a command")
    chosen = parser.parse_args()
    replicas, rounds = measure(chosen)
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps(rounds, indent=1) + "\n", encoding="utf-8")
    return show(chosen, replicas, rounds)


if __name__ == "__main__":
    sys.exit(main())
