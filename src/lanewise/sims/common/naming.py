"""Classes of products that take most of their arguments by name say so, when they are given one more without."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from lanewise.support.checks import shown
from lanewise.support.errors import LanewiseError, shortened

F = TypeVar("F", bound=Callable[..., Any])


def by_name(error: type[LanewiseError]) -> Callable[[F], F]:
    """Of an `__init__`: arguments that have to be named and are not raise `error`, which names them."""

    def decorate(function: F) -> F:
        parameters = list(inspect.signature(function).parameters.values())[1:]  # without self
        plain = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        named = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]

        @functools.wraps(function)
        def call(self: Any, *positional: Any, **keywords: Any) -> Any:
            if len(positional) > len(plain):
                further = positional[len(plain) :]
                free = [n for n in named if n not in keywords]
                wanted = ", ".join(f"{n}={shown(v)}" for n, v in zip(free, further, strict=False))
                only = (
                    f"only {' and '.join(p.name for p in plain)} without its name" if plain else "all arguments by name"
                )
                raise error(
                    f"{type(self).__name__} takes {only}; found {', '.join(map(shown, further))}; wanted "
                    f"{wanted or 'fewer arguments'}"
                )
            try:
                return function(self, *positional, **keywords)
            except LanewiseError as raised:
                raise shortened(raised)  # noqa: B904  (its own cause stays)

        return typing.cast(F, call)

    return decorate
