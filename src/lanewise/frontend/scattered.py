"""The arrays that a function scatters to, by its text: what a call writes is known before anything
is compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from lanewise.frontend.source import Source
from lanewise.ir import nodes as ir
from lanewise.language.array_types import ArrayType


def operation_of(value: Any) -> ir.ScatterOperation | None:
    """What a function scatters, or None for one that does not."""
    return getattr(value, "__lanewise_scatter__", None) if callable(value) else None


def scattered_arrays(source: Source) -> set[str]:
    """The names that a function hands to scatters first."""
    return {s.array for s in _scatters(source)}


def summed_arrays(
    source: Source, arrays: Mapping[str, ArrayType], *, on_gpu: bool = False
) -> set[str]:
    """The arrays of floats that a function adds to exactly.

    on_gpu: all that it adds to: threads of a GPU add in any order, of which exact sums know
    nothing.
    """
    added = {s.array for s in _scatters(source) if s.operation == "add" and (s.exact or on_gpu)}
    return {n for n in added if n in arrays and arrays[n].element.is_float}


def adds_in_order(source: Source, arrays: Mapping[str, ArrayType]) -> bool:
    """Whether a function adds floats to elements one after the other, on a CPU."""
    return any(
        s.operation == "add"
        and not s.exact
        and s.array in arrays
        and arrays[s.array].element.is_float
        for s in _scatters(source)
    )


def is_exact(call: ast.Call) -> bool:
    """Whether a scatter does not say `exact=False`."""
    return not any(
        k.arg == "exact" and isinstance(k.value, ast.Constant) and k.value.value is False
        for k in call.keywords
    )


@dataclass(frozen=True, slots=True)
class _Scatter:
    array: str
    operation: ir.ScatterOperation
    exact: bool


@lru_cache(maxsize=256)
def _scatters(source: Source) -> tuple[_Scatter, ...]:
    """The scatters of a function: every call asks for them."""
    calls = [
        n
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Call) and n.args and isinstance(n.args[0], ast.Name)
    ]
    names = source.names() if calls else {}
    made: list[_Scatter] = []
    for call in calls:
        operation = operation_of(_value(call.func, names))
        if operation and isinstance(array := call.args[0], ast.Name):
            made.append(_Scatter(array.id, operation, is_exact(call)))
    return tuple(made)


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a name with attributes stands for; None for anything else."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    return (
        reduce(lambda x, n: getattr(x, n, None), path, names.get(node.id))
        if isinstance(node, ast.Name)
        else None
    )
