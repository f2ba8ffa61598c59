"""The results of an element function, as the patterns name and check them, and what becomes of them
over pairs.
"""

from __future__ import annotations

from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.reductions import Accumulator, Reduction
from lanewise.ir.values import value_leaves
from lanewise.language import types as t
from lanewise.support.errors import CompileError


def result_arrays(lowered: Lowered) -> list[tuple[str, t.ValueType]]:
    """The names and types of the arrays that hold the results; their elements are the function's
    results with a mark in front.
    """
    reduced = lowered.reduced
    single = len(reduced) == 1
    return [
        (own("result" if single else f"result{n}"), r.gives(kind))
        for n, (kind, r) in enumerate(reduced)
    ]


def total_type(kind: t.Scalar) -> t.Scalar:
    """The type of a sum over all elements: 64 bits, of the same kind."""
    return t.F64 if kind.is_float else t.I64


def sum_name(result: str) -> str:
    """`$sum.x` for the component x of the only result, `$sum.value` for a scalar, `$sum1.x` for the
    second of several results.
    """
    return _state_name("sum", result, "")


def _state_name(word: str, result: str, part: str) -> str:
    number, _, component = result.removeprefix(own("result")).partition(".")
    if not part:
        return own(f"{word}{number}.{component or 'value'}")
    return own(f"{word}{number}.{component}.{part}" if component else f"{word}{number}.{part}")


def accumulators(lowered: Lowered) -> list[list[Accumulator]]:
    """For each result, what becomes of its components over all pairs."""
    return [
        [
            _accumulator(own(leaf), t.scalar_of(kind), reduction)
            for leaf in t.leaves(name.removeprefix(own("")), kind)
        ]
        for (name, _), (kind, reduction) in zip(
            result_arrays(lowered), lowered.reduced, strict=True
        )
    ]


def _accumulator(value: str, kind: t.Scalar, reduction: Reduction) -> Accumulator:
    parts = reduction.parts(kind)
    state = tuple(ir.Local(_state_name(reduction.word, value, p.name), p.type) for p in parts)
    return Accumulator(reduction, ir.Local(value, kind), state, tuple(p.identity for p in parts))


def stores(lowered: Lowered, index: ir.Expression) -> list[ir.StoreRecord]:
    """Write the results of one element."""
    done: list[ir.StoreRecord] = []
    for (name, kind), group in zip(result_arrays(lowered), accumulators(lowered), strict=True):
        values = [e for a in group for e in a.finish()]
        writes = zip((leaf.name for leaf in value_leaves(kind)), values, strict=True)
        done.append(ir.StoreRecord(name, index, tuple(writes)))
    return done


def check_results(lowered: Lowered) -> None:
    """Raise `CompileError` for results that cannot be summed."""
    for kind, reduction in lowered.reduced:
        if reduction.refuses(kind) and t.scalar_of(kind) == t.BOOL:
            raise CompileError(
                "the results of a pairwise function are summed",
                lowered.function.location,
                found=f"a result of type {kind}",
                wanted="numbers",
                hint="-> lw.Count counts the sources for which it holds; lw.Any and lw.All say "
                "whether it holds",
            )
