"""Attributes that act or refuse: no assignment is accepted and then does nothing."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

from lanewise.support.checks import called, kinds_of, refuse_unnamed, shown
from lanewise.support.errors import ArgumentTypeError, LanewiseError, brief, shortened
from lanewise.support.near import meant_by
from lanewise.support.near import near as near

C = TypeVar("C", bound=type[Any])
F = TypeVar("F", bound=Callable[..., Any])
NOTHING: Mapping[str, str] = MappingProxyType({})
MOST_NAMES = 4096  # whose descriptors are remembered: products assign some in every call
MOST_TRIED = 1000  # ways to give names to values without one, of which one is looked for


def unknown(what: str, name: object, names: Iterable[str], *, more: str = "") -> str:
    """`unknown integrator 'leepfrog'; did you mean 'leapfrog'? wanted one of euler, leapfrog`;
    more: what stands after the names.
    """
    listed = list(names)
    asked = near(name, listed) if isinstance(name, str) else ""
    return f"unknown {what} {name!r}{asked or ';'} wanted one of {', '.join(listed)}{more}"


def public_names(cls: type[Any]) -> list[str]:
    """What users may ask an object of a class for."""
    return [n for n in dir(cls) if not n.startswith("_")]


def sealed(reasons: Mapping[str, str] = NOTHING, *, made: str = "") -> Callable[[C], C]:
    """A class decorator: only slots and properties with a setter are assigned; all else raises
    `AttributeError`.

    A class without slots keeps what is its own under names with an underscore before them, and
    nothing else.

    reasons: why an attribute cannot be assigned, and what to do instead, by its name; made: the
    same of all others.
    """

    def seal(cls: C) -> C:
        free = "__slots__" not in vars(cls)

        def assign(self: Any, name: str, value: Any, /) -> None:
            if free and name.startswith("_"):
                object.__setattr__(self, name, value)
                return
            if (slot := _assignable(cls, name)) is None:
                raise AttributeError(_refusal(cls, name, reasons, made))
            try:
                slot.__set__(self, value)
            except LanewiseError as error:
                raise shortened(error)  # noqa: B904  (its own cause stays)

        def remove(self: Any, name: str, /) -> None:
            raise AttributeError(f"attributes of {cls.__name__} cannot be deleted, found {name!r}")

        for special, function in (("__setattr__", assign), ("__delattr__", remove)):
            setattr(cls, special, function)
        return cls

    return seal


def _take_names_only(cls: type[Any], names: list[str]) -> None:
    """Have a class whose fields are keywords refuse others in words."""
    fill: Any = cls.__init__
    signature = inspect.signature(fill)

    @functools.wraps(fill)
    def make(self: Any, *positional: Any, **named: Any) -> None:
        what = type(self).__name__
        if positional:
            asked = _meant_first(signature, type(self), names, positional, named)
            if asked is None:
                found = ", ".join(map(shown, positional))
                raise ArgumentTypeError(
                    f"{what} takes all arguments by name; found {found}; its settings are "
                    f"{', '.join(n for n in names if n not in named)}"
                )
            refuse_unnamed(what, asked, (self, *positional), named, ArgumentTypeError, {})
        for name in named:
            if name not in names:
                others = f"; its settings are {', '.join(names)}"
                raise ArgumentTypeError(
                    f"{what} has no setting {name!r}{near(name, names) or others}"
                )
        fill(self, **named)

    cls.__init__ = make


def _meant_first(
    signature: inspect.Signature,
    cls: type[Any],
    names: Sequence[str],
    positional: Sequence[Any],
    named: Mapping[str, Any],
) -> inspect.Signature | None:
    """The signature with those settings first that a class takes these values for: what an error
    proposes shall be no error. None where there are none, or too many ways to try.
    """
    free = [n for n in names if n not in named]
    if math.perm(len(free), len(positional)) > MOST_TRIED:
        return None
    for chosen in itertools.permutations(free, len(positional)):
        try:
            cls(**dict(zip(chosen, positional, strict=True)), **named)
        except Exception:  # of lanewise, or Python's own where something else is missing
            continue
        parameters = signature.parameters
        first = sorted(parameters.values(), key=lambda p: _place(p, chosen))
        return signature.replace(parameters=first)
    return None


def _place(parameter: inspect.Parameter, chosen: Sequence[str]) -> int:
    """Of a parameter among all: `self` stands in front, those that are not chosen behind."""
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return -1
    return chosen.index(parameter.name) if parameter.name in chosen else len(chosen)


def settings_by_name(
    function: F, more: Callable[[Sequence[Any]], Iterable[str]] = lambda _: ()
) -> F:
    """A decorator above a function that takes some settings by their names alone, and is not
    `checked`.

    A name that it does not have, and what is missing, stays Python's own TypeError, which names the
    parameter. more: further names that values without one may have meant, by these values.
    """
    signature, what = inspect.signature(function), called(function).removeprefix("RecordValue.")
    every = signature.parameters.values()
    placed = [p for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    others = [p for p in every if p not in placed]

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        try:
            if len(positional) > len(placed):
                own = [
                    inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in more(positional)
                ]
                whole = signature.replace(parameters=[*placed, *own, *others])
                takes = kinds_of(function)
                refuse_unnamed(what, whole, positional, named, ArgumentTypeError, takes)
            return function(*positional, **named)
        except LanewiseError as error:
            raise shortened(error)  # noqa: B904  (its own cause stays)
        except TypeError as error:
            if (meant := meant_by(error, function, called(function), named)) is None:
                raise
            raise meant from None

    return cast(F, call)


def fields_by_name(unnamed: int, method: str = "") -> Callable[[F], F]:
    """A decorator above what makes records from fields: values without a name beyond `unnamed` are
    refused in words, since fields have no order that a reader would see.
    """

    def above(function: F) -> F:
        @functools.wraps(function)
        def call(made: Any, /, *positional: Any, **named: Any) -> Any:
            if len(positional) > unnamed:
                cls: Any = made if isinstance(made, type) else type(made)
                fields = ", ".join(f"{f.name}=..." for f in cls.__record__.fields)
                raise ArgumentTypeError(
                    f"{cls.__name__}{method} takes fields by their names, {fields}; found "
                    f"{len(positional)} value{'s' * (len(positional) > 1)} without a name"
                )
            return function(made, *positional, **named)

        return cast(F, call)

    return above


def frozen(cls: C) -> C:
    """A decorator above a frozen dataclass: assignments are refused in words, also of names that it
    does not have.
    """
    known = dataclasses.fields(cls)  # without class variables
    fields = tuple(f.name for f in known)
    named = [f for f in known if f.init]
    if named and all(f.kw_only for f in named):
        _take_names_only(cls, [f.name for f in named])
    if hasattr(cls, "__post_init__"):
        cls.__init__ = brief(cls.__init__)

    def assign(self: Any, name: str, value: Any, /) -> None:
        if name in fields:
            raise dataclasses.FrozenInstanceError(
                f"{cls.__name__}.{name} cannot be assigned: dataclasses.replace(..., {name}=...) "
                f"makes another {cls.__name__}"
            )
        has = f"its fields are {', '.join(fields)}" if fields else "it has no fields"
        raise dataclasses.FrozenInstanceError(
            f"{cls.__name__} has no field {name!r} and is frozen{near(name, fields) or f'; {has}'}"
        )

    def remove(self: Any, name: str, /) -> None:
        raise dataclasses.FrozenInstanceError(
            f"{cls.__name__} is frozen: {name!r} cannot be deleted"
        )

    for special, function in (("__setattr__", assign), ("__delattr__", remove)):
        setattr(cls, special, function)
    return cls


@functools.lru_cache(MOST_NAMES)
def _assignable(cls: type[Any], name: str) -> Any:
    """The slot, the property or another descriptor of a name, or None where nothing can be
    assigned.
    """
    descriptor = inspect.getattr_static(cls, name, None)
    if isinstance(descriptor, property) and descriptor.fset is None:
        return None
    return (
        descriptor if inspect.isdatadescriptor(descriptor) and not name.startswith("__") else None
    )


def _refusal(cls: type[Any], name: str, reasons: Mapping[str, str], made: str) -> str:
    names = public_names(cls)
    if name not in names:
        settings = [n for n in names if _assignable(cls, n) is not None]
        can = f"; what can be set is {', '.join(settings)}" if settings else ""
        return f"{cls.__name__} has no attribute {name!r}{near(name, names) or can}"
    reason = reasons.get(name, made)
    return f"{cls.__name__}.{name} cannot be assigned" + (f": {reason}" if reason else "")


def describe(thing: object, about: str) -> None:
    """Give an object that users name its own docstring, besides that of its class: `help` shows
    it.
    """
    if about:
        object.__setattr__(thing, "__doc__", about)
