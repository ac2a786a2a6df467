#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated peer for the benchmarks' own tests: made_up_peer.py KIND RANKS WANTED FORM ...

KIND is "good", "wrong" (finds a wrong result), "spins" (keeps running after its turn) or "diesN" (exits after N
requests). WANTED is a regular expression for the requests that it accepts. The form "slow" takes 2,000.5 us and does
not support push; other forms take 1,000.5 us."""

import re
import sys
import threading

KIND, RANKS, WANTED, *FORMS = sys.argv[1:]


def spin():
    while True:
        pass


print("noise of a library")
print("@ready", f"{KIND} of {RANKS}", *FORMS, sep="\t", flush=True)
for asked, line in enumerate(sys.stdin):
    words = line.rstrip("\n").split("\t")
    if words[0] == "quit":
        break
    assert re.fullmatch(WANTED, " ".join(words[2:7])), words
    if KIND.startswith("dies") and asked >= int(KIND[4:]):
        sys.exit("out of luck")
    if KIND == "spins":
        threading.Thread(target=spin, daemon=True).start()
    slow = words[1] == "slow"
    if KIND == "wrong":
        print("@failed", "wrong result", sep="\t", flush=True)
    elif slow and words[2] == "push":
        print("@no", "not offered", sep="\t", flush=True)
    else:
        print("@times", *["2000.5" if slow else "1000.5"] * int(words[8]), sep="\t", flush=True)
