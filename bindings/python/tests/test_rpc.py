# SPDX-License-Identifier: Apache-2.0
"""Methods of other processes."""

import gc
import threading
import unittest
import weakref

import numpy as np

import libdist
from libdist import (
    Cancel,
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    RpcClient,
    RpcServer,
    Unavailable,
    Unknown,
)
from libdist.tf import distribute


class Rpc(unittest.TestCase):
    def serve(self, **methods):
        server = RpcServer("127.0.0.1:0")
        self.addCleanup(server.close)
        for name, fn in methods.items():
            server.register(name, fn)
        server.start()
        client = RpcClient(server.address)
        self.addCleanup(client.close)
        return server, client

    def test_a_method_gets_arguments_and_gives_a_result(self):
        def describe(call, *arguments):
            self.assertEqual(call.method, "describe")
            self.assertFalse(call.cancelled)
            return {"n": len(arguments), "all": list(arguments), "text": "given"}

        _, client = self.serve(describe=describe, add=lambda call, a, b: a + b, nothing=lambda call: None)
        self.assertEqual(client.methods(), ["add", "describe", "nothing"])
        self.assertEqual(client.call("add", np.arange(6.0).reshape(2, 3).T, 1.0).tolist(), [[1, 4], [2, 5], [3, 6]])
        result = client.call("describe", np.int32(7), "ä", None, [np.zeros((0, 2), np.float16)], {"k": (True,)})
        self.assertEqual((int(result["n"]), result["text"], result["all"][1:3]), (5, "given", ["ä", None]))
        self.assertEqual((result["all"][3][0].shape, result["all"][3][0].dtype), ((0, 2), np.float16))
        self.assertIsInstance(result["all"][4]["k"], tuple)
        self.assertIsNone(client.call("nothing"))

    def test_an_error_comes_with_its_status_and_words(self):
        def fail(call, kind):
            if kind == "own":
                raise NotFound("no row 7")
            raise KeyError("key")

        _, client = self.serve(fail=fail, object=lambda call: object())
        with self.assertRaisesRegex(NotFound, "fail at 127.*: no row 7"):
            client.call("fail", "own")
        with self.assertRaisesRegex(Unknown, "KeyError: 'key'"):
            client.call("fail", "other")
        with self.assertRaisesRegex(InvalidArgument, "TypeError"):
            client.call("fail")
        with self.assertRaisesRegex(InvalidArgument, "cannot be sent to another process"):
            client.call("object")
        with self.assertRaisesRegex(InvalidArgument, "cannot be sent to another process"):
            client.call("fail", object())
        with self.assertRaisesRegex(NotFound, "the server has no method nowhere"):
            client.call("nowhere")

    def test_a_call_ends_early(self):
        inside, told = threading.Event(), threading.Event()

        def wait(call):
            inside.set()
            while not call.cancelled:
                inside.wait(0.001)
            told.set()

        server, client = self.serve(wait=wait, fast=lambda call, x: x)
        with self.assertRaises(DeadlineExceeded):
            client.call("wait", timeout=0.05)
        inside.clear()
        told.clear()
        cancel = Cancel()
        remote = client.begin("wait", cancel=cancel)
        self.assertTrue(inside.wait(60))
        self.assertFalse(remote.done())
        with self.assertRaisesRegex(DeadlineExceeded, "The call continues to run"):
            remote.result(timeout=0)
        cancel.signal("the user left")
        with self.assertRaisesRegex(Cancelled, "the user left"):
            remote.result()
        self.assertTrue(told.wait(60))
        remote = client.begin("wait")
        remote.cancel()
        with self.assertRaises(Cancelled):
            remote.result()
        self.assertEqual(float(RpcClient(server.address).begin("fast", 3.0).result()), 3.0)  # which nobody else holds
        remotes = [client.begin("fast", float(i)) for i in range(1000)]
        self.assertEqual([float(remote.result()) for remote in remotes], [float(i) for i in range(1000)])

    def test_a_server_that_is_closed_ends_its_calls(self):
        inside = threading.Event()

        def wait(call):
            inside.set()
            while not call.cancelled:
                inside.wait(0.001)
            raise Unavailable("gone")

        server, client = self.serve(wait=wait)
        remote = client.begin("wait")
        self.assertTrue(inside.wait(60))
        server.close()
        with self.assertRaises(Unavailable):
            remote.result()
        with self.assertRaisesRegex(FailedPrecondition, "the server is closed"):
            server.start()
        client.close()
        with self.assertRaisesRegex(FailedPrecondition, "the client is closed"):
            client.call("wait")

    def test_what_is_registered_ends_with_the_server(self):
        class Method:
            def __call__(self, call):
                return None

        method = Method()
        alive = weakref.ref(method)
        server = RpcServer("127.0.0.1:0")
        server.register("m", method)
        with self.assertRaises(libdist.AlreadyExists):
            server.register("m", method)
        with self.assertRaisesRegex(TypeError, "fn is 3, but must be callable"):
            server.register("n", 3)
        del method
        gc.collect()
        self.assertIsNotNone(alive())
        server.close()
        gc.collect()
        self.assertIsNone(alive())

    def test_the_documented_program_of_tensorflow(self):
        tf_rpc = distribute.experimental.rpc
        with self.assertRaisesRegex(ValueError, "Only GRPC backend"):
            tf_rpc.Server.create("http", "127.0.0.1:0")
        server = tf_rpc.Server.create("grpc", "127.0.0.1:0")
        self.addCleanup(server._native.close)

        def bad(a):
            raise libdist.InvalidArgument("boom")

        server.register("addition", lambda a, b: a + b)
        server.register("bad", bad)
        with self.assertRaisesRegex(libdist.InvalidArgument, "bad is already registered"):
            server.register("bad", bad)
        server.start()
        client = tf_rpc.Client.create("grpc", server._native.address, timeout_in_ms=60_000)
        result = client.call("addition", args=(2, 3))
        self.assertTrue(result.is_ok())
        self.assertEqual(result.get_error()[0], 0)
        value = result.get_value()
        self.assertEqual((int(value), value.dtype), (5, np.int32))
        self.assertEqual(client.addition(1.0, 2.5).get_value().numpy(), np.float32(3.5))
        self.assertEqual(client.addition_blocking(1.0, 2.5).numpy(), np.float32(3.5))
        self.assertEqual(
            [client.addition.__doc__, client.addition_blocking.__doc__],
            [
                f"Calls the method addition of the server at {server._native.address}{end}"
                for end in (".", ", and returns its value.")
            ],
        )
        with self.assertRaisesRegex(libdist.InvalidArgument, "boom"):
            client.bad_blocking(1.0)
        for name in ("nowhere", "nowhere_blocking", "_blocking"):
            self.assertFalse(hasattr(client, name))
        failed = client.call("bad", [1.0])
        self.assertFalse(failed.is_ok())
        self.assertEqual(int(failed.get_error()[0]), 3)
        self.assertIn("boom", failed.get_error()[1])
        with self.assertRaisesRegex(libdist.InvalidArgument, "boom"):
            failed.get_value()


if __name__ == "__main__":
    unittest.main()
