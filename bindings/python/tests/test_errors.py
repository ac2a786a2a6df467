# SPDX-License-Identifier: Apache-2.0
"""Failures: the program's own exception or libdist's report, nothing lost, and the strategy goes on."""

import itertools
import operator
import pathlib
import re
import threading
import traceback
import unittest

import numpy as np

import libdist
from libdist import _cdist
from libdist import (
    Aborted,
    Cancelled,
    DeadlineExceeded,
    DistError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ReduceOp,
    Strategy,
)


class Mine(Exception):
    """A program's own exception."""


def ones_reduced(replica):
    return replica.all_reduce(ReduceOp.SUM, np.ones(2)).tolist()


def own_words(text):
    """The text in Python's words; backquotes are around names of C."""
    marks = itertools.cycle("\x0e\x0f")
    return _cdist.own_words("".join(next(marks) if each == "`" else each for each in text))


class Names(unittest.TestCase):
    def test_names_of_c_are_pythons(self):
        for said, expected in (
            ("`dist_strategy_destroy()`: groups are left; `destroy` them first",
             "Strategy.close(): groups are left; close them first"),
            ("leave it with `dist_set_strategy()`: `NULL`", "leave it with set_strategy(): None"),
            ("inside a `dist_done_fn`, which", "inside a done callback, which"),
            ("the source returned `DIST_OK`", "the source returned Status.OK"),
            ("`dist_run_options.timeout_ns` is negative", "timeout is negative"),
            ("`options->names[3]` is `NULL`", "names[3] is None"),
            ("`op` is `DIST_REDUCE_USER`; use another `DIST_REDUCE_...`", "op is ReduceOp.USER; use another ReduceOp"),
            ("no file dist_data.csv, NULL", "no file dist_data.csv, NULL"),
        ):
            self.assertEqual(own_words(said), expected)

    def test_every_name_is_there(self):
        tried = 0
        for file in ("dist_names.i", "dist_enum_names.i"):
            path = pathlib.Path(__file__).parents[2] / file
            if not path.is_file():
                self.skipTest("the table of names is not there")
            for row in (line.split(" | ") for line in path.read_text("utf-8").splitlines()):
                if len(row) != 4 or not re.fullmatch("dist_[a-z_]+|DIST_[A-Z0-9_]+", row[0]) or row[3] == "-" or " " in row[3]:
                    continue
                tried += 1
                if not row[3].startswith("DIST_"):
                    operator.attrgetter(row[3])(libdist)  # AttributeError: it is not there
        self.assertGreater(tried, 500)


class Errors(unittest.TestCase):
    def setUp(self):
        self.strategy = Strategy(3)
        self.addCleanup(self.strategy.close)
        self.addCleanup(self.still_usable)  # runs first

    def still_usable(self):
        if self.strategy._handle:
            self.assertEqual(self.strategy.run(ones_reduced), [[3.0, 3.0]] * 3)

    def test_the_programs_own_exception_comes_back(self):
        error = Mine("row 7")

        def step(replica):
            if replica.id == 1:
                raise error
            replica.barrier()

        frames = []
        try:
            self.strategy.run(step)
        except Mine as caught:
            self.assertIs(caught, error)
            frames = [frame.name for frame in traceback.extract_tb(caught.__traceback__)]
        self.assertIn("step", frames)
        with self.assertRaises(Mine):
            self.strategy.run_values(lambda replica, x: step(replica), (1,))

    def test_the_lowest_of_several_comes_back_and_the_others_are_noted(self):
        ready = threading.Barrier(3)

        def step(replica):
            ready.wait()
            raise Mine(f"from {replica.id}")

        with self.assertRaises(Mine) as caught:
            self.strategy.run(step)
        told = str(caught.exception) + " ".join(getattr(caught.exception, "__notes__", []))
        for replica in range(3):
            self.assertIn(f"from {replica}", told)

    def test_the_peers_see_why(self):
        seen = []

        def step(replica):
            if replica.id == 2:
                raise NotFound("no row 7")
            try:
                replica.barrier(tag="end of step")
            except Aborted as error:
                seen.append(error)
                raise

        with self.assertRaisesRegex(NotFound, "^no row 7$"):
            self.strategy.run(step)
        self.assertEqual(len(seen), 2)
        for error in seen:
            self.assertEqual((error.replica, error.tag), (2, "end of step"))
            self.assertIn("no row 7", str(error))

    def test_a_mismatch_is_reported_with_its_fields(self):
        def step(replica):
            size = 3 if replica.id == 1 else 4
            replica.all_reduce(ReduceOp.SUM, np.ones(size, np.float32), tag="grads")

        with self.assertRaises(InvalidArgument) as caught:
            self.strategy.run(step)
        error = caught.exception
        self.assertEqual((error.status, error.replica, error.tag), (libdist.Status.INVALID_ARGUMENT, 1, "grads"))
        self.assertEqual((error.collective, error.sequence), (libdist.Collective.ALL_REDUCE, 1))
        self.assertIn("4", error.expected)
        self.assertIn("3", error.received)
        self.assertEqual(str(error), error.message)
        self.assertIsInstance(error, ValueError)

    def test_one_dimension_more_is_a_mismatch(self):
        def step(replica):
            shape = (4,) if replica.id == 0 else (2, 2)
            x = np.ones(shape)
            replica.all_reduce(ReduceOp.SUM, x, out=x)

        with self.assertRaises(InvalidArgument):
            self.strategy.run(step)

    def test_classes(self):
        for kind, also in (
            (libdist.InvalidArgument, ValueError),
            (libdist.FailedPrecondition, RuntimeError),
            (libdist.DeadlineExceeded, TimeoutError),
            (libdist.NotFound, LookupError),
            (libdist.PermissionDenied, PermissionError),
            (libdist.ResourceExhausted, MemoryError),
            (libdist.Unimplemented, NotImplementedError),
            (libdist.OutOfRange, IndexError),
        ):
            error = kind("why", hint="do that")
            self.assertIsInstance(error, also)
            self.assertIsInstance(error, DistError)
            self.assertEqual((str(error), error.hint, error.replica), ("why", "do that", -1))
        self.assertIsInstance(libdist.error_of(99, "new"), libdist.Internal)

    def test_deadlines(self):
        gone = threading.Event()

        def step(replica):
            if replica.id == 1:
                gone.wait()
            else:
                try:
                    replica.barrier(timeout=0.02, tag="late")
                finally:
                    gone.set()

        with self.assertRaises(TimeoutError) as caught:
            self.strategy.run(step)
        self.assertEqual(caught.exception.replica, 1)

    def test_a_run_with_a_deadline(self):
        gone, out = threading.Event(), threading.Event()

        def step(replica):
            if replica.id:
                gone.wait()
                out.set()

        with self.assertRaises(DeadlineExceeded):
            self.strategy.run_values(step, timeout=0.02)
        gone.set()
        out.wait()
        for _ in range(1000):  # until the late ones are out
            try:
                self.strategy.run(lambda replica: None)
                return
            except FailedPrecondition:
                threading.Event().wait(0.01)
        self.fail("the strategy refuses runs still")

    def test_cancel(self):
        def step(replica):
            if replica.id == 0:
                self.strategy.cancel()
            replica.barrier()

        with self.assertRaises(Cancelled):
            self.strategy.run(step)

    def test_recursion_and_odd_exceptions(self):
        def deep(replica):
            return deep(replica)

        with self.assertRaises(RecursionError):
            self.strategy.run(deep)

        class Unprintable(Exception):
            def __str__(self):
                return "with \0 and \ud800"

        for error in (Unprintable(), SystemExit(3), GeneratorExit(), StopIteration(), MemoryError(), Mine()):

            def step(replica):
                if replica.id == 1:
                    raise error
                replica.barrier()

            with self.assertRaises(type(error)) as caught:
                self.strategy.run(step)
            self.assertIs(caught.exception, error)
            self.still_usable()

    def test_an_exception_that_cannot_be_printed(self):
        class Worse(Exception):
            def __str__(self):
                raise Mine("no text")

        def step(replica):
            if replica.id == 1:
                raise Worse
            replica.barrier()

        with self.assertRaises(Worse):
            self.strategy.run(step)

    def test_an_exception_in_a_merge_function(self):
        def merge(strategy):
            raise Mine("merge")

        with self.assertRaisesRegex(Mine, "merge"):
            self.strategy.run(lambda replica: replica.merge_call(merge))
        with self.assertRaisesRegex(Mine, "loop"):

            def loop(begin, end):
                raise Mine("loop")

            self.strategy.run(lambda replica: replica.parallel_for(0, 4, 1, loop))

    def test_a_caught_failure_keeps_the_exception(self):
        def step(replica):
            try:
                replica.all_gather(np.ones(2), axis=2)
            except ValueError as error:
                raise Mine("bad axis") from error

        with self.assertRaises(Mine) as caught:
            self.strategy.run(step)
        self.assertIsInstance(caught.exception.__cause__, ValueError)


if __name__ == "__main__":
    unittest.main()
