"""Run a sitewise function in the ways that must agree: as ordinary Python on NumPy arrays, and lowered, in the
interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.frontend.function import Lowered, lower_function, read_signature
from lanewise.ir.functions import functions
from lanewise.ir.interpret import call
from lanewise.ir.verify import verify_function
from lanewise.language import types as t
from lanewise.language.lattices import Lattice
from lanewise.language.values import to_python_value

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def lowered(function: Function, lattice: Lattice) -> Lowered:
    """The function of a site of a lattice, which may change its populations."""
    signature = read_signature(function, populations=True)
    result = lower_function(signature, mutable=next(iter(signature.populations)), lattice=lattice)
    if not functions(result.function.body):  # helpers for several directions have their own names only in a kernel
        verify_function(result.function)
    return result


def interpret(function: Function, lattice: Lattice, f: Array, values: dict[str, Any]) -> tuple[Array, list[Any]]:
    """The populations afterwards and the scalars that the function returns."""
    code = lowered(function, lattice).function
    signature = read_signature(function, populations=True)
    (name,) = signature.populations
    given = {f"{name}.q{q.index}": f[q] for q in lattice}
    for parameter, kind in signature.parameters.items():
        assert isinstance(kind, (t.Scalar, t.Vector))
        value = to_python_value(values[parameter], kind)
        leaves = t.leaves(parameter, kind)
        given |= dict(zip(leaves, value if isinstance(kind, t.Vector) else (value,), strict=True))
    results, after = call(code, {p.name: given[p.name] for p in code.parameters})
    changed = {p.name for p in code.parameters if p.mutable}
    return np.array([after[n] if (n := f"{name}.q{q.index}") in changed else f[q] for q in lattice]), results


def run_python(function: Function, f: Array, values: dict[str, Any]) -> tuple[Array, list[Any]]:
    """The same in ordinary Python."""
    signature, after = read_signature(function, populations=True), f.copy()
    given = {n: to_python_value(values[n], kind) for n, kind in signature.parameters.items()}  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        result = function(after, **given)
    several = [] if result is None else list(result) if isinstance(result, tuple) else [result]
    typed = [to_python_value(x, kind) for x, kind in zip(several, signature.results or [], strict=True)]
    return after, [p for x in typed for p in (x if np.ndim(x) else (x,))]


def agree(function: Function, lattice: Lattice, f: Array, **values: Any) -> tuple[Array, list[Any]]:
    """Assert that both ways give the same numbers, bit by bit but for the sign of zeros; what they give."""
    python, interpreted = run_python(function, f, values), interpret(function, lattice, f, values)
    for found, wanted in zip(interpreted, python, strict=True):
        assert [type(x) for x in found] == [type(x) for x in wanted]
        np.testing.assert_array_equal(found, wanted)
    return interpreted


@dataclass(frozen=True)
class SiteKernel:
    """What a decorator makes of a function of one site."""

    function: Function
    lattice: Lattice

    @property
    def lowered(self) -> Lowered:
        return lowered(self.function, self.lattice)


def site(lattice: Lattice) -> Callable[[Function], SiteKernel]:
    """A decorator, for modules from text."""
    return lambda function: SiteKernel(function, lattice)
