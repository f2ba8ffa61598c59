"""What users hand in, checked where it enters: types by the annotations of what they call, arrays
from anywhere.

`@checked` stands above constructors, methods and functions that users call. Numbers of NumPy become
Python's, sequences tuples. What is out of range is checked by the callee. A value without a name
for a parameter that has to be named is refused with that name. Any other call that Python itself
refuses (a missing or unknown argument) stays Python's TypeError, raised at the call.
"""

from __future__ import annotations

import collections.abc as abc
import functools
import inspect
import math
import numbers
import operator
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from lanewise.support.errors import ArgumentError, ArgumentTypeError, LanewiseError, shortened

F = TypeVar("F", bound=Callable[..., Any])
LARGEST = sys.float_info.max
LONGEST = 60  # characters of a value in a message


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
    optional: bool = False  # None is one, too


# ------------------------------------------------------------ calls


def checked(error: type[LanewiseError] = ArgumentError) -> Callable[[F], F]:
    """Check the arguments of a function by its annotations; what does not fit raises `error`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*positional: Any, **named: Any) -> Any:
            try:
                signature, kinds, placed = _parameters(function)
                if len(positional) <= placed and _plainly_fit(positional, named, kinds):
                    return function(*positional, **named)
                try:
                    bound = signature.bind(*positional, **named)
                except TypeError:
                    refuse_unnamed(called(function), signature, positional, named, error)
                    return function(*positional, **named)  # Python's own error, in its own words
                _fit(bound, error, function, kinds)
                return function(*bound.args, **bound.kwargs)
            except LanewiseError as raised:
                raise shortened(raised)  # noqa: B904  (its own cause stays)

        return typing.cast(F, call)

    return decorate


def called(function: Callable[..., Any]) -> str:
    """How users call a function: the class of an `__init__`, and no function around it."""
    return function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]


def refuse_unnamed(
    what: str, signature: inspect.Signature, positional: Sequence[Any], named: Mapping[str, Any],
    error: type[LanewiseError],
) -> None:  # fmt: skip
    """Refuse values without a name for parameters that have one: the message names them.

    signature: of the function or method that is called; positional: with `self`, where it has one.
    """
    kinds = {n: p.kind for n, p in signature.parameters.items()}
    settings = [n for n, k in kinds.items() if k is inspect.Parameter.KEYWORD_ONLY]
    placed = [n for n, k in kinds.items() if k in _PLACED]
    further = positional[len(placed) :]
    if not (settings and further) or inspect.Parameter.VAR_POSITIONAL in kinds.values():
        return
    plain = [n for n in placed if n not in ("self", "cls")]
    free = [n for n in settings if n not in named]
    wanted = ", ".join(f"{n}={shown(v)}" for n, v in zip(free, further, strict=False))
    only = f"only {' and '.join(plain)} without a name" if plain else "all arguments by name"
    found = ", ".join(map(shown, further))
    kind = ArgumentTypeError if error is ArgumentError else error
    raise kind(f"{what} takes {only}; found {found}; wanted {wanted or 'fewer arguments'}")


_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _fit(
    bound: inspect.BoundArguments,
    error: type[LanewiseError],
    function: Callable[..., Any],
    kinds: Mapping[str, Kind],
) -> None:
    """Put values that fit in place of the arguments."""
    for name, value in bound.arguments.items():
        kind = kinds[name]
        match bound.signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                fitted: Any = tuple(_argument(error, function, name, v, kind) for v in value)
            case inspect.Parameter.VAR_KEYWORD:
                fitted = {n: _argument(error, function, n, v, kind) for n, v in value.items()}
            case _:
                fitted = _argument(error, function, name, value, kind)
        bound.arguments[name] = fitted


def check_fields(instance: Any, error: type[LanewiseError] = ArgumentError) -> None:
    """Check the fields of a frozen dataclass by their annotations, in its `__post_init__`."""
    cls = type(instance)
    for name, kind in _field_kinds(cls):
        value = getattr(instance, name)
        if value is None and kind.optional:
            continue
        try:
            fitted = kind.fit(value)
        except Unfit:
            raise error(f"{cls.__name__}({name}={shown(value)}): wanted {kind.wanted}") from None
        if fitted is not value:
            object.__setattr__(instance, name, fitted)


# What a fit value of these types is, its `fit` returns: no text has to be made for it, and no
# signature bound.
_PLAIN = (int, float, str, type(None))


def _plainly_fit(
    positional: tuple[Any, ...], named: dict[str, Any], kinds: dict[str, Kind]
) -> bool:
    """Whether all arguments but `self` are plain values that fit as they are: what calls in a time
    loop mostly look like.

    False says nothing: then the call is looked at in full.
    """
    values = [*zip(kinds, positional, strict=False), *named.items()]
    if len(values) != len(positional) + len(named):
        return False
    for name, value in values:
        if name == "self":
            continue
        if type(value) not in _PLAIN or name not in kinds:
            return False
        try:
            if kinds[name].fit(value) is not value:
                return False
        except Unfit:
            return False
    return True


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Kind], int]:
    """Its signature, what its annotations stand for, and how many values may come without a
    name.
    """
    signature = inspect.signature(function)
    names, parameters = function.__globals__, signature.parameters  # type: ignore[attr-defined]
    kinds = {n: kind_of(_evaluated(p.annotation, names)) for n, p in parameters.items()}
    return signature, kinds, sum(p.kind in _PLACED for p in parameters.values())


def _evaluated(annotation: Any, names: Any) -> Any:
    """What a postponed annotation names.

    Its names are imported where it stands, not for type checkers alone.
    """
    return eval(annotation, names) if isinstance(annotation, str) else annotation


@functools.cache
def _field_kinds(cls: type[Any]) -> tuple[tuple[str, Kind], ...]:
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = vars(sys.modules[base.__module__])
        annotations |= {n: _evaluated(a, names) for n, a in inspect.get_annotations(base).items()}
    return tuple((f.name, kind_of(annotations[f.name])) for f in fields(cls))


def _argument(
    error: type[LanewiseError], function: Callable[..., Any], name: str, value: Any, kind: Kind
) -> Any:
    try:
        return kind.fit(value)
    except Unfit:
        raise error(f"{called(function)}({name}={shown(value)}): wanted {kind.wanted}") from None


# ------------------------------------------------------------ values


def shown(value: Any) -> str:
    """Any value in a few characters for a message, also one whose own text fails."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"<array of {value.dtype} with shape {value.shape}>"
    try:
        text = repr(value)
    except Exception:  # of the user's class
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def plain_function(decorator: str, value: Any) -> Any:
    """What a decorator stands above; raises `ArgumentError` for what cannot be called.

    What can be and has a name, but is no plain `def` (a wrapped function, a kernel), the frontend
    refuses with its place.
    """
    named = all(isinstance(getattr(value, n, None), str) for n in ("__name__", "__qualname__"))
    if not callable(value) or isinstance(value, type) or not named:
        raise ArgumentError(f"@lw.{decorator} stands above a function, found {shown(value)}")
    return value


def host_array(
    place: str, value: Any, error: type[LanewiseError] = ArgumentError
) -> np.ndarray[Any, Any]:
    """An array-like on the host, whatever its own methods raise.

    Refuses masked elements, which no array can say.
    """
    check_unmasked(place, value, error)
    try:
        return np.asarray(value)
    except Exception as failure:  # of the user's class, or of NumPy: lists of different lengths
        raise error(f"{place} is not an array of numbers: {failure}") from failure


def check_unmasked(place: str, value: Any, error: type[LanewiseError] = ArgumentError) -> None:
    """Refuse a masked array with masked elements: they would silently become what lies under the
    mask.
    """
    if isinstance(value, np.ma.MaskedArray) and (masked := int(np.ma.count_masked(value))):
        raise error(
            f"{place}: {masked} of {value.size} elements are masked; wanted values, for example "
            ".filled(0)"
        )


# ------------------------------------------------------------ annotations


@functools.cache
def _simple() -> dict[Any, Kind]:
    return {
        Any: Kind("anything", "anything", _same),
        object: Kind("anything", "anything", _same),
        inspect.Parameter.empty: Kind("anything", "anything", _same),
        ArrayLike: Kind("an array", "arrays", _same),
        None: Kind("None", "None", _none),
        types.NoneType: Kind("None", "None", _none),
        bool: Kind("True or False", "truth values", _truth),
        int: Kind("a whole number", "whole numbers", _whole),
        float: Kind("a number", "numbers", _number),
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


def _number(argument: Any) -> float:
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
    except OverflowError:  # a whole number beyond all floats
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


# ------------------------------------------------------------ what has a range


def plain_zero(number: float) -> float:
    """The same number, but 0.0 for -0.0, whose sign would reach texts, files and later signs."""
    return number + 0.0


def finite(value: Any) -> bool:
    """Whether a value is a real number, neither infinite nor NaN."""
    try:
        return math.isfinite(_number(value))
    except Unfit:
        return False
