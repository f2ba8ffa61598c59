"""Moments, shifts and translations of far fields: exact where they are, as accurate as theory says, alike on
all paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.algebra import Algebra
from lanewise.analysis.value_numbering import Value, ValueTable
from lanewise.analysis.written_values import function_of_values
from lanewise.derivatives.expansions.estimates import sizes_of_errors
from lanewise.derivatives.expansions.operators import Operators
from lanewise.derivatives.expansions.shape import indices, raised
from lanewise.derivatives.expansions.tensors import Tensors
from lanewise.derivatives.jets import Jets
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call
from lanewise.ir.printer import print_function
from lanewise.ir.verify import verify_function
from lanewise.language import types as t
from tests import far_kernels as kernels
from tests.derivatives.as_kernels import as_kernel
from tests.derivatives.far_pairs import Array, Field, named, operators_of, random_pairs, relative
from tests.derivatives.whole_arrays import called

NOTHING: Mapping[str, float] = {}
NAMES = ("p2m", "m2m", "m2l", "l2l", "l2p", "m2p")


def field(
    kernel: Any, order: int, count: int, theta: float, sizes: float = 0.0, values: Mapping[str, float] = NOTHING
) -> Field:
    """Random pairs with the fields that a kernel reads."""
    rng = np.random.default_rng(0)
    proof = lw.far_field(kernel).proof
    pairs = random_pairs(rng, count, np.full(count, theta), proof.axes, sizes=sizes)
    shape = pairs.sources.shape[:2]
    leaves = [p.name for p in proof.function.parameters if ".position." not in p.name]
    fields = {n: rng.uniform(0.5, 1.5, shape) for n in leaves if "." in n}
    of = {who: {n: x for n, x in fields.items() if n.startswith(f"{who}.")} for who in ("source", "target")}
    return Field(kernel, order, pairs, of["source"], of["target"], dict(values))


# ---------------------------------------------------------------- tensors


def derivatives(order: int, powers: tuple[int, int, int] = (0, 0, 0), *, potential: bool = False) -> ir.Function:
    """All derivatives of 1/r times components, or of the potential whose gradient is d / r^3."""
    table = ValueTable()
    algebra = Algebra(table)
    d = [table.leaf(c, t.F64) for c in "xyz"]
    s = algebra.add(algebra.add(*(algebra.times(x, x) for x in d[:2])), algebra.times(d[2], d[2]))
    inv = table.add("rsqrt", (s.number,), t.F64)
    h = Value(inv)
    if potential:
        h = algebra.times(h, algebra.times(h, h))
    tensors = Tensors(Jets(algebra, s.number), d, h, powers, potential=potential)
    every = indices(3, order)
    results = [(ir.Parameter(f"d{'_'.join(map(str, k))}", t.F64), tensors.derivative(k)) for k in every]
    return function_of_values("derivatives", table, [ir.Parameter(c, t.F64) for c in "xyz"], results)


def test_traces_of_the_inverse_distance_vanish() -> None:
    f = derivatives(10)
    rng = np.random.default_rng(2)
    x = {c: rng.normal(size=20) for c in "xyz"}
    found = dict(zip(indices(3, 10), called(f, x), strict=True))
    for k in indices(3, 8):
        parts = np.array([found[raised(raised(k, a), a)] for a in range(3)])
        assert np.all(np.abs(parts.sum(0)) <= 2e-12 * np.abs(parts).max(0)), k


def test_products_with_components_are_derivatives() -> None:
    """d_x / r^3 is minus the derivative of 1/r; d_x / r by differences."""
    rng = np.random.default_rng(4)
    x = {c: rng.uniform(0.5, 2, 10) for c in "xyz"}
    potential = dict(zip(indices(3, 5), called(derivatives(5, potential=True), x), strict=True))
    inverse = dict(zip(indices(3, 5), called(derivatives(5), x), strict=True))
    for k in indices(3, 5)[1:]:
        np.testing.assert_allclose(potential[k], -inverse[k], rtol=1e-12, atol=1e-12)
    product = dict(zip(indices(3, 4), called(derivatives(4, (1, 1, 0)), x), strict=True))
    for k in indices(3, 3):
        for axis, c in enumerate("xyz"):
            step = 1e-3
            near = [
                dict(zip(indices(3, 3), called(derivatives(3, (1, 1, 0)), x | {c: x[c] + n * step}), strict=True))[k]
                for n in (-2, -1, 1, 2)
            ]
            slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * step)
            np.testing.assert_allclose(product[raised(k, axis)], slope, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------- shifts are exact


@pytest.mark.parametrize("kernel", [kernels.plummer, kernels.stokeslet, kernels.logarithmic], ids=lambda k: k.__name__)
def test_moments_of_a_larger_group_are_those_of_its_sources(kernel: Any) -> None:
    at = field(kernel, 5, 6, 0.5, values={"softening2": 0.1})
    o, pairs = operators_of(kernel, 5), at.pairs
    parent = pairs.centre + 0.4
    to = named("$child", pairs.centre) | named("$parent", parent)
    scales = {"$child.scale": pairs.scales[1], "$parent.scale": 4 * pairs.scales[1]}
    shifted = called(o.m2m(), at.moments() | to | scales)
    of = named("source.position", pairs.sources) | named("$centre", parent[:, None]) | at.sources
    direct = called(o.p2m(), of | {"$scale": scales["$parent.scale"][:, None]})
    for p, a, b in zip(o.moments(), shifted, direct, strict=True):
        np.testing.assert_allclose(
            a, np.broadcast_to(b, pairs.sources.shape[:2]).sum(1), rtol=1e-12, atol=1e-12, err_msg=p.name
        )


@pytest.mark.parametrize("kernel", [kernels.plummer, kernels.stokeslet, kernels.logarithmic], ids=lambda k: k.__name__)
def test_local_expansions_of_a_smaller_group_are_those_of_the_larger(kernel: Any) -> None:
    at = field(kernel, 5, 6, 0.5, values={"softening2": 0.1})
    o, pairs, before = operators_of(kernel, 5), at.pairs, at.by_locals()
    child, zero = np.full_like(pairs.centre, 0.3), np.zeros_like(pairs.centre)
    to = named("$child", child) | named("$parent", zero)
    scales = {"$child.scale": pairs.scales[0] / 4, "$parent.scale": pairs.scales[0]}
    shifted = called(o.l2l(), at.locals() | to | scales)
    group = {p.name: np.broadcast_to(x, zero.shape[:1]) for p, x in zip(o.locals(), shifted, strict=True)}
    after = at.at_targets("l2p", group, child, scales["$child.scale"])
    np.testing.assert_allclose(after, before, rtol=1e-11, atol=1e-12)


# ---------------------------------------------------------------- accuracy

TABLE = {
    # rms of errors relative to the force of each pair, orders 3, 4, 5, 6, 8, by a prototype of its own
    ("newton", 0.5): (1.7e-2, 5.4e-3, 2.0e-3, 8.7e-4, 1.7e-4),
    ("newton", 0.7): (4.5e-2, 1.9e-2, 9.4e-3, 5.5e-3, 2.0e-3),
    ("plummer", 0.7): (4.4e-2, 1.9e-2, 7.9e-3, 3.5e-3, 9.2e-4),
    ("yukawa", 0.5): (5.5e-2, 1.8e-2, 6.2e-3, 2.2e-3, 3.9e-4),
}
VALUES: dict[str, dict[str, float]] = {
    "newton": {},
    "plummer": {"softening2": 4.0},
    "yukawa": {"kappa": 0.5},
}  # groups have the size 2
ORDERS = (3, 4, 5, 6, 8)
KERNELS = {
    "f64": {"newton": kernels.newton, "plummer": kernels.plummer, "yukawa": kernels.yukawa},
    "f32": {"newton": kernels.newton32, "plummer": kernels.plummer32, "yukawa": kernels.yukawa32},
}


def check_errors(name: str, theta: float, precision: str, orders: tuple[int, ...]) -> None:
    for order, wanted in zip(ORDERS, TABLE[name, theta], strict=True):
        if order in orders:
            at = field(KERNELS[precision][name], order, 100, theta, values=VALUES[name])
            wide = field(KERNELS["f64"][name], order, 100, theta, values=VALUES[name])
            assert wanted / 2 <= relative(at.by_locals(), wide.exact()) <= wanted * 2, order


@pytest.mark.parametrize(("name", "theta"), list(TABLE))
def test_errors_are_those_of_theory(name: str, theta: float) -> None:
    check_errors(name, theta, "f64", (3, 4, 5))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "theta"), list(TABLE))
def test_errors_of_high_orders_and_of_float32_are_those_of_theory(name: str, theta: float) -> None:
    check_errors(name, theta, "f64", (6, 8))
    check_errors(name, theta, "f32", ORDERS)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (kernels.potential, {}),
        (kernels.logarithmic, {}),
        (kernels.stokeslet, {"softening2": 0.04}),
        (kernels.biot_savart, {}),
        (kernels.dipole, {}),
        (kernels.dispersion, {}),
        (kernels.moving, {}),
        (kernels.spline, {"h": 0.5}),
        (kernels.number_within, {"radius": 100.0}),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_errors_fall_with_the_order(kernel: Any, values: dict[str, float]) -> None:
    """Both ways to the targets, between groups of different sizes."""
    errors: list[tuple[float, float]] = []
    for order in (1, 3, 5):
        at = field(kernel, order, 30, 0.3, sizes=0.2, values=values)
        exact = at.exact()
        errors.append((relative(at.by_locals(), exact), relative(at.by_moments(), exact)))
    if kernel is kernels.number_within:  # all within: a sum of ones, at any order
        assert errors == [(0.0, 0.0)] * 3
        return
    for before, after in pairwise(errors):
        assert after[0] < before[0] / 3
        assert after[1] < before[1] / 3
    assert max(errors[-1]) < (5e-2 if kernel is kernels.dispersion else 2e-3)


# ---------------------------------------------------------------- estimates


def excesses(name: str, precision: str, order: int, count: int, sizes: float = 0.0) -> Array:
    """The estimate of each pair of groups, or what float32 rounds where that is larger, over the largest error at its
    targets.
    """
    rng = np.random.default_rng(order)
    pairs = random_pairs(rng, count, rng.uniform(0.4, 0.8, count), sizes=sizes)
    mass = {"source.mass": rng.uniform(0.5, 1.5, pairs.sources.shape[:2])}
    at, truth = (Field(KERNELS[p][name], order, pairs, mass, {}, VALUES[name]) for p in (precision, "f64"))
    exact = truth.exact()
    rounded = 0.0 if precision == "f64" else 1e-6 * np.linalg.norm(exact, axis=-1).max(1)
    return np.maximum(at.estimated(), rounded) / np.linalg.norm(at.by_moments() - exact, axis=-1).max(1)


@pytest.mark.parametrize("name", list(VALUES))
def test_estimates(name: str) -> None:
    ratio = excesses(name, "f64", 4, 300)
    assert np.mean(ratio >= 0.8) >= 0.99
    assert np.median(ratio) <= 25


@pytest.mark.slow
@pytest.mark.parametrize("precision", list(KERNELS))
@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", list(VALUES))
def test_estimates_of_many_pairs(name: str, order: int, precision: str) -> None:
    """Groups of one size, and of sizes that differ by up to ten."""
    for sizes in (0.0, 0.5):
        ratio = excesses(name, precision, order, 10_000, sizes=sizes)
        assert np.mean(ratio >= 0.8) >= 0.99
        assert np.median(ratio) <= 25


# ---------------------------------------------------------------- functions of the ordinary compiler


@pytest.mark.parametrize("kernel", kernels.RADIAL, ids=lambda k: k.__name__)
def test_operators_are_sound(kernel: Any) -> None:
    """Every operator verifies, and the interpreter computes what whole arrays give."""
    o = Operators(lw.far_field(kernel).proof, 3)
    functions = [*(getattr(o, n)() for n in NAMES), sizes_of_errors(o)]
    rng = np.random.default_rng(5)
    for f in functions:
        verify_function(f)
        x = {p.name: p.type.dtype.type(rng.uniform(1, 2)) for p in f.parameters}
        for a, b in zip(call(f, x)[0], called(f, x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(
    ("device", "names"),
    [
        ("python", NAMES),
        ("cpu", ("m2l",)),
        pytest.param("cpu", NAMES, marks=pytest.mark.slow),
        pytest.param("cuda", NAMES, marks=pytest.mark.cuda),
    ],
    ids=["python", "cpu", "all-cpu", "cuda"],
)
def test_operators_are_kernels(device: str, names: tuple[str, ...]) -> None:
    o = Operators(lw.far_field(kernels.plummer).proof, 2)
    rng = np.random.default_rng(6)
    for name in names:
        f = getattr(o, name)()
        kernel, parameters = as_kernel(f)
        x = [rng.uniform(1, 2, 5) for _ in parameters]
        with lw.device(device):
            found = kernel(*x)
        for a, b in zip(found, called(f, dict(zip(parameters, x, strict=True))), strict=True):
            there = a.get() if hasattr(a, "get") else a
            np.testing.assert_allclose(there, b, rtol=1e-12, atol=1e-12)


def test_float32_holds_small_and_large_groups() -> None:
    """Lengths of 1e-4 and of 1e4 at order 8: nothing overflows, nothing is lost."""
    for size in (1e-4, 1e4):
        rng = np.random.default_rng(7)
        unit = random_pairs(rng, 20, np.full(20, 0.5))
        scaled = type(unit)(
            unit.targets * size, unit.sources * size, unit.centre * size,
            (unit.scales[0] * 2.0 ** round(np.log2(size)), unit.scales[1] * 2.0 ** round(np.log2(size))), unit.radius * size,
        )  # fmt: skip
        mass = {"source.mass": rng.uniform(0.5, 1.5, unit.sources.shape[:2])}
        narrow, wide = (Field(k, 8, scaled, mass, {}, {}) for k in (kernels.newton32, kernels.newton))
        assert relative(narrow.by_locals(), wide.exact()) < 4e-4
        assert relative(narrow.by_moments(), wide.exact()) < 1e-4
        fourth = Field(kernels.newton32, 4, scaled, mass, {}, {})
        ratio = fourth.estimated() / np.linalg.norm(fourth.by_moments() - wide.exact(), axis=-1).max(1)
        assert 2 < np.median(ratio) < 25


def test_texts(golden: Callable[[str, str], None]) -> None:
    o = Operators(lw.far_field(kernels.plummer32).proof, 2)
    functions = [getattr(o, n)() for n in NAMES]
    golden("plummer", "\n\n".join(map(print_function, functions)))


def test_what_is_not_radial_has_none() -> None:
    with pytest.raises(ValueError, match="adaptive is not of tier R"):
        Operators(lw.far_field(kernels.adaptive).proof, 3)


@lw.pairwise
def oscillating(target: kernels.Star, source: kernels.Star) -> lw.f64:
    d = source.position - target.position
    r = lw.length(d)
    return source.mass * lw.sin(40.0 * r) / r


def test_what_oscillates_is_told_by_the_estimate() -> None:
    """sin(40 r) / r is radial, and no order that is worth its cost reaches 1e-3: the estimate says so of every pair."""
    assert lw.far_field(oscillating).tier == "R"
    for order in (3, 6):
        at = field(oscillating, order, 30, 0.5)
        exact = np.abs(at.exact()[..., 0]).max(1)
        assert relative(at.by_moments(), at.exact()) > 1e-3
        assert np.all(at.estimated() > 1e-3 * exact)
