# SPDX-License-Identifier: Apache-2.0
"""Nests of lists, tuples, mappings and attrs objects, as tf.nest defines them.

libdist carries lists, tuples and dictionaries with text keys. packed() makes such a nest: a mapping becomes a
dictionary, and so do a named tuple and an attrs object, with a key ".name" for each field. restored() gives the result
of a call the types and the key order of a nest that the program passed.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from numbers import Number
from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping, MutableMapping, Optional


def _fields_of(nest: Any) -> Optional[list[str]]:
    """Returns the names of the fields of a named tuple or of an attrs object; None for anything else."""
    if isinstance(nest, tuple):
        fields = getattr(nest, "_fields", None)
        return None if fields is None else list(fields)
    attributes = getattr(type(nest), "__attrs_attrs__", None)
    return None if attributes is None else [attribute.name for attribute in attributes]


def _ordered(nest: Mapping[Any, Any]) -> list[Any]:
    """Returns the keys in tf.nest's order: sorted if they can be compared."""
    try:
        return sorted(nest)
    except TypeError:
        return list(nest)


def _mapping_like(nest: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """Returns a mapping with the type and the order of keys of `nest`, and other items."""
    kind: Any = type(nest)
    if kind is dict:
        return items
    if not isinstance(nest, MutableMapping):
        given = items if kind is MappingProxyType else list(items.items())
        try:
            return kind(given)
        except TypeError as error:
            raise TypeError(
                f"cannot make a {kind.__name__} like the one in the nest: its constructor must accept key-value pairs "
                f"({error})"
            ) from error
    try:
        made = kind(nest.default_factory) if isinstance(nest, defaultdict) else kind()
    except TypeError:
        made = copy.copy(nest)
    for key, item in items.items():
        made[key] = item
    return made


def items_of(nest: Any) -> Optional[list[Any]]:
    """Returns the items of a list, a tuple, a mapping or an attrs object, in its own order; None for a leaf."""
    fields = _fields_of(nest)
    if fields is not None:
        return [getattr(nest, name) for name in fields]
    if isinstance(nest, (list, tuple)):
        return list(nest)
    return [nest[key] for key in nest] if isinstance(nest, Mapping) else None


def rebuilt(nest: Any, items: Iterable[Any]) -> Any:
    """Returns a nest of the same type with the same keys, and other items in the order of items_of()."""
    if isinstance(nest, Mapping):
        return _mapping_like(nest, dict(zip(nest, items)))
    return type(nest)(items) if _fields_of(nest) is None else type(nest)(*items)


def map_leaves(fn: Callable[[Any], Any], nest: Any) -> Any:
    """Returns a nest of the same structure and types, with fn(leaf) for each leaf in the order of leaves_of()."""
    if isinstance(nest, Mapping):
        made = {key: map_leaves(fn, nest[key]) for key in _ordered(nest)}
        return _mapping_like(nest, {key: made[key] for key in nest})
    items = items_of(nest)
    return fn(nest) if items is None else rebuilt(nest, [map_leaves(fn, item) for item in items])


def leaves_of(nest: Any) -> list[Any]:
    """Returns the leaves from the first to the last; those of a mapping in the order of sorted keys."""
    items = [nest[key] for key in _ordered(nest)] if isinstance(nest, Mapping) else items_of(nest)
    return [nest] if items is None else [leaf for item in items for leaf in leaves_of(item)]


# ---- conversion for libdist ------------------------------------------------------------------------------------------


def _text(key: Any) -> str:
    """Returns a text for a key. Keys that are equal, like 1 and np.int64(1), have the same text."""
    if isinstance(key, tuple):
        return f"({', '.join(map(_text, key))})"
    if isinstance(key, Number):
        try:
            whole = int(key)  # type: ignore[call-overload]
        except (TypeError, ValueError, OverflowError):
            return repr(key)
        return repr(whole if whole == key else key)
    return repr(key)


def _texts(keys: Mapping[Any, Any]) -> dict[Any, str]:
    """Returns a text for each key: the key itself if all keys are texts, otherwise _text()."""
    if all(isinstance(key, str) for key in keys):
        return {key: key for key in keys}
    texts: dict[Any, str] = {}
    taken: set[str] = set()
    for key in keys:
        text = _text(key)
        while text in taken:  # different keys that print alike
            text += "'"
        taken.add(text)
        texts[key] = text
    return texts


def packed(nest: Any, leaf: Callable[[Any], Any]) -> Any:
    """Returns a nest that libdist can carry, with leaf(thing) for each leaf."""
    fields = _fields_of(nest)
    if fields is not None:
        return {"." + name: packed(getattr(nest, name), leaf) for name in fields}
    if isinstance(nest, list):
        return [packed(item, leaf) for item in nest]
    if isinstance(nest, tuple):
        return tuple(packed(item, leaf) for item in nest)
    if isinstance(nest, Mapping):
        return {text: packed(nest[key], leaf) for key, text in _texts(nest).items()}
    return leaf(nest)


def restored(result: Any, nest: Any) -> Any:
    """Returns the result of a call with packed(nest) in the structure of the nest.

    Parts of the result that have another structure stay as they are.
    """
    fields = _fields_of(nest)
    if fields is not None:
        if not isinstance(result, dict) or result.keys() != {"." + name for name in fields}:
            return result
        return rebuilt(nest, [restored(result["." + name], getattr(nest, name)) for name in fields])
    if isinstance(nest, (list, tuple)):
        if not isinstance(result, (list, tuple)) or len(result) != len(nest):
            return result
        return rebuilt(nest, [restored(one, item) for one, item in zip(result, nest)])
    if isinstance(nest, Mapping):
        texts = _texts(nest)
        if not isinstance(result, dict) or result.keys() != set(texts.values()):
            return result
        return rebuilt(nest, [restored(result[text], nest[key]) for key, text in texts.items()])
    return result
