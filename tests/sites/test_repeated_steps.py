"""Single steps in a loop: bound once to the memory of their sites, and anew where anything that they were made of has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.sitewise.kernels import SiteKernels
from lanewise.runtime.memory import to_host

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
SHAPE = (6, 9)


def make_heat() -> Any:
    @lw.stencil(lw.D2Q5)
    def heat(t: lw.Field[lw.f64], rate: lw.f64) -> lw.f64:
        return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])

    return heat


def heated(t: Any, rate: float) -> Any:
    around = sum(np.roll(t, s, a) for s in (1, -1) for a in (0, 1))
    return t + rate * (around - 4 * t)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that were bound since."""
    bound: list[int] = []
    step = SiteKernels.step

    def counted(self: SiteKernels, sites: Any, number: int, *rest: Any) -> Any:
        bound.append(number)
        return step(self, sites, number, *rest)

    monkeypatch.setattr(SiteKernels, "step", counted)
    return bound


@pytest.mark.parametrize("device", DEVICES)
def test_a_stencil_called_in_a_loop_is_bound_once(device: str, bindings: list[int]) -> None:
    heat = make_heat()
    t, before = np.random.default_rng(1).random(SHAPE), 0
    plate = heat.sites(SHAPE, t=t, device=device)
    for n in range(8):
        if n == 5:  # new values lie where the old ones did
            t = np.random.default_rng(2).random(SHAPE)
            heat.set_fields(plate, t=t)
        heat(plate, rate=0.2)
        t = heated(t, 0.2)
        np.testing.assert_allclose(to_host(heat.field(plate, "t")), t, rtol=0, atol=1e-14)
        if n == 2:  # each of the two copies of the fields was read by then
            before = len(bindings)
    assert len(bindings) == before
    heat(plate, rate=0.1)  # another value is another call
    np.testing.assert_allclose(to_host(heat.field(plate, "t")), heated(t, 0.1), rtol=0, atol=1e-14)
    assert len(bindings) == before + 1


def test_coefficients_are_read_anew_in_every_call() -> None:
    @lw.stencil(lw.D2Q5)
    def spread(t: lw.Field[lw.f64], k: lw.Field[lw.f64]) -> lw.f64:
        return t[0] + k[0] * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])

    t, k = np.random.default_rng(1).random((2, *SHAPE))
    plate = spread.sites(SHAPE, t=t, device="cpu")
    for _ in range(3):
        spread(plate, k=k)
        t = heated(t, k)
        np.testing.assert_allclose(spread.field(plate, "t"), t, rtol=0, atol=1e-14)
        k *= 0.5


def test_a_plan_that_was_tuned_on_other_sites_is_taken_by_the_next_step(
    monkeypatch: pytest.MonkeyPatch, bindings: list[int]
) -> None:
    heat = make_heat()
    here, there = (heat.sites(SHAPE, t=1.0, device="cpu") for _ in range(2))
    for _ in range(3):
        heat(here, rate=0.2)
    values = heat.kinds.values(there, {"rate": 0.2})
    plan = replace(heat.kernels.default_plan(there, values), vector_bits=256)
    heat.kernels.adopt(there, values, plan)
    before = len(bindings)
    heat(here, rate=0.2)
    assert len(bindings) == before + 1
    assert heat.compile(here, rate=0.2).plan.vector_bits == 256
