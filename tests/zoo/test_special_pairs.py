"""Extremes over pairs, their indices and counts where numbers are equal, infinite or not numbers: every plan finds what
NumPy does.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.pairwise.build import PAIRWISE
from lanewise.runtime.memory import to_host
from tests.fuzz.texts import executed
from tests.fuzz.trial import draw_wish, fewer

QUICK, MANY = 1, 60
FORMS = ("Min", "Max", "ArgMin", "ArgMax")
VALUES = {
    "source.w": lambda t, s: s + 0 * t,
    "source.w + target.w": lambda t, s: s + t,
    "abs(source.w - target.w)": lambda t, s: np.abs(s - t),
    "source.w * target.w": lambda t, s: s * t,
    "lw.select(source.w > 0.5, source.w, math.inf)": lambda t, s: np.where(s > 0.5, s, np.inf) + 0 * t,
}
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


@pytest.mark.parametrize("seed", [pytest.param(s, marks=() if s < QUICK else pytest.mark.slow) for s in range(MANY)])
def test_equal_and_infinite_numbers(seed: int) -> None:
    _compare(seed, "cpu")


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(0, MANY, 2))
def test_equal_and_infinite_numbers_on_a_gpu(seed: int) -> None:
    _compare(seed, "cuda")


def _compare(seed: int, device: str) -> None:
    rng = Random(seed)
    value, forms = rng.choice(tuple(VALUES)), rng.sample(FORMS, rng.randint(1, 4))
    results = ", ".join([value] * len(forms) + ["source.w == target.w"])
    kinds = ", ".join([*(f"lw.{f}[lw.f32]" for f in forms), "lw.Count"])
    text = f"""@lw.record
class Item:
    w: lw.f32


@lw.pairwise
def kernel(target: Item, source: Item) -> tuple[{kinds}]:
    return {results}
"""
    targets = _numbers(seed, 40, ())
    sources = _numbers(seed + 1, rng.choice((1, 33, 300)), rng.sample(SPECIAL, seed % 5))
    with np.errstate(invalid="ignore"):
        v = VALUES[value](targets[:, None].astype(np.float64), sources[None].astype(np.float64))
    wanted = [*(_reduced(f, v) for f in forms), (targets[:, None] == sources[None]).sum(1)]
    with executed(text, f"zoo_special_{seed}.py") as names:
        layouts = [rng.choice((None, lw.AoS(), lw.SoA())) for _ in range(2)]
        both = zip((targets, sources), layouts, strict=True)
        given = [names.Item.array(w=x, layout=y, device=device) for x, y in both]
        for plan in (None, *_plans(names.kernel, given, rng, device)):
            got = [to_host(f) for f in names.kernel(*given, plan=plan)]
            for n, (f, w) in enumerate(zip(got, wanted, strict=True)):
                assert np.array_equal(f, w, equal_nan=True), f"seed {seed}, result {n}, {plan}: {f} for {w}\n{text}"
                assert not np.signbit(f[w == 0]).any(), f"seed {seed}, result {n}, {plan}: a zero with a sign"


def _plans(kernel: Any, given: list[Any], rng: Random, device: str) -> list[lw.Plan]:
    """A random one that the kernel does not refuse."""
    for wish in fewer(rng, draw_wish(rng, device, PAIRWISE)):
        try:
            kernel.compile(*given, plan=wish)
        except lw.PlanError:
            continue
        return [wish]
    return []


def _numbers(seed: int, n: int, special: Any) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    w = rng.integers(-4, 5, n).astype(np.float32) / 4  # of so few numbers most are equal
    if len(special):
        there = rng.random(n) < 0.3
        w[there] = rng.choice(np.array(special, np.float32), int(there.sum()))
    return w


def _reduced(form: str, v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What is no number counts for nothing; the first of equal ones is meant, and none that is infinite."""
    sign = -1.0 if form.endswith("Max") else 1.0
    u = np.where(np.isnan(v), np.inf, sign * v)
    if form.startswith("Arg"):
        return np.where(u.min(1) < np.inf, u.argmin(1), -1)
    return sign * u.min(1)
