"""`@function`: a helper that kernels call, and that stays an ordinary Python function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lanewise.attributes import sealed
from lanewise.checks import plain_function
from lanewise.naming import by_name


@sealed()
class HelperFunction:
    """A function that kernels may call. Parameters without a type take the type of the argument."""

    __lanewise_function__ = True
    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function, updated=())

    @property
    def function(self) -> Callable[..., Any]:
        """The function, as it was written."""
        return self._function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<lanewise function {self.__name__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name(self, (HelperFunction, (self.function,)))

    def __copy__(self) -> HelperFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> HelperFunction:
        return self


def function(python_function: Callable[..., Any]) -> HelperFunction:
    """Let kernels call a function: `@lw.function def square(x): return x * x`."""
    return HelperFunction(plain_function("function", python_function))
