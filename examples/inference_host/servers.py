# SPDX-License-Identifier: Apache-2.0
"""Runs the servers that bench.py loads, and collects their results."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")


def percentile(times, part):
    """Returns the given quantile of `times`, or 0.0 if there are none."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))] if times else 0.0


def body_of(tokens):
    """Returns the request body that load.c sends."""
    return json.dumps({"ids": [101, *(100 + i * 37 % 90 for i in range(1, tokens))]}).encode()


def machine(cpus):
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")}
    return f"{cpus} cores of {' and '.join(sorted(names)) or os.uname().machine}"


def cpu_seconds():
    """Returns the CPU time that all processes of the machine have used."""
    user, nice, system, _, _, irq, softirq = map(int, pathlib.Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


class Tally:
    """The results of one load on one server, summed over the rounds."""

    def __init__(self, rate):
        self.rate, self.times, self.p99s = rate, [], []
        self.asked = self.answered = self.refused = self.failed = 0
        self.seconds = self.cpu = 0.0

    def add(self, seconds, said, times):
        self.times += times
        self.p99s.append(percentile(times, 0.99))
        self.seconds += seconds
        self.asked += int(said["asked"])
        self.answered += said["rate"] * seconds  # those within the time; the last answers may arrive later
        self.refused += int(said["refused"])
        self.failed += int(said["failed"])
        self.cpu += said["cpu"] * seconds


class Server:
    """A program that prints its address. If sets_rates, its capacity is a candidate for the common rates."""

    def __init__(self, name, command, sets_rates=False):
        self.name, self.sets_rates = name, sets_rates
        self.capacities, self.capacity, self.tallies = [], 0.0, {}
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("http://"):
            self.process.kill()
            sys.exit(f"bench.py: {name} does not start")
        self.port = int(line.rsplit(":", 1)[1])

    def post(self, path, body):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body) as answer:
            return json.load(answer)

    def answer(self, given):
        return self.post("/encode", body_of(given.tokens))

    def ask(self, given, rate, *more):
        """Runs load. Returns its results and, for each answer, the due time, the latency and the start of the body."""
        path = given.scratch / "answers"
        most = more or (900,)
        command = [given.folder / "load", self.port, f"{rate:.3f}", given.seconds, given.tokens, *most, path]
        words = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
        return dict(zip(words[::2], map(float, words[1::2]))), lines

    def capacity_now(self, given):
        said, _ = self.ask(given, 0, given.queue)
        if said["refused"] or said["failed"] or not said["answered"]:
            sys.exit(f"bench.py: {self.name} refuses some of {given.queue} connections: that is no capacity: {said}")
        return said["rate"]

    def load(self, given, key, rate):
        said, lines = self.ask(given, rate)
        self.tallies.setdefault(key, Tally(rate)).add(given.seconds, said, [float(line[1]) for line in lines])
        return lines

    def cpu_seconds(self):
        after_name = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(after_name[11]) + int(after_name[12])) / TICKS

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
