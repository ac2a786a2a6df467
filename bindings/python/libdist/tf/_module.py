# SPDX-License-Identifier: Apache-2.0
"""tf.Module, and how a checkpoint finds the variables of an object, named by the path to them."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Optional

from libdist._arguments import checked

from ._copies import Copy
from ._missing import Refusing
from ._variable import Variable


class Watched(Refusing):
    """An object that notifies a checkpoint when an attribute is set, so that its value can be restored later."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        for restorer in tuple(self.__dict__.get("_restorers", ())):
            restorer()

    def _watch(self, restorer: Callable[[], None]) -> None:
        restorers = self.__dict__.setdefault("_restorers", [])
        if restorer not in restorers:
            restorers.append(restorer)


@checked
class Module(Watched):
    """tf.Module: an object whose attributes are variables, other modules, and lists, tuples and dictionaries of them.
    """

    _tf_name = "tf.Module"

    def __init__(self, name: Optional[str] = None) -> None:
        self._name = name or "".join(
            "_" * (i > 0 and c.isupper()) + c.lower() for i, c in enumerate(type(self).__name__)
        )

    @property
    def name(self) -> str:
        """The name of the module."""
        return self._name

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, including those of the objects in its attributes."""
        found: list[Variable] = []
        for _, variable in variables_in(self):
            if all(variable is not one for one in found):
                found.append(variable)
        return tuple(found)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that are not trainable."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules in it, at any depth."""
        return tuple(
            thing for _, thing in _objects_in(self, "", set()) if isinstance(thing, Module) and thing is not self
        )

    @classmethod
    def with_name_scope(cls, method: Any) -> Any:
        """Returns the method unchanged: names have no scopes here."""
        return method


def is_trackable(thing: Any) -> bool:
    """Returns whether a checkpoint can hold an object."""
    from .metrics import Metric

    return isinstance(thing, (Variable, Watched, Metric, list, tuple, Mapping))


def _children(thing: Any) -> list[tuple[str, Any]]:
    from .metrics import Metric

    if isinstance(thing, Mapping):
        named = [(str(key).replace("/", ".S"), thing[key]) for key in thing]
    elif isinstance(thing, (list, tuple)):
        named = [(str(i), item) for i, item in enumerate(thing)]
    elif isinstance(thing, Metric):
        named = [(str(i), variable) for i, variable in enumerate(thing.variables)]
    elif isinstance(thing, Watched):
        named = sorted((name, item) for name, item in vars(thing).items() if name != "_restorers")
    else:
        named = []
    return [(name, item) for name, item in named if is_trackable(item)]


def _objects_in(thing: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Returns (path, object) for everything that can be reached, with each container once."""
    if isinstance(thing, Variable):
        yield path, thing
        return
    if id(thing) in seen:
        return
    seen.add(id(thing))
    yield path, thing
    for name, item in _children(thing):
        yield from _objects_in(item, f"{path}/{name}" if path else name, seen)


def variables_in(thing: Any) -> list[tuple[str, Variable]]:
    """Returns (path, variable) for all variables that can be reached; for a copy, its variable."""
    found = ((path, one) for path, one in _objects_in(thing, "", set()) if isinstance(one, Variable))
    return [(path, one._whole() if isinstance(one, Copy) else one) for path, one in found]


def watch(thing: Any, restorer: Optional[Callable[[], None]]) -> None:
    """Calls `restorer` when an attribute of any object that can be reached is set; None stops this."""
    for _, one in list(_objects_in(thing, "", set())):
        if isinstance(one, Watched):
            if restorer is None:
                one.__dict__.pop("_restorers", None)
            else:
                one._watch(restorer)
