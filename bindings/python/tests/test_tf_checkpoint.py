# SPDX-License-Identifier: Apache-2.0
"""libdist.tf.train: what a checkpoint holds, its files, and what it says of a restore, as TensorFlow 2.21 has them."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

import numpy as np

import libdist
import libdist.tf as tf


class Model(tf.Module):
    def __init__(self):
        super().__init__(name="model")
        self.a = tf.Variable(1.0)
        self.layers = [tf.Variable(2.0), tf.Variable(3.0, trainable=False)]
        self.named = {"k": tf.Variable(4.0), 5: (tf.Variable(6.0),)}
        self.size = 7


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.prefix = os.path.join(folder.name, "ckpt")

    def names(self, path):
        return [name for name, _ in tf.train.list_variables(path)]

    def test_modules(self):
        model = Model()
        self.assertEqual((model.name, [float(v) for v in model.variables]), ("model", [1, 2, 3, 4, 6]))
        self.assertEqual([float(v) for v in model.trainable_variables], [1, 2, 4, 6])
        self.assertEqual([float(v) for v in model.non_trainable_variables], [3])
        outer = tf.Module()
        outer.inner = model
        outer.again = [model]
        self.assertEqual((outer.submodules, len(outer.variables)), ((model,), 5))
        with self.assertRaisesRegex(AttributeError, "tf.Module.trainable is not offered"):
            model.trainable  # noqa: B018

    def test_what_is_held(self):
        model = Model()
        checkpoint = tf.train.Checkpoint(model=model)
        path = checkpoint.write(self.prefix)
        names = ["model/a", "model/layers/0", "model/layers/1", "model/named/5/0", "model/named/k"]
        self.assertEqual(self.names(path), names)
        checkpoint.later = tf.Variable(8.0)
        self.assertEqual(self.names(checkpoint.save(self.prefix)), ["later", *names, "save_counter"])
        self.assertEqual(self.names(tf.train.Checkpoint(model).write(self.prefix))[0], "a")
        nest = tf.train.Checkpoint(v=[tf.Variable(1.0)], t=(tf.Variable(1.0),), d={"a": {"b": tf.Variable(1.0)}})
        self.assertEqual(self.names(nest.write(self.prefix)), ["d/a/b", "t/0", "v/0"])
        for bad in (3, object(), "text"):
            with self.assertRaisesRegex(ValueError, "was expecting v to be a trackable object"):
                tf.train.Checkpoint(v=bad)
        with self.assertRaisesRegex(ValueError, "has no variables"):
            tf.train.Checkpoint().write(self.prefix)

    def test_saves_are_numbered(self):
        v = tf.Variable(1.0)
        checkpoint = tf.train.Checkpoint(v=v)
        self.assertIsNone(tf.train.latest_checkpoint(self.folder))
        paths = []
        for value in (1.0, 2.0):
            v.assign(value)
            paths.append(checkpoint.save(self.prefix, options=tf.train.CheckpointOptions()))
        self.assertEqual(paths, [f"{self.prefix}-1", f"{self.prefix}-2"])
        self.assertEqual((tf.train.latest_checkpoint(self.folder), int(checkpoint.save_counter)), (paths[1], 2))
        self.assertEqual([float(tf.train.load_variable(path, "v")) for path in paths], [1, 2])
        checkpoint.restore(paths[0]).assert_consumed()
        self.assertEqual((float(v), int(checkpoint.save_counter)), (1, 1))
        self.assertEqual(checkpoint.save(pathlib.Path(self.prefix)), paths[1])
        self.assertEqual(tf.train.list_variables(self.folder), [("save_counter", []), ("v", [])])

    def test_what_a_status_says(self):
        path = tf.train.Checkpoint(model=Model()).save(self.prefix)
        other = tf.train.Checkpoint(x=tf.Variable(0.0)).restore(path)
        for check in (other.assert_consumed, other.assert_existing_objects_matched, other.assert_nontrivial_match):
            self.assertRaises(AssertionError, check)
        self.assertIs(other.expect_partial(), other)
        part = tf.train.Checkpoint(model=tf.train.Checkpoint(a=tf.Variable(0.0))).restore(path)
        part.assert_existing_objects_matched().assert_nontrivial_match()
        with self.assertRaisesRegex(AssertionError, "model/layers/0"):
            part.assert_consumed()
        nothing = tf.train.Checkpoint(v=tf.Variable(1.0)).restore(None)
        with self.assertRaisesRegex(AssertionError, "No checkpoint specified"):
            nothing.assert_consumed()
        nothing.expect_partial()
        with self.assertRaises(libdist.NotFound):
            tf.train.Checkpoint(v=tf.Variable(1.0)).restore(path + "0")
        model = tf.train.Checkpoint(a=tf.Variable([1.0]))
        with self.assertRaisesRegex(ValueError, r"incompatible tensor with shape \(\)"):
            tf.train.Checkpoint(model=model).restore(path)
        self.assertEqual(model.a.numpy().tolist(), [1])

    def test_what_is_made_later_is_restored_later(self):
        path = tf.train.Checkpoint(model=Model()).save(self.prefix)
        checkpoint = tf.train.Checkpoint()
        status = checkpoint.restore(path)
        self.assertRaises(AssertionError, status.assert_consumed)
        checkpoint.model = tf.Module()
        checkpoint.model.a = tf.Variable(0.0)
        self.assertEqual(float(checkpoint.model.a), 1)
        checkpoint.model.a.assign(9.0)
        checkpoint.model.layers = [tf.Variable(0.0), tf.Variable(0.0)]
        checkpoint.model.named = {"k": tf.Variable(0.0), 5: (tf.Variable(0.0),)}
        status.assert_consumed()
        self.assertEqual([float(v) for v in checkpoint.model.variables], [9, 2, 3, 4, 6])

    def test_manager(self):
        v = tf.Variable(0.0)
        folder = os.path.join(self.folder, "kept")
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=2)
        self.assertIsNone(manager.restore_or_initialize())
        for i in range(3):
            v.assign(float(i))
            self.assertEqual(manager.save(), os.path.join(folder, f"ckpt-{i + 1}"))
        self.assertEqual(manager.checkpoints, [os.path.join(folder, f"ckpt-{i}") for i in (2, 3)])
        self.assertEqual(sorted(os.listdir(folder)), ["checkpoint", "ckpt-2", "ckpt-3"])
        self.assertEqual(tf.train.latest_checkpoint(folder), manager.latest_checkpoint)
        self.assertEqual(manager.save(checkpoint_number=77), os.path.join(folder, "ckpt-77"))
        v.assign(50.0)
        again = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=None)
        self.assertEqual(again.restore_or_initialize(), os.path.join(folder, "ckpt-77"))
        self.assertEqual((float(v), again.directory, again.checkpoint_interval), (2, folder, None))
        step, begun = tf.Variable(5), []
        timed = tf.train.CheckpointManager(
            tf.train.Checkpoint(v=v),
            os.path.join(self.folder, "timed"),
            max_to_keep=1,
            checkpoint_name="x",
            step_counter=step,
            checkpoint_interval=3,
            init_fn=lambda: begun.append(1),
        )
        self.assertIsNone(timed.restore_or_initialize())
        self.assertEqual(([bool(timed.save()), bool(timed.save())], begun), ([True, False], [1]))
        step.assign_add(3)
        self.assertTrue(timed.save())
        for bad in ({"max_to_keep": 0}, {"max_to_keep": 1, "checkpoint_interval": 2}):
            with self.assertRaises(ValueError):
                tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, **bad)

    def test_a_manager_lists_a_file_before_it_removes_others(self):
        """So that a program which ends in between finds one."""
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(0.0)), self.folder, max_to_keep=1)
        first = manager.save()
        with mock.patch.object(os, "remove", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            manager.save()
        os.remove(first)
        self.assertEqual(tf.train.latest_checkpoint(self.folder), os.path.join(self.folder, "ckpt-2"))

    def test_variables_of_several_strategies(self):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(strategy.close)
        plain = tf.Variable([1.0, 2.0])
        with strategy.scope():
            tf.train.Checkpoint(p=plain).restore(tf.train.Checkpoint(p=plain).save(self.prefix)).assert_consumed()
            v = tf.Variable([3.0, 4.0])
            total = tf.Variable(
                [1.0, 1.0], synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
            )
            mean = tf.keras.metrics.Mean()
        strategy.run(lambda: mean.update_state([1.0, 3.0]))
        checkpoint = tf.train.Checkpoint(p=plain, v=v, total=total, mean=mean)

        def forget():
            for variable in (plain, v, total):
                variable.assign([0.0, 0.0])
            mean.reset_state()

        path = checkpoint.save(self.prefix)
        one = tf.distribute.OneDeviceStrategy("CPU:0")
        for scope in (None, strategy, one):
            forget()
            if scope is None:
                checkpoint.restore(path).assert_consumed()
            else:
                with scope.scope():
                    checkpoint.restore(path).assert_consumed()
                    path = tf.train.Checkpoint(p=plain, v=v, total=total, mean=mean).save(self.prefix)
            values = [variable.numpy().tolist() for variable in (plain, v, total)]
            self.assertEqual(values, [[1, 2], [3, 4], [2, 2]])
            self.assertEqual([copy.numpy().tolist() for copy in total.values], [[1, 1], [1, 1]])
            self.assertEqual(mean.result(), 2)
        np.testing.assert_array_equal(v.values[1], [3, 4])


if __name__ == "__main__":
    unittest.main()
