# SPDX-License-Identifier: Apache-2.0
"""The names of tf.distribute (include/dist/TF_DISTRIBUTE.md) and libdist.tf: what libdist has is there."""

import pathlib
import re
import unittest

import libdist.tf as tf

MAP = pathlib.Path(__file__).resolve().parents[3] / "include" / "dist" / "TF_DISTRIBUTE.md"
if not MAP.exists():
    raise unittest.SkipTest("the map of tf.distribute's names is in libdist's source tree")

# What libdist has, and this module has not, with the reason.
MISSING = {
    "tf.distribute.Strategy.experimental_run": "TensorFlow 1's form of run()",
    "tf.distribute.Strategy.make_dataset_iterator": "TensorFlow 1's form of iter(distributed dataset)",
    "tf.distribute.Strategy.make_input_fn_iterator": "TensorFlow 1's form of iter(distributed dataset)",
}
# Whose fields an object has, and not the class.
OBJECTS = {
    "tf.distribute.InputOptions": lambda: tf.distribute.InputOptions(),
    "tf.distribute.RunOptions": lambda: tf.distribute.RunOptions(),
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


class Names(unittest.TestCase):
    def test_what_libdist_has_is_there(self):
        count = 0
        for names, has in rows():
            for name in names if has else ():
                count += 1
                with self.subTest(name):
                    if name in MISSING:
                        with self.assertRaises(AttributeError):
                            find(name)
                    else:
                        find(name)
        self.assertGreater(count, 100)

    def test_what_libdist_has_not_is_not_promised(self):
        for names, has in rows():
            for name in () if has else names:
                with self.subTest(name), self.assertRaises(AttributeError):
                    find(name)

    def test_reasons_are_of_the_map(self):
        there = {name for names, has in rows() if has for name in names}
        self.assertLessEqual(set(MISSING) | set(OBJECTS), there)


if __name__ == "__main__":
    unittest.main()
