# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: @checked compares every argument of a public function or class with its annotation.

An argument of another type raises TypeError. A value that the type does not allow raises InvalidArgument. Both messages
state the function, the argument, what was given and what was expected: "Strategy(): timeout is nan, but must be a
positive number of seconds, ...". Integers of other libraries become int.
"""

from __future__ import annotations

import builtins
import enum
import functools
import importlib
import inspect
import math
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NoReturn, Optional, TypeVar, Union

T = TypeVar("T")
Check = Callable[[Any], Any]
"""check(argument) returns the argument, converted if necessary, or raises Unfit."""


class Unfit(Exception):
    """Raised by a check: the argument does not fit its annotation."""

    def __init__(self, given: Any, expected: str, right_type: bool = False) -> None:
        super().__init__()
        self.given, self.expected, self.right_type = given, expected, right_type
        self.path = ""

    def within(self, path: str) -> Unfit:
        """Returns this error for an item of a larger argument; `path` leads to the item, for example "[2]"."""
        self.path = path + self.path
        return self

    def report(self, function: str, name: str) -> Exception:
        text = f"{function}(): {name}{self.path} is {_shown(self.given)}, but must be {self.expected}"
        return _invalid(text) if self.right_type else TypeError(text)


def _invalid(text: str) -> Exception:
    from .errors import InvalidArgument  # imported late, because errors.py uses this module

    return InvalidArgument(text)


def _shown(given: Any) -> str:
    try:
        text = repr(given)
    except Exception:  # raised by the __repr__() of your object
        text = f"a {type(given).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


class Rule:
    """A check in an annotation: Annotated[float, Rule(check, expected)]."""

    def __init__(self, check: Check, expected: str) -> None:
        self.check, self.expected = check, expected


# ---- times in seconds --------------------------------------------------------------------------------------


def seconds(fits: Callable[[float], bool], expected: str) -> Rule:
    """Returns the rule for a time in seconds, or None, that is not NaN and for which fits(time) is true."""

    def check(given: Any) -> Any:
        if given is None:
            return None
        number = _number(given, expected)
        if math.isnan(number) or not fits(number):
            raise Unfit(given, expected, right_type=True)
        return number

    return Rule(check, expected)


NO_LIMIT = "a negative number or math.inf for no limit"
Timeout = Annotated[
    Optional[float],
    seconds(lambda s: s != 0, f"a positive number of seconds, {NO_LIMIT}, or None for the default"),
]
"""A timeout in options, in seconds: None selects the default; negative or infinite means no limit."""
Wait = Annotated[
    Optional[float],
    seconds(lambda s: True, "a number of seconds, 0 to return at once, or None for no limit"),
]
"""The limit of a wait, in seconds: 0 does not wait; None, negative or infinite means no limit."""
Limit = Annotated[Optional[float], seconds(lambda s: s > 0, "a positive number of seconds, or None for no limit")]
"""The time limit of a whole call, in seconds: None or infinite means no limit."""
Delay = Annotated[
    Optional[float],
    seconds(lambda s: 0 <= s < math.inf, "a finite number of seconds from 0 on, or None for the default"),
]
"""A time in seconds that may be 0; None selects the default."""

_YEAR = 365 * 24 * 60 * 60.0
_LONGEST = 2**62  # nanoseconds, 146 years; C can add them to any time


def nanoseconds(seconds: Optional[float]) -> int:
    """Converts a Timeout to C's nanoseconds: None becomes 0 (default), negative or infinite becomes -1 (no limit)."""
    if seconds is None:
        return 0
    if 0 < seconds < _YEAR:
        return round(seconds * 1e9) or 1
    if seconds < 0 or math.isinf(seconds):
        return -1
    return max(1, round(min(seconds * 1e9, _LONGEST)))


def seconds_of(nanoseconds: int) -> Optional[float]:
    """Converts C's nanoseconds to a Timeout."""
    return None if nanoseconds == 0 else math.inf if nanoseconds < 0 else nanoseconds * 1e-9


def wait_limit(seconds: Optional[float]) -> int:
    """Converts a Wait to C's nanoseconds: None becomes -1 (no limit), and 0 stays 0 (do not wait)."""
    if seconds is None:
        return -1
    return nanoseconds(seconds) if seconds else 0


def limit(seconds: Optional[float]) -> int:
    """Converts a Limit to C's nanoseconds: None or infinite becomes 0 (no limit)."""
    return max(0, nanoseconds(seconds))


def delay(seconds: Optional[float]) -> int:
    """Converts a Delay to C's nanoseconds: None becomes 0 (default)."""
    return nanoseconds(seconds) if seconds else 0


# ---- checks of single types ---------------------------------------------------------------------------------


def _number(given: Any, expected: str = "a number") -> float:
    if isinstance(given, (bool, str, bytes)) or not hasattr(given, "__float__") and not hasattr(given, "__index__"):
        raise Unfit(given, expected)
    try:
        return float(given)
    except (TypeError, ValueError):  # an array, for example
        raise Unfit(given, expected) from None
    except OverflowError:
        return math.inf if given > 0 else -math.inf


def _integer(given: Any) -> int:
    if type(given) is int:
        return given
    try:
        if not isinstance(given, bool):
            return operator.index(given)
    except TypeError:
        pass
    raise Unfit(given, "an integer")


def _count(given: Any) -> int:
    number = _integer(given)
    if not 0 <= number < 2**63:
        raise Unfit(given, "0 or more" if number < 0 else "less than 2**63", right_type=True)
    return number


Count = Annotated[int, Rule(_count, "an integer, 0 or more")]
"""A number of things."""


def _boolean(given: Any) -> bool:
    if given is True or given is False:
        return bool(given)
    if type(given).__module__ == "numpy" and type(given).__name__ in ("bool_", "bool"):
        return bool(given)
    if isinstance(given, int) and given in (0, 1):
        return bool(given)
    raise Unfit(given, "True or False")


def member_of(kind: type[enum.IntEnum], given: Any, expected: str) -> int:
    """Returns the member of an enum, which may be given by its number. libdist itself rejects unknown numbers."""
    if isinstance(given, kind):
        return given
    if isinstance(given, (bool, enum.Enum)):
        raise Unfit(given, expected)
    try:
        number = operator.index(given)
    except TypeError:
        raise Unfit(given, expected) from None
    return kind(number) if number in kind._value2member_map_ else number


def _instance(kind: type) -> Check:
    def check(given: Any) -> Any:
        if isinstance(given, kind):
            return given
        raise Unfit(given, _described(kind))

    return check


def _callable(given: Any) -> Any:
    if callable(given):
        return given
    raise Unfit(given, "callable")


def _items(item: Check, expected: str) -> Check:
    """Returns the check for a list, a tuple or another iterable, which becomes a list."""

    def check(given: Any) -> Any:
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise Unfit(given, expected)
        if getattr(given, "shape", None) == ():
            raise Unfit(given, expected)
        whole = given if isinstance(given, (list, tuple)) else list(given)
        taken = []
        for index, one in enumerate(whole):
            try:
                taken.append(item(one))
            except Unfit as unfit:
                raise unfit.within(f"[{index}]") from None
        same = len(taken) == len(whole) and all(map(operator.is_, taken, whole))
        return whole if same else taken

    return check


def _pair(items: Sequence[Check], expected: str) -> Check:
    """Returns the check for a tuple in which each item has a type of its own."""

    def check(given: Any) -> Any:
        if not isinstance(given, (list, tuple)) or len(given) != len(items):
            raise Unfit(given, expected)
        try:
            return tuple(item(one) for item, one in zip(items, given))
        except Unfit as unfit:
            raise Unfit(given, expected, right_type=unfit.right_type) from None

    return check


def _mapping(key: Check, value: Check, expected: str) -> Check:
    def check(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise Unfit(given, expected)
        for name, one in given.items():
            try:
                key(name)
            except Unfit:
                raise Unfit(given, expected) from None
            try:
                value(one)
            except Unfit as unfit:
                raise unfit.within(f"[{name!r}]") from None
        return given

    return check


def _any_of(checks: Sequence[Check], expected: str) -> Check:
    def check(given: Any) -> Any:
        inner: Optional[Unfit] = None
        for one in checks:
            try:
                return one(given)
            except Unfit as unfit:
                if unfit.path or unfit.right_type:  # the type is right, and something in the value is not allowed
                    inner = unfit
        raise inner or Unfit(given, expected)

    return check


# ---- annotations -------------------------------------------------------------------------------------------


def _described(annotation: Any) -> str:
    """Describes an annotation in words, for error messages."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return next((rule.expected for rule in arguments[1:] if isinstance(rule, Rule)), _described(arguments[0]))
    if origin in (Union, types.UnionType):
        if Any in arguments:
            return _WORDS[Any]
        return _joined([_described(one) for one in arguments])
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"a tuple of {' and '.join(_described(one) for one in arguments)}"
    if origin in (list, tuple, Sequence, Iterable):
        return f"a sequence of {_plural(_described(arguments[0]))}"
    if origin in (dict, Mapping):
        of = [_plural(_described(one)) for one in arguments]
        return f"a dict from {of[0]} to {of[1]}"
    if origin is Callable or annotation is Callable:
        return "callable"
    if annotation in _WORDS:
        return _WORDS[annotation]
    kind = origin or annotation
    if not isinstance(kind, type):
        return "an object"
    module = kind.__module__.partition(".")[0]
    name = kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"
    if kind.__module__.startswith("libdist.tf"):
        name = vars(kind).get("_tf_name", kind.__name__)
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


_WORDS: dict[Any, str] = {
    type(None): "None",
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a string",
    Any: "an object",
}


def _plural(words: str) -> str:
    noun = words.removeprefix("an ").removeprefix("a ")
    first, space, rest = noun.partition(" ")
    return f"{first}s{space}{rest}" if noun != words and " or " not in noun else words


def _joined(words: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(words))
    distinct.sort(key=lambda word: word == "None")
    return distinct[0] if len(distinct) == 1 else f"{', '.join(distinct[:-1])} or {distinct[-1]}"


_CHECKS: dict[Any, Check] = {bool: _boolean, int: _integer, float: _number, Callable: _callable}


def check_of(annotation: Any) -> Check:
    """Returns the check for an annotation."""
    return _check_of(annotation) or _accept


def _check_of(annotation: Any) -> Optional[Check]:
    """Returns the check for an annotation; None if the annotation allows everything."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, TypeVar):
        return None if annotation.__bound__ is None else _check_of(annotation.__bound__)
    if annotation is Any or annotation is object:
        return None
    if origin is Annotated:
        return next((rule.check for rule in arguments[1:] if isinstance(rule, Rule)), _check_of(arguments[0]))
    if origin in (Union, types.UnionType):
        checks = [_check_of(one) for one in arguments]
        if None in checks:
            return None
        return _any_of([check for check in checks if check is not None], _described(annotation))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _pair([check_of(one) for one in arguments], _described(annotation))
    if origin in (list, tuple, Sequence, Iterable):
        return _items(check_of(arguments[0]), _described(annotation))
    if origin in (dict, Mapping):
        key, value = (check_of(one) for one in arguments)
        return _mapping(key, value, _described(annotation))
    if origin is Callable:
        return _callable
    kind = origin or annotation
    if kind in _CHECKS:
        return _CHECKS[kind]
    if issubclass(kind, enum.IntEnum):
        return functools.partial(member_of, kind, expected=f"a libdist.{kind.__name__}")
    return _instance(kind)


def _accept(given: Any) -> Any:
    return given


def show_options(function: Callable[..., Any], shown: Callable[..., Any]) -> None:
    """Gives `shown` the signature and docstring of `function`, with each option in place of **options."""
    annotation = function.__annotations__.get("options", "")
    if not isinstance(annotation, str) or not annotation.startswith("Unpack["):
        return
    parameters, text = _options_of(annotation.removeprefix("Unpack[").removesuffix("]"))
    signature = inspect.signature(function)
    own = list(signature.parameters.values())[:-1]
    shown.__signature__ = signature.replace(parameters=[*own, *parameters])  # type: ignore[attr-defined]
    shown.__doc__ = "\n\n".join(inspect.cleandoc(part) for part in (function.__doc__, text) if part)


@functools.cache
def _options_of(name: str) -> tuple[list[inspect.Parameter], str]:
    """Returns the parameters for the options of a record, and their description."""
    fields = sys.modules["libdist._option_fields"]
    record, makers = fields.MAKERS[name]
    known = {each: one for maker in makers for each, one in inspect.signature(maker).parameters.items()}
    shared = f"libdist.{name} describes the options." if name in fields.SHARED else ""
    return [known[each] for each in record.__annotations__], shared or (record.__doc__ or "").partition("\n")[2]


class _Unpack:
    """Evaluates Unpack[Options] in annotations to Options."""

    def __class_getitem__(cls, options: Any) -> Any:
        return options


OWN_CHECK = Rule(_accept, "an object")
"""For an argument that the function itself checks, with TensorFlow's error messages."""


def _names(module: str) -> dict[str, Any]:
    """Returns the names that annotations of a module may use, including names imported for type checkers only."""
    names: dict[str, Any] = {}
    for package in ("libdist", "libdist.tf", "libdist.tf.distribute"):
        if module.startswith(package.removesuffix(".distribute")):
            public = vars(importlib.import_module(package))
            names.update((name, thing) for name, thing in public.items() if not hasattr(builtins, name))
    return {**names, **vars(sys.modules[module]), "Unpack": _Unpack}


class _Plan:
    """The checks of one function, by position and by name."""

    def __init__(self, function: Callable[..., Any], module: str, bound: bool) -> None:
        names = _names(module)
        self.by_position: list[tuple[int, str, Check]] = []
        self.by_name: dict[str, Check] = {}
        self.rest: Optional[tuple[int, str, Check]] = None  # of *arguments
        self.options: Optional[list[str]] = None  # names of all options, if the function takes **options
        parameters = inspect.signature(function).parameters
        self.known = set(parameters)
        for index, parameter in enumerate(parameters.values()):
            if parameter.annotation is parameter.empty or (bound and index == 0):
                continue
            annotation = parameter.annotation
            annotation = _resolved(annotation, names)
            if parameter.kind is parameter.VAR_KEYWORD:
                keywords = [each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY]
                self._take_options(annotation, names, keywords)
                continue
            check = _check_of(annotation)
            if check is None:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                self.rest = (index, parameter.name, check)
                continue
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self.by_position.append((index, parameter.name, check))
            if parameter.kind is not parameter.POSITIONAL_ONLY:
                self.by_name[parameter.name] = check

    def _take_options(self, options: Any, names: dict[str, Any], keywords: Iterable[str]) -> None:
        if not typing.is_typeddict(options):
            return
        own = {**names, **vars(sys.modules[options.__module__])}
        self.options = [*keywords, *options.__annotations__]
        self.known.update(self.options)
        for name, annotation in options.__annotations__.items():
            check = _check_of(_resolved(annotation, own))
            if check is not None:
                self.by_name[name] = check


def _resolved(annotation: Any, names: dict[str, Any]) -> Any:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    return eval(annotation, names) if isinstance(annotation, str) else annotation


def _guarded(function: Callable[..., Any], module: str, bound: bool) -> Callable[..., Any]:
    """Returns a function that checks its arguments first. bound: the first argument is an object or class."""
    inner = inspect.unwrap(function)
    plan: Optional[_Plan] = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal plan
        if not kwargs and len(args) <= bound:  # no arguments, as for a barrier
            return function(*args)
        if plan is None:
            plan = _Plan(inner, module, bound)
        name = ""
        try:
            for index, name, check in plan.by_position:
                if index >= len(args):
                    break
                given = args[index]
                taken = check(given)
                if taken is not given:
                    args = (*args[:index], taken, *args[index + 1 :])
            if plan.rest is not None and len(args) > plan.rest[0]:
                first, name, check = plan.rest
                args = (*args[:first], *map(check, args[first:]))
            for name, given in kwargs.items():
                one = plan.by_name.get(name)
                if one is not None:
                    kwargs[name] = one(given)
                elif plan.options is not None and name not in plan.known:
                    raise _unknown(_title(inner, bound, args), name, plan.options)
        except Unfit as unfit:
            error = unfit.report(_title(inner, bound, args), name)
        else:
            return function(*args, **kwargs)
        raise error

    show_options(inner, call)
    return call


def _unknown(function: str, name: str, options: Sequence[str]) -> TypeError:
    return TypeError(f"{function}(): {name} is not an option. The options are {', '.join(options)}")


def _title(function: Callable[..., Any], bound: bool, args: Sequence[Any]) -> str:
    """Returns the function's name for messages; a method of a mixin gets the name of the object's class."""
    owner, _, name = function.__qualname__.rpartition("<locals>.")[2].rpartition(".")
    if bound and args:
        owner = args[0].__name__ if isinstance(args[0], type) else type(args[0]).__name__
    if name in ("__init__", "__new__"):
        return owner
    return f"{owner}.{name}" if owner else name


_MARK = "_checks_itself"


def unchecked(function: T) -> T:
    """Marks a method that @checked leaves unchanged, because it has a fast path without checks."""
    setattr(function, _MARK, True)
    show_options(typing.cast(Callable[..., Any], function), typing.cast(Callable[..., Any], function))
    return function


def checked(thing: T) -> T:
    """Makes a function, or all public methods and the constructor of a class, check their arguments."""
    module: str = getattr(thing, "__module__")
    if not isinstance(thing, type):
        return typing.cast(T, _guarded(typing.cast(Callable[..., Any], thing), module, bound=False))
    owner = vars(thing).get("_part_of", thing.__qualname__)
    for name, member in list(vars(thing).items()):
        if inspect.isfunction(member) and name == member.__name__:
            member.__qualname__ = f"{owner}.{name}"  # for Python's own error messages
        private = name.startswith("_") and name not in ("__init__", "__new__")
        if private or hasattr(getattr(member, "__func__", member), _MARK):
            continue
        if isinstance(member, staticmethod):
            setattr(thing, name, staticmethod(_guarded(member.__func__, module, bound=name == "__new__")))
        elif isinstance(member, classmethod):
            setattr(thing, name, classmethod(_guarded(member.__func__, module, bound=True)))
        elif isinstance(member, property) and member.fset is not None:
            setattr(thing, name, member.setter(_guarded(member.fset, module, bound=True)))
        elif inspect.isfunction(member):
            setattr(thing, name, _guarded(member, module, bound=True))
    return typing.cast(T, thing)


def wrong(function: str, text: str) -> NoReturn:
    """Raises InvalidArgument for arguments that do not fit together."""
    raise _invalid(f"{function}(): {text}")
