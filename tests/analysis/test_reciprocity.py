"""Which pair functions need be computed once for both directions, and which need not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.both_ways import BothWays, both_ways
from lanewise.analysis.value_numbering import Value, ValueTable, number_function


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    charge: lw.f32


@lw.function
def inverse_distance(d, softening2):  # type: ignore[no-untyped-def]
    return lw.rsqrt(lw.dot(d, d) + softening2)


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = inverse_distance(d, softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def coulomb(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = target.position - source.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return target.charge * source.charge * inv**3 * d


@lw.pairwise
def yukawa(target: Body, source: Body, kappa: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0)
    d = source.position - target.position
    r = lw.length(d)
    return source.charge * lw.exp(-kappa * r) * (1 / r + kappa) / (r * r) * d


@lw.pairwise
def lennard_jones(target: Body, source: Body, cutoff2: lw.f32) -> lw.vec3:
    d = target.position - source.position
    r2 = lw.dot(d, d)
    if r2 > cutoff2 or lw.same(target, source):
        return lw.vec3(0)
    s6 = 1 / (r2 * r2 * r2)
    return (48 * s6 * s6 - 24 * s6) / r2 * d


@lw.pairwise
def one_sided(target: Body, source: Body, a: lw.f32) -> lw.vec3:
    return lw.exp(source.position * a - lw.sin(target.position))


@lw.pairwise
def looping(target: Body, source: Body, a: lw.f32) -> lw.f32:
    total = a
    for k in range(3):
        total += source.mass * k
    return total


def found(kernel: Any) -> BothWays:
    result = both_ways(kernel.lowered.function, "target", "source")
    assert isinstance(result, BothWays)
    return result


@pytest.mark.parametrize(
    ("kernel", "extra"),
    [
        (gravity, 4),  # target.mass * inv**3, and its three products with d
        (coulomb, 0),  # exactly antisymmetric: the other direction is a sign
        (yukawa, 6),  # the factor of the other charge goes through the chain of products
        (lennard_jones, 0),
    ],
)
def test_forces_of_the_third_law_share_their_work(kernel: Any, extra: int) -> None:
    r = found(kernel)
    assert r.together - r.alone == extra
    assert r.saved > 0.25


def test_a_function_without_symmetry_shares_nothing() -> None:
    r = found(one_sided)
    assert r.together == 2 * r.alone
    assert r.saved == 0


def test_loops_are_not_followed() -> None:
    assert both_ways(looping.lowered.function, "target", "source") == "looping has a loop"


def numbered(kernel: Any, exchange: bool) -> tuple[ValueTable, list[Value]]:
    table = ValueTable()
    names = {p.name: p for p in kernel.lowered.function.parameters}
    for p in sorted(names):  # one order of leaves for both directions
        table.leaf(p, names[p].type)
    swap = {"target": "source", "source": "target"}

    def leaf(name: str) -> str:
        head, dot, tail = name.partition(".")
        return swap.get(head, head) + dot + tail if exchange else name

    values = {p.name: table.leaf(leaf(p.name), p.type) for p in kernel.lowered.function.parameters}
    return table, number_function(table, kernel.lowered.function, values)


@pytest.mark.parametrize("kernel", [coulomb, lennard_jones])
@given(seed=st.integers(0, 2**32 - 1))
def test_a_shared_number_is_the_same_value_to_the_last_bit(kernel: Any, seed: int) -> None:
    """What the analysis calls antisymmetric is so in float32, sign and all."""
    rng = np.random.default_rng(seed)
    a, b = (Body(position=rng.normal(size=3), mass=rng.random(), charge=rng.normal()) for _ in range(2))  # type: ignore[call-arg]
    there, back = kernel.python(a, b, np.float32(2.5)), kernel.python(b, a, np.float32(2.5))
    assert [-x for x in there] == list(back)
