"""The test for a pair of an element with itself: out of the loop over sources.

    for j in range(m): sum += f(t, s, same = i == j)
"loops"  ->  for j in range(0, min(i, m)): sum += f(t, s, same = False)
             for j in range(i + 1, m):     sum += f(t, s, same = False)
"drop"   ->  for j in range(m): sum += f(t, s, same = False) Both need a proof that the term with
the test is zero, because the sum continues without it. "drop" also needs a proof that it is zero
without the test (softening does that), so that adding it changes nothing. A proof may hold for some
values of the uniforms only: `proof` gives the conditions, which are checked when the arguments of a
call are bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from lanewise.analysis.self_term import Proof, violated, zero_self_term
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.functions import map_functions
from lanewise.ir.names import own
from lanewise.ir.reductions import accumulators_of
from lanewise.ir.traverse import flat_map, rewrite_block, statements
from lanewise.passes import constant_folding, dead_code
from lanewise.passes.base import chosen, has_tiles, is_source_loop, refuse, source_loops
from lanewise.support.errors import PlanError

Choice = Literal["test", "loops", "drop"]
SAME = own("same")


def proof(kernel: ir.Kernel, choice: Choice) -> Proof | str:
    """The proof that the choice requires, or why there is none."""
    if choice == "test":
        return Proof()
    if choice not in ("loops", "drop"):
        return f"'test', 'loops' or 'drop' was wanted, found {choice!r}"
    test = _test(kernel)
    if isinstance(test, str):
        return test
    for a in accumulators_of(kernel):
        if not a.reduction.zero_is_identity:
            return (
                f"a pair whose value is zero counts for {a.reduction.word}: it cannot be left out"
            )
    function, (target, source) = test.function, (a.name for a in kernel.arrays[:2])
    with_test = zero_self_term(function, target, source, same=True)
    if isinstance(with_test, str):
        return f"its value for a pair of an element with itself is not zero: {with_test}"
    if choice == "loops":
        return with_test
    without = zero_self_term(function, target, source, same=False)
    if isinstance(without, str):
        return (
            "without the test, its value for a pair of an element with itself is not zero: "
            f"{without}"
        )
    return Proof(tuple(dict.fromkeys(with_test.conditions + without.conditions)))


def legal(kernel: ir.Kernel, choice: Choice, targets: int, tile: int) -> str | None:
    """Why the pass does not apply, or None.

    `targets` a thread and `tile` are what the rest of the plan asks for.
    """
    reason = proof(kernel, choice)
    if isinstance(reason, str):
        return reason
    if choice == "loops" and (targets != 1 or tile or has_tiles(kernel)):
        return (
            "each target leaves out another source, which needs Plan(targets=1, tile=0), found "
            f"targets={targets}, tile={tile}"
        )
    return None


def apply(kernel: ir.Kernel, choice: Choice, targets: int, tile: int) -> ir.Kernel:
    """Take the test out; raises `PlanError` when the term is not proved to be zero.

    The kernel is not tiled or merged yet.
    """
    if reason := legal(kernel, choice, targets, tile):
        raise refuse("if-elimination", kernel, reason)
    if choice == "test":
        return kernel
    if choice == "loops":
        kernel = replace(kernel, body=flat_map(kernel.body, chosen(is_source_loop, _two_loops)))
    return dead_code.apply(constant_folding.apply(map_functions(kernel, _without_test)))


def has_test(kernel: ir.Kernel) -> bool:
    """Whether the kernel tests for a pair of an element with itself."""
    return not isinstance(_test(kernel), str)


def check(name: str, choice: Choice, proof: Proof, uniforms: Mapping[str, Any]) -> None:
    """Raise `PlanError` when the proof does not hold for the values (by name) of a call of the
    kernel `name`.
    """
    if problem := violated(proof, uniforms):
        raise PlanError(
            f"Plan(self_term={choice!r}): {name} may not leave out its test for a pair of an "
            f"element with itself: {problem}; "
            "choose self_term='test'"
        )


def _test(kernel: ir.Kernel) -> ir.Apply | str:
    """The application of the pair function with its test, or why there is none."""
    if not kernel.pattern.over_pairs or not source_loops(kernel):
        return "it has no loop over sources"
    for s in statements(kernel.body):
        if isinstance(s, ir.Apply) and any(p.name == SAME for p in s.function.parameters):
            if isinstance(s.arguments[-1], ir.Literal):
                return "its target and source are different arrays"
            return s
    return "it has no test for a pair of an element with itself"


def _two_loops(s: ir.Statement) -> ir.Block:
    """The sources in front of the target's own index, and those behind it.

    A target past the end must not lead past the end.
    """
    assert isinstance(s, ir.For)
    test = next(x.arguments[-1] for x in s.body if isinstance(x, ir.Apply))
    assert isinstance(test, ir.Compare)
    i = test.left
    return replace(s, stop=build.minimum(i, s.stop)), replace(s, start=build.add(i, 1))


def _without_test(f: ir.Function) -> ir.Function:
    """The function in which no pair is one of an element with itself; `map_functions` drops the
    argument with the parameter.
    """

    def answer(e: ir.Expression) -> ir.Expression:
        return build.FALSE if isinstance(e, ir.Local) and e.name == SAME else e

    return replace(
        f,
        body=rewrite_block(f.body, answer),
        parameters=tuple(p for p in f.parameters if p.name != SAME),
    )
