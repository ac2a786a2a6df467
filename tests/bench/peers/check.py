#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a peer speaks the protocol and computes correct sums: check.py LIST LABEL, both as in peers.list.

check.py LIST LABEL servers: the same for parameter servers and closures, with servers.list."""

import subprocess
import sys

RANKS = "2"
COUNT, BATCHES = "3", "2"
DATA = [("f32", "4"), ("f32", "65536"), ("f32", "1000000"), ("f16", "1000"), ("bf16", "1000")]
SERVERS_SIZES = {"push": ["4", "1000000"], "pull": ["4", "1000000"], "closure": ["4"], "closure_push": ["4"]}


def command_of(path, label):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            group, name, *command = line.rstrip("\n").split("\t")
            if name == label and group == "-":
                print(f"{label}: not installed ({command[0]})")
                sys.exit(77)  # Meson: skipped
            if name == label:
                words = (word.removeprefix("@BENCH@") for word in command if not word.startswith("@FAULTS@"))
                return [RANKS if word == "@RANKS@" else word for word in words]
    sys.exit(f"{label} is not in {path}")


def commands_for_servers(form):
    for operation, sizes in SERVERS_SIZES.items():
        for size in sizes:
            for pace in "hot", "paused":
                yield ["measure", form, operation, "f32", size, "in_place", pace, COUNT, BATCHES]
    yield ["measure", form, "all_reduce", "f32", "4", "in_place", "hot", COUNT, BATCHES]
    yield ["no-such-command"]


def commands_for(form):
    for dtype, size in DATA:
        for layout in "in_place", "out_of_place", "one_output":
            for pace in "hot", "paused":
                yield ["measure", form, "all_reduce", dtype, size, layout, pace, COUNT, BATCHES]
    for operation in "barrier", "run":
        yield ["measure", form, operation, "-", "0", "in_place", "hot", COUNT, BATCHES]
    yield ["no-such-command"]


class Peer:
    def __init__(self, command):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def ask(self, words):
        print("\t".join(words), file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("@"):
                return line.rstrip("\n").split("\t")
        sys.exit("the peer has gone")


def main(path, label, kind="collectives"):
    servers = kind == "servers"
    peer = Peer(command_of(path, label))
    word, name, *forms = peer.answer()
    assert word == "@ready" and forms, (word, forms)
    print(name, forms)
    measured = set()
    for form in forms:
        for words in commands_for_servers(form) if servers else commands_for(form):
            word, *rest = peer.ask(words)
            if words[0] != "measure" or word == "@no":
                assert word == "@no", (words, word, rest)
                continue
            assert word == "@times", (words, word, rest)
            hot = words[6] == "hot"
            assert len(rest) == int(BATCHES) * (1 if hot else int(COUNT)), (words, rest)
            assert all(float(us) > 0 for us in rest), (words, rest)
            measured.add((form, words[2]))
    if servers:  # not every form supports every operation
        assert {operation for _, operation in measured} == set(SERVERS_SIZES), measured
        assert {form for form, _ in measured} == set(forms), measured
    else:
        assert {form for form, operation in measured if operation == "all_reduce"} == set(forms), measured
    print("quit", file=peer.process.stdin, flush=True)
    assert peer.process.wait() == 0, peer.process.returncode


if __name__ == "__main__":
    main(*sys.argv[1:])
