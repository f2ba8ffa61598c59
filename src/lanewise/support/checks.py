"""What users hand in, checked where it enters: types by the annotations of what they call, arrays
from anywhere.

`@checked` stands above constructors, methods and functions that users call. Numbers of NumPy become
Python's, sequences tuples. What is out of range is checked by the callee. A value without a name
for a parameter that has to be named is refused with that name. Any other call that Python itself
refuses (a missing or unknown argument) stays Python's TypeError, raised at the call.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

import numpy as np

from lanewise.support.errors import ArgumentError, ArgumentTypeError, LanewiseError, shortened
from lanewise.support.kinds import Kind, Unfit, kind_of, number_kind
from lanewise.support.near import misspelled

F = TypeVar("F", bound=Callable[..., Any])
LARGEST = sys.float_info.max
LONGEST = 60  # characters of a value in a message


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
                    refuse_unnamed(called(function), signature, positional, named, error, kinds)
                    if (meant := misspelled(function, called(function), named)) is not None:
                        raise meant from None
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
    error: type[LanewiseError], takes: Mapping[str, Kind],
) -> None:  # fmt: skip
    """Refuse values without a name for parameters that have one: the message names those that take
    them.

    signature: of the function or method that is called; positional: with `self`, where it has one.
    takes: what a parameter is; one that is not among them takes anything.
    """
    kinds = {n: p.kind for n, p in signature.parameters.items()}
    settings = [n for n, k in kinds.items() if k is inspect.Parameter.KEYWORD_ONLY]
    placed = [n for n, k in kinds.items() if k in _PLACED]
    further = positional[len(placed) :]
    if not (settings and further) or inspect.Parameter.VAR_POSITIONAL in kinds.values():
        return
    plain = [n for n in placed if n not in ("self", "cls")]
    free = [n for n in settings if n not in named]
    wanted = f"its settings are {', '.join(free)}" if free else "wanted fewer arguments"
    parameters = signature.parameters
    needed = {n for n in free if parameters[n].default is inspect.Parameter.empty}
    proposed = _proposed(free, further, takes)
    if proposed and needed <= proposed.keys():
        wanted = f"wanted {', '.join(f'{n}={shown(v)}' for n, v in proposed.items())}"
    only = f"only {' and '.join(plain)} without a name" if plain else "all arguments by name"
    found = ", ".join(map(shown, further))
    kind = ArgumentTypeError if error is ArgumentError else error
    raise kind(f"{what} takes {only}; found {found}; {wanted}")


def _proposed(
    names: Sequence[str], values: Sequence[Any], takes: Mapping[str, Kind]
) -> dict[str, Any]:
    """Each value by the first name that takes it; nothing where one has none."""
    found: dict[str, Any] = {}
    for value in values:
        left = (n for n in names if n not in found)
        name = next((n for n in left if n not in takes or _fits(takes[n], value)), None)
        if name is None:
            return {}
        found[name] = value
    return found


def _fits(kind: Kind, value: Any) -> bool:
    """Whether it is that kind of value; of None nothing tells what it was meant for."""
    try:
        if value is not None:
            kind.fit(value)
    except Unfit:
        return False
    return True


def refuse_given(kernel: str, given: Sequence[Any], named: Mapping[str, Any]) -> NoReturn:
    """Refuse arguments of a bound call, which has all of them already."""
    found = ", ".join([*map(shown, given), *(f"{n}={shown(v)}" for n, v in named.items())])
    raise shortened(
        ArgumentTypeError(
            f"{kernel}: a bound call takes no arguments, found {found}; it has those that it was "
            "bound with: write new numbers into its arrays, or bind another call"
        )
    )


_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _fit(
    bound: inspect.BoundArguments,
    error: type[LanewiseError],
    function: Callable[..., Any],
    kinds: Mapping[str, Kind],
) -> None:
    """Replace the arguments by values that fit."""
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
        check_unmasked(f"{cls.__name__}({name})", value, error)
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


def kinds_of(function: Callable[..., Any]) -> Mapping[str, Kind]:
    """What its annotations stand for; nothing where one names what only type checkers import."""
    try:
        return _parameters(function)[1]
    except NameError:
        return {}


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Kind], int]:
    """Its signature, what its annotations stand for, and how many values may come without a
    name.
    """
    signature = inspect.signature(function)
    names: Any = inspect.unwrap(function).__globals__  # type: ignore[attr-defined]
    parameters = signature.parameters
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
    check_unmasked(f"{called(function)}({name})", value, error)
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


# ------------------------------------------------------------ what has a range


def plain_zero(number: float) -> float:
    """The same number, but 0.0 for -0.0, whose sign would reach texts, files and later signs."""
    return number + 0.0


def finite(value: Any) -> bool:
    """Whether a value is a real number, neither infinite nor NaN."""
    try:
        return math.isfinite(number_kind(value))
    except Unfit:
        return False
