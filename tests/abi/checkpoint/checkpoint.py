#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the safetensors library reads files written by libdist and vice versa. Skipped if the library is missing.

usage: checkpoint.py TEST_CHECKPOINT_FILES
"""

import json
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

SKIPPED = 77
NAMES = "f16 bf16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 complex64 bool".split()
SIZES = [2, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1]
NUMPY = ["<f2", None, "<f4", "<f8", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<c8", "?"]
STORED = "F16 BF16 F32 F64 I8 U8 I16 U16 I32 U32 I64 U64 C64 BOOL".split()


def example(number: int) -> bytes:
    """Returns the bytes with which test_checkpoint_files.c fills its tensors."""
    if NAMES[number] == "bool":
        return bytes(k & 1 for k in range(6))
    return bytes((37 * number + 11 * k + 1) & 255 for k in range(6 * SIZES[number]))


def check(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"checkpoint.py: {what}")


def check_checksums(data: bytes) -> None:
    """Checks the checksums that checkpoint.h describes, using only Python's standard library."""
    length = struct.unpack("<Q", data[:8])[0]
    header, rest = data[8 : 8 + length], data[8 + length :]
    tensors = json.loads(header)
    texts = tensors.pop("__metadata__")
    check(texts["made by"] == "libdist" and texts["note"] == '"quoted"\n\u00e9', "the host's metadata")
    check(texts["libdist.position.elements"] == str(1 << 40), "the position")
    own = texts["libdist.crc32"].encode()
    key = b'"libdist.crc32":"'
    check(header.count(key + own) == 1, "the header's checksum is not where it should be")
    check(int(own, 16) == zlib.crc32(header.replace(key + own, key + b"0" * 8)), "the header's checksum")
    for name, tensor in tensors.items():
        begin, end = tensor["data_offsets"]
        check(int(texts["libdist.crc32:" + name], 16) == zlib.crc32(rest[begin:end]), f"the checksum of {name}")
        check((8 + length + begin) % min(8, (end - begin) // 6) == 0, f"{name} is not aligned")


def main(program: str) -> int:
    try:
        from safetensors import deserialize
        from safetensors.numpy import save_file
        import numpy
    except ImportError as error:
        print(f"skipped: {error}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "libdist.safetensors"
        subprocess.run([program, "write", path], check=True)
        check_checksums(path.read_bytes())
        tensors = dict(deserialize(path.read_bytes()))
        check(sorted(tensors) == sorted(NAMES), f"the library finds {sorted(tensors)}")
        for number, name in enumerate(NAMES):
            tensor = tensors[name]
            check(tensor["dtype"] == STORED[number] and tensor["shape"] == [2, 3], f"{name} is {tensor}")
            check(bytes(tensor["data"]) == example(number), f"the bits of {name}")
        # NumPy has no bfloat16, so this tensor is copied from file to file.
        arrays = {
            name: numpy.frombuffer(example(n), NUMPY[n]).reshape(2, 3)
            for n, name in enumerate(NAMES)
            if NUMPY[n] is not None
        }
        theirs = Path(folder) / "library.safetensors"
        save_file(arrays, theirs, metadata={"format": "np"})
        add_bfloat16(theirs)
        subprocess.run([program, "read", theirs], check=True)
    return 0



def add_bfloat16(path: Path) -> None:
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    header["bf16"] = {"dtype": "BF16", "shape": [2, 3], "data_offsets": [len(rest), len(rest) + 12]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + rest + example(NAMES.index("bf16")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
