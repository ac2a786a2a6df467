#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests examples/inference_host in any language through HTTP.

Environment variables: PROGRAM; DATA, the folder of the layer's weights; GO, if the program is written in Go; FORMAT,
the format of the models if it is not safetensors."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sentence_encoder  # noqa: E402  (after the path is set)

PROGRAM, DATA = os.environ["PROGRAM"], pathlib.Path(os.environ["DATA"])
FORMAT = os.environ.get("FORMAT", "safetensors")
if FORMAT == "onnx":
    from onnx_encoder import write
else:
    from sentence_encoder import write
# The JDK's server closes connections that are idle for this long, and checks at this interval.
ENVIRONMENT = {} if FORMAT != "onnx" else {
    "JDK_JAVA_OPTIONS": "-Dsun.net.httpserver.idleInterval=1 -Dsun.net.httpserver.clockTick=500"
}  # fmt: skip
CLIENTS = 64
HOUR_US = "3600000000"  # a batch that waits this long is still waiting when the test checks it
NEAR = 2e-6
TEXTS = [[101, 7, 42, 102], [101, *range(20, 38), 102], [5], [101, 199, 102]]


class Host:
    """Runs the program on a free port. On exit, the program gets SIGTERM and must end with the expected status."""

    def __init__(self, folder, *options, status=0, files=None):
        """`files` is the limit on the program's descriptors."""
        self.folder, self.options, self.status, self.files = folder, options, status, files
        self.said = self.complaint = None

    def limit_files(self):
        if self.files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))

    def __enter__(self):
        self.process = subprocess.Popen(
            [PROGRAM, *self.options, str(self.folder), "one." + FORMAT],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=self.limit_files, env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        line = self.process.stdout.readline()
        if not line.startswith("http://127.0.0.1:"):
            raise AssertionError(self.process.communicate())
        self.port = int(line.rsplit(":", 1)[1])
        return self

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self):
        self.said, self.complaint = self.process.communicate(timeout=100)
        return self.process.returncode

    def __exit__(self, kind, *_):
        if kind is not None:
            self.process.kill()
        elif self.said is None:
            self.terminate()
        if self.said is None:
            status = self.wait()
            if kind is None and status != self.status:
                raise AssertionError(f"status {status}: {self.said} {self.complaint}")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=100)

    def ask(self, method, path, body=None, headers={}, connection=None):
        with contextlib.closing(connection or self.connect()) if connection is None else contextlib.nullcontext(
            connection
        ) as one:
            one.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body), headers)
            answer = one.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if answer.getheader("Content-Type") == "application/json" else text

    def encode(self, ids, path="/encode", headers={}, connection=None):
        return self.ask("POST", path, {"ids": ids}, headers, connection)

    def health(self):
        return self.ask("GET", "/health")[1]

    def wait_for(self, **wanted):
        """Queries /health until it has these values. Otherwise the timeout of the test ends the loop."""
        while True:
            now = self.health()
            if all(now[name] == value for name, value in wanted.items()):
                return now

    def resources(self):
        """Returns the numbers of threads and descriptors. Go keeps idle threads, so for Go it returns that of goroutines."""
        folder = pathlib.Path("/proc", str(self.process.pid))
        if "GO" in os.environ:
            threads = int(re.search(rb"^go_goroutines (\d+)$", self.ask("GET", "/metrics")[1], re.MULTILINE)[1])
        else:
            threads = len(list((folder / "task").iterdir()))
        return threads, len(list((folder / "fd").iterdir()))


def together(count, function):
    """Calls function(0), function(1), ... on one thread each. Returns a function that waits for their results."""
    results, errors = [None] * count, []

    def call(i):
        try:
            results[i] = function(i)
        except BaseException as error:  # raised again in the test's thread
            errors.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()

    def join():
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results

    return join


class InferenceHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        layer = sentence_encoder.read(DATA / "weights.safetensors")
        cls.right = {}
        for version, name in enumerate(["one", "two"], 1):
            tensors = sentence_encoder.with_embeddings(layer, version)
            write(cls.folder / f"{name}.{FORMAT}", tensors)
            cls.right[version] = [sentence_encoder.Encoder(tensors).encode(ids) for ids in TEXTS]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def assert_near(self, vector, right):
        self.assertEqual(len(vector), len(right))
        self.assertLess(max(abs(a - b) for a, b in zip(vector, right)), NEAR)

    def assert_right(self, answer, text, weights=None):
        """`weights` is the number of the model that must have computed the answer. Default: the answer's version."""
        status, content = answer
        self.assertEqual(status, 200, content)
        self.assert_near(content["embedding"], self.right[weights or content["version"]][text])


class Answers(InferenceHost):
    def test_reference_is_near_onnx_runtime(self):
        """Checks the reference with which the host is compared against results of ONNX Runtime."""
        tensors = sentence_encoder.read(DATA / "reference.safetensors")
        states = [row.tolist() for row in sentence_encoder.Encoder(tensors).rows("input")]
        right = sentence_encoder.Encoder(tensors).rows("output")
        layer = sentence_encoder.Encoder(sentence_encoder.read(DATA / "weights.safetensors"))
        for row, expected in zip(layer.layer(states), right, strict=True):
            self.assertLess(max(abs(a - b) for a, b in zip(row, expected)), 1e-5)

    def test_answers_are_right(self):
        with Host(self.folder) as host:
            for text, ids in enumerate(TEXTS):
                self.assert_right(host.encode(ids), text)

    def test_texts_of_a_batch_do_not_mix(self):
        """One replica runs a batch only when it is full. Its texts are in one bucket and have different lengths."""
        with Host(self.folder, "-r", "1", "-b", "3", "-d", HOUR_US) as host:
            for answer, text in zip(together(3, lambda i: host.encode(TEXTS[(0, 2, 3)[i]]))(), (0, 2, 3)):
                self.assert_right(answer, text)

    def test_long_texts_are_alike_alone_and_together(self):
        """Together the texts have more rows than a matrix product processes at once."""
        texts = [[i * k % sentence_encoder.WORDS for i in range(n)] for n, k in ((200, 7), (129, 11), (256, 13))]
        with Host(self.folder, "-r", "1", "-b", "1") as host:
            alone = [host.encode(ids)[1]["embedding"] for ids in texts]
        with Host(self.folder, "-r", "1", "-b", "3", "-d", HOUR_US) as host:
            for (status, content), vector in zip(together(3, lambda i: host.encode(texts[i]))(), alone):
                self.assertEqual(status, 200)
                self.assert_near(content["embedding"], vector)

    def test_unknown_ids_fail_their_text_alone(self):
        with Host(self.folder, "-r", "1", "-b", "3", "-d", HOUR_US) as host:
            wrong = [101, sentence_encoder.WORDS, 102]
            first, second, third = together(3, lambda i: host.encode((TEXTS[0], wrong, TEXTS[2])[i]))()
            self.assert_right(first, 0)
            self.assert_right(third, 2)
            self.assertEqual(second[0], 400)
            self.assertIn("ids", second[1]["error"])

    def test_many_clients_at_a_time(self):
        with Host(self.folder, "-r", "2") as host:

            def client(i):
                with contextlib.closing(host.connect()) as connection:
                    return [host.encode(TEXTS[(i + k) % 4], connection=connection) for k in range(8)]

            for i, answers in enumerate(together(CLIENTS, client)()):
                for k, answer in enumerate(answers):
                    self.assert_right(answer, (i + k) % 4)
            self.assertEqual(host.health()["accepted"], 8 * CLIENTS)

    def test_health_and_metrics(self):
        with Host(self.folder, "-r", "2") as host:
            host.encode(TEXTS[0])
            now = host.wait_for(accepted=1, answered=1)
            self.assertEqual((now["version"], now["waiting"], now["draining"]), (1, 0, False))
            status, text = host.ask("GET", "/metrics")
            self.assertEqual(status, 200)
            self.assertIn(b"\ndist_replicas 2\n", text)

    def test_wrong_requests_are_refused_with_a_reason(self):
        wrong = [b"", b"{", b"[]", b'{"ids": []}', b'{"ids": [1.5]}', b'{"ids": ["1"]}', b'{"ids": [-1]}', b"\x00\xff" * 99,
                 b'{"ids": [1]} x', b'{"ids": [99999999999]}', b"[" * 9000, b'{"ids": [200]}',
                 json.dumps({"ids": [1] * 257}).encode(), b" " * 16385, b" " * 3000000]  # fmt: skip
        with Host(self.folder) as host, contextlib.closing(host.connect()) as connection:
            for body in wrong:
                status, content = host.ask("POST", "/encode", body, connection=connection)
                self.assertEqual(status, 400, body[:40])
                self.assertTrue(content["error"])
            for query in "deadline-ms=0", "deadline-ms=x", "priority=8", "priority=":
                self.assertEqual(host.encode(TEXTS[0], "/encode?" + query, connection=connection)[0], 400, query)
            for method, path in ("GET", "/"), ("POST", "/encode/"), ("DELETE", "/none"):
                self.assertEqual(host.ask(method, path, connection=connection)[0], 404)
            for method, path, allowed in [("GET", "/encode", "POST"), ("POST", "/health", "GET"),
                                          ("DELETE", "/swap", "POST"), ("BREW", "/metrics", "GET")]:  # fmt: skip
                connection.request(method, path)
                answer = connection.getresponse()
                self.assertEqual((answer.status, answer.getheader("Allow")), (405, allowed))
                self.assertIn("method", json.loads(answer.read())["error"])
            self.assert_right(host.encode(TEXTS[0], "/encode?deadline-ms=3600000&priority=-7", connection=connection), 0)


class Limits(InferenceHost):
    def test_a_full_queue_refuses(self):
        with Host(self.folder, "-r", "1", "-q", "4", "-b", "64", "-d", HOUR_US, "-t", "0", status=1) as host:
            waiting = together(4, lambda i: host.encode(TEXTS[0]))
            host.wait_for(waiting=4)
            status, content = host.encode(TEXTS[0])
            self.assertEqual(status, 503)
            self.assertIn("4", content["error"])
            host.terminate()  # the drain time is 0, so waiting requests are refused
            for status, content in waiting():
                self.assertEqual(status, 503)
                self.assertTrue(content["error"])
            host.wait()
            self.assertIn("accepted 4, answered 4, gone 0", host.said)

    def test_deadline_ends_who_waits_alone(self):
        with Host(self.folder, "-r", "1", "-b", "2", "-d", HOUR_US) as host:
            for way in {"path": "/encode?deadline-ms=20"}, {"headers": {"deadline-ms": "20"}}:
                status, content = host.encode(TEXTS[0], **way)
                self.assertEqual(status, 504)
                self.assertIn("deadline", content["error"])
            for answer in together(2, lambda i: host.encode(TEXTS[0]))():
                self.assert_right(answer, 0)


class Clients(InferenceHost):
    def head(self, body, more=b""):
        return b"POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n" % (len(body), more)

    def answer_of(self, link):
        answer = http.client.HTTPResponse(link)
        answer.begin()
        return answer.status, json.loads(answer.read())

    def test_slow_clients_hold_nobody_up(self):
        """Slow clients send byte by byte. When they have sent half of a request, a fast client must be answered."""
        body = json.dumps({"ids": TEXTS[0]}).encode()
        whole = self.head(body) + body
        with Host(self.folder, "-r", "1") as host, contextlib.ExitStack() as links:
            slow = [links.enter_context(socket.create_connection(("127.0.0.1", host.port))) for _ in range(8)]
            for at in range(len(whole)):
                for link in slow:
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    link.sendall(whole[at : at + 1])
                if at == len(whole) // 2:
                    self.assert_right(host.encode(TEXTS[1]), 1)
            for link in slow:
                self.assert_right(self.answer_of(link), 0)

    def test_garbage_ends_its_connection_alone(self):
        """Each input has the code of its answer; 0: it is no complete request, so the test does not wait for an answer."""
        head = b"POST /encode HTTP/1.1\r\nHost: x\r\n"
        garbage = {b"\x16\x03\x01" + bytes(range(256)): 0, b"\r\n" * 5000: 0, b"GET": 0, head + b"Content-Length: x\r\n\r\n": 400,
                   b"A" * 100000: 0, self.head(b"12345") + b"1234567890" * 3: 400}  # fmt: skip
        with Host(self.folder, "-r", "1") as host:
            for sent, code in garbage.items():
                with socket.create_connection(("127.0.0.1", host.port)) as link:
                    with contextlib.suppress(ConnectionError):  # the host may close the connection before all
                                                                # is sent
                        link.sendall(sent)
                    if code:
                        self.assertTrue(link.recv(4096).startswith(b"HTTP/1.1 %d " % code), sent[:40])
                    self.assert_right(host.encode(TEXTS[0]), 0)

    def test_killed_clients_leave_nothing_behind(self):
        body = json.dumps({"ids": TEXTS[0]}).encode()
        with Host(self.folder, "-r", "1", "-b", "4") as host:
            for _ in range(8):  # creates everything that is created at first use
                self.assert_right(host.encode(TEXTS[0]), 0)
            before = host.resources()
            whole = self.head(body) + body
            for sent in [*range(0, len(whole), 7)] + [len(whole)] * 20:
                with socket.create_connection(("127.0.0.1", host.port)) as link:
                    link.sendall(whole[:sent])
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # resets the
                                                                                               # connection,
                                                                                               # as if the
                                                                                               # client was
                                                                                               # killed
                self.assert_right(host.encode(TEXTS[1]), 1)
            while any(now > then for now, then in zip(host.resources(), before)):  # until the last
                                                                                   # connections have ended
                host.health()
            now = host.health()
            while now["answered"] + now["gone"] != now["accepted"]:
                now = host.health()

    def idle(self, host, links, count):
        return [links.enter_context(socket.create_connection(("127.0.0.1", host.port))) for _ in range(count)]

    def test_idle_connections_shut_nobody_out(self):
        """There are more idle connections than the program may have descriptors."""
        with Host(self.folder, "-r", "1", files=400) as host, contextlib.ExitStack() as links:
            idle = self.idle(host, links, 600)
            while FORMAT == "onnx":  # the JDK's server closes idle connections only after some time
                with contextlib.suppress(ConnectionError):
                    host.health()
                    break
            self.assert_right(host.encode(TEXTS[0]), 0)
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(idle[0].recv(1), b"", "the oldest one is closed")
            for link in idle[300:] if FORMAT != "onnx" else []:
                link.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(self.answer_of(link)[0], 200, "the newer ones are open")

    @unittest.skipIf(FORMAT == "onnx", "the JDK's server closes new connections at the limit")
    def test_connections_with_a_request_are_not_idle(self):
        """The oldest connections have waiting requests, and must not be closed. The last text fills their batch."""
        body = json.dumps({"ids": TEXTS[0]}).encode()
        with Host(self.folder, "-r", "1", "-b", "3", "-d", HOUR_US, files=400) as host, contextlib.ExitStack() as links:
            waiting = self.idle(host, links, 2)
            for link in waiting:
                link.sendall(self.head(body) + body)
            host.wait_for(waiting=2)
            self.idle(host, links, 600)
            self.assert_right(host.encode(TEXTS[3]), 3)
            for link in waiting:
                self.assert_right(self.answer_of(link), 0)

    @unittest.skipUnless("GO" in os.environ, "libmicrohttpd does not look at connections that wait")
    def test_who_goes_away_waits_no_more(self):
        """Otherwise its text would wait for an hour and take the only place in the queue."""
        body = json.dumps({"ids": TEXTS[0]}).encode()
        with Host(self.folder, "-r", "1", "-b", "2", "-q", "1", "-d", HOUR_US) as host:
            with socket.create_connection(("127.0.0.1", host.port)) as link:
                link.sendall(self.head(body) + body)
                host.wait_for(waiting=1)
            host.wait_for(waiting=0, gone=1)
            self.assertEqual(host.encode(TEXTS[0], "/encode?deadline-ms=20")[0], 504)


class Swaps(InferenceHost):
    def swap(self, host, name):
        return host.ask("POST", "/swap", {"file": f"{name}.{FORMAT}"})

    def test_a_swap_under_load_tears_nothing(self):
        swaps = 12
        done = threading.Event()
        with Host(self.folder, "-r", "2") as host:
            before = None

            def client(i):
                answers = []
                with contextlib.closing(host.connect()) as connection:
                    while not done.is_set() or not answers:
                        answers.append(host.encode(TEXTS[i % 4], connection=connection))
                return answers

            load = together(8, client)
            try:
                for number in range(2, 2 + swaps):
                    status, content = self.swap(host, "two" if number % 2 == 0 else "one")
                    self.assertEqual((status, content.get("version")), (200, number))
                    # Requests sent after the swap must use the new version.
                    after = host.encode(TEXTS[0])
                    self.assertEqual(after[1]["version"], number)
                    if number == 3:
                        before = host.resources()[0]
            finally:
                done.set()
            for i, answers in enumerate(load()):
                versions = [content["version"] for status, content in answers if status == 200]
                self.assertEqual(len(versions), len(answers), "none failed")
                self.assertEqual(versions, sorted(versions))
                for answer in answers:
                    self.assert_right(answer, i % 4, 2 - answer[1]["version"] % 2)
            while host.resources()[0] > before:  # until the last swap's thread has ended
                host.health()

    def test_files_that_are_no_such_model_are_refused(self):
        one = (self.folder / ("one." + FORMAT)).read_bytes()
        layer = sentence_encoder.read(DATA / "weights.safetensors")
        tensors = sentence_encoder.with_embeddings(layer, 1)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copy(self.folder / ("one." + FORMAT), folder)
            for kind, content in ("cut", one[:-1000]), ("empty", b""), ("noise", one[::-1]):
                (folder / f"{kind}.{FORMAT}").write_bytes(content)
            for kind, changed in ("wide", {"encoder.layer.0.output.dense.bias": ([4], [0.0] * 4)}), (
                "flat", {"embeddings.word_embeddings.weight": ([96], [0.0] * 96)}
            ), ("other", {"encoder.layer.0.attention.self.query.weight": ([32, 4], [0.0] * 128)}):  # fmt: skip
                write(folder / f"{kind}.{FORMAT}", {**tensors, **changed})
            write(folder / ("bare." + FORMAT), layer)
            with Host(folder, "-r", "1") as host:
                for wrong in "cut", "empty", "noise", "wide", "flat", "other", "bare", "none":
                    status, content = self.swap(host, wrong)
                    self.assertIn(status, (400, 404), wrong)
                    self.assertTrue(content["error"])
                for path in "../one." + FORMAT, "/etc/passwd", ".", "", 7, "x" * 5000, "one." + FORMAT + "\0x", "\0":
                    self.assertEqual(host.ask("POST", "/swap", {"file": path})[0], 400)
                self.assertEqual(host.health()["version"], 1)
                self.assert_right(host.encode(TEXTS[0]), 0)


class Drain(InferenceHost):
    def test_who_was_accepted_is_answered(self):
        """Most or all requests wait when SIGTERM arrives, because the delay of their batch has not ended."""
        with Host(self.folder, "-r", "1", "-b", "64", "-d", "1000000", "-t", "100000") as host:
            waiting = together(CLIENTS - 1, lambda i: host.encode(TEXTS[i % 4]))
            host.wait_for(accepted=CLIENTS - 1)
            host.terminate()
            for i, answer in enumerate(waiting()):
                self.assert_right(answer, i % 4)
            self.assertEqual(host.wait(), 0, host.complaint)
            self.assertEqual(host.said, f"accepted {CLIENTS - 1}, answered {CLIENTS - 1}, gone 0\n")

    def test_sigterm_under_load(self):
        """A client is answered, or refused with 503, or its connection ends before a byte of an answer."""
        with Host(self.folder, "-r", "2", "-t", "100000") as host:
            enough = threading.Semaphore(0)

            def client(i):
                good = 0
                with contextlib.closing(host.connect()) as connection:
                    while True:
                        try:
                            answer = host.encode(TEXTS[i % 4], connection=connection)
                        except (ConnectionError, http.client.RemoteDisconnected):
                            return good
                        if answer[0] == 503:
                            return good
                        self.assert_right(answer, i % 4)
                        good += 1
                        enough.release()

            load = together(16, client)
            for _ in range(64):
                enough.acquire()
            host.terminate()
            good = sum(load())
            self.assertEqual(host.wait(), 0, host.complaint)
            self.assertEqual(host.said, f"accepted {good}, answered {good}, gone 0\n")

    def test_no_connection_is_reset_at_sigterm(self):
        """A client that reconnects because of "Connection: close" is refused, and idle connections are closed."""
        with Host(self.folder, "-r", "2", "-t", "100000") as host:
            enough = threading.Semaphore(0)

            def client(i):
                with contextlib.closing(host.connect()) as connection:
                    while True:
                        try:
                            status = host.encode(TEXTS[i % 4], connection=connection)[0]
                        except (ConnectionRefusedError, http.client.RemoteDisconnected):
                            return  # a reset would be another ConnectionError
                        if status == 503:
                            return
                        enough.release()

            load = together(16, client)
            for _ in range(64):
                enough.acquire()
            with socket.create_connection(("127.0.0.1", host.port)) as link:
                link.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(Clients.answer_of(self, link)[0], 200)
                host.terminate()
                load()
                self.assertEqual(link.recv(1), b"")
            self.assertEqual(host.wait(), 0, host.complaint)

    def test_half_a_request_holds_nothing_up(self):
        with Host(self.folder, "-r", "1", "-t", "3600000") as host:
            with socket.create_connection(("127.0.0.1", host.port)) as link:
                link.sendall(b"POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{")
                self.assert_right(host.encode(TEXTS[0]), 0)
                host.terminate()
                self.assertEqual(host.wait(), 0, host.complaint)
            self.assertEqual(host.said, "accepted 1, answered 1, gone 0\n")


class CommandLine(InferenceHost):
    def test_wrong_arguments(self):
        for arguments in [], ["x"], ["-q", "0", "x", "y"], ["-b", "65", "x", "y"], ["-z", "x", "y"]:
            done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: inference_host", done.stderr)
        done = subprocess.run([PROGRAM, str(self.folder), "none"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("none", done.stderr)


if __name__ == "__main__":
    unittest.main()
