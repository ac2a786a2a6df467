# SPDX-License-Identifier: Apache-2.0
"""Datasets, metrics, losses, checkpoints, names."""

import inspect
import json
import pathlib
import tempfile
import threading
import unittest

import numpy as np

import libdist
from libdist import (
    Checkpoint,
    DataLoss,
    DType,
    InputContext,
    InvalidArgument,
    Metric,
    MetricKind,
    NotFound,
    OutOfRange,
    Position,
    ReduceOp,
    ShardPolicy,
    Strategy,
    Tensor,
)


def rows(batch):
    return [part.tolist() for part in batch]


class Datasets(unittest.TestCase):
    def setUp(self):
        self.strategy = Strategy(2)
        self.addCleanup(self.strategy.close)

    def test_rows_of_tensors(self):
        x, y = np.arange(10), np.arange(10) * 10
        with self.strategy.dataset_from_tensors([x, y], global_batch_size=4) as dataset:
            for _ in range(2):
                batches = [(rows(a), rows(b)) for a, b in dataset]
                self.assertEqual(batches[0], ([[0, 1], [2, 3]], [[0, 10], [20, 30]]))
                self.assertEqual(batches[2], ([[8], [9]], [[80], [90]]))
                self.assertEqual(len(batches), 3)
            self.assertEqual(
                len(list(self.strategy.dataset_from_tensors(x, global_batch_size=4, drop_remainder=True))), 2
            )
            self.assertIn("10", dataset.explain())
            dataset.check_shards()
            self.assertIn("i64[?]", dataset.element_spec[0][0])

    def test_shuffled_passes_and_positions(self):
        def make():
            return self.strategy.dataset_from_tensors(np.arange(12), global_batch_size=4, shuffle=True, seed=7)

        passes = make()
        first, second = [rows(b) for b in passes], [rows(b) for b in passes]
        self.assertNotEqual(first, second)
        self.assertEqual(sorted(sum(sum(first, []), [])), list(range(12)))
        iterator = iter(make())
        next(iterator)
        position = iterator.position
        self.assertEqual(position, Position(0, 4, 0, 1))
        iterator.close()
        with self.assertRaises(StopIteration):
            next(iterator)
        again = make()
        self.assertEqual([rows(b) for b in again.iterate_from(position)], first[1:])
        self.assertEqual([rows(b) for b in again], second)

    def test_a_callback(self):
        threads = set()

        def element(index):
            threads.add(threading.get_ident())
            if index == 5:
                raise StopIteration
            return {"x": np.full(2, index), "name": f"row {index}"}

        dataset = self.strategy.dataset_from_callback(element, global_batch_size=2)
        batches = list(dataset)
        self.assertEqual(len(batches), 3)
        self.assertEqual(rows(batches[1]["x"]), [[[2, 2]], [[3, 3]]])
        self.assertEqual(list(batches[0]["name"]), [["row 0"], ["row 1"]])

    def test_an_iterable_for_each_pass(self):
        def numbers():
            yield from (np.float32(i) for i in range(6))

        dataset = self.strategy.dataset_from_iterable(numbers, global_batch_size=2)
        for _ in range(2):
            self.assertEqual([rows(b) for b in dataset], [[[0], [1]], [[2], [3]], [[4], [5]]])
        self.assertEqual([rows(b) for b in dataset.iterate_from(Position(0, 2, 0, 1))], [[[2], [3]], [[4], [5]]])

    def test_files(self):
        def line(file, name, index):
            if index == 2:
                raise OutOfRange
            return np.int64(file * 100 + index)

        dataset = self.strategy.dataset_from_files(["a", "b"], line, global_batch_size=2, interleave=2)
        self.assertEqual([rows(b) for b in dataset], [[[0], [100]], [[1], [101]]])
        worker = self.strategy.dataset_from_files(
            ["a", "b"], line, global_batch_size=4, num_workers=2, worker_index=1, shard_policy=ShardPolicy.FILE
        )
        self.assertEqual([rows(b) for b in worker], [[[100], [101]]])

    def test_a_function_of_the_context(self):
        contexts = []

        def make(context):
            contexts.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
            return self.strategy.dataset_from_tensors(np.arange(8), global_batch_size=context.per_replica_batch_size(4))

        dataset = self.strategy.dataset_from_function(make)
        self.assertEqual([rows(b) for b in dataset], [[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
        self.assertEqual(contexts, [(1, 0, 2)])
        with self.assertRaisesRegex(TypeError, "to make a Dataset"):
            self.strategy.dataset_from_function(lambda context: 7)

    def test_reduce_and_the_end(self):
        dataset = self.strategy.dataset_from_tensors(np.arange(6), global_batch_size=2)
        total = dataset.reduce(np.int64(100), lambda state, batch: state + sum(part.sum() for part in batch))
        self.assertEqual(total, 115)
        iterator = iter(dataset)
        taken = [iterator.next_optional() for _ in range(5)]
        self.assertEqual([batch is None for batch in taken], [False, False, False, True, True])

    def test_sources_that_raise(self):
        class Mine(Exception):
            pass

        def broken(*_):
            raise Mine("source")

        for dataset in (
            self.strategy.dataset_from_callback(broken, global_batch_size=2),
            self.strategy.dataset_from_iterable(broken, global_batch_size=2),
            self.strategy.dataset_from_files(["a"], broken, global_batch_size=2),
        ):
            with self.assertRaisesRegex(Mine, "source"):
                next(iter(dataset))
        with self.assertRaisesRegex(Mine, "source"):
            self.strategy.dataset_from_function(broken)
        fine = self.strategy.dataset_from_tensors(np.arange(2), global_batch_size=2)
        with self.assertRaisesRegex(Mine, "source"):
            fine.reduce(None, broken)

    def test_wrong_options(self):
        with self.assertRaisesRegex(TypeError, "global_size"):
            self.strategy.dataset_from_tensors(np.arange(2), global_size=2)
        with self.assertRaises(InvalidArgument):
            self.strategy.dataset_from_tensors(np.arange(2), global_batch_size=-2)
        with self.assertRaises(InvalidArgument):
            self.strategy.dataset_from_tensors([])
        dataset = self.strategy.dataset_from_tensors(np.arange(2))
        dataset.close()
        with self.assertRaisesRegex(libdist.FailedPrecondition, "closed"):
            iter(dataset)

    def test_sizes(self):
        self.assertEqual(libdist.batch_sizes_for_worker(10, 2, 2, 0), [3, 3, 2, 2])
        self.assertEqual(InputContext(num_replicas_in_sync=4).per_replica_batch_size(8), 2)
        with self.assertRaises(InvalidArgument):
            InputContext(num_replicas_in_sync=3).per_replica_batch_size(8)
        piecewise = self.strategy.dataset_from_tensors(np.arange(6).reshape(2, 3), batch_sizes=[1, 2])
        self.assertEqual([rows(b) for b in piecewise], [[[0], [1, 2]], [[3], [4, 5]]])


class Metrics(unittest.TestCase):
    def test_metrics(self):
        with Strategy(2) as strategy, strategy.metric(MetricKind.MEAN, "loss") as mean:
            accuracy, total = strategy.metric(MetricKind.ACCURACY), strategy.metric(MetricKind.SUM)

            def step(replica):
                replica.update_metric(mean, np.array([1.0, 3.0]) * (replica.id + 1), weights=np.array([1.0, 0.0]))
                replica.update_metric(accuracy, np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, replica.id]))
                replica.update_metric(total, 2)

            strategy.run(step)
            self.assertEqual((mean.result(), accuracy.result(), total.result()), (1.5, 0.75, 4.0))
            self.assertEqual((mean.name, mean.kind, accuracy.name), ("loss", MetricKind.MEAN, "accuracy"))
            self.assertIn("Variable", mean.variable.class_name)
            mean.reset()
            self.assertEqual(mean.result(), 0)
            with self.assertRaisesRegex(libdist.FailedPrecondition, "inside"):
                kept = strategy.run(lambda replica: replica)[0]
                kept.update_metric(total, 1)

    def test_losses(self):
        with Strategy(2) as strategy:

            def step(replica):
                loss = libdist.average_loss(replica, np.array([1.0, 2.0], np.float32), np.array([1.0, 0.5]))
                scaled = libdist.scale_regularization_loss(replica, np.array([2.0, 4.0]))
                half = libdist.average_loss(replica, Tensor(np.array([0x3F80], np.uint16), DType.BF16))
                return loss.item(), loss.dtype, scaled.item(), half.array.item()

            self.assertEqual(strategy.run(step), [(0.5, np.float32, 3.0, 0x3F00)] * 2)
        self.assertEqual(libdist.average_loss(None, np.array([6.0]), global_batch_size=3).item(), 2)


class Checkpoints(unittest.TestCase):
    def test_save_and_load(self):
        with tempfile.TemporaryDirectory() as folder, Strategy(2) as strategy:
            path = pathlib.Path(folder) / "c.safetensors"
            w = strategy.variable(np.arange(4.0), name="w")
            b = strategy.variable(np.ones(2, np.float32), name="b")
            strategy.save_checkpoint(path, [w, b], position=Position(1, 2, 3, 4), metadata={"run": "7", "who": "ä"}
            )
            w.assign(np.zeros(4))
            self.assertEqual(strategy.load_checkpoint(path, [w], position=True), Position(1, 2, 3, 4))
            self.assertEqual(w.read().tolist(), [0, 1, 2, 3])
            self.assertIsNone(strategy.load_checkpoint(path, {"b": b}))
            with strategy.open_checkpoint(path) as file:
                self.assertEqual((len(file), set(file), "w" in file), (2, {"w", "b"}, True))
                self.assertEqual(file.spec("b"), (DType.F32, (2,)))
                self.assertEqual(file["w"].tolist(), [0, 1, 2, 3])
                self.assertEqual(file.map("w", verify=True).tolist(), [0, 1, 2, 3])
                self.assertEqual(file.map_all()["w"].tolist(), [0, 1, 2, 3])
                with self.assertRaises(NotFound):
                    file.map("v")
                self.assertEqual((file.metadata["run"], file.metadata["who"]), ("7", "ä"))
                with self.assertRaises(NotFound):
                    file.read("v")
            with self.assertRaises(LookupError):
                strategy.load_checkpoint(path, {"nothing": w})
            index = pathlib.Path(folder) / "model.safetensors.index.json"
            strategy.save_checkpoint(index, [w, b], sharded=True)
            files = json.loads(index.read_text())["weight_map"]
            self.assertEqual((set(files), len(list(pathlib.Path(folder).iterdir()))), ({"w", "b"}, 3))
            with strategy.open_checkpoint(index.parent / files["w"]) as shard, strategy.open_checkpoint(index) as file:
                self.assertEqual(shard["w"].tolist(), file["w"].tolist())
            self.assertIsNone(strategy.load_checkpoint(index, [w]))
            path.write_bytes(path.read_bytes()[:-3])
            with self.assertRaises(DataLoss):
                strategy.load_checkpoint(path, [w])
            with self.assertRaises(NotFound):
                strategy.open_checkpoint("no such file")
            with self.assertRaises(TypeError):
                strategy.open_checkpoint(7)


class Names(unittest.TestCase):
    def test_names_and_numbers(self):
        self.assertEqual(libdist.reduce_op_name(ReduceOp.PROD), "PROD")
        self.assertEqual(libdist.reduce_op_from_name("mean"), ReduceOp.MEAN)
        self.assertEqual(libdist.reduce_op_from_aggregation(libdist.Aggregation.SUM), ReduceOp.SUM)
        self.assertIsNone(libdist.reduce_op_name(99))
        for names, number_of, kind in (
            (libdist.cross_device_name, libdist.cross_device_from_name, libdist.CrossDeviceKind),
            (libdist.synchronization_name, libdist.synchronization_from_name, libdist.Synchronization),
            (libdist.aggregation_name, libdist.aggregation_from_name, libdist.Aggregation),
            (libdist.input_mode_name, libdist.input_mode_from_name, libdist.InputMode),
            (libdist.shard_policy_name, libdist.shard_policy_from_name, libdist.ShardPolicy),
        ):
            for member in kind:
                self.assertEqual(names(member), member.name)
                self.assertIs(number_of(member.name.lower()), member)
            with self.assertRaises(InvalidArgument):
                number_of("nonsense")
        self.assertEqual(libdist.cross_device_name(0x1002), "HOST")
        self.assertEqual(libdist.status_name(3), "INVALID_ARGUMENT")
        self.assertTrue(libdist.canonical_device("CPU:2").endswith("device:CPU:2"))
        self.assertFalse(libdist.has_feature("no such feature"))
        self.assertRegex(libdist.__version__, r"^\d+\.\d+\.\d+$")

    def test_every_constant_of_the_header_has_a_member(self):
        from enum import IntEnum

        from libdist import _cdist, constants

        numbers = {"": 0}
        for kind in vars(constants).values():
            if isinstance(kind, type) and issubclass(kind, IntEnum) and kind is not IntEnum:
                numbers.update({member.name: int(member) for member in kind})
        known = set(numbers) | {name for name in libdist.__all__ if name.startswith("MAX_")}
        # None stands for the first; the others are defaults of arguments.
        known |= {"NO_TIMEOUT", "TASK_UNSET", "PARTITIONER_MIN_SHARD_BYTES", "PARTITIONER_MAX_SHARDS", "PARTITIONER_BYTES_PER_TEXT"}
        for name in dir(_cdist):
            if not name.startswith("DIST_") or name.startswith(("DIST_VERSION", "DIST_ENUM_")):
                continue
            words = name.split("_")[1:]
            endings = {"_".join(words[i:]) for i in range(len(words))} | ({"SET"} if name == "DIST_ASSIGN" else set())
            self.assertTrue(endings & known, name)

    def test_the_public_names_are_documented(self):
        for name in libdist.__all__:
            thing = getattr(libdist, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                self.assertTrue(getattr(thing, "__doc__", None), name)
            if isinstance(thing, type) and thing.__module__.startswith("libdist"):
                for key, member in vars(thing).items():
                    if not key.startswith("_") and (callable(member) or isinstance(member, property)):
                        if not isinstance(member, int):
                            self.assertTrue(member.__doc__, f"{name}.{key}")


if __name__ == "__main__":
    unittest.main()
