# SPDX-License-Identifier: Apache-2.0
"""Implements bench.py --swap: loads the host at half its capacity, with phases in which its model is replaced
repeatedly."""

import array
import json
import re
import shutil
import statistics
import struct
import sys
import threading
import time

from servers import percentile

FILES = ("one.safetensors", "two.safetensors")  # the models of odd and of even versions
NUMBERS = 8  # how many numbers of an answer identify its model
NEAR, APART = 1e-5, 1e-3


def make_other(source, target):
    """Writes the same model with different norm shifts. An answer computed with a mixture of both differs from both."""
    content = bytearray(source.read_bytes())
    begin = 8 + struct.unpack_from("<Q", content)[0]
    for name, tensor in json.loads(content[8:begin]).items():
        if name.endswith("LayerNorm.bias"):
            at, end = (begin + offset for offset in tensor["data_offsets"])
            numbers = array.array("f", bytes(content[at:end]))
            content[at:end] = array.array("f", (1.5 * number + 0.05 * (i % 3) for i, number in enumerate(numbers))).tobytes()
    target.write_bytes(content)


def host_of(given):
    shutil.copyfile(given.weights, given.scratch / FILES[0])
    make_other(given.weights, given.scratch / FILES[1])
    options = ["-q", given.queue, "-b", given.batch]
    yield "libdist, oneDNN", [given.folder / "inference_host", *options, given.scratch, FILES[0]], False


def is_torn(begin, right):
    """Returns whether an answer, given its start, is not that of its version."""
    version = int(re.match(r'{"version": *(\d+)', begin)[1])
    numbers = [float(word) for word in re.findall(r"-?[\d.]+(?:e-?\d+)?", begin[begin.index("[") :])[:NUMBERS]]
    return any(abs(a - b) > NEAR for a, b in zip(numbers, right[1 - version % 2], strict=True))


class Swapper:
    """Replaces the model periodically, with the given number of seconds between swaps."""

    def __init__(self, server, every):
        self.server, self.every = server, every
        self.took, self.failed, self.ends = [], 0, threading.Event()

    def swap(self):
        begin = time.perf_counter()
        try:
            version = self.server.post("/swap", json.dumps({"file": FILES[self.server.version % 2]}).encode())["version"]
        except OSError as error:
            print(f"bench.py: a swap failed: {error}", file=sys.stderr)
            self.failed += 1
            return
        self.server.version = version
        self.took.append(time.perf_counter() - begin)

    def work(self):
        while not self.ends.wait(self.every):
            self.swap()

    def __enter__(self):
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def learn(server, given):
    """Determines the correct answer for each file by swapping there and back."""
    right = []
    server.version = 1
    with Swapper(server, 3600) as swapper:
        for _ in FILES:
            right.append(server.answer(given)["embedding"][:NUMBERS])
            swapper.swap()
    if max(abs(a - b) for a, b in zip(*right, strict=True)) < APART:
        sys.exit("bench.py: the two models answer alike, so a torn answer would not be seen")
    return right


def run(servers, given):
    (server,) = servers
    right = learn(server, given)
    rate = 0.5 * server.capacity_now(given)
    took, failed, torn = [], 0, 0
    for number in range(given.rounds):
        print(f"bench.py: round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
        for words in "before", "swaps", "after":
            with Swapper(server, given.every if words == "swaps" else 3600) as swapper:
                lines = server.load(given, words, rate)
            torn += sum(is_torn(begin, right) for _, _, begin in lines)
            took += swapper.took
            failed += swapper.failed
    tell(server.tallies, rate, 1e3 * sum(took) / max(1, len(took)), len(took), failed, torn)


def spread(ratios):
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def tell(tallies, rate, swap_ms, swaps, swaps_failed, torn):
    print("| | answered | p50 | p99 (of the rounds) | p99.9 ms | refused | failed |")
    print("|---|---|---|---|---|---|---|")
    for words, tally in tallies.items():
        print(
            f"| {words} | {len(tally.times)} | {percentile(tally.times, 0.5):.1f} | {percentile(tally.times, 0.99):.1f}"
            f" ({min(tally.p99s):.1f} to {max(tally.p99s):.1f}) | {percentile(tally.times, 0.999):.1f} | {tally.refused} | {tally.failed} |"
        )
    rounds = list(zip(*(tallies[words].p99s for words in ("before", "swaps", "after"))))
    print(f"\n{rate:.1f} requests a second, half of the capacity; {swaps} swaps, {swap_ms:.0f} ms each, {swaps_failed} failed.")
    print(f"Torn: {torn}. Failed: {sum(tally.failed for tally in tallies.values())}. p99, medians of the rounds' ratios: with swaps")
    print(f"{spread([during / (before * after) ** 0.5 for before, during, after in rounds])} times that without; and without any,")
    print(f"after them {spread([after / before for before, _, after in rounds])} times that before.")
