# SPDX-License-Identifier: Apache-2.0
"""What a line of a transcript gives to a call, and what comes of it."""

from libdist import Destination

from lines import array_of, tensor_of, text_of


class NotInPython(Exception):
    """What Python's types make impossible; the case is left out for it."""


class Answers(dict):
    """The fields of an answer."""


class Given:
    """The arguments of a line."""

    def __init__(self, player, line):
        self.player, self.fields = player, line.given

    def has(self, key):
        return self.fields.get(key, "-") != "-"

    def object(self, key):
        """What a name stands for; None where there is none."""
        return self.player.object(self.fields[key]) if self.has(key) else None

    def needed(self, key):
        """An object on which a method is called."""
        if not self.has(key):
            raise NotInPython(f"{key} is None, which has no such method")
        return self.object(key)

    def objects(self, key):
        return [None if name == "-" else self.player.object(name) for name in array_of(self.fields.get(key, "()"))]

    def number(self, key, default=0):
        return int(self.fields.get(key, default))

    def text(self, key):
        return text_of(self.fields[key]) if self.has(key) else None

    def texts(self, key):
        return [text_of(literal) for literal in array_of(self.fields[key])]

    def tensor(self, key):
        return tensor_of(self.fields[key]) if self.has(key) else None

    def tensors(self, key):
        return [tensor_of(literal) for literal in array_of(self.fields[key])]

    def options(self, *names, prefix="options."):
        """The numbers among the options, by name."""
        return {name: self.number(prefix + name) for name in names if prefix + name in self.fields}

    def timeout(self):
        """The option, in seconds."""
        name = "options.timeout_ns"
        return {"timeout": self.number(name) * 1e-9} if name in self.fields else {}

    def destination(self, prefix="destination"):
        keys = {key.split(".")[1] for key in self.fields if key.startswith(prefix + ".")}
        if not keys and self.fields.get(prefix) == "-":
            return None
        return Destination(
            variable=self.object(f"{prefix}.variable"),
            value=self.object(f"{prefix}.value"),
            device=self.text(f"{prefix}.device"),
        )

    def destinations(self, n):
        return [
            None if self.fields.get("destinations") == "-" else self.destination(f"destinations{i}") for i in range(n)
        ]
