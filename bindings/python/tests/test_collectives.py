# SPDX-License-Identifier: Apache-2.0
"""Every collective against NumPy, in each way of calling it; groups, work, reduce_apply."""

import array
import threading
import unittest

import numpy as np

from libdist import DType, Numerics, ReduceOp, ScanKind, Strategy, Tensor, Work

R = 3


def contribution(replica_id, size=6):
    return np.random.default_rng(replica_id).normal(size=size).astype(np.float32)


ALL = [contribution(r) for r in range(R)]
FOLD = (ALL[0] + ALL[1]) + ALL[2]


class Collectives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.strategy = Strategy(R)

    @classmethod
    def tearDownClass(cls):
        cls.strategy.close()

    def each(self, fn):
        return self.strategy.run(fn)

    def test_all_reduce_folds_in_order(self):
        for result in self.each(lambda r: r.all_reduce(ReduceOp.SUM, ALL[r.id])):
            np.testing.assert_array_equal(result, FOLD)

    def test_in_place_and_with_options(self):
        def step(r):
            x = ALL[r.id].copy()
            y = r.all_reduce(ReduceOp.SUM, x, out=x)
            z = ALL[r.id].copy()
            r.all_reduce(ReduceOp.SUM, z, out=z, tag="grads", timeout=30)
            return y is x, x, z

        for same, x, z in self.each(step):
            self.assertTrue(same)
            np.testing.assert_array_equal(x, FOLD)
            np.testing.assert_array_equal(z, FOLD)

    def test_lists_shapes_and_strides(self):
        def step(r):
            wide = np.arange(24, dtype=np.int32).reshape(4, 6) + r.id
            outs = r.all_reduce(ReduceOp.MAX, [wide[:, ::2], wide.T, np.float64(r.id)])
            return outs

        for outs in self.each(step):
            wide = np.arange(24, dtype=np.int32).reshape(4, 6) + R - 1
            np.testing.assert_array_equal(outs[0], wide[:, ::2])
            np.testing.assert_array_equal(outs[1], wide.T)
            self.assertEqual(outs[2], R - 1)

    def test_dtypes(self):
        for dtype in "e f d b B h H i I l L F".split():

            def step(r):
                return r.all_reduce(ReduceOp.SUM, np.full(3, r.id + 1, dtype))

            for out in self.each(step):
                self.assertEqual(out.dtype, np.dtype(dtype))
                self.assertEqual(out.tolist(), [6] * 3)
        flags = self.each(lambda r: r.all_reduce(ReduceOp.MAX, np.array([False, r.id == 1])))
        self.assertEqual(flags[0].tolist(), [False, True])

    def test_mean_of_integers_is_wider(self):
        out = self.each(lambda r: r.all_reduce(ReduceOp.MEAN, np.array([r.id, 1], np.int32)))[0]
        self.assertEqual((out.dtype, out.tolist()), (np.float64, [1.0, 1.0]))
        out = self.each(lambda r: r.all_reduce(ReduceOp.MEAN, np.array([r.id], np.int8)))[0]
        self.assertEqual(out.dtype, np.float32)

    def test_bfloat16_as_uint16(self):
        ones = np.full(2, 0x3F80, np.uint16)  # 1.0
        out = self.each(lambda r: r.all_reduce(ReduceOp.SUM, Tensor(ones, DType.BF16)))[0]
        self.assertEqual(out.dtype, DType.BF16)
        self.assertEqual(out.array.tolist(), [0x4040] * 2)  # 3.0

    def test_buffers_of_others(self):
        def step(r):
            a = array.array("d", [r.id, 2.0])
            r.all_reduce(ReduceOp.SUM, a, out=a)
            b = bytearray([1, r.id])
            r.all_reduce(ReduceOp.SUM, b, out=b)
            return list(a), list(b)

        self.assertEqual(self.each(step)[2], ([3.0, 6.0], [3, 3]))

    def test_weights_contributions_numerics(self):
        def step(r):
            mean = r.all_reduce(ReduceOp.MEAN, np.array([float(r.id)]), weights=float(r.id))
            two = r.all_reduce(
                ReduceOp.SUM, [np.array([1.0]), np.array([10.0])], contributions=2, numerics=Numerics.REPRODUCIBLE
            )
            return mean[0], two[0].tolist()

        self.assertEqual(self.each(step), [(5 / 3, [33.0])] * R)

    def test_the_strategys_numerics(self):
        numbers = [np.array([x], np.float32) for x in (1e8, 1, -1e8, 1, 1)]
        for numerics, expected in ((Numerics.ORDERED, 2), (Numerics.REPRODUCIBLE, 3), (Numerics.TREE, 1)):
            with Strategy(len(numbers), numerics=numerics) as strategy:

                def step(r):
                    tree = r.all_reduce(ReduceOp.SUM, numbers[r.id], numerics=Numerics.TREE)
                    return r.all_reduce(ReduceOp.SUM, numbers[r.id])[0], tree[0]

                self.assertEqual(strategy.run(step), [(expected, 1)] * len(numbers))

    def test_an_operator_of_the_programs_own(self):
        def larger(acc, values):
            np.maximum(acc, values, out=acc)

        for result in self.each(lambda r: r.all_reduce(larger, ALL[r.id])):
            np.testing.assert_array_equal(result, np.maximum.reduce(ALL))

    def test_an_operator_that_returns_a_new_array(self):
        with self.assertRaisesRegex(TypeError, "must change its first argument in place"):
            self.each(lambda r: r.all_reduce(lambda acc, values: np.maximum(acc, values), ALL[r.id]))

    def test_an_operator_that_raises(self):
        def broken(acc, values):
            raise ZeroDivisionError("no operator")

        with self.assertRaisesRegex(ZeroDivisionError, "no operator"):
            self.each(lambda r: r.all_reduce(broken, ALL[r.id]))
        self.test_all_reduce_folds_in_order()

    def test_reduce_to_root(self):
        results = self.each(lambda r: r.reduce_to_root(ReduceOp.SUM, 1, ALL[r.id]))
        self.assertIsNone(results[0])
        np.testing.assert_array_equal(results[1], FOLD)

    def test_reduce_scatter(self):
        results = self.each(lambda r: r.reduce_scatter(ReduceOp.SUM, ALL[r.id]))
        np.testing.assert_array_equal(np.concatenate(results), FOLD)

        def uneven(r):
            return r.reduce_scatter(ReduceOp.SUM, ALL[r.id], np.empty((3, 2, 1)[r.id], np.float32))

        np.testing.assert_array_equal(np.concatenate(self.each(uneven)), FOLD)

    def test_gathers(self):
        whole = np.concatenate(ALL)
        np.testing.assert_array_equal(self.each(lambda r: r.all_gather(ALL[r.id]))[2], whole)
        columns = self.each(lambda r: r.all_gather(ALL[r.id].reshape(2, 3), axis=1))[0]
        np.testing.assert_array_equal(columns, np.concatenate([x.reshape(2, 3) for x in ALL], axis=1))
        rooted = self.each(lambda r: r.gather_to_root(2, ALL[r.id]))
        self.assertIsNone(rooted[0])
        np.testing.assert_array_equal(rooted[2], whole)

        def uneven(r):
            return r.all_gather_value({"x": np.arange(r.id + 1)})["x"]

        self.assertEqual(self.each(uneven)[0].tolist(), [0, 0, 1, 0, 1, 2])

    def test_broadcast_and_scatter(self):
        def step(r):
            x = ALL[r.id].copy()
            r.broadcast(1, x)
            y = ALL[r.id].copy()
            r.broadcast(2, y, tag="b")
            part = np.empty(2, np.float32)
            r.scatter_from_root(0, ALL[0] if r.id == 0 else None, part)
            return x, y, part

        results = self.each(step)
        for x, y, _ in results:
            np.testing.assert_array_equal(x, ALL[1])
            np.testing.assert_array_equal(y, ALL[2])
        np.testing.assert_array_equal(np.concatenate([part for _, _, part in results]), ALL[0])

    def test_all_to_all(self):
        results = self.each(lambda r: r.all_to_all(np.arange(6) + 10 * r.id))
        self.assertEqual(results[1].tolist(), [2, 3, 12, 13, 22, 23])

        def uneven(r):
            sizes = [1, 2, 3]
            return r.all_to_all(np.arange(6) + 10 * r.id, np.empty(3 * sizes[r.id], int), splits=sizes)

        self.assertEqual(self.each(uneven)[0].tolist(), [0, 10, 20])

    def test_scan_and_permute(self):
        inclusive = self.each(lambda r: r.scan(ReduceOp.SUM, np.array([r.id + 1])))
        self.assertEqual([x.item() for x in inclusive], [1, 3, 6])
        exclusive = self.each(lambda r: r.scan(ReduceOp.SUM, np.array([r.id + 1]), kind=ScanKind.EXCLUSIVE))
        self.assertEqual([x.item() for x in exclusive], [0, 1, 3])
        ring = self.each(lambda r: r.permute((r.id + 1) % R, (r.id - 1) % R, np.array([r.id])))
        self.assertEqual([x.item() for x in ring], [2, 0, 1])
        self.each(lambda r: r.barrier(tag="here", timeout=10))

    def test_nests_and_slices(self):
        def step(r):
            slices = r.strategy.indexed_slices(np.full((1, 2), r.id, np.float32), np.array([r.id]))
            return r.all_reduce_value(ReduceOp.SUM, {"a": [np.float32(1)], "s": slices})

        out = self.each(step)[0]
        self.assertEqual(out["a"][0], 3)
        self.assertEqual(out["s"][1].tolist(), [0, 1, 2])

    def test_groups(self):
        with self.strategy.group([0, 2]) as group:
            self.assertEqual((group.size, group.rank(2), group.rank(1)), (2, 1, -1))

            def step(r):
                if r.id == 1:
                    return None
                r.barrier(group=group)
                return r.all_gather(np.array([r.id]), group=group).tolist()

            self.assertEqual(self.each(step), [[0, 2], None, [0, 2]])


class Later(unittest.TestCase):
    def test_work_under_way(self):
        with Strategy(R) as strategy:

            def step(r):
                x, y = ALL[r.id].copy(), np.array([r.id])
                first = r.begin.all_reduce(ReduceOp.SUM, x, out=x)
                second = r.begin.all_gather(y)
                index = Work.wait_any([first, second])
                self.assertIn(index, (0, 1))
                self.assertIs(first.result(), x)
                self.assertTrue(first.done())
                return x, second.result(timeout=30).tolist()

            for x, gathered in strategy.run(step):
                np.testing.assert_array_equal(x, FOLD)
                self.assertEqual(gathered, [0, 1, 2])

    def test_a_plan_is_begun_again_and_again(self):
        with Strategy(R) as strategy:

            def step(r):
                x = [np.zeros(4, np.float32), np.zeros(2, np.float32)]
                sums = []
                with r.plan.all_reduce(ReduceOp.SUM, x, out=x, bytes_per_pack=16) as plan:
                    for k in range(3):
                        x[0][:], x[1][:] = k, r.id
                        plan.ready(1)
                        plan.ready(0)
                        plan.result()
                        sums.append((float(x[0][0]), float(x[1][0])))
                    x[0][:] = 7
                    plan.start()
                    plan.result()
                    sums.append(float(x[0][3]))
                return sums

            for sums in strategy.run(step):
                self.assertEqual(sums, [(0, 3), (3, 3), (6, 3), 21.0])

    def test_barriers_under_way(self):
        others_have_begun = threading.Barrier(R)

        def step(replica):
            if replica.id == 2:
                others_have_begun.wait()
            with replica.begin.barrier(tag="begun") as work:
                if replica.id != 2:
                    self.assertFalse(work.done())
                    others_have_begun.wait()
                self.assertIsNone(work.result())
            with replica.plan.barrier() as plan:
                for _ in range(3):
                    plan.start()
                    self.assertIsNone(plan.result())

        with Strategy(R) as strategy:
            strategy.run(step)

    def test_work_that_is_cancelled(self):
        from libdist import Cancelled

        with Strategy(2) as strategy:
            cancelled = threading.Event()

            def step(r):
                # Who has not come is what the work waits for when it is cancelled.
                if r.id == 1:
                    cancelled.result()
                try:
                    work = r.begin.all_reduce(ReduceOp.SUM, np.ones(2))
                    if r.id == 0:
                        work.cancel()
                finally:
                    cancelled.set()
                work.result()

            with self.assertRaises(Cancelled):
                strategy.run(step)


class ReduceApply(unittest.TestCase):
    def test_sgd_with_momentum_and_clip(self):
        with Strategy(2) as strategy:

            def step(r):
                gradients = [np.full(3, r.id + 1, np.float32)]
                parameters, momenta = [np.ones(3, np.float32)], [np.zeros(3, np.float32)]
                norm = r.reduce_apply(
                    ReduceOp.SUM, gradients, parameters, learning_rate=0.5, momentum=0.5, states=momenta
                )
                self.assertIsNone(norm)
                norm = r.reduce_apply(
                    ReduceOp.MEAN, [np.array([3.0, 4.0])], [np.zeros(2)], learning_rate=1.0, clip_norm=1.0
                )
                return parameters[0].tolist(), momenta[0].tolist(), norm

            self.assertEqual(strategy.run(step), [([-0.5] * 3, [-1.5] * 3, 5.0)] * 2)

    def test_a_function_for_blocks(self):
        with Strategy(2) as strategy:

            def apply(block):
                block.states[0][:] += block.gradient
                block.parameter[:] -= block.states[0]

            def step(r):
                parameters = [np.zeros(4), np.zeros(2)]
                states = [np.ones(4), np.ones(2)]
                r.reduce_apply(ReduceOp.SUM, [np.ones(4), np.ones(2)], parameters, states=states, fn=apply)
                return [p.tolist() for p in parameters]

            self.assertEqual(strategy.run(step)[1], [[-3.0] * 4, [-3.0] * 2])


if __name__ == "__main__":
    unittest.main()
