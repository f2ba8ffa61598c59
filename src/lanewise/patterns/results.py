"""The results of an element function, as the patterns name and check them."""

from __future__ import annotations

from lanewise import types as t
from lanewise.errors import CompileError
from lanewise.frontend.function import Lowered
from lanewise.ir.names import own


def result_arrays(lowered: Lowered) -> list[tuple[str, t.ValueType]]:
    """The names and types of the arrays that hold the results; their elements are the function's results with a mark in front."""
    single = len(lowered.results) == 1
    return [(own("result" if single else f"result{n}"), kind) for n, kind in enumerate(lowered.results)]


def total_type(kind: t.Scalar) -> t.Scalar:
    """The type of a sum over all elements: 64 bits, of the same kind."""
    return t.F64 if kind.is_float else t.I64


def sum_name(result: str) -> str:
    """`$sum.x` for the component x of the only result, `$sum.value` for a scalar, `$sum1.x` for the second of several results."""
    number, _, component = result.removeprefix(own("result")).partition(".")
    return own(f"sum{number}.{component or 'value'}")


def check_results(lowered: Lowered) -> None:
    """Raise `CompileError` for results that cannot be summed."""
    for kind in lowered.results:
        if t.scalar_of(kind) == t.BOOL:
            raise CompileError(
                "the results of a pairwise function are summed", lowered.function.location, found=f"a result of type {kind}",
                wanted="numbers", hint="lw.i32(condition) counts the sources for which it holds",
            )  # fmt: skip
