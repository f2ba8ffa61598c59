"""Taylor coefficients of functions: against exact derivatives, and of every word of the language."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.value_numbering import ValueTable, number_function
from lanewise.derivatives.jets import HAVE_JETS, NoJet
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS, call
from lanewise.ir.printer import print_function
from lanewise.language import types as t
from tests.derivatives.taylor import jet

ORDER = 10
STEPS = {"floor", "ceil", "trunc", "round"}


def coefficients(f: ir.Function, order: int, **values: float) -> list[float]:
    made = jet(f, order)
    arguments = {p.name: p.type.dtype.type(values[p.name]) for p in made.parameters}
    return [float(c) for c in call(made, arguments)[0]]


# ---------------------------------------------------------------- exact derivatives


@lw.elementwise
def power_of_newton(x: lw.f64) -> lw.f64:
    return lw.rsqrt(x) ** 3


@lw.elementwise
def power_as_quotient(x: lw.f64) -> lw.f64:
    return 1.0 / (x * lw.sqrt(x))


@lw.elementwise
def power_as_power(x: lw.f64, alpha: lw.f64) -> lw.f64:
    return lw.pow(x, alpha)


@lw.elementwise
def inverse_root(x: lw.f64) -> lw.f64:
    return 1.0 / lw.sqrt(x)


@lw.elementwise
def screening(x: lw.f64, k: lw.f64) -> lw.f64:
    return lw.exp(-k * lw.sqrt(x))


@lw.elementwise
def yukawa(x: lw.f64, k: lw.f64) -> lw.f64:
    r = lw.sqrt(x)
    return lw.exp(-k * r) * (1.0 + k * r) / (r * r * r)


@lw.elementwise
def logarithm(x: lw.f64) -> lw.f64:
    return lw.log(x)


@lw.elementwise
def spline(x: lw.f64, h: lw.f64) -> lw.f64:
    r = lw.sqrt(x)
    u = r / h
    if u >= 1.0:
        return 1.0 / (r * r * r)
    if u >= 0.5:
        return (64.0 / 3.0 - 48.0 * u + 38.4 * u * u - 32.0 / 3.0 * u**3 - 1.0 / (15.0 * u**3)) / h**3
    return (32.0 / 3.0 + u * u * (32.0 * u - 38.4)) / h**3


# Made once by SymPy 1.14: coefficients at rational places, over exp(-k sqrt x) where that is a factor; k = 4/5, h = 3.
EXACT: dict[str, tuple[str, list[str]]] = {
    "x^(-3/2)": ("9/4", ["8/27", "-16/81", "80/729", "-1120/19683", "560/19683", "-2464/177147", "32032/4782969", "-45760/14348907", "194480/129140163", "-7390240/10460353203", "10346336/31381059609"]),
    "x^(-1/2)": ("9/4", ["2/3", "-4/27", "4/81", "-40/2187", "140/19683", "-56/19683", "616/531441", "-2288/4782969", "2860/14348907", "-97240/1162261467", "369512/10460353203"]),
    "exp(-k sqrt x)": ("9/4", ["1", "-4/15", "44/675", "-536/30375", "7228/1366875", "-525256/307546875", "2684104/4613203125", "-299453488/1453158984375", "4914433052/65392154296875", "-247518373528/8827940830078125", "21157008143128/1986286686767578125"]),
    "log": ("9/4", ["value", "4/9", "-8/81", "64/2187", "-64/6561", "1024/295245", "-2048/1594323", "16384/33480783", "-8192/43046721", "262144/3486784401", "-524288/17433922005"]),
    "spline, outside": ("49/4", ["8/343", "-48/16807", "240/823543", "-160/5764801", "720/282475249", "-3168/13841287201", "13728/678223072849", "-411840/232630513987207", "1750320/11398895185373143", "-7390240/558545864083284007", "4434144/3909821048582988049"]),
    "spline, between": ("25/4", ["86668/1366875", "-163336/11390625", "133336/56953125", "-1206704/4271484375", "980056/35595703125", "-12261232/4449462890625", "91296016/333709716796875", "-4708192/185394287109375", "8879816/4634857177734375", "-45053008/1042842864990234375", "-1157528944/43451786041259765625"]),
    "spline, inside": ("1", ["1024/3645", "-112/1215", "4/243", "-2/729", "1/972", "-1/1944", "7/23328", "-1/5184", "11/82944", "-143/1492992", "143/1990656"]),
    "yukawa": ("9/4", ["88/135", "-1072/2025", "28912/91125", "-2101024/12301875", "5368208/61509375", "-598906976/13839609375", "39315464416/1868347265625", "-1980146988224/196176462890625", "42314016286256/8827940830078125", "-8075305740176672/3575316036181640625", "283651237297053664/268148702713623046875"]),
}  # fmt: skip
FUNCTIONS: dict[str, tuple[Any, dict[str, float]]] = {
    "x^(-3/2)": (power_of_newton, {}),
    "x^(-1/2)": (inverse_root, {}),
    "exp(-k sqrt x)": (screening, {"k": 0.8}),
    "log": (logarithm, {}),
    "spline, outside": (spline, {"h": 3.0}),
    "spline, between": (spline, {"h": 3.0}),
    "spline, inside": (spline, {"h": 3.0}),
    "yukawa": (yukawa, {"k": 0.8}),
}


@pytest.mark.parametrize("name", list(EXACT))
def test_exact_derivatives(name: str) -> None:
    kernel, values = FUNCTIONS[name]
    place, exact = EXACT[name]
    x = float(Fraction(place))
    unit = np.exp(-0.8 * np.sqrt(x)) if "k" in values else 1.0
    found = coefficients(kernel.lowered.function, ORDER, x=x, **values)
    for n, (c, wanted) in enumerate(zip(found, exact, strict=True)):
        value = np.log(x) if wanted == "value" else float(Fraction(wanted)) * unit
        assert c == pytest.approx(value, rel=1e-12), n


@pytest.mark.parametrize("kernel", [power_as_quotient, power_as_power])
def test_one_power_in_other_words(kernel: Any) -> None:
    place, exact = EXACT["x^(-3/2)"]
    found = coefficients(kernel.lowered.function, ORDER, x=float(Fraction(place)), alpha=-1.5)
    assert found == pytest.approx([float(Fraction(c)) for c in exact], rel=1e-12)


# ---------------------------------------------------------------- every word of the language

KIND = t.F64


def of_intrinsic(name: str) -> ir.Function:
    """The intrinsic of x + x^2 / 4, y and z, where it takes so many."""
    x, y, z = (ir.Local(n, KIND) for n in "xyz")
    square = ir.Binary("*", ir.Literal(0.25, KIND), ir.Binary("*", x, x, KIND), KIND)
    arguments = (ir.Binary("+", x, square, KIND), y, z)[: INTRINSICS[name].arity]
    body: ir.Expression = ir.Call(name, arguments, t.BOOL if INTRINSICS[name].predicate else KIND)
    if INTRINSICS[name].predicate:
        body = ir.Select(body, ir.Literal(1.0, KIND), x, KIND)
    parameters = tuple(ir.Parameter(n, KIND) for n in "xyz"[: INTRINSICS[name].arity])
    return ir.Function(name, parameters, (ir.Parameter("result", KIND),), (ir.Return((body,)),))


@pytest.mark.parametrize("name", sorted(INTRINSICS))
def test_intrinsics(name: str) -> None:
    """Each has coefficients, whose sum is the function near by, or is refused."""
    f = of_intrinsic(name)
    if name in STEPS or name == "gamma":
        with pytest.raises(NoJet, match=name):
            jet(f, 2)
        return
    assert name in HAVE_JETS or INTRINSICS[name].predicate
    for x, y, z in ((0.31, 0.72, 0.9), (0.63, 0.21, 0.55), (0.55, 0.41, 0.52)):
        found = coefficients(f, ORDER, x=x, y=y, z=z)
        for step in (-0.01, 0.01):
            near = {"x": np.float64(x + step), "y": np.float64(y), "z": np.float64(z)}
            (wanted,), _ = call(f, {p.name: near[p.name] for p in f.parameters})
            total = sum(c * step**n for n, c in enumerate(found))
            assert total == pytest.approx(wanted, rel=1e-12, abs=1e-13), (name, x)


@lw.elementwise
def exponents(x: lw.f64, y: lw.f64) -> lw.f64:
    """A power whose exponent varies, and one of zero."""
    return lw.pow(1.0 + x, 1.0 + x * y) + lw.pow(x - 0.5, 2.0) * lw.f64(x < y) + lw.fma(x, y, -x * x)


@lw.elementwise
def chosen(x: lw.f64, y: lw.f64) -> lw.f64:
    z = x * y + lw.f64(lw.f32(1.5))
    if z > 1.0 and not x < 0.0:
        z = lw.sqrt(z) / (1.0 + x)
    return -z * lw.mix(x, y, x * x)


@pytest.mark.parametrize("kernel", [exponents, chosen])
@pytest.mark.parametrize("x", [0.5, 0.7])
def test_sums_are_the_function(kernel: Any, x: float) -> None:
    f = kernel.lowered.function
    found = coefficients(f, ORDER, x=x, y=0.9)
    for step in (-0.01, 0.01):
        (wanted,), _ = call(f, {"x": np.float64(x + step), "y": np.float64(0.9)})
        assert sum(c * step**n for n, c in enumerate(found)) == pytest.approx(wanted, rel=1e-12)


def test_steps_are_refused() -> None:
    @lw.elementwise
    def turns(x: lw.f64) -> lw.f64:
        return x % 2.0

    @lw.elementwise
    def whole(x: lw.f64) -> lw.f64:
        return x // 2.0

    for kernel, operation in ((turns, "%"), (whole, "//")):
        with pytest.raises(NoJet, match=operation):
            jet(kernel.lowered.function, 1)


# ---------------------------------------------------------------- texts


@lw.elementwise
def plummer(x: lw.f32, softening2: lw.f32) -> lw.f32:
    inv = lw.rsqrt(x + softening2)
    return inv**3


def operations(f: ir.Function) -> int:
    """Operations of the values that a function computes, each once."""
    table = ValueTable()
    values = number_function(table, f, {p.name: table.leaf(p.name, p.type) for p in f.parameters})
    free = {"leaf", "literal", "negate"}
    return sum(table.nodes[n].operation not in free for n in table.below({v.number for v in values}))


@pytest.mark.parametrize("order", range(1, ORDER + 1))
def test_the_jet_of_plummer_is_a_recurrence(order: int) -> None:
    """Two multiplications a coefficient: tensors of order p take the coefficients 0 to p - 1 of the force."""
    assert operations(jet(plummer.lowered.function, order - 1)) <= 2 * order + 3


def test_texts(golden: Callable[[str, str], None]) -> None:
    golden("plummer", print_function(jet(plummer.lowered.function, 6)))
    golden("yukawa", print_function(jet(yukawa.lowered.function, 3)))
