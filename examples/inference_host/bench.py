#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the host at fixed rates, next to servers that use ONNX Runtime behind the same HTTP code.

bench.py FOLDER WEIGHTS [MODEL] [--picture FILE] [--swap] [--seconds S] [--rounds N] [--tokens T] [--queue N] [--batch
N]
FOLDER contains the built programs. MODEL is the output of make_onnx.py for the same weights; without it, only the host
is measured. --swap measures instead how replacing the host's model from time to time affects requests."""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import swaps
from servers import Server, cpu_seconds, machine, percentile

OWN, SAME = "At parts of its own capacity", "At the same rates, parts of the better ONNX Runtime's capacity"
LOADS = (("half", 0.5), ("all", 1.0), ("twice", 2.0))


def arguments(given=None):
    cpus = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path, nargs="?")
    parser.add_argument("--picture", type=pathlib.Path, help="SVG or PNG, by matplotlib")
    parser.add_argument("--swap", action="store_true")
    parser.add_argument("--every", type=float, default=1.0, help="seconds from swap to swap")
    parser.add_argument("--seconds", type=float, default=8.0, help="of one load of one server in one round")
    parser.add_argument("--rounds", type=int, default=3, help="in which all servers take their turns")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--queue", type=int, default=4 * cpus, help="requests that may wait at a server")
    parser.add_argument("--batch", type=int, default=1, help="of the host: long texts gain nothing by company")
    return parser.parse_args(given), cpus


def servers_of(given, cpus):
    """Yields the host first, then the peers that determine the common rates, then the host with ONNX Runtime."""
    queue, batch = ["-q", given.queue], ["-b", given.batch]
    host = [*queue, *batch, given.weights.parent, given.weights.name]
    yield "libdist, oneDNN", [given.folder / "inference_host", *host], False
    if given.model:
        peer = given.folder / "onnx_peer"
        yield f"ONNX Runtime, {cpus} threads", [peer, *queue, "-r", 1, "-j", cpus, given.model], True
        yield f"ONNX Runtime, 1 thread, {cpus} callers", [peer, *queue, "-r", cpus, "-j", 1, given.model], True
        inside = [*queue, *batch, given.model.parent, given.model.name]
        yield "libdist, ONNX Runtime", [given.folder / "inference_host_onnx", *inside], False


def measure_capacities(servers, given):
    """Measures the throughput with one connection per queue place. More would be refused and retry, using the servers' CPU."""
    for _ in range(given.rounds):
        for server in servers:
            server.capacities.append(server.capacity_now(given))
    for server in servers:
        server.capacity = statistics.median(server.capacities)


def plan(servers):
    """Returns [(server, kind, words, rate)] for one round: fractions of each server's capacity and of the best peer's."""
    peers = [server for server in servers if server.sets_rates]
    best = max(peers, key=lambda server: server.capacity, default=None)
    loads = [(server, OWN, words, part * server.capacity) for words, part in LOADS for server in servers]
    if best is not None:
        loads += [(server, SAME, words, part * best.capacity) for words, part in LOADS for server in servers if server is not best]
    return loads


def row_of(server, words, tally):
    lowest, highest = min(tally.p99s), max(tally.p99s)
    return (
        f"| {server.name} | {words} | {tally.rate:.1f} | {tally.answered / tally.seconds:.1f} | {percentile(tally.times, 0.5):.1f}"
        f" | {percentile(tally.times, 0.99):.1f} ({lowest:.1f} to {highest:.1f}) | {percentile(tally.times, 0.999):.1f}"
        f" | {tally.refused} | {tally.failed} | {100 * tally.cpu / tally.seconds:.1f} % |"
    )


HEAD = """
| | load | asked, a second | answered, a second | p50 | p99 (of the rounds) | p99.9 ms | refused | failed | load's CPU |
|---|---|---|---|---|---|---|---|---|---|"""


def run_loads(servers, given):
    if given.picture:
        import picture  # requires matplotlib
    measure_capacities(servers, given)
    loads = plan(servers)
    for number in range(given.rounds):
        print(f"bench.py: round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
        for server, kind, words, rate in loads:
            server.load(given, (kind, words), rate)
    print(f"| | capacity, by {given.queue} connections, a second |\n|---|---|")
    for server in servers:
        lowest, highest = min(server.capacities), max(server.capacities)
        print(f"| {server.name} | {server.capacity:.1f} ({lowest:.1f} to {highest:.1f}) |")
    for wanted in OWN, SAME:
        rows = [row_of(server, words, server.tallies[kind, words]) for server, kind, words, _ in loads if kind == wanted]
        if rows:
            print(f"\n{wanted}:", HEAD, *rows, sep="\n")
    if given.picture:
        picture.draw(servers, given)


def main(given, cpus):
    begin, used, others = time.monotonic(), cpu_seconds(), 0.0
    with tempfile.TemporaryDirectory() as scratch:
        given.scratch = pathlib.Path(scratch)
        wanted = swaps.host_of(given) if given.swap else servers_of(given, cpus)
        servers = []
        try:
            for one in wanted:
                servers.append(Server(*one))
            servers_agree(servers, given)
            (swaps.run if given.swap else run_loads)(servers, given)
            others = cpu_seconds() - used - sum(server.cpu_seconds() for server in servers)
            others /= cpus * (time.monotonic() - begin)
        finally:
            for server in servers:
                server.stop()
    print(f"\n{machine(cpus)}; {given.rounds} rounds of {given.seconds:g} s, texts of {given.tokens} ids, {given.queue} may wait.")
    print(f"All else, the load program and this one among it, took {100 * others:.0f} % of the CPUs: on a quiet machine 1 to 5 %.")


def servers_agree(servers, given):
    vectors = [server.answer(given)["embedding"] for server in servers]
    for server, vector in zip(servers, vectors):
        difference = max(abs(a - b) for a, b in zip(vectors[0], vector, strict=True))
        if difference > 1e-5:
            sys.exit(f"bench.py: {server.name} answers another vector than {servers[0].name}: {difference:g} away")


if __name__ == "__main__":
    main(*arguments())
