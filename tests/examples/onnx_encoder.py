#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a sentence encoder as an .onnx file, with the same inputs and output as those of sentence-transformers.

onnx_encoder.py WEIGHTS.safetensors FILE.onnx"""

import array
import pathlib
import re
import sys

from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sentence_encoder import EPSILON, HEAD_SIZE, read  # noqa: E402  (after the path is set)

FAR = -1e9  # added to the scores of positions after the end of a text


class Graph:
    """An ONNX graph under construction; every method returns the name of its output."""

    def __init__(self, tensors):
        self.tensors, self.nodes, self.constants = tensors, [], {}

    def op(self, kind, *inputs, **attributes):
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def weight(self, name):
        if name not in self.constants:
            shape, values = self.tensors[name]
            raw = array.array("f", values).tobytes()
            self.constants[name] = helper.make_tensor(name, TensorProto.FLOAT, shape, raw, raw=True)
        return name

    def constant(self, kind, *values):
        name = f"c{len(self.constants)}"
        self.constants[name] = helper.make_tensor(name, kind, [len(values)], values)
        return name

    def whole(self, *values):
        return self.constant(TensorProto.INT64, *values)

    def number(self, value):
        return self.constant(TensorProto.FLOAT, value)

    def norm(self, x, name):
        return self.op(
            "LayerNormalization", x, self.weight(name + ".weight"), self.weight(name + ".bias"), axis=-1, epsilon=EPSILON
        )

    def linear(self, x, name):
        weight = self.op("Transpose", self.weight(name + ".weight"), perm=[1, 0])
        return self.op("Add", self.op("MatMul", x, weight), self.weight(name + ".bias"))

    def embed(self):
        tokens = self.op("Gather", self.op("Shape", "input_ids"), self.whole(1))
        words = self.op("Gather", self.weight("embeddings.word_embeddings.weight"), "input_ids")
        places = self.op(
            "Slice", self.weight("embeddings.position_embeddings.weight"), self.whole(0), tokens, self.whole(0)
        )
        types = self.op("Gather", self.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
        return self.norm(self.op("Add", self.op("Add", words, places), types), "embeddings.LayerNorm")

    def heads(self, x, order):
        return self.op("Transpose", self.op("Reshape", x, self.whole(0, 0, -1, HEAD_SIZE)), perm=order)

    def attention(self, x, far, layer):
        query, key, value = (self.linear(x, f"{layer}attention.self.{part}") for part in ("query", "key", "value"))
        scores = self.op("MatMul", self.heads(query, [0, 2, 1, 3]), self.heads(key, [0, 2, 3, 1]))
        scores = self.op("Add", self.op("Mul", scores, self.number(HEAD_SIZE**-0.5)), far)
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), self.heads(value, [0, 2, 1, 3]))
        joined = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.whole(0, 0, -1))
        return self.linear(joined, layer + "attention.output.dense")

    def gelu(self, x):
        factor = self.op("Add", self.op("Erf", self.op("Mul", x, self.number(0.5**0.5))), self.number(1.0))
        return self.op("Mul", self.op("Mul", x, factor), self.number(0.5))

    def layer(self, x, far, layer):
        x = self.norm(self.op("Add", self.attention(x, far, layer), x), layer + "attention.output.LayerNorm")
        inner = self.gelu(self.linear(x, layer + "intermediate.dense"))
        return self.norm(self.op("Add", self.linear(inner, layer + "output.dense"), x), layer + "output.LayerNorm")

    def encoder(self, x):
        there = self.op("Cast", "attention_mask", to=TensorProto.FLOAT)
        far = self.op("Mul", self.op("Sub", self.number(1.0), there), self.number(FAR))
        far = self.op("Unsqueeze", far, self.whole(1, 2))
        names = map(re.compile(r"encoder\.layer\.(\d+)\.").match, self.tensors)
        for number in range(1 + max(int(name[1]) for name in names if name)):
            x = self.layer(x, far, f"encoder.layer.{number}.")
        self.op("Identity", x)
        self.nodes[-1].output[0] = "last_hidden_state"


def write(path, tensors):
    """Writes the model. Without embeddings in `tensors`, its input is the hidden states, so it is no sentence encoder."""
    graph = Graph(tensors)
    hidden = tensors["encoder.layer.0.attention.self.query.weight"][0][1]
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in inputs]
    rows = ["texts", "tokens", hidden]
    if any(name.startswith("embeddings.") for name in tensors):
        graph.encoder(graph.embed())
    else:
        given = [given[1], helper.make_tensor_value_info("hidden", TensorProto.FLOAT, rows)]
        graph.encoder("hidden")
    made = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, rows)]
    proto = helper.make_graph(graph.nodes, "encoder", given, made, list(graph.constants.values()))
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    pathlib.Path(path).write_bytes(model.SerializeToString())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(sys.argv[2], read(sys.argv[1]))
