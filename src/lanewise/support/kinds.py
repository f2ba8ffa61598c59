"""The kinds of values that annotations allow: what fits, and what is wanted."""

from __future__ import annotations

import collections.abc as abc
import functools
import inspect
import numbers
import operator
import os
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike


class Unfit(Exception):
    """A value is none of what an annotation names."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What an annotation stands for: how it is called in a message, and `fit`, which gives the
    value as it is used or raises `Unfit`.
    """

    wanted: str
    many: str
    fit: Callable[[Any], Any]
    optional: bool = False  # None is one as well


@functools.cache
def _simple() -> dict[Any, Kind]:
    return {
        Any: Kind("anything", "anything", _same),
        object: Kind("anything", "anything", _same),
        inspect.Parameter.empty: Kind("anything", "anything", _same),
        ArrayLike: Kind("an array", "arrays", _same),
        None: Kind("None", "None", _none),
        types.NoneType: Kind("None", "None", _none),
        bool: Kind("True or False", "booleans", _truth),
        int: Kind("an integer", "integers", _whole),
        float: Kind("a number", "numbers", number_kind),
        str: Kind("a string", "strings", _text),
        os.PathLike: Kind("a path", "paths", _path),
    }


def kind_of(annotation: Any) -> Kind:
    """What an annotation stands for."""
    if isinstance(annotation, typing.TypeVar):
        return _simple()[Any] if annotation.__bound__ is None else kind_of(annotation.__bound__)
    if annotation is ArrayLike:  # in some versions of NumPy a union, in others an alias with a name
        return _simple()[ArrayLike]
    alias = typing.get_origin(annotation) or annotation
    if (
        aliased := getattr(alias, "__value__", None)
    ) is not None:  # a `type` statement (PEP 695), such as NumPy's NDArray
        return kind_of(aliased)
    try:
        if annotation in _simple():
            return _simple()[annotation]
    except TypeError:  # some annotations have no hash
        pass
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _choice(inner)
    if origin in (typing.Union, types.UnionType):
        return _either([kind_of(a) for a in inner])
    if origin is abc.Callable or annotation in (Callable, abc.Callable):
        return Kind("a function", "functions", _callable)
    if origin is type:
        return _instance(type)
    if origin is os.PathLike:
        return _simple()[os.PathLike]
    if origin is tuple and inner[-1] is not Ellipsis:
        return _members([kind_of(a) for a in inner])
    if isinstance(origin, type) and issubclass(origin, (tuple, list, abc.Sequence)):
        return _sequence(kind_of(inner[0]))
    if origin in (frozenset, abc.Set):
        return _set(kind_of(inner[0]))
    if isinstance(origin, type) and issubclass(origin, abc.Mapping):
        return _mapping(kind_of(inner[0]), kind_of(inner[1]))
    return _instance(origin if isinstance(origin, type) else annotation)


def _same(value: Any) -> Any:
    return value


def _none(value: Any) -> Any:
    if value is not None:
        raise Unfit
    return value


def _truth(value: Any) -> bool:
    if type(value) is bool:
        return value
    if not isinstance(value, (bool, np.bool_)):
        raise Unfit
    return bool(value)


def _whole(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise Unfit
    return operator.index(value)


def number_kind(argument: Any) -> float:
    """A number as a float; raises `Unfit` for what is none."""
    value: Any = (
        argument[()] if isinstance(argument, np.ndarray) and argument.ndim == 0 else argument
    )
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (numbers.Real, np.floating, np.integer)
    ):
        raise Unfit
    kept: Any = value
    try:
        number = float(kept)
    except OverflowError:  # an integer beyond all floats
        raise Unfit from None
    return kept if type(kept) is int else number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit
    return str(value)


def _path(value: Any) -> Any:
    if not isinstance(value, os.PathLike):
        raise Unfit
    try:
        os.fspath(value)  # pyright: ignore[reportUnknownArgumentType]
    except Exception:  # of the user's class
        raise Unfit from None
    return value  # pyright: ignore[reportUnknownVariableType]


def _callable(value: Any) -> Any:
    if not callable(value):
        raise Unfit
    return value


def _choice(choices: tuple[Any, ...]) -> Kind:
    kinds = {type(k) for k in choices}

    def fit(value: Any) -> Any:
        if type(value) not in kinds or value not in choices:
            raise Unfit
        return value

    wanted = (
        f"one of {', '.join(map(repr, choices))}"
        if len(choices) > 2
        else " or ".join(map(repr, choices))
    )
    return Kind(wanted, wanted, fit)


def _either(kinds: list[Kind]) -> Kind:
    # to leave something out is never what is wanted
    named = [k for k in kinds if k.wanted != "None"]
    optional = len(named) < len(kinds)

    def fit(value: Any) -> Any:
        if value is None and optional:
            return value
        if len(named) == 1:
            return named[0].fit(value)
        for kind in named:
            try:
                return kind.fit(value)
            except Unfit:
                continue
        raise Unfit

    return Kind(
        " or ".join(k.wanted for k in named), " or ".join(k.many for k in named), fit, optional
    )


def _instance(cls: Any) -> Kind:
    if not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
        return _simple()[Any]
    name = cls.__name__
    article = "an" if name[0] in "AEIOU" else "a"

    def fit(value: Any) -> Any:
        if not isinstance(value, cls):
            raise Unfit
        return value

    return Kind(f"{article} {name}", name, fit)


def listed(value: Any) -> tuple[Any, ...]:
    """The elements of what can be run through, other than text and mappings; raises `Unfit`."""
    if isinstance(value, (tuple, list, range)):
        return tuple(value)
    if isinstance(value, (str, bytes, bytearray, abc.Mapping, abc.Set)) or not isinstance(
        value, Iterable
    ):
        raise Unfit
    try:
        return tuple(value)
    except Exception:  # of the user's class
        raise Unfit from None


def _sequence(kind: Kind) -> Kind:
    return Kind(
        f"a list of {kind.many}",
        f"lists of {kind.many}",
        lambda value: tuple(map(kind.fit, listed(value))),
    )


def _members(kinds: list[Kind]) -> Kind:
    def fit(value: Any) -> Any:
        parts = listed(value)
        if len(parts) != len(kinds):
            raise Unfit
        return tuple(k.fit(p) for k, p in zip(kinds, parts, strict=True))

    alike = len({k.wanted for k in kinds}) == 1
    wanted = f"{len(kinds)} {kinds[0].many}" if alike else f"({', '.join(k.wanted for k in kinds)})"
    return Kind(wanted, f"groups of {wanted}", fit)


def _set(kind: Kind) -> Kind:
    def fit(value: Any) -> Any:
        if not isinstance(value, (set, frozenset)):
            raise Unfit
        return frozenset(kind.fit(v) for v in value)  # pyright: ignore[reportUnknownVariableType]

    return Kind(f"a set of {kind.many}", f"sets of {kind.many}", fit)


def _mapping(key: Kind, value: Kind) -> Kind:
    def fit(mapping: Any) -> Any:
        if not isinstance(mapping, abc.Mapping):
            raise Unfit
        try:
            items = list(mapping.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportUnknownVariableType]
        except Exception:  # of the user's class
            raise Unfit from None
        return {key.fit(k): value.fit(v) for k, v in items}  # pyright: ignore[reportUnknownVariableType]

    wanted = f"a dictionary of {key.many} and {value.many}"
    return Kind(wanted, f"dictionaries of {key.many} and {value.many}", fit)
