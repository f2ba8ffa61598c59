"""What is proved of pair functions about groups of sources that are far away."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.far_field import FarProof, prove_far_field
from lanewise.analysis.simplification import expression_of
from lanewise.analysis.value_numbering import Value, ValueTable
from lanewise.derivatives.gradient import Cotangents, GradientValue, gradient
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS, call, evaluate
from lanewise.language import types as t
from tests import far_kernels as kernels

ELEMENTS = ("target", "source")
STEPS = {"floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite"}
LINEAR = {"fma", "mix"}  # in each operand


@pytest.mark.parametrize("kernel", [*kernels.RADIAL, *kernels.WITH_PROXIES], ids=lambda k: k.__name__)
def test_tiers(kernel: Any) -> None:
    proof = lw.far_field(kernel)
    assert proof.tier == ("R" if kernel in kernels.RADIAL else "P"), str(proof)
    assert (proof.reason is None) == (proof.tier == "R")


def test_texts(golden: Callable[[str, str], None], request: pytest.FixtureRequest) -> None:
    shown = [kernels.plummer, kernels.logarithmic, kernels.spline, kernels.stokeslet, kernels.number_within]
    texts = [str(lw.far_field(k)) for k in (*shown, kernels.moving, *kernels.WITH_PROXIES)]
    golden("texts", "\n\n".join(texts).replace(f"{request.config.rootpath}/", ""))


# ---------------------------------------------------------------- the forms have the values of the function


def expression(table: ValueTable, number: int) -> ir.Expression:
    node = table.nodes[number]
    return expression_of(node, tuple(expression(table, n) for n in node.operands))


def value_of(table: ValueTable, value: Value, env: dict[str, Any]) -> float:
    found = float(evaluate(expression(table, value.number), env))
    return -found if value.negative else found


@pytest.mark.parametrize("kernel", kernels.RADIAL, ids=lambda k: k.__name__)
def test_forms_are_the_function(kernel: Any) -> None:
    proof = lw.far_field(kernel).proof
    radial = proof.radial
    assert radial is not None
    rng = np.random.default_rng(3)
    for _ in range(8):
        env: dict[str, Any] = {p.name: np.float64(rng.uniform(0.2, 1.5)) for p in proof.function.parameters}
        env["$same"] = np.bool_(False)
        d = [
            env.get(f"source.position.{c}", np.float64(0)) - env.get(f"target.position.{c}", np.float64(0))
            for c in "xyz"[: proof.axes]
        ]
        env["s"] = np.float64(np.dot(d, d))
        results, _ = call(proof.function, env)
        for result, terms in zip(results, radial.results, strict=True):
            total = 0.0
            for term in terms:
                factor = 1.0 if term.part.factor is None else value_of(radial.table, Value(term.part.factor), env)
                weight = env[term.part.weight] if term.part.weight else 1.0
                components = np.prod(np.power(d, term.part.powers))
                total += weight * factor * components * value_of(radial.table, term.radial, env)
            assert total == pytest.approx(result, rel=1e-12)


# ---------------------------------------------------------------- every word of the language

KIND = t.F64
S = ir.Binary("*", ir.Local("d", KIND), ir.Local("d", KIND), KIND)
MASS, U, D, SOFT = (ir.Local(n, KIND) for n in ("source.mass", "u", "d", "target.softening"))
PLACES = [ir.Parameter(f"{e}.position.{c}", KIND) for e in ELEMENTS for c in "xy"]


def of_expression(e: ir.Expression, times: ir.Expression = MASS) -> FarProof:
    """What is proved of `times * e`, with d a component of the difference and r2 its square."""
    x, y = (
        ir.Binary("-", ir.Local(f"source.position.{c}", KIND), ir.Local(f"target.position.{c}", KIND), KIND)
        for c in "xy"
    )
    r2 = ir.Binary("+", ir.Binary("*", x, x, KIND), ir.Binary("*", y, y, KIND), KIND)
    if e.type == t.BOOL:
        e = ir.Select(e, ir.Literal(1.0, KIND), ir.Literal(0.0, KIND), KIND)
    elif not e.type.is_float:
        e = ir.Cast(e, KIND)
    names = ("source.mass", "u", "target.softening")
    parameters = (*PLACES, *(ir.Parameter(n, KIND) for n in names), ir.Parameter("source.on", t.BOOL))
    body = (ir.Assign("d", x), ir.Assign("r2", r2), ir.Return((ir.Binary("*", times, e, KIND),)))
    function = ir.Function("f", parameters, (ir.Parameter("result", KIND),), body)
    return prove_far_field(function, ELEMENTS, "position", 2)


R2 = ir.Local("r2", KIND)
ONE = ir.Literal(1.0, KIND)


def of_intrinsic(name: str, first: ir.Expression) -> ir.Expression:
    arguments = (first, U, ir.Binary("+", U, ONE, KIND))[: INTRINSICS[name].arity]
    return ir.Call(name, arguments, t.BOOL if INTRINSICS[name].predicate else KIND)


@pytest.mark.parametrize("name", sorted(INTRINSICS))
def test_intrinsics(name: str) -> None:
    """Of the squared distance: radial, but for steps. Of a component, or of a field of the target too: not radial.
    Of the target alone, of what is one value for all: radial. Of a field of the source: refused.
    """
    together = ir.Binary("+", R2, SOFT, KIND)
    assert of_expression(of_intrinsic(name, R2)).tier == ("P" if name in STEPS else "R")
    assert of_expression(of_intrinsic(name, U)).tier == "R"
    assert of_expression(of_intrinsic(name, D)).tier == ("R" if name in LINEAR else "P")
    assert of_expression(of_intrinsic(name, together)).tier == ("R" if name in LINEAR else "P")
    of_target = of_expression(of_intrinsic(name, SOFT))
    assert of_target.tier == ("P" if INTRINSICS[name].predicate else "R")  # a branch on the target's field
    of_field = of_expression(of_intrinsic(name, MASS), times=ONE)
    if name in LINEAR:
        assert of_field.tier == "R"
    else:
        assert of_field.refusal is not None
        assert of_field.refusal.message == f"source.mass stands under {name}: a group of sources has no mass"


ON = ir.Local("source.on", t.BOOL)
WHOLE = ir.Cast(MASS, t.I32)
WHOLE_S = ir.Cast(R2, t.I32)
TWO = ir.Literal(2, t.I32)
OPERATORS: dict[str, tuple[Callable[[ir.Expression], ir.Expression], str, str | None]] = {
    # an operation of one operand; what the tier of it of the squared distance is; why of the mass it is refused
    "+": (lambda x: ir.Binary("+", x, ONE, KIND), "R", None),
    "-": (lambda x: ir.Binary("-", ONE, x, KIND), "R", None),
    "negative": (lambda x: ir.Unary("-", x, KIND), "R", None),
    "* by itself": (lambda x: ir.Binary("*", x, x, KIND), "R", "source.mass is multiplied by source.mass"),
    "/": (lambda x: ir.Binary("/", ONE, x, KIND), "R", "source.mass stands below a fraction line"),
    "divided": (lambda x: ir.Binary("/", x, U, KIND), "R", None),
    "//": (lambda x: ir.Binary("//", x, ONE, KIND), "P", "source.mass stands under //"),
    "%": (lambda x: ir.Binary("%", x, ONE, KIND), "P", "source.mass stands under %"),
    "cast": (lambda x: ir.Cast(x, t.F32), "R", None),
    "whole": (lambda x: ir.Cast(x, t.I32), "P", "source.mass becomes an integer"),
    "truth": (lambda x: ir.Cast(x, t.BOOL), "R", "source.mass becomes a boolean"),
    "not": (lambda x: ir.Unary("not", ir.Compare("<", x, U), t.BOOL), "R", "source.mass is compared"),
    "and": (
        lambda x: ir.Logical("and", ir.Compare("<", x, U), ir.Compare("<", U, ONE)),
        "R",
        "source.mass is compared",
    ),
    "select": (lambda x: ir.Select(ir.Compare("<", U, ONE), x, ONE, KIND), "R", None),
    **{
        c: ((lambda x, c=c: ir.Compare(c, x, U)), "R", "source.mass is compared")  # type: ignore[arg-type,misc]
        for c in ("==", "!=", "<", "<=", ">", ">=")
    },
    **{
        o: ((lambda x, o=o: ir.Binary(o, ir.Cast(x, t.I32), TWO, t.I32)), "P", "source.mass becomes an integer")  # type: ignore[arg-type,misc]
        for o in ("&", "|", "^", "<<", ">>")
    },
    "~": (lambda x: ir.Unary("~", ir.Cast(x, t.I32), t.I32), "P", "source.mass becomes an integer"),
}


@pytest.mark.parametrize("name", list(OPERATORS))
def test_operators(name: str) -> None:
    operation, tier, refused = OPERATORS[name]
    assert of_expression(operation(R2)).tier == tier
    of_field = of_expression(operation(MASS), times=ONE)
    if refused is None:
        assert of_field.tier == "R", of_field.refusal
    else:
        assert of_field.refusal is not None
        assert of_field.refusal.message.startswith(refused)


def test_every_operator_has_a_sentence() -> None:
    asked = {*get_args(ir.BinaryOperator), *get_args(ir.CompareOperator), "not", "~", "and"} - {"*"}
    assert asked <= OPERATORS.keys()


def test_truth_values_of_the_source() -> None:
    chosen = of_expression(ir.Select(ON, R2, ONE, KIND), times=ONE)
    assert chosen.refusal is not None
    assert chosen.refusal.message == "source.on decides a branch: a group of sources has no on"
    counted = of_expression(ir.Binary("*", ir.Cast(ON, KIND), R2, KIND), times=ONE)
    assert counted.tier == "R"
    assert [p.name for p in counted.weights] == ["source.on"]


def test_squares_in_any_order(tmp_path: Path) -> None:
    """s is found however it is added up; two squares of three are none."""
    for text, tier in (
        ("lw.fma(d.z, d.z, lw.fma(d.y, d.y, d.x * d.x))", "R"),
        ("d.y * d.y + (d.x * d.x + d.z * d.z)", "R"),
        ("lw.length(d) ** 2", "R"),
        ("0.5 * d.x * d.x + 0.5 * d.y * d.y + 0.5 * (d.z * d.z)", "R"),
        ("d.x * d.x + d.y * d.y", "P"),
        ("d.x * d.x + d.y * d.y + 2.0 * d.z * d.z", "P"),
    ):
        assert made(tmp_path, f"return source.mass * lw.exp({text})").tier == tier, text


# ---------------------------------------------------------------- refusals

HEAD = """import lanewise as lw

@lw.record
class Ion:
    position: lw.dvec3
    mass: lw.f64
    radius: lw.f64
    kind: lw.i32
    bound: lw.bool

@lw.record
class Nowhere:
    mass: lw.f64

"""
PAIR = """@lw.pairwise
def force(target: Ion, source: Ion, table: lw.Array2[lw.f64], law: lw.Array1[lw.f64], seed: lw.u32) -> {returns}:
    d = source.position - target.position
    {body}
"""
PLACED = """class Placed(lw.Record):
    place: lw.dvec3
    mass: lw.f64


@lw.pairwise
def force(target: Placed, source: Placed) -> lw.f64:
    d = source.place - target.place
    return source.mass * lw.dot(d, d)
"""
REFUSED = {
    "a field under a root": "return lw.rsqrt(lw.dot(d, d) + source.radius) * source.mass",
    "a product of two fields": "return source.radius * source.mass * lw.exp(-lw.dot(d, d))",
    "a square of a field": "charge = source.mass\n    return charge**2 * lw.exp(-lw.dot(d, d))",
    "a field below a fraction line": "return 1.0 / (lw.dot(d, d) + source.radius)",
    "a branch on a field": "return source.mass if source.bound else 0.0",
    "a branch on two kinds": "if source.kind == target.kind:\n        return source.mass\n    return 0.0",
    "a field in a branch": "if lw.dot(d, d) < source.radius:\n        return source.mass\n    return 0.0",
    "a table of the pair": "return table[target.kind, source.kind] * lw.exp(-lw.dot(d, d))",
    "an index": "return source.mass * lw.f64(lw.index_of(source))",
    "a random number": "return source.mass * lw.drandom(seed, lw.index_of(source), 0)",
    "a random number of the target": "return source.mass * lw.drandom(seed, lw.index_of(target), 0)",
    "a while loop": "x = source.mass\n    while x > 1.0:\n        x = x * 0.5\n    return x",
    "a local array": "x = lw.zeros(lw.f64, 2)\n    x[0] = source.mass\n    return x[0]",
    "terms of two kinds, not radial": "return (source.mass + 1.0) * lw.exp(d.x)",
    "an integer, not radial": "return lw.f64(source.kind) * lw.exp(d.x)",
}
RETURNED = {
    "an integer": ("lw.i32", "return 1 if lw.dot(d, d) < 1.0 else 0"),
    "a fate": ("lw.Fate", "return lw.Fate.KEEP"),
    "the smallest": ("lw.Min[lw.f64]", "return lw.dot(d, d)"),
    "how many": ("lw.Count", "return lw.dot(d, d) < 1.0"),
    "a sum and where": ("tuple[lw.f64, lw.ArgMin[lw.f64]]", "return source.mass, lw.dot(d, d)"),
    "a sum of exponentials": ("lw.LogSumExp[lw.f64]", "return -lw.dot(d, d)"),
}


def kernel_of(directory: Path, source: str) -> Any:
    path = directory / "ions.py"
    path.write_text(HEAD + source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("ions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.force


def made(place: Path, body: str, returns: str = "lw.f64") -> Any:
    directory = place / str(len(list(place.iterdir())))
    directory.mkdir()
    return lw.far_field(kernel_of(directory, PAIR.format(body=body, returns=returns)))


def without(place: Path, text: str) -> str:
    """The text without the directories of the test."""
    for directory in place.iterdir():
        text = text.replace(f"{directory}/", "")
    return text


def test_refusals(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    cases = {what: ("lw.f64", body) for what, body in REFUSED.items()} | RETURNED
    texts: list[str] = []
    for what, (returns, body) in cases.items():
        proof = made(tmp_path, body, returns)
        assert proof.tier is None, what
        texts.append(f"# {what}\n{without(tmp_path, str(proof))}")
        error = proof.proof.refusal.error()
        assert isinstance(error, lw.CompileError)
        assert str(error) in str(proof)
    golden("refusals", "\n\n".join(texts))


PROXIES = {
    "a table of the distance": 'return source.mass * lw.interpolate(law, lw.dot(d, d), edge="clamp")',
    "a table of the target's kind": "return source.mass * law[target.kind] * lw.exp(-lw.dot(d, d))",
    "the softening of the target": "return source.mass * lw.rsqrt(lw.dot(d, d) + target.radius)",
    "a step of the distance": "return source.mass * lw.floor(lw.dot(d, d))",
    "a branch on the target": "return source.mass if target.bound else 0.0",
    "a branch on the direction": "return source.mass if d.x > 0.0 else 0.0",
    "the largest component": "return source.mass * lw.max(d.x, d.y)",
    "five components": "return source.mass * d.x * d.x * d.y * d.y * d.z",
}


def test_proxies(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    texts: list[str] = []
    for what, body in PROXIES.items():
        proof = made(tmp_path, body)
        assert proof.tier == "P", f"{what}: {proof}"
        assert proof.weights == ("source.mass",)
        texts.append(f"{what}: {without(tmp_path, proof.reason)}")
    golden("proxies", "\n".join(texts))


def test_the_position_is_that_of_the_search(tmp_path: Path) -> None:
    kernel = kernel_of(tmp_path, PLACED).using(lw.AllPairs(position="place"))
    assert lw.far_field(kernel).tier == lw.far_field(kernel, "place").tier == "R"


def test_what_is_no_pair(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    element = "@lw.elementwise\ndef force(ion: Ion) -> lw.f64:\n    return ion.mass\n"
    nowhere = "@lw.pairwise\ndef force(target: Ion, source: Nowhere) -> lw.f64:\n    return source.mass\n"
    texts: list[str] = []
    for number, (source, position) in enumerate(
        ((element, "position"), (nowhere, "position"), (PAIR.format(body="return 1.0", returns="lw.f64"), "mass"))
    ):
        directory = tmp_path / f"wrong{number}"
        directory.mkdir()
        kernel = kernel_of(directory, source)
        with pytest.raises(lw.ArgumentError) as error:
            lw.far_field(kernel, position=position)
        texts.append(str(error.value))
    golden("no_pair", "\n".join(texts))


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize("kernel", [kernels.potential, kernels.logarithmic, kernels.dipole], ids=lambda k: k.__name__)
def test_the_gradient_of_a_far_field_is_a_far_field(kernel: Any) -> None:
    """With respect to the position of the target, with cotangents of the targets: factors of the target."""
    f, axes = kernel.lowered.function, lw.far_field(kernel).proof.axes
    vector = t.Vector(t.F64, axes)
    asked = [GradientValue(t.leaves("target.position", vector), vector, here=True, there=False)]
    made = gradient(f, "gradient", asked, Cotangents(("cotangent",)), ELEMENTS).function
    proof = prove_far_field(made, ELEMENTS, "position", axes)
    assert proof.tier == "R", proof.refusal or proof.not_radial
    assert [p.name for p in proof.weights] == [p.name for p in lw.far_field(kernel).proof.weights]
    assert proof.radial is not None
    assert all(term.part.factor is not None for terms in proof.radial.results for term in terms)
