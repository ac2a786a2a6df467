#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the host, and ONNX Runtime behind Python's HTTP server beside it, at half, all and twice of what each can do.

bench.py FOLDER WEIGHTS [PYTHON] [--seconds S] [--tokens T] [--queue N] [--batch N]
FOLDER: of the built programs, inference_host and load. PYTHON: one that has onnxruntime, onnx, numpy and safetensors; without
it the host is alone."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 16  # that ask again and again: the capacity


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("python", nargs="?")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--queue", type=int, default=8)
    parser.add_argument("--batch", type=int, default=2, help="of the host: long texts gain nothing by company")
    parser.add_argument("--only", help="the one whose name has this")
    return parser.parse_args()


def servers(given):
    cpus = len(os.sched_getaffinity(0))
    program = given.folder / "inference_host"
    queue = str(given.queue)
    yield f"libdist, {cpus} instances", [program, "-q", queue, "-b", str(given.batch), given.weights.parent, given.weights.name]
    if given.python:
        for name, threads, callers in (
            (f"ONNX Runtime, {cpus} threads", cpus, 1), (f"ONNX Runtime, 1 thread, {cpus} callers", 1, cpus)
        ):  # fmt: skip
            yield name, [given.python, HERE / "onnx_host.py", given.weights, str(given.tokens), str(threads), str(callers), queue]


def load(given, port, rate, *more):
    command = [given.folder / "load", str(port), f"{rate:.3f}", str(given.seconds), str(given.tokens), *more]
    words = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(words[::2], map(float, words[1::2])))


def answer_of(port, given):
    body = json.dumps({"ids": [101, *range(2000, 1999 + given.tokens)]}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/encode", body) as answer:
        return json.load(answer)["embedding"]


def main():
    given = arguments()
    print("| | load | asked, a second | answered, a second | p50 | p99 | p99.9 ms | refused | failed | load's CPU |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    first = None
    for name, command in servers(given):
        if given.only and given.only not in name:
            continue
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        try:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            vector = answer_of(port, given)
            first = first or vector
            assert max(abs(a - b) for a, b in zip(first, vector)) < 1e-5, "they encode alike"
            capacity = load(given, port, 0, str(CONNECTIONS))["rate"]
            print(f"| {name} | {CONNECTIONS} connections | | {capacity:.1f} | | | | | | |", flush=True)
            for words, part in ("half", 0.5), ("all", 1.0), ("twice", 2.0):
                got = load(given, port, part * capacity)
                print(
                    f"| {name} | {words} | {part * capacity:.1f} | {got['rate']:.1f} | {got['p50_ms']:.1f} | {got['p99_ms']:.1f}"
                    f" | {got['p999_ms']:.1f} | {got['refused']:.0f} | {got['failed']:.0f} | {100 * got['cpu']:.1f} % |",
                    flush=True,
                )
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


if __name__ == "__main__":
    main()
