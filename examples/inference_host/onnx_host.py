#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same encoder by ONNX Runtime behind Python's HTTP server: what load.c compares the host with.

onnx_host.py WEIGHTS TOKENS SESSION_THREADS CALLERS [QUEUE]: one session of so many threads, called by so many at a time, for
texts of TOKENS ids. Prints its address. Where QUEUE requests wait already, one more gets 503."""

import json
import pathlib
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import onnxruntime
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tensor_parallel"))
import make_reference  # noqa: E402  (after the path is set)

TOKENS, SESSION_THREADS, CALLERS = map(int, sys.argv[2:5])
QUEUE = int(sys.argv[5]) if len(sys.argv) > 5 else 256
HEAD_SIZE = make_reference.HEAD_SIZE
weights = load_file(sys.argv[1])
words, positions, types = (
    weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
)
scale, shift = (weights[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias"))
callers, room = threading.Semaphore(CALLERS), threading.Semaphore(CALLERS + QUEUE)


def make_session():
    layers = 1 + max(int(match[1]) for match in map(re.compile(r"encoder\.layer\.(\d+)\.").match, weights) if match)
    heads = weights["encoder.layer.0.attention.self.query.weight"].shape[0] // HEAD_SIZE
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = SESSION_THREADS, 1
    model = make_reference.model_of(weights, (TOKENS, words.shape[1]), heads, layers)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


session = make_session()


def encode(ids):
    total = words[ids] + positions[: len(ids)] + types[0]
    centred = total - total.mean(axis=1, keepdims=True)
    hidden = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + make_reference.EPSILON) * scale + shift
    (states,) = session.run(None, {"input": hidden.astype(np.float32)})
    mean = states.mean(axis=0)
    return mean / np.linalg.norm(mean)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer's head and body go out together
    disable_nagle_algorithm = True

    def do_POST(self):
        ids = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["ids"]
        if not room.acquire(blocking=False):
            return self.answer(503, {"error": "the queue is full"})
        try:
            with callers:
                vector = encode(ids)
        finally:
            room.release()
        self.answer(200, {"embedding": vector.tolist()})

    def answer(self, code, content):
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024


if __name__ == "__main__":
    encode([1] * TOKENS)
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
