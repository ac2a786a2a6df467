# SPDX-License-Identifier: Apache-2.0
"""Bad input: Python's own kind of error, and the strategy goes on."""

import gc
import sys
import threading
import unittest

import numpy as np

from libdist import (
    Aborted,
    Batch,
    Closure,
    Dataset,
    DatasetIterator,
    FailedPrecondition,
    InvalidArgument,
    ReduceOp,
    RemoteValue,
    Replica,
    ResourceExhausted,
    Strategy,
    StrategyKind,
    Threads,
    Value,
    Variable,
    Work,
    _cdist,
)


class Mine(Exception):
    """A program's own exception."""


def ones_reduced(replica):
    return replica.all_reduce(ReduceOp.SUM, np.ones(2)).tolist()


class BadInput(unittest.TestCase):
    def test_wrong_types(self):
        with Strategy(2) as strategy:
            for call in (
                lambda: strategy.run(None),
                lambda: strategy.run(7),
                lambda: strategy.run_values("x"),
                lambda: strategy.run_values(lambda replica, x: x, "abc"),
                lambda: strategy.run_values(lambda replica, x: x, np.ones(2)),
                lambda: strategy.run_values(lambda replica, **k: k, (), {1: 2}),
                lambda: Strategy("2"),
                lambda: Strategy(2, threads="caller"),
                lambda: Strategy(2, devices=[1, 2]),
                lambda: strategy.group(["a"]),
                lambda: strategy.device("0"),
                lambda: strategy.variable(np.ones(2), name=7),
                lambda: strategy.variable(np.ones(2), no_such=7),
                lambda: strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, np.ones(2), no_such=1)),
                lambda: strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, None)),
                lambda: strategy.run(lambda replica: replica.all_reduce("ADD", np.ones(2))),
                lambda: strategy.run(lambda replica: replica.all_reduce(None, np.ones(2))),
                lambda: strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, ["a"])),
            ):
                with self.assertRaises((TypeError, ValueError)):
                    call()
                self.assertEqual(strategy.run(ones_reduced), [[2.0, 2.0]] * 2)

    def test_wrong_values(self):
        for call in (
            lambda: Strategy(-1),
            lambda: Strategy(2, kind=StrategyKind.ONE_DEVICE),
            lambda: Strategy(2, devices=["CPU:0"]),
            lambda: Strategy(2, devices=["CPU:0", "CPU:0"]),
            lambda: Strategy(2, devices=["", "x"]),
            lambda: Strategy(1 << 40),
        ):
            with self.assertRaises((InvalidArgument, OverflowError)):
                call()
        with self.assertRaisesRegex(ResourceExhausted, "threads"):
            Strategy(2**31 - 1)
        with Strategy(2) as strategy:
            for call in (
                lambda: strategy.device(2),
                lambda: strategy.group([]),
                lambda: strategy.group([1, 0]),
                lambda: strategy.variable(),
                lambda: strategy.per_replica([1]),
                lambda: strategy.reduce(ReduceOp.MAX, strategy.per_replica([1, 2])),
                lambda: strategy.reduce(ReduceOp.SUM, strategy.per_replica([np.ones(2), np.ones(3)])),
                lambda: strategy.gather(strategy.per_replica([1, 2])),
                lambda: strategy.variable(np.ones(2), name="a\0b"),
                lambda: strategy.run(lambda r: r.all_reduce(ReduceOp.SUM, np.ones(2), np.ones(3))),
                lambda: strategy.run(lambda r: r.all_reduce(99, np.ones(2))),
                lambda: strategy.run(lambda r: r.broadcast(5, np.ones(2))),
                lambda: strategy.run(lambda r: r.reduce_scatter(ReduceOp.SUM, np.ones(3))),
                lambda: strategy.run(lambda r: r.all_gather(np.float64(1))),
                lambda: strategy.run(lambda r: r.all_reduce(ReduceOp.SUM, np.zeros(3, np.complex128))),
            ):
                with self.assertRaises(ValueError):
                    call()
                self.assertEqual(strategy.run(ones_reduced), [[2.0, 2.0]] * 2)

    def test_numbers_of_more_than_64_bits(self):
        with Strategy(1) as strategy:
            for number in (2**70, -(2**70), [1, 2**70], [[2**70]]):
                with self.assertRaisesRegex(OverflowError, "^-?0x400000000000000000 does not fit 64 bits"):
                    strategy.variable(number)
            with self.assertRaisesRegex(OverflowError, "does not fit 64 bits"):
                strategy.value({"a": [2**70]})
            self.assertEqual(strategy.variable(2**64 - 1).read(), 2**64 - 1)

    def test_options_say_what_does_not_fit(self):
        with self.assertRaisesRegex(OverflowError, "^num_replicas is 1099511627776: it has to be from -2147483648 to "):
            Strategy(1 << 40)
        with self.assertRaisesRegex(TypeError, r"^Strategy\(\): num_replicas is '2', but must be an integer$"):
            Strategy("2")
        tried = 0
        for name, kind in vars(_cdist).items():
            if not name.startswith("dist_") or not name.endswith("_options"):
                continue
            for field in (field for field in dir(kind) if not field.startswith("_")):
                value = getattr(options := kind(), field)
                if type(value) is not int:
                    continue
                tried += 1
                refused = self.assertRaisesRegex(OverflowError, f"^({field} is |int too big)")  # the latter: handles
                with self.subTest(f"{name}.{field}"), refused:
                    setattr(options, field, 2**80)
        self.assertGreater(tried, 80)

    def test_overlap_inside_one_buffer(self):
        def step(replica):
            whole = np.ones(6)
            replica.all_reduce(ReduceOp.SUM, whole[:4], whole[2:])

        with Strategy(2) as strategy, self.assertRaises(InvalidArgument):
            strategy.run(step)

    def test_read_only_memory(self):
        frozen = np.ones(2)
        frozen.flags.writeable = False
        with Strategy(2) as strategy:
            for out in (frozen, b"12345678", strategy.value(frozen)):
                with self.assertRaises((ValueError, BufferError, TypeError)):
                    strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, np.ones(2), out))
            self.assertEqual(frozen.tolist(), [1, 1])

    def test_read_only_memory_in_place(self):
        frozen = np.ones(2)
        frozen.flags.writeable = False
        with Strategy(1) as strategy:
            with self.assertRaisesRegex(InvalidArgument, "the array is read-only, and a result is to be written to it"):
                strategy.run(lambda replica: replica.broadcast(0, frozen))

    def test_objects_that_only_libdist_creates(self):
        for kind in (Batch, Closure, Dataset, DatasetIterator, RemoteValue, Replica, Value, Variable):
            for arguments in ((), (3,), (3, None), (3, 3)):
                with self.assertRaisesRegex(TypeError, f"a {kind.__name__} cannot be created directly"):
                    kind(*arguments)

    def test_counts_below_zero(self):
        def step(replica):
            replica.all_reduce(ReduceOp.SUM, np.ones(2), contributions=-1)

        with Strategy(1) as strategy:
            with self.assertRaisesRegex(InvalidArgument, r"^Replica.all_reduce\(\): contributions is -1, but must be 0 or more"):
                strategy.run(step)

    def test_lists_that_do_not_fit_together(self):
        one, two = np.ones(1), [np.ones(1), np.ones(1)]
        for words, call in (
            ("x has 1 tensors and out has 2", lambda r: r.all_reduce("SUM", [one], out=two)),
            ("x has 1 tensors and out has 2", lambda r: r.broadcast(0, [one], out=two)),
            ("x has 2 tensors and out has 1", lambda r: r.all_reduce("SUM", two, out=[one])),
            ("x has 1 tensors and out has 1, but x must have 2 for each",
             lambda r: r.all_reduce("SUM", [one], out=[one], contributions=2)),
            ("weights has 1 numbers, but must have 2",
             lambda r: r.all_reduce("MEAN", two, out=[one], contributions=2, weights=[1.0])),
            ("splits has 1 numbers, but must have one for each of 2",
             lambda r: r.all_to_all(np.ones(4), out=np.ones(4), splits=[4])),
        ):
            with self.subTest(words), Strategy(2) as strategy, self.assertRaisesRegex(InvalidArgument, words):
                strategy.run(call)

    def test_outside_and_inside_are_told_apart(self):
        with Strategy(2) as strategy:
            v = strategy.variable(np.zeros(1))
            for inside in (
                lambda replica: strategy.run(lambda r: None),
                lambda replica: strategy.reduce(ReduceOp.SUM, strategy.per_replica([1, 2])),
                lambda replica: v.read(),
                lambda replica: strategy.group([0]),
                lambda replica: strategy.close(),
            ):
                with self.assertRaises(RuntimeError):
                    strategy.run(inside)
                self.assertEqual(strategy.run(ones_reduced), [[2.0, 2.0]] * 2)

    def test_a_replica_kept_after_its_run(self):
        with Strategy(2) as strategy:
            kept = strategy.run(lambda replica: replica)
            for call in (
                lambda: kept[0].barrier(),
                lambda: ones_reduced(kept[1]),
                lambda: kept[0].merge_call(lambda s: None),
                lambda: kept[0].begin.all_reduce(ReduceOp.SUM, np.ones(1)),
                lambda: kept[0].parallel_for(0, 1, 1, lambda a, b: None),
            ):
                with self.assertRaisesRegex(FailedPrecondition, "valid only inside its function"):
                    call()
            with self.assertRaisesRegex(FailedPrecondition, "replica 1 is not running"):
                strategy.run(lambda replica: kept[1].barrier())

    def test_use_after_close(self):
        strategy = Strategy(2)
        v, group = strategy.variable(np.ones(1)), strategy.group([0, 1])
        value = strategy.per_replica([np.ones(1), np.ones(1)])
        strategy.close()
        strategy.close()
        self.assertIn("closed", repr(group) + "closed")
        for call in (
            lambda: strategy.run(ones_reduced),
            lambda: strategy.num_replicas,
            lambda: strategy.reduce(ReduceOp.SUM, value),
            lambda: strategy.cancel(),
            lambda: v.read(),
            lambda: group.size,
            lambda: strategy.explain(),
            lambda: strategy.dataset_from_tensors(np.ones(2)),
            lambda: strategy.value(1),
            lambda: strategy.scope().__enter__(),
        ):
            with self.assertRaisesRegex(FailedPrecondition, "closed"):
                call()
        self.assertEqual([part.item() for part in value], [1, 1])

    def test_close_during_a_run(self):
        strategy = Strategy(2)
        inside, go_on = threading.Event(), threading.Event()

        def step(replica):
            inside.set()
            go_on.wait()
            return replica.id

        results = []
        thread = threading.Thread(target=lambda: results.append(strategy.run(step)))
        thread.start()
        inside.wait()
        with self.assertRaisesRegex(FailedPrecondition, "run is in progress"):
            strategy.close()
        go_on.set()
        thread.join()
        self.assertEqual(results, [[0, 1]])
        strategy.close()

    def test_a_dropped_strategy_ends_its_threads(self):
        def threads():
            with open("/proc/self/status", encoding="ascii") as status:
                return int(next(line for line in status if line.startswith("Threads:")).split()[1])

        if not sys.platform.startswith("linux"):
            self.skipTest("needs /proc")
        strategy = Strategy(8)
        strategy.run(ones_reduced)
        before = threads()
        del strategy
        gc.collect()
        self.assertLessEqual(threads(), before - 7)

    def test_work_out_of_order(self):
        with Strategy(2) as strategy:

            def step(replica):
                work = replica.begin.all_reduce(ReduceOp.SUM, np.ones(2))
                with self.assertRaises(FailedPrecondition):
                    work.start()
                work.result()
                work.close()
                with self.assertRaisesRegex(FailedPrecondition, "closed"):
                    work.result()
                with self.assertRaises(InvalidArgument):
                    Work.wait_any([])

            strategy.run(step)

    def test_host_threads_out_of_order(self):
        with Strategy(2, threads=Threads.HOST, timeout=5) as strategy:
            with self.assertRaises(FailedPrecondition):
                strategy.run(ones_reduced)
            with self.assertRaises(InvalidArgument):
                strategy.enter(9).__enter__()
            outcomes = {}

            def work(replica_id):
                try:
                    with strategy.enter(replica_id) as replica:
                        if replica_id == 1:
                            raise Mine("host")
                        replica.barrier()
                except Exception as error:
                    outcomes[replica_id] = error

            threads = [threading.Thread(target=work, args=(r,)) for r in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertIsInstance(outcomes[1], Mine)
            self.assertIsInstance(outcomes[0], Aborted)
            self.assertIn("host", str(outcomes[0]))

    def test_collections_while_replicas_run(self):
        with Strategy(8) as strategy:
            stop = threading.Event()

            def collect():
                while not stop.is_set():
                    gc.collect()

            thread = threading.Thread(target=collect)
            thread.start()
            try:

                def step(replica, x):
                    for _ in range(20):
                        y = replica.all_reduce_value(ReduceOp.SUM, [x, {"k": np.ones(3)}])
                        cycle = [y]
                        cycle.append(cycle)
                    return y

                out = strategy.run_values(step, (np.arange(4.0),))
                self.assertEqual(out[0][0].tolist(), [0, 8, 16, 24])
            finally:
                stop.set()
                thread.join()


if __name__ == "__main__":
    unittest.main()
