# SPDX-License-Identifier: Apache-2.0
"""libdist.tf beside recordings of TensorFlow (tests/golden/cases): variables and reductions, through its own calls."""

import json
import pathlib
import unittest

import numpy as np

import libdist.tf as tf

CASES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "cases"
DTYPES = {"float32", "float64", "float16", "int32", "int64", "uint8", "bool"}

# Graph optimizers make the division another operation: tests/golden/differences.md.
DIFFERENT = "/in_tf_function/MEAN/"


def cases(area):
    path = CASES / f"{area}.json"
    if not path.exists():
        raise unittest.SkipTest("the recordings are in libdist's source tree")
    return json.loads(path.read_text())["cases"]


def decode(value):
    """A recorded value as a program has it; KeyError for kinds that are not for this test."""
    if not isinstance(value, dict):
        return value
    if value["kind"] == "tensor":
        number = float if value["dtype"].startswith("float") else int  # texts: big integers, "inf", "nan"
        data = [number(x) if isinstance(x, str) else x for x in value["data"]]
        return np.array(data).astype(value["dtype"]).reshape(value["shape"])
    return {"py_float": float, "py_int": int, "py_bool": bool}[value["kind"]](value["value"])


def make_strategy(recorded):
    name, devices = recorded["name"], recorded.get("devices")
    if name == "MirroredStrategy":
        return tf.distribute.MirroredStrategy(devices)
    if name == "CentralStorageStrategy":
        return tf.distribute.experimental.CentralStorageStrategy(devices, recorded.get("parameter_device", "CPU:0"))
    if name == "OneDeviceStrategy":
        return tf.distribute.OneDeviceStrategy("CPU:0")
    return None


class Golden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.strategies = {}

    @classmethod
    def tearDownClass(cls):
        for strategy in cls.strategies.values():
            strategy.close()

    def strategy(self, recorded):
        key = json.dumps(recorded, sort_keys=True)
        if key not in self.strategies:
            self.strategies[key] = make_strategy(recorded)
        return self.strategies[key]

    def check(self, case, answer, keys):
        """Compares what a case's calls answer, a function, with the recording."""
        with self.subTest(case["id"]):
            if "error" in case:
                with self.assertRaises(Exception) as raised:
                    answer()
                kinds = {"ValueError": ValueError, "RuntimeError": RuntimeError}
                kind = kinds.get(case["error"]["type"]) if case["error"]["origin"] == "python" else None
                if kind is not None and not isinstance(raised.exception, NotImplementedError):
                    self.assertIsInstance(raised.exception, kind)
                return
            given = answer()
            for key in keys:
                self.same(given[key], case["expected"][key], f"{case['id']}: {key}")

    def same(self, given, expected, where):
        if expected["kind"] == "variable":
            copies = expected["values"] if "values" in expected else [expected["value"]]
            self.assertEqual(len(given), len(copies), where)
            for copy, recorded in zip(given, copies):
                self.same(copy, recorded, where)
            return
        wanted = decode(expected)
        given = np.asarray(given)
        self.assertEqual(given.shape, np.shape(wanted), where)
        if isinstance(wanted, np.ndarray):
            self.assertEqual(given.dtype, wanted.dtype, where)
        np.testing.assert_array_equal(given, wanted, where)

    # ---- variables ------------------------------------------------------------------------------------------------

    def assigned(self, case):
        inputs, strategy = case["inputs"], self.strategy(case["strategy"])
        method, where = inputs["method"], inputs["where"]
        with strategy.scope():
            v = tf.Variable(
                decode(inputs["initial"]),
                synchronization=tf.VariableSynchronization[inputs["synchronization"]],
                aggregation=tf.VariableAggregation[inputs["aggregation"]],
            )
        own = [decode(value) for value in inputs["per_replica"]] if "per_replica" in inputs else None
        value = (
            decode(inputs["value"])
            if own is None
            else strategy.experimental_distribute_values_from_function(
                lambda context: own[context.replica_id_in_sync_group]
            )
        )

        def assign(value):
            getattr(v, method)(value)

        if where == "inside run":
            strategy.run(assign, args=(value,))
        elif where == "no scope":
            assign(value)
        elif where == "extended.update":
            with strategy.scope():
                strategy.extended.update(v, lambda copy, value: getattr(copy, method)(value), args=(value,))
        else:
            with strategy.scope():
                assign(value)
        read = lambda: v.read_value()  # noqa: E731
        try:
            with strategy.scope():
                cross = read()
        except ValueError:
            cross = None
        inside = strategy.experimental_local_results(strategy.run(read))
        return {
            "variable": [copy.numpy() for copy in v.values],
            "read_in_scope": cross,
            "read_in_replica_context": list(inside),
        }

    def test_variables(self):
        places = ("scope, cross-replica", "no scope", "inside run", "extended.update")
        count = 0
        for case in cases("variables"):
            inputs = case["inputs"]
            if case["strategy"]["name"] == "DefaultStrategy" or inputs.get("where") not in places:
                continue
            keys = ["variable"]
            recorded = case.get("expected", {}).get("read_in_scope", {})
            if recorded.get("kind") == "tensor":
                keys.append("read_in_scope")
            self.check(case, lambda: self.assigned(case), keys)  # noqa: B023
            count += 1
        self.assertGreater(count, 200)

    # ---- reductions -----------------------------------------------------------------------------------------------

    def reduced(self, case):
        inputs, strategy = case["inputs"], self.strategy(case["strategy"])
        own = [decode(value) for value in inputs["per_replica"]]
        value = strategy.experimental_distribute_values_from_function(
            lambda context: own[context.replica_id_in_sync_group]
        )
        axis = tuple(inputs["axis"]) if isinstance(inputs["axis"], list) else inputs["axis"]
        return {"result": strategy.reduce(inputs["op"], value, axis=axis)}

    def test_reductions(self):
        count = 0
        for case in cases("reduce"):
            inputs = case["inputs"]
            plain = set(inputs) <= {"op", "axis", "per_replica", "axis_is"} and {"axis", "per_replica"} <= set(inputs)
            if case["strategy"]["name"] == "DefaultStrategy" or not plain or not isinstance(inputs.get("op"), str):
                continue
            parts = inputs["per_replica"]
            if any(part.get("kind") != "tensor" or part["dtype"] not in DTYPES for part in parts):
                continue
            if parts[0]["dtype"] == "float16" or DIFFERENT in case["id"]:  # 16-bit sums round once
                continue
            self.check(case, lambda: self.reduced(case), ["result"])  # noqa: B023
            count += 1
        self.assertGreater(count, 80)


if __name__ == "__main__":
    unittest.main()
