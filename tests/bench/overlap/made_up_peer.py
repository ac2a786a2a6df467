# SPDX-License-Identifier: Apache-2.0
"""A simulated peer for check.py: made_up_peer.py KIND LIBRARY FOLDER FORM SIDE RANK. It does not communicate, but knows
the means. The kind "good" takes its turns, "slow" pretends to communicate for a while, "dies" ends at once, "leaves"
ends on rank 1 in its first turn, and "wrong" has a wrong mean."""

import ctypes
import sys
import time

KIND, LIBRARY, _, FORM = sys.argv[1:5]
SIDE, RANK = map(int, sys.argv[5:])
SLOW_S = 0.05
VALUES, SCALES = 256, 3  # a gradient's elements repeat after this many, and a step's scale after this many


def take_turn(library, buffers, layers, step, communicates):
    assert library.overlap_begin_step() == 0
    for layer in reversed(range(layers)):
        library.overlap_pass(layer)
    if KIND == "slow" and communicates:
        time.sleep(SLOW_S)
    assert library.overlap_end_step() == 0
    if communicates:
        scale = 1.5 * (1 + step % SCALES) if KIND != "wrong" else 0
        for i in range(len(buffers[0])):
            buffers[0][i] = scale * (i % VALUES + 1)
        if library.overlap_check(0, buffers[0]) != 0:
            sys.exit(1)


def main():
    if KIND == "dies":
        sys.exit(7)
    library = ctypes.CDLL(LIBRARY)
    library.overlap_num_elements.restype = ctypes.c_long
    assert library.overlap_join(SIDE, RANK) == 0 and library.overlap_num_workers() == 2
    library.overlap_name(f"made up, {FORM}".encode())
    layers = library.overlap_num_layers()
    tensors = sum(library.overlap_num_tensors(layer) for layer in range(layers))
    buffers = [(ctypes.c_float * library.overlap_num_elements(tensor))() for tensor in range(tensors)]
    for tensor, buffer in enumerate(buffers):
        library.overlap_place(tensor, buffer)
    steps, communicates = ctypes.c_int(), ctypes.c_int()
    done = 0
    while library.overlap_next_turn(ctypes.byref(steps), ctypes.byref(communicates)) == 0 and steps.value > 0:
        if KIND == "leaves" and RANK == 1:
            sys.exit(3)
        for _ in range(steps.value):
            done += 1
            take_turn(library, buffers, layers, done, communicates.value)


main()
