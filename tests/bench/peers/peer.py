# SPDX-License-Identifier: Apache-2.0
"""The protocol of protocol.hpp and the measurement loop, for peers that are Python packages."""

import contextlib
import os
import sys
import time
from typing import NamedTuple

import numpy as np

TYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16)}
with contextlib.suppress(ImportError):  # installed with JAX and with TensorFlow
    import ml_dtypes

    TYPES["bf16"] = np.dtype(ml_dtypes.bfloat16)
UNITS = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
PERIOD = 65521  # elements after which a tensor repeats itself, as in dist_bench
PAUSE = 1e-3
FOREVER = 1e6


class Request(NamedTuple):
    form: str
    operation: str
    dtype: str
    bytes: int
    layout: str
    pace: str
    iterations: int
    batches: int

    @property
    def in_place(self):
        return self.layout == "in_place"


class WrongResult(Exception):
    pass


class Tensors:
    """The replicas' contributions, one row each, and the expected sum."""

    def __init__(self, dtype, byte_count, replicas):
        self.dtype, self.replicas = dtype, replicas
        count = byte_count // TYPES[dtype].itemsize
        period = min(PERIOD, count)
        signs = np.where(np.arange(period) % 3 == 0, -1, 1)  # the same for all replicas, so that no sum is zero
        magnitudes = np.random.default_rng(1).uniform(1, 2, (replicas, period))
        self.pattern = (signs * magnitudes).astype(TYPES[dtype])
        self.rows = np.stack([np.resize(row, count) for row in self.pattern])

    def expected(self, iterations):
        """Computes the result after this number of sums in place, or after one out of place."""
        rows = [row.astype(np.float32) for row in self.pattern]
        for _ in range(iterations):
            total = rows[0]
            for row in rows[1:]:
                total = total + row
            total = total.astype(TYPES[self.dtype])
            rows = [total.astype(np.float32)] * self.replicas
        return total

    def check(self, results, iterations):
        """Compares bit for bit. With more than two replicas, allows any order of the sum."""
        count = self.rows.shape[1]
        wanted = np.resize(self.expected(iterations), count)
        tolerance = UNITS[self.dtype] * self.replicas * iterations
        for result in map(np.asarray, results):
            right = result.dtype == wanted.dtype and result.shape == wanted.shape
            if right and self.replicas > 2:
                error = np.abs(result.astype(np.float64) - wanted.astype(np.float64))
                right = bool(np.all(error <= tolerance * np.abs(wanted.astype(np.float64))))
            elif right:
                right = same_bits(result, wanted)
            if not right:
                raise WrongResult(f"wrong result after {iterations} operations")


def same_bits(a, b):
    integers = np.dtype(f"u{a.itemsize}")
    return np.array_equal(a.view(integers), b.view(integers))


def measure(operation, request):
    """Returns microseconds per operation, with one sample per batch (hot) or per operation (with pauses). `operation`
    has reset(), run(n), which returns when all n have completed, and check(n)."""
    samples = []
    for batch in range(request.batches + 1):
        operation.reset()
        single = request.pace != "hot"
        for _ in range(request.iterations if single else 1):
            count = 1 if single else request.iterations
            if single:
                time.sleep(PAUSE)
            begin = time.perf_counter()
            operation.run(count)
            end = time.perf_counter()
            if batch > 0:
                samples.append((end - begin) / count * 1e6)
        operation.check(request.iterations)
    return samples


class Journal:
    """Records what a rank, or a single caller as rank 0, saw of a fault, in the format of fault.hpp."""

    def __init__(self, folder, rank=0):
        self.folder = folder
        self.fd = os.open(os.path.join(folder, str(rank)), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.write("here", str(os.getpid()))

    def write(self, event, words="", later=0):
        line = f"{event} {(time.monotonic() + later) * 1e6:.1f} {' '.join(words.split())}\n"
        os.write(self.fd, line.encode())

    def wait(self, rank, event):
        """Waits until this rank has written the event."""
        path = os.path.join(self.folder, str(rank))
        while True:
            with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as lines:
                if any(line.startswith(event) for line in lines):
                    return
            time.sleep(PAUSE)

    def record(self, event, call):
        try:
            words = "right" if call() else "wrong"
        except BaseException as error:  # libraries may also raise SystemExit
            words = f"error {type(error).__name__}: {error}"
        self.write(event, words)


def play_fault(faults, words, say):
    """Plays a fault. `faults.cell(fault, collective)` returns two calls: one with the fault, and one without."""
    fault, collective, folder = words
    cell, well = faults.cell(fault, collective)
    say(["@begun", "0"])
    journal = Journal(folder)
    journal.write("cause")
    journal.record("back", cell)
    journal.record("next", well)


def answer(make_operation, measure, words):
    if len(words) != 9 or words[0] != "measure":
        return ["@no", "no such command"]
    sizes = [int(words[i]) for i in (4, 7, 8)]
    request = Request(words[1], words[2], words[3], sizes[0], words[5], words[6], sizes[1], sizes[2])
    try:
        operation = make_operation(request)
        if operation is None:
            return ["@no", "not offered"]
        return ["@times", *(f"{us:.4f}" for us in measure(operation, request))]
    except WrongResult as error:
        return ["@failed", str(error)]


def serve(name, forms, make_operation, make_faults=None, measure=measure, play=play_fault):
    """Answers dist_bench until its pipe ends. `make_operation(request)` returns None if it is not supported."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not look like an answer

    def say(words):
        answers.write("\t".join(words) + "\n")

    say(["@ready", name, *forms])
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        for line in sys.stdin:
            if line == "quit\n":
                break
            command, *words = line.rstrip("\n").split("\t")
            if make_faults and command == "can" and len(words) == 2:
                why_not = make_faults().why_not(*words)
                say(["@no", why_not] if why_not else ["@yes"])
            elif make_faults and command == "fault" and len(words) == 3:
                play(make_faults(), words, say)
            else:
                say(answer(make_operation, measure, [command, *words]))
    os._exit(0)  # skips the slow exit of the libraries' threads
