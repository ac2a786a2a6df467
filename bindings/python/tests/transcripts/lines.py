# SPDX-License-Identifier: Apache-2.0
"""Reads transcripts: ../../../../tests/golden/TRANSCRIPTS.md has the format."""

import urllib.parse

import numpy as np

import libdist
from libdist import DType, Tensor, Value, ValueKind

# @every dtype
NAMES = {
    "f16": DType.F16,
    "bf16": DType.BF16,
    "f32": DType.F32,
    "f64": DType.F64,
    "i8": DType.I8,
    "u8": DType.U8,
    "i16": DType.I16,
    "u16": DType.U16,
    "i32": DType.I32,
    "u32": DType.U32,
    "i64": DType.I64,
    "u64": DType.U64,
    "c64": DType.COMPLEX64,
    "bool": DType.BOOL,
}
LETTERS = {number: name for name, number in NAMES.items()}
KINDS = {
    ValueKind.LIST: "list",
    ValueKind.TUPLE: "tuple",
    ValueKind.PER_REPLICA: "per_replica",
    ValueKind.MIRRORED: "mirrored",
    ValueKind.INDEXED_SLICES: "indexed_slices",
    ValueKind.RAGGED: "ragged",
    ValueKind.SPARSE: "sparse",
}


class Line:
    """A line with a depth, and the lines below it."""

    def __init__(self, number, depth, name, given, answered):
        self.number, self.depth, self.name = number, depth, name
        self.given, self.answered = given, answered
        self.below = []
        self.used = False

    def __repr__(self):
        return f"line {self.number}, {self.name}"


def cases(path):
    """(area, id, the lines of depth 0) of each case."""
    current = None
    with open(path, encoding="utf-8") as file:
        if file.readline() != "dist-transcripts\t1\n":
            raise ValueError(f"{path} is no transcript of version 1")
        for number, text in enumerate(file, 2):
            fields = text.rstrip("\n").split("\t")
            if fields[0] in ("case", "end"):
                if current is not None:
                    yield current
                if fields[0] == "end":
                    return
                current = (urllib.parse.unquote(fields[1]), urllib.parse.unquote(fields[2]), [])
                path_down = [current[2]]
                continue
            depth, name, arrow = int(fields[0]), fields[1], fields.index("->")
            given = dict(field.split("=", 1) for field in fields[2:arrow])
            answered = dict(field.split("=", 1) for field in fields[arrow + 1 :])
            line = Line(number, depth, name, given, answered)
            del path_down[depth + 1 :]
            path_down[depth].append(line)
            path_down.append(line.below)


def text_of(literal):
    """A text literal, t:..."""
    return urllib.parse.unquote(literal[2:])


def array_of(literal):
    """The literals of an array literal, (a b c)."""
    return literal[1:-1].split(" ") if len(literal) > 2 else []


def tensor_of(literal):
    """A tensor literal as an array, or a Tensor of bfloat16."""
    name, sizes, data = literal.split(":")
    dtype = NAMES[name]
    shape = tuple(int(size) for size in sizes.split(",")) if sizes else ()
    raw = bytes.fromhex(data)
    if dtype == DType.BF16:
        return Tensor(np.frombuffer(raw, np.uint16).reshape(shape).copy(), dtype)
    return np.frombuffer(raw, libdist.numpy_dtype(dtype)).reshape(shape).copy()


def literal_of(tensor):
    """An array as a tensor literal; of NaNs any bits are the same."""
    dtype = libdist.dtype_of(tensor)
    array = tensor.array if isinstance(tensor, Tensor) else tensor
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind in "fc" and np.isnan(array).any():
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return f"{LETTERS[dtype]}:{','.join(map(str, array.shape))}:{array.tobytes().hex()}"


def same_literal(expected, came):
    """Whether two tensor literals are equal; NaNs are."""
    if expected == came:
        return True
    if expected.count(":") != 2 or came.count(":") != 2 or expected.split(":")[:2] != came.split(":")[:2]:
        return False
    return literal_of(tensor_of(expected)) == literal_of(tensor_of(came))


def quoted(text):
    """A text as a literal."""
    return "t:" + urllib.parse.quote(text, safe="_./:,-[]<>?!*'=;+")


def tree_of(thing, name_of):
    """What a value is, as a list of literals and marks, to be compared by same_tree()."""
    value = thing if isinstance(thing, Value) else libdist.get_strategy().value(thing)
    kind = value.kind
    if kind == ValueKind.TENSOR:
        return [literal_of(value.numpy())]
    if kind == ValueKind.NONE:
        return ["none"]
    if kind == ValueKind.TEXT:
        return [quoted(value.text)]
    if kind == ValueKind.OBJECT:
        return ["object"]
    if kind == ValueKind.VARIABLE:
        return [name_of(value.python())]
    if kind == ValueKind.SHARDED:
        parts = [tree_of(value.item(i), name_of) for i in range(len(value))]
        return ["(sharded", literal_of(value.numpy()), *(literal for part in parts for literal in part), ")"]
    parts = ["(dict" if kind == ValueKind.DICT else "(" + KINDS[kind]]
    for i in range(len(value)):
        if kind == ValueKind.DICT:
            parts.append(quoted(value.keys()[i]))
        parts.extend(tree_of(value.item(i), name_of))
    return [*parts, ")"]


def same_tree(literal, tree):
    """Whether a tree is the one of a literal."""
    expected = literal.replace(")", " )").split()
    return len(expected) == len(tree) and all(map(same_literal, expected, tree))
