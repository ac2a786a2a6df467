# SPDX-License-Identifier: Apache-2.0
"""The names of tf.distribute (include/dist/TF_DISTRIBUTE.md) and libdist.tf: what libdist has is there."""

import pathlib
import re
import unittest

import libdist.tf as tf

MAP = pathlib.Path(__file__).resolve().parents[3] / "include" / "dist" / "TF_DISTRIBUTE.md"
if not MAP.exists():
    raise unittest.SkipTest("the map of tf.distribute's names is in libdist's source tree")

# What libdist has, and this module has not, by the end of the name, with the reason.
MISSING = {
    ".experimental_run": "TensorFlow 1's form of run()",
    ".make_dataset_iterator": "TensorFlow 1's form of iter(distributed dataset)",
    ".make_input_fn_iterator": "TensorFlow 1's form of iter(distributed dataset)",
    "tf.TypeSpec": "TensorSpec is there",
    "tf.data.TFRecordDataset": "from_generator() reads what Python reads",
    "tf.data.TextLineDataset": "from_generator() reads what Python reads",
}
# What is there in the small, though the map says that libdist has it not.
NAMESPACES = {"tf.keras"}
# Whose fields an object has, and not the class.
OBJECTS = {
    "tf.distribute.InputOptions": lambda: tf.distribute.InputOptions(),
    "tf.distribute.RunOptions": lambda: tf.distribute.RunOptions(),
    "tf.data.experimental.DistributeOptions": lambda: tf.data.experimental.DistributeOptions(),
    "tf.distribute.experimental.ValueContext": lambda: tf.distribute.experimental.ValueContext(),
}


def rows():
    """(names, whether libdist has them) of each row of the map."""
    for line in MAP.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`tf."):
            yield re.findall(r"`(tf\.[\w.]+)`", cells[0]), cells[1] != "–"


def find(name):
    """What a name stands for, in the class or in an object of it; raises AttributeError."""
    owner = name.rpartition(".")[0]
    if owner in OBJECTS:
        return getattr(OBJECTS[owner](), name.rpartition(".")[2])
    found = tf
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def missing(name):
    """Whether libdist has it and this module not."""
    return any(name.endswith(end) for end in MISSING)


class Names(unittest.TestCase):
    def refused(self, name):
        with self.subTest(name), self.assertRaises(AttributeError) as raised:
            find(name)
        self.assertRegex(str(raised.exception), r"^tf\..* is not offered: .+", name)

    def test_what_libdist_has_is_there(self):
        count = 0
        for names, has in rows():
            for name in names if has else ():
                count += 1
                if missing(name):
                    self.refused(name)
                    continue
                with self.subTest(name):
                    find(name)
        self.assertGreater(count, 100)

    def test_what_libdist_has_not_is_a_sentence(self):
        for names, has in rows():
            for name in () if has else names:
                if name not in NAMESPACES:
                    self.refused(name)

    def test_reasons_are_of_the_map(self):
        there = {name for names, has in rows() if has for name in names}
        self.assertLessEqual(set(OBJECTS), there)
        for end in MISSING:
            self.assertTrue(any(name.endswith(end) for name in there), end)

    def test_every_name_is_a_sentence(self):
        strategy = tf.distribute.OneDeviceStrategy("CPU:0")
        dataset = tf.data.Dataset.range(2)
        distributed = strategy.experimental_distribute_dataset(dataset)
        places = [tf, tf.data, tf.distribute, tf.distribute.cluster_resolver, tf.distribute.experimental, tf.keras]
        places += [tf.distribute.experimental.partitioners, tf.train.ClusterSpec({})]
        places += [tf.metrics, tf.nn, tf.train, tf.tpu, tf.tpu.experimental, tf.config, tf.ragged, tf.sparse, tf.nest]
        places += [
            strategy,
            strategy.extended,
            dataset,
            distributed,
            iter(distributed),
            tf.constant(1.0),
            tf.Variable(1),
        ]
        places += [tf.distribute.coordinator, tf.distribute.experimental.coordinator, tf.distribute.Server]
        places += [tf.distribute.coordinator.ClusterCoordinator, tf.distribute.ParameterServerStrategy]
        places += [tf.distribute.get_replica_context(), tf.train.Checkpoint(), tf.keras.metrics.Mean(), tf.Module()]
        places += [tf.Variable, tf.distribute.MirroredStrategy, tf.train.Checkpoint, tf.keras.metrics.Metric]
        for place in places:
            refusal = r"^tf\b.*\.no_such_name is not offered: .+"
            with self.subTest(place), self.assertRaisesRegex(AttributeError, refusal):
                place.no_such_name  # noqa: B018
            self.assertFalse(hasattr(place, "_no_such_name"))
        with self.assertRaisesRegex(AttributeError, "libdist reduces gradients and makes none"):
            tf.GradientTape  # noqa: B018
        with self.assertRaisesRegex(AttributeError, "a model is the program's own here"):
            tf.keras.layers  # noqa: B018
        with self.assertRaisesRegex(AttributeError, "numpy.exp computes with them"):
            tf.exp  # noqa: B018
        with self.assertRaisesRegex(ImportError, "no_such_name"):
            from libdist.tf import no_such_name  # noqa: F401


if __name__ == "__main__":
    unittest.main()
