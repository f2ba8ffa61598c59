"""What default plans and estimates ask of a kernel and its launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from lanewise.analysis.length import length
from lanewise.compiler.lengths import check_calls
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.interpret import whole_of
from lanewise.ir.pattern import Work
from lanewise.ir.reductions import accumulators_of, reorders
from lanewise.ir.traverse import expressions, reads, statements, subexpressions
from lanewise.language.target import CUDA, Target
from lanewise.layouts import SoA
from lanewise.passes import (
    constant_folding,
    dead_code,
    fma_rearrangement,
    normal_form,
    reciprocity,
    shared_memory,
)

_SHORT = frozenset(
    {
        "rsqrt",
        "fma",
        "min",
        "max",
        "abs",
        "clamp",
        "mix",
        "isnan",
        "isinf",
        "isfinite",
        "floor",
        "ceil",
        "trunc",
        "round",
    }
)

_LENGTHY = frozenset({"sin", "cos", "tan"})  # with the reduction of large arguments written out


def describe_work(reference: ir.Kernel, targets: int, target: Target = CUDA) -> Work:
    """The work of a reference kernel on that many elements, on such a device."""
    simple = dead_code.apply(constant_folding.apply(reference))
    check_calls(simple)  # before analyses that follow every call
    written, normal = simple, normal_form.apply(simple, target)
    more = normal_form.points_of(simple, normal)
    if normal is not simple:
        reference = simple = normal
    # What a reduction does without rounding has the same bits in all plans, if they leave the
    # function's arithmetic alone.
    exact = any(a.reduction.exact for a in reference.reductions)
    rearranged = not exact and fma_rearrangement.legal(simple) is None
    if not reference.pattern.over_pairs:
        suggest, describe = reference.pattern.suggest, reference.pattern.describe
        plans = suggest(simple, target, written) if suggest and target.compiled else None
        work = Work(
            reference.pattern,
            targets,
            rearranged=rearranged,
            suggested=plans,
            length=length(simple),
            points=None if more is None else _number_of(more),
            estimates=estimates_roots(simple.body),
        )
        return work if describe is None else describe(reference, work)
    used = [x for f in functions(simple.body) for x in _all_expressions(f.body)]
    results = [x for a in reference.arrays if a.written for x in a.leaves]
    source = reference.arrays[1]
    both_ways, exchanges = _both_ways(simple)
    return Work(
        reference.pattern,
        targets,
        wide=any(x.type.size == 8 for x in results),
        strided=source.arrangement != SoA().arrange(source.leaves),
        rearranged=rearranged,
        both_ways=both_ways,
        exchanges=exchanges,
        regrouped=reorders(reference),
        chooses=any(a.reduction.exact for a in reference.reductions),
        converts=any(isinstance(x, ir.Cast) for x in used),
        sequences=any(map(_is_sequence, used)),
        lengthy=any(isinstance(x, ir.Call) and x.intrinsic in _LENGTHY for x in used),
        result_bytes=sum(x.type.size for x in results),
        state_bytes=sum(x.type.size for a in accumulators_of(reference) for x in a.state)
        or sum(x.type.size for x in results),
        source_bytes=_source_bytes(simple),
        length=length(simple),
        estimates=estimates_roots(simple.body),
    )


def estimates_roots(block: ir.Block) -> bool:
    """Whether there is an `rsqrt` of float32, in the functions that a block applies as well."""
    bodies = block, *(f.body for f in functions(block))
    return any(
        isinstance(x, ir.Call) and x.intrinsic == "rsqrt" and x.arguments[0].type.size == 4
        for body in bodies
        for x in _all_expressions(body)
    )


def _number_of(e: ir.Expression) -> Callable[[Mapping[str, Any]], int]:
    """What gives a number of counts and uniforms, which is at least 1."""
    names, number = tuple(dict.fromkeys(reads(e))), whole_of(e)
    return lambda environment: max(1, number({n: np.int64(environment[n]) for n in names}))


def _source_bytes(kernel: ir.Kernel) -> int:
    """Whole groups of 16 bytes, and more where gaps within them take more."""
    loads = [
        s
        for s in statements(kernel.body)
        if isinstance(s, ir.LoadRecord) and s.array == kernel.arrays[1].name
    ]
    read = {leaf for s in loads for leaf, _ in s.reads}
    leaves = tuple(x for x in kernel.arrays[1].leaves if x.name in read)
    return max(
        -(-sum(x.type.size for x in leaves) // 16) * 16,
        shared_memory.bytes_of_source(leaves) if leaves else 0,
    )


def _all_expressions(block: ir.Block) -> Iterator[ir.Expression]:
    return (x for s in statements(block) for e in expressions(s) for x in subexpressions(e))


def _is_sequence(e: ir.Expression) -> bool:
    """Whether an operation takes many instructions, one after the other."""
    match e:
        case ir.Binary(operator="/" | "//" | "%"):
            return not isinstance(e.right, ir.Literal)
        case ir.Call():
            return e.intrinsic not in _SHORT
        case _:
            return False


def _both_ways(kernel: ir.Kernel) -> tuple[int, bool]:
    """Operations of a pair from both sides, 0 where there is no reciprocity, and whether a default
    plan may have it.
    """
    reference = reciprocity.examine(kernel)
    if isinstance(reference, str):
        return 0, False
    reductions = reference.accumulators
    # States of several scalars cost more on their way around the warp than the function saves
    # (bench/results/gpu_both_ways.md).
    light = all(len(a.state) == 1 for a in reductions)
    kept = reference.both.same_bits or not any(a.reduction.exact for a in reductions)
    return reference.both.together, light and kept
