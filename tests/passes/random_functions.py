"""Random pair functions, and kernels of them: for passes that must keep the meaning of any function."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import lanewise as lw
from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.ir.verify import verify_kernel
from lanewise.language.types import F64, I64
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.task_list import BoundArray
from lanewise.passes import constant_folding, dead_code
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.patterns.results import result_arrays
from tests.harness import Array, run_kernel


@lw.record
class Pearl:
    a: lw.f64
    b: lw.f64


LEAVES = ("target.a", "target.b", "source.a", "source.b", "e", "k")
UNIFORMS = {"e": 3.0, "k": 5.0}
Pick = st.DrawFn


def _expression(draw: Pick, names: list[str], operators: str, depth: int) -> ir.Expression:
    """A random expression of these variables; `r` stands for the square root, `n` for the sign."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if draw(st.integers(0, 7)) == 0:
            return ir.Literal(draw(st.sampled_from([1.0, 2.0, 3.0])), F64)
        return ir.Local(draw(st.sampled_from(names)), F64)
    operator = draw(st.sampled_from(operators))
    left = _expression(draw, names, operators, depth - 1)
    if operator == "r":
        return ir.Call("sqrt", (left,), F64)
    if operator == "n":
        return ir.Unary("-", left, F64)
    return ir.Binary(operator, left, _expression(draw, names, operators, depth - 1), F64)  # type: ignore[arg-type]


def _block(draw: Pick, names: list[str], operators: str, prefix: str) -> ir.Block:
    """Assignments to new variables, which are known afterwards."""
    assigns: list[ir.Statement] = []
    for n in range(draw(st.integers(0, 4))):
        assigns.append(ir.Assign(f"{prefix}{n}", _expression(draw, names, operators, 2)))
        names.append(f"{prefix}{n}")
    return tuple(assigns)


@st.composite
def pair_functions(draw: Pick, operators: str) -> ir.Function:
    """Variables, perhaps a branch that returns early, perhaps a variable that is assigned again, two results."""
    names = list(LEAVES)
    body = _block(draw, names, operators, "v")

    def results(known: list[str]) -> ir.Return:
        return ir.Return(tuple(_expression(draw, known, operators, 3) for _ in range(2)))

    if draw(st.booleans()):
        inner = list(names)
        early = _block(draw, inner, operators, "w")
        condition = ir.Compare("<", *(_expression(draw, names, operators, 1) for _ in range(2)))
        body += (ir.If(condition, (*early, results(inner))),)
    if names[-1].startswith("v") and draw(st.booleans()):
        body += (ir.Assign(names[-1], _expression(draw, names, operators, 1)),)
    body += (*_block(draw, names, operators, "x"), results(names))
    parameters = tuple(ir.Parameter(n, F64) for n in LEAVES)
    return ir.Function("random", parameters, (ir.Parameter("result0", F64), ir.Parameter("result1", F64)), body)


def kernel_of(function: ir.Function) -> ir.Kernel:
    """The reference kernel of a pair function over one array, without what is unread."""
    lowered = Lowered(function, (F64, F64), False)
    record: Any = Pearl
    pair = [(n, record.__record__, lw.SoA()) for n in ("target", "source")]
    reference = build_pairwise(lowered, PairwiseArguments(pair[0], pair[1], dict.fromkeys(UNIFORMS, F64), True), I64)
    return dead_code.apply(constant_folding.apply(reference))


def run(kernel: ir.Kernel, seed: int, count: int = 3) -> list[Array]:
    """Its two results on small integers from 1 on: sums of products of them are exact."""
    verify_kernel(kernel)
    rng = np.random.default_rng(seed)
    record: Any = Pearl
    pearls = record.array(a=rng.integers(1, 6, count), b=rng.integers(1, 6, count), layout=lw.SoA())
    bound = {n: BoundArray(pearls.data, pearls.arrangement, count) for n in ("target", "source")}
    results = [np.zeros(count) for _ in range(2)]
    lowered = Lowered(ir.Function("random", (), (), ()), (F64, F64), False)
    for (name, kind), array in zip(result_arrays(lowered), results, strict=True):
        bound[name] = bind_value_array(array, kind)
    run_kernel(kernel, bound, {**UNIFORMS, **{count_of(n): count for n in ("target", "source")}})
    return results
