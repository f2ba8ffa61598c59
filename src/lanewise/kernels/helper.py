"""`@function`: a helper that kernels call, and that stays an ordinary Python function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class HelperFunction:
    """A function that kernels may call. Parameters without a type take the type of the argument."""

    __lanewise_function__ = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def function(python_function: Callable[..., Any]) -> HelperFunction:
    """Let kernels call a function: `@lw.function def square(x): return x * x`."""
    return HelperFunction(python_function)
