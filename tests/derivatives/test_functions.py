"""Gradients of typed functions, in float64, against central differences: every kernel of the corpus, every function of
the language.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.value_numbering import NotNumbered
from lanewise.derivatives.gradient import Cotangents, GradientValue, gradient
from lanewise.derivatives.gradient import _Maker as Maker  # pyright: ignore[reportPrivateUsage]
from lanewise.derivatives.rules import DIFFERENTIABLE
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_function
from lanewise.ir.verify import verify_function
from lanewise.language import types as t
from lanewise.patterns.variables import cotangent_leaves
from tests import corpus_kernels as corpus
from tests.derivatives.as_kernels import as_kernel
from tests.derivatives.differences import central, value, widened
from tests.derivatives.taylor import jet

RECORDS = ("target", "source")
PAIRS = [
    corpus.gravity, corpus.gravity_f64, corpus.gravity_mixed, corpus.gravity_potential, corpus.lennard_jones, corpus.yukawa, corpus.ranked_distance
]  # fmt: skip
ELEMENTS = [corpus.speed, corpus.saxpy_norm, corpus.histogram]


def inputs(f: ir.Function) -> list[ir.Parameter]:
    return [p for p in f.parameters if p.type.is_float]


def sample(f: ir.Function, seed: int, names: list[str | None]) -> dict[str, Any]:
    """Arguments by name, also of the opposite direction, and cotangents."""
    rng = np.random.default_rng(seed)
    arguments: dict[str, Any] = {"$same": False}
    for p in f.parameters:
        for name in {p.name, exchanged(p.name)}:
            arguments[name] = rng.uniform(0.3, 1.7) if p.type.is_float else rng.integers(0, 5)
    if "cutoff2" in arguments:
        arguments["cutoff2"] = 4.0
    for n in names:
        for who in ("", "target.", "source."):
            arguments[f"{who}{n}"] = rng.normal()
    return arguments


def exchanged(name: str) -> str:
    who, dot, rest = name.partition(".")
    other = {"target": "source", "source": "target"}.get(who)
    return f"{other}.{rest}" if dot and other else name


def total(f: ir.Function, names: list[str | None], arguments: dict[str, Any], here: bool, there: bool) -> float:
    """What a gradient is the derivative of."""
    result = 0.0
    for counts, record, swap in ((here, "target", False), (there, "source", True)):
        if counts:
            swapped = {exchanged(n) if swap else n: x for n, x in arguments.items()}
            prefix = f"{record}." if any(p.name.startswith("target.") for p in f.parameters) else ""
            for r, n, kind in zip(value(f, swapped), names, f.results, strict=True):
                if kind.type.is_float:
                    result += float(r) * float(arguments[f"{prefix}{n}"])
    return result


def made(
    kernel: Any, roles: tuple[bool, bool], mode: str
) -> tuple[ir.Function, ir.Function, list[str], list[str | None]]:
    """The float64 twin of a kernel's function, its gradient with respect to all inputs, their names, and those of the
    cotangents.
    """
    f = widened(kernel.lowered.function)
    pair = any(p.name.startswith("target.") for p in f.parameters)
    leaves = [p.name for p in inputs(f)]
    if roles != (True, False):
        leaves = [n for n in leaves if "." in n]
    names = list(cotangent_leaves(kernel.lowered))
    asked = tuple(GradientValue((n,), t.F64, *roles) for n in leaves)
    maker = Maker(f, f"{f.name}_gradient", asked, Cotangents(tuple(names)), RECORDS if pair else None)
    g = maker.reverse() if mode == "reverse" else maker.forward()
    verify_function(g)
    return f, g, leaves, names


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("roles", [(True, False), (False, True), (True, True)], ids=["here", "there", "both"])
@pytest.mark.parametrize("kernel", PAIRS, ids=lambda k: k.__name__)
def test_pairs(kernel: Any, roles: tuple[bool, bool], mode: str) -> None:
    check(kernel, roles, mode)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("kernel", ELEMENTS, ids=lambda k: k.__name__)
def test_elements(kernel: Any, mode: str) -> None:
    check(kernel, (True, False), mode)


def check(kernel: Any, roles: tuple[bool, bool], mode: str) -> None:
    try:
        f, g, leaves, names = made(kernel, roles, mode)
    except NotNumbered:
        assert kernel in (corpus.ranked_distance, corpus.histogram)  # local arrays
        return
    for seed in range(4):
        arguments = sample(f, seed, names)
        derivatives = value(g, arguments)
        for leaf, derivative in zip(leaves, derivatives, strict=True):
            difference = central(lambda a: total(f, names, a, *roles), arguments, leaf)
            assert derivative == pytest.approx(difference, rel=2e-7, abs=2e-8), (leaf, seed)


# ---------------------------------------------------------------- mathematics


@lw.elementwise
def unary(x: lw.f64, y: lw.f64, z: lw.f64) -> lw.f64:
    return x + y + z


def of_intrinsic(name: str, kind: t.Scalar = t.F64) -> ir.Function:
    arity = {"min": 2, "max": 2, "clamp": 3, "atan2": 2, "pow": 2, "hypot": 2, "mix": 3, "fma": 3}.get(name, 1)
    parameters = tuple(ir.Parameter(n, kind) for n in "xyz"[:arity])
    arguments = tuple(ir.Local(p.name, kind) for p in parameters)
    return ir.Function(
        name, parameters, (ir.Parameter("result", kind),), (ir.Return((ir.Call(name, arguments, kind),)),)
    )


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("name", sorted(DIFFERENTIABLE - {"gamma"}))
def test_mathematics(name: str, mode: str) -> None:
    f = of_intrinsic(name)
    asked = tuple(GradientValue((p.name,), t.F64) for p in f.parameters)
    maker = Maker(f, "gradient", asked, Cotangents(("c",)), None)
    g = maker.reverse() if mode == "reverse" else maker.forward()
    verify_function(g)
    for x, y, z in ((0.31, 0.72, 0.9), (0.83, 0.21, 0.55), (0.55, 0.41, 0.12)):
        arguments = {"x": x, "y": y, "z": z, "c": 1.7}
        for p, derivative in zip(f.parameters, value(g, arguments), strict=True):
            difference = central(lambda a: 1.7 * value(f, a)[0], arguments, p.name)
            assert derivative == pytest.approx(difference, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        ("abs", (0.0,), (0.0,)),
        ("sqrt", (0.0,), (0.0,)),
        ("hypot", (0.0, 0.0), (0.0, 0.0)),
        ("min", (1.0, 1.0), (0.5, 0.5)),
        ("max", (1.0, 1.0), (0.5, 0.5)),
        ("clamp", (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
        ("clamp", (1.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
        ("pow", (0.0, 0.0), (0.0, 0.0)),
        ("pow", (0.0, 2.0), (0.0, 0.0)),
        ("floor", (1.0,), (0.0,)),
        ("pow", (0.0, -1.0), (-math.inf, -math.inf)),
        ("log", (0.0,), (math.inf,)),
        ("log2", (0.0,), (math.inf,)),
        ("log10", (0.0,), (math.inf,)),
        ("log1p", (-1.0,), (math.inf,)),
        ("rsqrt", (0.0,), (-math.inf,)),
        ("cbrt", (0.0,), (math.inf,)),
        ("asin", (1.0,), (math.inf,)),
        ("acos", (-1.0,), (-math.inf,)),
        ("sqrt", (math.inf,), (0.0,)),
        ("log", (math.inf,), (0.0,)),
    ],
)
def test_kinks(name: str, arguments: tuple[float, ...], wanted: tuple[float, ...]) -> None:
    f = of_intrinsic(name)
    asked = tuple(GradientValue((p.name,), t.F64) for p in f.parameters)
    maker = Maker(f, "gradient", asked, Cotangents((None,)), None)
    for g in (maker.reverse(), maker.forward()):
        assert tuple(value(g, dict(zip("xyz", arguments, strict=False)))) == wanted


OF_ONE = sorted(n for n in DIFFERENTIABLE - {"gamma"} if len(of_intrinsic(n).parameters) == 1)
OF_MORE = sorted(DIFFERENTIABLE - {"gamma"} - set(OF_ONE))
# with domains; those of all numbers have no finite argument without a value
PARTIAL = {"acos", "asin", "log", "log10", "log1p", "log2", "pow", "rsqrt", "sqrt"}
numbers = st.floats(-8.0, 8.0) | st.sampled_from([-3.0, -1.0, -0.5, -1e-300, -0.0, 0.0, 0.5, 1.0, 1e-300])


@pytest.mark.parametrize("name", OF_ONE + OF_MORE)
@given(data=st.data())
def test_no_number_has_a_derivative_that_is_one(name: str, data: st.DataObject) -> None:
    """Outside the domain of a function its value is NaN, and so are its derivatives, in both modes."""
    f = of_intrinsic(name)
    asked = tuple(GradientValue((p.name,), t.F64) for p in f.parameters)
    some = numbers | st.sampled_from([-math.inf, math.inf]) if name in OF_ONE else numbers
    arguments = {p.name: data.draw(some) for p in f.parameters}
    maker = Maker(f, "gradient", asked, Cotangents((None,)), None)
    with np.errstate(all="ignore"):
        undefined = np.isnan(value(f, arguments)[0])
        assert not undefined or name in PARTIAL or np.isinf(list(arguments.values())).any()
        for g in (maker.reverse(), maker.forward()):
            found = np.array(value(g, arguments))
            assert not undefined or np.isnan(found).all(), (arguments, found)


def second_gradients(f: ir.Function, mode: str) -> list[ir.Function]:
    """The gradients of the derivatives of a function with respect to each of its parameters."""

    def of(f: ir.Function, names: list[str]) -> ir.Function:
        asked = tuple(GradientValue((n,), f.results[0].type) for n in names)
        maker = Maker(f, f"{f.name}_gradient", asked, Cotangents((None,)), None)
        return maker.reverse() if mode == "reverse" else maker.forward()

    first = [of(f, [p.name]) for p in f.parameters]
    return [of(g, [p.name for p in g.parameters]) for g in first if g.parameters]


def higher_derivatives(f: ir.Function) -> list[ir.Function]:
    """Gradients of gradients, and Taylor coefficients, which far fields are made of."""
    twice = [g for mode in ("reverse", "forward") for g in second_gradients(f, mode)]
    return twice + [jet(f, 4, p.name) for p in f.parameters]


@pytest.mark.parametrize("name", OF_ONE + OF_MORE)
@given(data=st.data())
def test_no_number_has_higher_derivatives_that_are_one(name: str, data: st.DataObject) -> None:
    f = of_intrinsic(name)
    arguments = {p.name: data.draw(numbers) for p in f.parameters}
    with np.errstate(all="ignore"):
        if np.isnan(value(f, arguments)[0]):
            for g in higher_derivatives(f):
                assert np.isnan(value(g, arguments)).all(), (arguments, print_function(g))


OUTSIDE = {"acos": 2.0, "asin": -2.0, "log1p": -2.0}  # other functions have no value at -0.5


@pytest.mark.parametrize("kind", [t.F32, t.F64], ids=["f32", "f64"])
@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_no_number_has_higher_derivatives_that_are_one_in_kernels(device: str, kind: t.Scalar) -> None:
    """Neither where a compiler reads them."""
    for name in sorted(PARTIAL):
        f = of_intrinsic(name, kind)
        for g in higher_derivatives(f):
            kernel, names = as_kernel(g)
            x = {"x": OUTSIDE.get(name, -0.5), "y": 0.5}
            with lw.device(device), np.errstate(all="ignore"):
                found = kernel(*(np.full(3, x[n], kind.dtype) for n in names))
            for values in found if isinstance(found, tuple) else (found,):
                there = values.get() if hasattr(values, "get") else values
                assert np.isnan(there).all(), (name, print_function(g))


class Sample(lw.Record):
    m: lw.f32
    kind: lw.i32


@lw.elementwise
def of_masses(a: Sample) -> lw.f32:
    m = a.m
    r = m * 0.0
    if a.kind == 0:
        r = lw.sqrt(-m)
    elif a.kind == 1:
        r = lw.log(-m)
    elif a.kind == 2:
        r = lw.log1p(-m - 1.0)
    elif a.kind == 3:
        r = lw.pow(-m, 0.5)
    elif a.kind == 4:
        r = lw.asin(m + 1.0)
    elif a.kind == 5:
        r = lw.rsqrt(-m)
    elif a.kind == 6:
        r = lw.hypot(m, lw.sqrt(-m))
    elif a.kind == 7:
        r = lw.select(m > 0.0, m * m, lw.sqrt(m) + lw.log(m))
    elif a.kind == 8:
        r = lw.select(m < 0.0, lw.sqrt(-m) + lw.log(-m), m * m)
    return r


@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_no_number_has_a_derivative_that_is_one_in_kernels(device: str) -> None:
    """A side of a selection that is not taken still adds nothing."""
    m = np.tile(np.array([1.0, 2.5, 0.25], np.float32), 9)
    kinds = np.repeat(np.arange(9, dtype=np.int32), 3)
    samples = Sample.array(m=m, kind=kinds, device=device)
    with np.errstate(all="ignore"):
        values, found = of_masses(samples), of_masses.gradient(wrt="m")(samples)
    values, found = (x.get() if hasattr(x, "get") else x for x in (values, found))
    assert np.array_equal(np.isnan(values), kinds < 7)
    assert np.array_equal(np.isnan(found), kinds < 7)
    assert np.array_equal(found[kinds >= 7], 2 * m[kinds >= 7])


@lw.function
def modular(x, y):
    return x % y + 2.0 * (x // y)


@lw.elementwise
def remainder(x: lw.f64, y: lw.f64) -> lw.f64:
    return modular(x, y)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_a_remainder_by_its_dividend_and_its_divisor(mode: str) -> None:
    f, g, leaves, _ = made(remainder, (True, False), mode)
    assert leaves == ["x", "y"]
    for x, y in product((-7.3, -0.4, 0.4, 7.3), (-1.9, -0.6, 0.6, 1.9)):
        (name,) = {p.name for p in g.parameters} - {"x", "y"}
        arguments = {"x": x, "y": y, name: 1.7}
        found = value(g, arguments)
        wanted = [central(lambda a: 1.7 * value(f, a)[0], arguments, leaf) for leaf in leaves]
        assert found == pytest.approx(wanted, rel=1e-7, abs=1e-8), (x, y)
        assert found == pytest.approx([1.7, -1.7 * np.floor(x / y)])


# ---------------------------------------------------------------- branches


@lw.function
def steps(x, number):
    y = x
    for _ in range(number):
        if y > 2.0:
            break
        y = y * x + 0.1
    return y


@lw.elementwise
def winding(x: lw.f64, y: lw.f64, number: lw.i32) -> tuple[lw.f64, lw.f64]:
    """A while loop, helpers with loops, variables given new values, a remainder and a power."""
    total = 0.0
    n = 0
    while n < number:
        total += steps(x, n) * y
        x = x * 0.9
        n += 1
        if total > 50.0:
            break
    scale = 3.0 if y > 1.0 else y
    return total * scale, (x * 7.0) % y + y**2.5


@lw.elementwise
def unrolled(x: lw.dvec3, y: lw.f64) -> lw.dvec3:
    """A loop of known rounds, and a branch in the middle."""
    v = x
    for i in range(1, 4):
        v = v * lw.f64(i) + lw.cross(x, v) * y
    if y > 1.0:
        v = v / (y - 1.0)
    return lw.normalize(v)


@pytest.mark.parametrize("kernel", [winding, unrolled], ids=lambda k: k.__name__)
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_loops(kernel: Any, mode: str) -> None:
    try:
        f, g, leaves, names = made(kernel, (True, False), mode)
    except NotNumbered:
        assert kernel is winding
        assert mode == "reverse"
        return
    assert (kernel, mode) != (winding, "reverse")
    for seed in range(4):
        arguments = sample(f, seed, names)
        for leaf, derivative in zip(leaves, value(g, arguments), strict=True):
            difference = central(lambda a: total(f, names, a, True, False), arguments, leaf)
            assert derivative == pytest.approx(difference, rel=1e-7, abs=1e-8), (leaf, seed)


def test_a_side_that_does_not_count_adds_nothing() -> None:
    """The inverse distance of an element from itself is infinite; it is not selected, so its derivative is
    not there.
    """

    @lw.pairwise
    def inverse(target: corpus.DBody, source: corpus.DBody) -> lw.f64:
        d = source.position - target.position
        inv = lw.rsqrt(lw.dot(d, d))
        near = 0.0 if lw.same(target, source) else inv * source.mass
        return near + target.mass * d.x

    for mode in ("reverse", "forward"):
        _, g, leaves, _ = made(inverse, (True, True), mode)
        arguments = dict.fromkeys([p.name for p in g.parameters], 1.0) | {"$same": True}
        derivatives = dict(zip(leaves, value(g, arguments), strict=True))
        assert all(np.isfinite(x) for x in derivatives.values()), derivatives


def test_mode() -> None:
    """One scalar input forward, several in reverse, loops of unknown rounds forward."""
    f = corpus.gravity.lowered.function
    none = Cotangents((None,) * 3)
    one = gradient(f, "g", [GradientValue(("softening2",), t.F32)], none, RECORDS)
    several = gradient(
        f, "g", [GradientValue(tuple(f"target.position.{c}" for c in "xyz"), t.Vector(t.F32, 3))], none, RECORDS
    )
    loops = gradient(
        winding.lowered.function,
        "g",
        [GradientValue(("x",), t.F64), GradientValue(("y",), t.F64)],
        Cotangents((None, None)),
        None,
    )
    assert (one.mode, several.mode, loops.mode) == ("forward", "reverse", "forward")
    assert several.why == "3 scalar inputs"
    assert "loop" in loops.why


def test_texts(golden: Any) -> None:
    """What a reader sees of them: the user's names, and `$d.inv` for the derivative with respect to `inv`."""
    texts: list[str] = []
    for kernel, roles in (
        (corpus.gravity_potential, (True, True)),
        (corpus.lennard_jones, (True, False)),
        (corpus.yukawa, (True, True)),
    ):
        f = kernel.lowered.function
        vector = t.Vector(t.F32, 2 if kernel is corpus.yukawa else 3)
        asked = [GradientValue(t.leaves("target.position", vector), vector, *roles)]
        texts.append(
            print_function(
                gradient(f, f"{f.name}_gradient", asked, Cotangents(cotangent_leaves(kernel.lowered)), RECORDS).function
            )
        )
    f = corpus.ranked_distance.lowered.function
    texts.append(
        print_function(
            gradient(
                f, "ranked_distance_gradient", [GradientValue(("scale",), t.F32)], Cotangents((None,)), RECORDS
            ).function
        )
    )
    golden("functions", "\n\n".join(texts))
