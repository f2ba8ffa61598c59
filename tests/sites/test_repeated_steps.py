"""Single steps in a loop: bound once to the memory of their sites, and anew where anything that they were made of has
changed.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.sitewise.kernels import SiteKernels
from lanewise.patterns.sitewise.observer import Observer
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


def make_flow() -> tuple[Any, Any]:
    @lw.sitewise(lw.D2Q9)
    def flow(f: lw.populations, omega: lw.f32):
        total = lw.f32(0)
        for q in lw.D2Q9:
            total += f[q]
        for q in lw.D2Q9:
            f[q] += omega * (q.weight * total - f[q])

    @flow.observer
    def look(f: lw.populations, scale: lw.f32) -> tuple[lw.f32, lw.vec2]:
        total, momentum = lw.f32(0), lw.vec2(0)
        for q in lw.D2Q9:
            total += f[q]
            momentum += f[q] * q.velocity
        return total * scale, momentum

    flow.wall(1, "wall")
    return flow, look


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The looks of observers that were bound since."""
    bound: list[int] = []
    call = Observer._call

    def counted(self: Observer, sites: Any, step: int, *rest: Any) -> Any:
        bound.append(step)
        return call(self, sites, step, *rest)

    monkeypatch.setattr(Observer, "_call", counted)
    return bound


@pytest.mark.quick("cpu-in-place", "cpu-pull")
@pytest.mark.parametrize("streaming", ["in-place", "pull", "push"])
@pytest.mark.parametrize("device", DEVICES)
def test_an_observer_called_in_a_loop_is_bound_once(device: str, streaming: str, looks: list[int]) -> None:
    """Once for each place in a cycle of steps; results are new arrays, and as those of an observer that was never
    called.
    """
    flow, look = make_flow()
    sites = flow.sites(SHAPE, edges={"x": "wall", "y": "wall"}, streaming=streaming, device=device)
    start = np.random.default_rng(3).random((9, *SHAPE))
    before, seen = 0, list[Any]()
    for n in range(9):
        if n in (0, 6):
            flow.set_populations(sites, start)
        found = look(sites, scale=2.0)
        seen.append(found)
        looks_of_others = len(looks)
        wanted = flow.observer(look.function.python)(sites, scale=2.0)
        del looks[looks_of_others:]
        assert [to_host(x).tobytes() for x in found] == [to_host(x).tobytes() for x in wanted]
        flow(sites, omega=1.2)
        if n == 3:
            before = len(looks)
    assert len(looks) == before
    assert to_host(seen[0][0]).tobytes() == to_host(seen[6][0]).tobytes()
    assert to_host(seen[0][0]).tobytes() != to_host(seen[1][0]).tobytes()
    place = sites.step
    half = look(sites, scale=1.0)  # another value is another call
    assert looks[before:] == [place]
    np.testing.assert_allclose(2 * to_host(half[0]), to_host(look(sites, scale=2.0)[0]), rtol=1e-6)
    with pytest.raises(lw.ArgumentError, match="look needs scale; its parameters are scale"):
        look(sites)
    with pytest.raises(lw.ArgumentError, match="has no parameter 'scales'"):
        look(sites, scale=1.0, scales=1.0)


def test_an_observer_notices_a_constant_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    flow, _ = make_flow()

    @flow.observer
    def gained(f: lw.populations) -> lw.f32:
        return GAIN * (f[1] + 1.0)

    sites = flow.sites(SHAPE)
    found = [to_host(gained(sites)).tolist() for _ in range(2)]
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    assert to_host(gained(sites)).tolist() == [3 * x for x in found[0]]
    assert found[0] == found[1] != [3 * x for x in found[0]]


@pytest.mark.parametrize("edges", ["periodic", "wall"])
def test_what_was_looked_at_is_not_kept_alive(edges: str) -> None:
    flow, look = make_flow()
    sites = flow.sites(SHAPE, edges=dict.fromkeys("xy", edges))
    for _ in range(3):
        found = look(sites, scale=1.0)
        assert not any(np.shares_memory(a, b) for a, b in zip(found, look(sites, scale=1.0), strict=True))
        result = weakref.ref(found[0])
        del found
        assert result() is None
        flow(sites, omega=1.0)
    other = flow.observer(look.function.python)
    other(sites, scale=1.0)
    assert len(sites.kept) == 3
    del other
    assert len(sites.kept) == 2  # the steps, and the other observer
    memory = weakref.ref(sites.copies[0])
    gc.disable()
    try:
        del sites
        assert memory() is None
    finally:
        gc.enable()


GAIN = 1.0
