from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.instructions import Instructions, contracted, count_operations, mix, node_cost
from lanewise.analysis.value_numbering import NotNumbered, Value, ValueTable, number_function
from lanewise.ir import nodes as ir
from tests.corpus import PAIRWISE, case
from tests.corpus_kernels import Body


@lw.pairwise
def rearranged(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(d.x * d.x + (d.y * d.y + (d.z * d.z + softening2)))
    return source.mass * inv**3 * d


@lw.pairwise
def shared_products(target: Body, source: Body) -> lw.vec2:
    """A product with two sums goes into both; one that is also a result stays."""
    product = target.mass * source.mass
    kept = target.position.x * source.position.x
    return lw.vec2(product + 1.0, product + kept) * kept


@lw.pairwise
def whole(target: Body, source: Body, step: lw.i32) -> lw.i32:
    i = lw.i32(source.mass)
    return (i // 8) * 4 + i % step + (i * step + 7)


def pair_instructions(function: ir.Function, *, fast_math: bool = False) -> Instructions:
    """One application of a function whose results are added to sums. Both sides of branches count, as selections."""
    table = ValueTable()
    arguments: dict[str, Value] = {p.name: table.leaf(p.name, p.type) for p in function.parameters}
    results = number_function(table, function, arguments)
    sums: list[int] = []
    for r, value in zip(function.results, results, strict=True):
        total = table.leaf(f"$sum.{r.name}", r.type)
        sums.append(table.add("-" if value.negative else "+", (value.number, total.number), r.type))
    live = table.below(set(sums))
    gone = contracted(table, live)
    return mix(sum((Counter(node_cost(table, n, gone, fast_math=fast_math)) for n in live), Counter()))


def counted(kernel, **options) -> str:
    return str(pair_instructions(kernel.lowered.function, **options))


def test_gravity_takes_14_issue_slots():
    """As NVRTC emits it for sm_90: FADD 4, FFMA 5, FMUL 4, MUFU 1."""
    found = pair_instructions(case("gravity").kernel.lowered.function)
    assert dict(found.counts) == {"fp32 add": 4, "fp32 fma": 5, "fp32 mul": 4, "special": 1}
    assert found.slots == 14


@lw.function
def offset(x, y):
    d = x - y
    return d * lw.length(d)


@lw.pairwise
def returned(target: Body, source: Body, a: lw.f32) -> lw.vec3:
    return offset(lw.normalize(target.position), source.position) ** 3 * (a + source.mass) / 2.0


@lw.pairwise
def assigned(target: Body, source: Body, a: lw.f32) -> lw.vec3:
    result = offset(lw.normalize(target.position), source.position) ** 3 * (a + source.mass) / 2.0
    return result


def test_operations_of_a_returned_expression_count_once():
    """Those of its parts, too, which become variables."""
    assert count_operations(returned.lowered.function) == count_operations(assigned.lowered.function)
    gravity = count_operations(case("gravity").kernel.lowered.function)
    assert gravity == {"*": 9, "+": 3, "-": 3, "rsqrt": 1}


def test_rearranged_gravity_takes_13():
    found = pair_instructions(rearranged.lowered.function)
    assert dict(found.counts) == {"fp32 add": 3, "fp32 fma": 6, "fp32 mul": 3, "special": 1}
    assert found.slots == 13


def test_gravity_in_float64():
    """As NVRTC emits it for sm_90: DADD 4, DMUL 6, DFMA 8, MUFU 1, and for a root of zero or infinity LOP3, VIADD,
    ISETP, FSEL 2.
    """
    found = pair_instructions(case("gravity_f64").kernel.lowered.function)
    arithmetic = {"fp64 add": 4, "fp64 mul": 6, "fp64 fma": 8, "special": 1}
    assert dict(found.counts) == {**arithmetic, "integer": 2, "compare": 1, "select": 2}


def test_products_join_sums():
    assert counted(shared_products) == "4 fp32 fma, 1 fp32 mul"


def test_whole_numbers():
    assert counted(whole) == "4 compare, 3 conversion, 23 integer, 1 special"


def test_fast_math_shortens_division_and_functions():
    assert counted(case("yukawa").kernel) != counted(case("yukawa").kernel, fast_math=True)
    slow, fast = (pair_instructions(case("yukawa").kernel.lowered.function, fast_math=f).slots for f in (False, True))
    assert fast < slow / 2


def test_corpus(golden):
    """Every pair function that can be numbered, and why others cannot."""
    lines: list[str] = []
    for c in PAIRWISE:
        try:
            found = pair_instructions(c.kernel.lowered.function)
            lines.append(f"{c.name}: {found.slots:g} slots: {found}")
        except NotNumbered as reason:
            lines.append(f"{c.name}: not numbered: {reason}")
    golden("pairs", "\n".join(lines))


def test_widths_are_summed():
    found = mix({"shared load 16": 2, "shared load 4": 1, "shared store 4": 5, "fp32 add": 3, "branch": 0})
    assert found["shared load"] == 3
    assert found["shared load 16"] == 2
    assert found["global load"] == found["branch"] == 0
    assert found.unit("shared") == 8
    assert (found.slots, found.arithmetic) == (11, 3)
    assert str(found) == "3 fp32 add, 2 shared load 16, 1 shared load 4, 5 shared store 4"
    assert str(Instructions()) == "none"


counts = st.dictionaries(st.sampled_from(["fp32 add", "special", "global load 4", "branch"]), st.integers(0, 50)).map(
    mix
)


@given(counts, counts, st.integers(1, 5))
def test_arithmetic_of_mixes(a, b, factor):
    assert (a + b).slots == a.slots + b.slots
    assert a + b == b + a
    assert a.times(factor).slots == pytest.approx(factor * a.slots)
