#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on the CPU with the encoder of examples/tensor_parallel: one session with one thread and one with two.

peer_onnxruntime.py WEIGHTS REFERENCE: both in the format of make_reference.py."""

import pathlib
import re
import sys

import numpy as np
import onnxruntime
import peer
from safetensors import safe_open
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "tensor_parallel"))
import make_reference  # noqa: E402  (after the path is set)

MOST_DIFFERENCE = 1e-5
WEIGHTS, REFERENCE = sys.argv[1:3]


def session_of(threads, model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def sessions():
    tensors = load_file(REFERENCE)
    with safe_open(REFERENCE, "np") as file:
        heads = int(file.metadata()["heads"])
    weights = {name: tensor for name, tensor in load_file(WEIGHTS).items() if name.startswith("encoder.")}
    layers = 1 + max(int(re.match(r"encoder\.layer\.(\d+)\.", name)[1]) for name in weights)
    model = make_reference.model_of(weights, tensors["input"].shape, heads, layers)
    return tensors, {"1 thread": session_of(1, model), "2 threads": session_of(2, model)}


class Encode:
    def __init__(self, session, tensors):
        self.session, self.tensors, self.output = session, tensors, None

    def reset(self):
        pass

    def run(self, count):
        for _ in range(count):
            (self.output,) = self.session.run(None, {"input": self.tensors["input"]})

    def check(self, _iterations):
        difference = np.abs(self.output - self.tensors["output"]).max()
        if not difference <= MOST_DIFFERENCE:
            raise peer.WrongResult(f"wrong result: {difference} from the reference")


def main():
    tensors, by_form = sessions()

    def make_operation(request):
        return Encode(by_form[request.form], tensors) if request.operation == "encode" else None

    peer.serve(f"ONNX Runtime {onnxruntime.__version__}", list(by_form), make_operation)


if __name__ == "__main__":
    main()
