#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that C compilers warn about a constant of another enum type, and say nothing about the right one.

usage: enums_in_c.py INCLUDE_DIR COMPILER...
"""
import re
import subprocess
import sys

PROGRAM = """
#include <dist/dist.h>
dist_status scan(dist_replica *replica, const dist_tensor *t);
dist_status scan(dist_replica *replica, const dist_tensor *t) {{
  return dist_scan(replica, {op}, {kind}, t, t, 1, NULL, NULL);
}}
void set(dist_strategy_options *options);
void set(dist_strategy_options *options) {{ options->kind = {strategy}; }}
"""
RIGHT = {"op": "DIST_REDUCE_SUM", "kind": "DIST_SCAN_EXCLUSIVE", "strategy": "DIST_STRATEGY_MESH"}
WRONG = [
    {"op": "DIST_SCAN_EXCLUSIVE", "kind": "DIST_REDUCE_SUM"},
    {"strategy": "DIST_THREADS_HOST"},
]


def said(compiler, standard, **words):
    """Returns the compiler's output for a program."""
    command = [compiler, f"-std={standard}", "-Wextra", "-I", sys.argv[1], "-fsyntax-only", "-x", "c", "-"]
    source = PROGRAM.format(**{**RIGHT, **words})
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False).stderr


def main(compilers):
    failed = 0
    for compiler in compilers:
        for standard in ("c11", "c2x"):
            if words := said(compiler, standard):
                print(f"not ok: {compiler} {standard}: about a correct program: {words}")
                failed += 1
            for wrong in WRONG:
                count = len(re.findall(r"warning: implicit conversion from", said(compiler, standard, **wrong)))
                if count != len(wrong):
                    print(f"not ok: {compiler} {standard}: {count} warnings about {wrong}")
                    failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
