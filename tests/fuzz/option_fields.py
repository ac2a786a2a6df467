# SPDX-License-Identifier: Apache-2.0
"""Writes option_fields.h, with the numbers in each options struct of the headers, for fuzz_options.c.

usage: option_fields.py OUTPUT API_JSON

NUMBERS_OF(dist_run_options) is a list of FIELD(struct, field), and ENUM(struct, field, first constant) for an enum.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capi"))
import api  # noqa: E402  the one parser of the headers

NUMBERS = {"int32_t", "int64_t", "uint32_t", "uint64_t", "size_t", "double"}
# These fields are left out: the length of a list that the target passes, and the size of memory that would
# really be reserved.
LEFT_OUT = {"struct_size", "contributions", "num_states", "stack_size_bytes"}


def main(output: str, description: str) -> None:
    found = api.read(description)
    first = {enum["name"]: enum["constants"][0]["name"] for enum in found["enums"] if enum["name"]}
    lines = ["#define NUMBERS_OF(type) NUMBERS_OF_##type\n"]
    for struct in found["structs"]:
        name = struct["name"]
        if not name.endswith("_options"):
            continue
        fields = []
        for field in struct["fields"]:
            if field["pointers"] or field.get("size") or field["name"] in LEFT_OUT:
                continue
            if field["type"] in first:
                fields.append(f"ENUM({name}, {field['name']}, {first[field['type']]})")
            elif field["type"] in NUMBERS:
                fields.append(f"FIELD({name}, {field['name']})")
        if fields:
            lines.append(f"#define NUMBERS_OF_{name} \\\n  " + ", \\\n  ".join(fields) + "\n")
    pathlib.Path(output).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
