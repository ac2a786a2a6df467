#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the encoder in a safetensors file to an ONNX model, for the programs that use ONNX Runtime.

make_onnx.py WEIGHTS MODEL
The model maps ids int64[tokens], with any number of tokens, to a vector f32[hidden] of length 1. Requires numpy, onnx,
onnxruntime, safetensors and tokenizers."""

import pathlib
import re
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tensor_parallel"))
import make_reference  # noqa: E402  (after the path is set)

SAME = 0  # in the shape of a Reshape, keeps the dimension


def sentence_model(weights):
    graph = make_reference.Graph(weights)
    embedding = {kind: weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")}
    layers = 1 + max(int(found[1]) for found in map(re.compile(r"encoder\.layer\.(\d+)\.").match, weights) if found)
    hidden = embedding["word"].shape[1]
    heads = weights["encoder.layer.0.attention.self.query.weight"].shape[0] // make_reference.HEAD_SIZE
    words = graph.op("Gather", graph.constant(embedding["word"]), "ids")
    positions = graph.constant(embedding["position"] + embedding["token_type"][0])
    states = graph.norm(
        words, graph.op("Slice", positions, graph.constant(np.array([0])), graph.op("Shape", "ids")), "embeddings.LayerNorm"
    )
    for number in range(layers):
        states = graph.layer(states, number, SAME, heads)
    mean = graph.op("ReduceMean", states, axes=[0], keepdims=0)
    graph.nodes.append(helper.make_node("Div", [mean, graph.op("ReduceL2", mean, axes=[0], keepdims=1)], ["vector"]))
    proto = helper.make_graph(
        graph.nodes,
        "sentence encoder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["tokens"])],
        [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [hidden])],
        list(graph.constants.values()),
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    onnx.save(sentence_model(load_file(sys.argv[1])), sys.argv[2])
