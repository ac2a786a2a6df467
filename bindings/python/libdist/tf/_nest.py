# SPDX-License-Identifier: Apache-2.0
"""Nests: lists, tuples and dictionaries, with things at their leaves.

libdist's dictionaries have texts for keys, and its tuples no names: a nest that has more goes through it as a tuple
whose first item is its form.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Callable, Mapping, Sequence


def map_leaves(fn: Callable[[Any], Any], nest: Any) -> Any:
    """A nest of the same form, of what `fn` makes of the leaves."""
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*(map_leaves(fn, item) for item in nest))
    if isinstance(nest, (list, tuple)):
        return type(nest)(map_leaves(fn, item) for item in nest)
    if isinstance(nest, Mapping):
        return {key: map_leaves(fn, nest[key]) for key in nest}
    return fn(nest)


def leaves_of(nest: Any) -> list[Any]:
    """The leaves from the first to the last."""
    leaves: list[Any] = []
    map_leaves(leaves.append, nest)
    return leaves


class Form:
    """A named tuple's class, or the keys of a dictionary that are not all texts. Equal forms are one object."""

    __slots__ = ("kind", "keys", "__weakref__")

    def __init__(self, kind: Any, keys: tuple[Any, ...]) -> None:
        self.kind = kind
        self.keys = keys

    def made(self, items: Sequence[Any]) -> Any:
        """A nest of this form."""
        return dict(zip(self.keys, items)) if self.kind is dict else self.kind(*items)


_forms: weakref.WeakValueDictionary[Any, Form] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def _form(kind: Any, keys: tuple[Any, ...]) -> Form:
    with _lock:
        form = _forms.get((kind, keys))
        if form is None:
            form = _forms[(kind, keys)] = Form(kind, keys)
        return form


def form_of(nest: Any) -> tuple[Form, list[Any]] | None:
    """The form and the items of a nest that libdist has no kind for; None for any other."""
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return _form(type(nest), ()), list(nest)
    if isinstance(nest, Mapping) and not all(isinstance(key, str) for key in nest):
        keys = tuple(sorted(nest, key=lambda key: (type(key).__name__, repr(key))))
        return _form(dict, keys), [nest[key] for key in keys]
    return None


def packed(nest: Any, leaf: Callable[[Any], Any], mark: Callable[[Form], Any]) -> Any:
    """A nest for libdist: map_leaves(), and mark(form) before the items of what it has no kind for."""
    special = form_of(nest)
    if special is not None:
        return (mark(special[0]), *(packed(item, leaf, mark) for item in special[1]))
    if isinstance(nest, (list, tuple)):
        return type(nest)(packed(item, leaf, mark) for item in nest)
    if isinstance(nest, Mapping):
        return {key: packed(nest[key], leaf, mark) for key in nest}
    return leaf(nest)


def flattened(nest: Any) -> Any:
    """A nest with lists in the place of what libdist has no kind for; restored() undoes it."""
    special = form_of(nest)
    if special is not None:
        return [flattened(item) for item in special[1]]
    if isinstance(nest, (list, tuple)):
        return type(nest)(flattened(item) for item in nest)
    if isinstance(nest, Mapping):
        return {key: flattened(nest[key]) for key in nest}
    return nest


def _has_form(nest: Any) -> bool:
    if isinstance(nest, Mapping):
        return not all(isinstance(key, str) for key in nest) or any(_has_form(nest[key]) for key in nest)
    return isinstance(nest, (list, tuple)) and (hasattr(nest, "_fields") or any(_has_form(item) for item in nest))


def restored(result: Any, nest: Any) -> Any:
    """The result of a call with flattened(nest), in the form of the nest."""
    return _restored(result, nest) if _has_form(nest) else result


def _restored(result: Any, nest: Any) -> Any:
    special = form_of(nest)
    if special is not None:
        return special[0].made([_restored(one, item) for one, item in zip(result, special[1])])
    if isinstance(nest, (list, tuple)):
        return type(nest)(_restored(one, item) for one, item in zip(result, nest))
    if isinstance(nest, Mapping):
        return {key: _restored(result[key], nest[key]) for key in nest}
    return result
