"""Branches of the distance: decided for two groups only where each has one answer for all their pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.simplification import expression_of
from lanewise.derivatives.expansions.branches import decided
from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call, evaluate
from lanewise.ir.verify import verify_function
from tests import far_kernels as kernels


@lw.pairwise
def bounded(target: kernels.Star, source: kernels.Star, radius: lw.f64) -> lw.f64:
    """Kinks of every kind."""
    d = source.position - target.position
    s = lw.dot(d, d)
    near = lw.min(s, radius) + lw.max(lw.sqrt(s), 1.0 / (s + 0.5))
    far = lw.clamp(lw.log(s), -0.5, 1.0) * lw.abs(s - radius * 2.0)
    return source.mass * (near + far + lw.f64(lw.exp(-s) * s < 0.1 * radius) - lw.f64(lw.bool(s - 2.0)))


@lw.pairwise
def waves(target: kernels.Star, source: kernels.Star) -> lw.f64:
    d = source.position - target.position
    s = lw.dot(d, d)
    return source.mass if lw.sin(s) > 0.0 else 0.0


CASES: list[tuple[Any, dict[str, float]]] = [
    (kernels.spline, {"h": 1.2}),
    (kernels.number_within, {"radius": 1.1}),
    (bounded, {"radius": 0.9}),
    (kernels.plummer, {"softening2": 0.1}),
]


def sides(proof: Any, s: float, values: dict[str, float]) -> list[Any]:
    """Which side every branch takes at a distance."""
    table = proof.radial.table
    env = {n: np.float64(v) for n, v in {**values, "s": s}.items()}

    def expression(number: int) -> ir.Expression:
        node = table.nodes[number]
        return expression_of(node, tuple(expression(n) for n in node.operands))

    def value(number: int) -> float:
        return float(evaluate(expression(number), env))

    found: list[Any] = []
    for number in proof.radial.branches:
        node = table.nodes[number]
        match node.operation:
            case "min" | "max":
                found.append(value(node.operands[0]) < value(node.operands[1]))
            case "abs":
                found.append(value(node.operands[0]) < 0)
            case "clamp":
                x, low, high = map(value, node.operands)
                found.append((x < low, x > high))
            case _:
                found.append(bool(value(number)))
    return found


@pytest.mark.parametrize(("kernel", "values"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_decided_is_true_only_where_all_agree(kernel: Any, values: dict[str, float]) -> None:
    proof = lw.far_field(kernel).proof
    f = decided(Operators(proof, 3))
    verify_function(f)
    rng = np.random.default_rng(8)
    answers: list[bool] = []
    for _ in range(150):
        least = 10 ** rng.uniform(-2, 1.5)
        largest = least * (1 + 10 ** rng.uniform(-2, 0.5))
        env = {"$least": np.float64(least), "$largest": np.float64(largest)}
        env |= {n: np.float64(v) for n, v in values.items()}
        (answer,), _ = call(f, {p.name: env[p.name] for p in f.parameters})
        answers.append(bool(answer))
        if answer:
            every = [sides(proof, s, values) for s in np.linspace(least, largest, 12)]
            assert all(x == every[0] for x in every)
    assert sum(answers) > 20
    if kernel is not kernels.plummer:
        assert not all(answers)


def test_undecided() -> None:
    """What is not monotone is not known; what is no number is undecided; without branches all is decided."""
    f = decided(Operators(lw.far_field(waves).proof, 3))
    assert call(f, {"$least": np.float64(1.0), "$largest": np.float64(1.1)})[0] == [False]
    f = decided(Operators(lw.far_field(kernels.spline).proof, 3))
    for least, largest in ((np.nan, 4.0), (4.0, np.nan), (np.nan, np.nan)):
        env = {"$least": np.float64(least), "$largest": np.float64(largest), "h": np.float64(1.0)}
        assert call(f, env)[0] == [False]
    f = decided(Operators(lw.far_field(kernels.plummer).proof, 3))
    assert call(f, {})[0] == [True]


@lw.pairwise
def rooted(target: kernels.Star, source: kernels.Star) -> lw.f64:
    d = source.position - target.position
    s = lw.dot(d, d)
    return source.mass if 2 * lw.sqrt(s - 1.0) < 3.0 else 2.0 * source.mass


@lw.pairwise
def turned(target: kernels.Star, source: kernels.Star) -> lw.f64:
    d = source.position - target.position
    s = lw.dot(d, d)
    return source.mass if lw.abs(lw.rsqrt(s - 1.0)) < 5.0 else 2.0 * source.mass


@pytest.mark.parametrize("kernel", [rooted, turned], ids=lambda k: k.__name__)
def test_an_end_that_is_no_number_is_undecided(kernel: Any) -> None:
    f = decided(Operators(lw.far_field(kernel).proof, 3))
    for least, largest, answer in ((0.5, 5.0, False), (2.0, 2.5, True), (0.25, 0.5, False)):
        assert call(f, {"$least": np.float64(least), "$largest": np.float64(largest)})[0] == [answer]
