# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: the first lines of TensorFlow's pages, which print the version and configure logical devices."""

import unittest

import libdist.tf as tf

Configuration = tf.config.LogicalDeviceConfiguration


class Config(unittest.TestCase):
    def setUp(self):
        self.cpu = tf.config.list_physical_devices("CPU")[0]
        self.addCleanup(tf.config.set_logical_device_configuration, self.cpu, None)

    def test_version(self):
        self.assertEqual(tf.__version__, "2.21.0+libdist")
        self.assertEqual(tf.version.VERSION, tf.__version__)
        self.assertEqual([int(part) for part in tf.__version__.split(".")[:2]], [2, 21])

    def test_logical_devices(self):
        self.assertEqual(len(tf.config.list_physical_devices()), 1)
        self.assertEqual(tf.config.list_physical_devices("GPU"), [])
        default = tf.config.list_logical_devices("CPU")
        self.assertIsNone(tf.config.get_logical_device_configuration(self.cpu))
        for count in (3, 1):
            tf.config.set_logical_device_configuration(self.cpu, [Configuration()] * count)
            self.assertEqual(tf.config.get_logical_device_configuration(self.cpu), [Configuration()] * count)
            names = [device.name for device in tf.config.list_logical_devices("CPU")]
            self.assertEqual(names, [f"/device:CPU:{i}" for i in range(count)])
            for devices in (None, names):
                strategy = tf.distribute.MirroredStrategy(devices)
                self.addCleanup(strategy.close)
                self.assertEqual(strategy.num_replicas_in_sync, count)
                self.assertEqual(
                    strategy.extended.worker_devices,
                    tuple(f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(count)),
                )
        tf.config.set_logical_device_configuration(self.cpu, None)
        self.assertEqual(tf.config.list_logical_devices("CPU"), default)

    def test_older_names(self):
        virtual = tf.config.experimental.VirtualDeviceConfiguration
        tf.config.experimental.set_virtual_device_configuration(self.cpu, [virtual(), virtual()])
        self.assertEqual(len(tf.config.experimental.list_logical_devices("CPU")), 2)

    def test_mistakes(self):
        for error, words, device, given in (
            (ValueError, "Unrecognized device", "CPU:0", [Configuration()]),
            (ValueError, "memory limit on CPU", self.cpu, [Configuration(memory_limit=1024)]),
            (ValueError, "experimental_priority on CPU", self.cpu, [Configuration(experimental_priority=1)]),
            (ValueError, "empty", self.cpu, []),
            (TypeError, "LogicalDeviceConfiguration", self.cpu, [2]),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                tf.config.set_logical_device_configuration(device, given)
        self.assertIsNone(tf.config.get_logical_device_configuration(self.cpu))

    def test_small_functions(self):
        self.assertIs(tf.dtypes.int64, tf.int64)
        self.assertEqual(tf.add_n([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]).numpy().tolist(), [4.0, 6.0])
        with self.assertRaises(ValueError):
            tf.add_n([])


if __name__ == "__main__":
    unittest.main()
