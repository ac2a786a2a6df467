# SPDX-License-Identifier: Apache-2.0
"""A sentence encoder in plain loops, as a reference: the partial layer in examples/tensor_parallel/data, with generated
embeddings."""

import array
import json
import math
import random
import struct

HEAD_SIZE = 32
EPSILON = 1e-12
WORDS, POSITIONS, TYPES = 200, 256, 2


def read(path):
    """Returns the tensors of a safetensors file by name, each as (shape, flat list)."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            tensors[name] = (about["shape"], array.array("f", data[begin:end]))
    return tensors


def write(path, tensors):
    header, at = {}, 0
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * len(values)]}
        at += 4 * len(values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            file.write(array.array("f", values).tobytes())


def with_embeddings(layer, seed):
    """Returns the tensors of the layer, with generated embeddings of its width."""
    hidden = layer["encoder.layer.0.output.dense.bias"][0][0]
    some = random.Random(seed)

    def uniform(rows, low=-0.5, high=0.5):
        shape = [rows, hidden] if rows else [hidden]
        return shape, array.array("f", [some.uniform(low, high) for _ in range(math.prod(shape))])

    return {
        "embeddings.word_embeddings.weight": uniform(WORDS),
        "embeddings.position_embeddings.weight": uniform(POSITIONS),
        "embeddings.token_type_embeddings.weight": uniform(TYPES),
        "embeddings.LayerNorm.weight": uniform(0, 0.5, 1.5),
        "embeddings.LayerNorm.bias": uniform(0),
        **layer,
    }


class Encoder:
    def __init__(self, tensors):
        self.tensors = tensors

    def rows(self, name):
        shape, values = self.tensors[name]
        return [values[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]

    def linear(self, states, name):
        weights, bias = self.rows(name + ".weight"), self.tensors[name + ".bias"][1]
        return [
            [math.fsum(map(float.__mul__, map(float, row), map(float, state))) + b for row, b in zip(weights, bias)]
            for state in states
        ]

    def norm(self, states, name):
        scale, shift = self.tensors[name + ".weight"][1], self.tensors[name + ".bias"][1]
        normed = []
        for row in states:
            mean = math.fsum(row) / len(row)
            deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in row) / len(row) + EPSILON)
            normed.append([(x - mean) / deviation * a + b for x, a, b in zip(row, scale, shift)])
        return normed

    def attention(self, states, layer):
        query, key, value = (self.linear(states, f"{layer}attention.self.{part}") for part in ("query", "key", "value"))
        mixed = [[] for _ in states]
        for at in range(0, len(query[0]), HEAD_SIZE):
            head = slice(at, at + HEAD_SIZE)
            for row, out in zip(query, mixed):
                scores = [math.fsum(map(float.__mul__, row[head], k[head])) / math.sqrt(HEAD_SIZE) for k in key]
                powers = [math.exp(score - max(scores)) for score in scores]
                total = math.fsum(powers)
                out += [math.fsum(p * v[i] for p, v in zip(powers, value)) / total for i in range(at, at + HEAD_SIZE)]
        return self.linear(mixed, layer + "attention.output.dense")

    def layer(self, states, number=0):
        layer = f"encoder.layer.{number}."

        def add(changes):
            return [[a + b for a, b in zip(row, change)] for row, change in zip(states, changes)]

        states = self.norm(add(self.attention(states, layer)), layer + "attention.output.LayerNorm")
        inner = self.linear(states, layer + "intermediate.dense")
        inner = [[0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in row] for row in inner]
        return self.norm(add(self.linear(inner, layer + "output.dense")), layer + "output.LayerNorm")

    def encode(self, ids):
        words = self.rows("embeddings.word_embeddings.weight")
        positions = self.rows("embeddings.position_embeddings.weight")
        kind = self.rows("embeddings.token_type_embeddings.weight")[0]
        states = [[a + b + c for a, b, c in zip(words[i], positions[at], kind)] for at, i in enumerate(ids)]
        states = self.layer(self.norm(states, "embeddings.LayerNorm"))
        means = [math.fsum(column) / len(ids) for column in zip(*states)]
        length = math.sqrt(math.fsum(mean**2 for mean in means))
        return [mean / length for mean in means]
