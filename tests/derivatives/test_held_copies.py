"""Copies of targets with their cotangents, which later calls write anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.pairwise import cotangents
from lanewise.support.errors import ArgumentError
from tests.derivatives.test_gradients import DEVICES, host

every_device = pytest.mark.parametrize("device", DEVICES)


@lw.record
class Charge:
    place: lw.vec2
    size: lw.f32


@lw.pairwise
def energy(target: Charge, source: Charge, floor: lw.f32) -> lw.f32:
    d = source.place - target.place
    return target.size * source.size / (lw.dot(d, d) + floor)


def charges(device: str, n: int = 5, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return Charge.array(place=rng.normal(size=(n, 2)), size=rng.uniform(1, 2, n), device=device)


def weights(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=n).astype(np.float32)


def expected(a: Any, c: Any) -> Any:
    """sum_ij c_i E_ij with respect to the sizes, in float64."""
    x, s = host(a.place).astype("f8"), host(a.size).astype("f8")
    kernel = 1 / (((x[:, None] - x[None]) ** 2).sum(-1) + 0.5)
    return c * (kernel @ s) + kernel.T @ (c * s)


def held(gradient: Any) -> list[Any]:
    """The copies that a gradient keeps."""
    kept = gradient._sought.kept()["cotangent"]._held
    return [h.copy for idle in kept.values() for h in idle]


@every_device
def test_each_call_has_its_own_cotangents_and_results(device: str) -> None:
    a, gradient = charges(device), energy.using(lw.AllPairs()).gradient(wrt="size")
    given = [weights(5, seed) for seed in range(3)]
    found = [gradient(a, a, floor=0.5, cotangent=c) for c in given]
    for result, c in zip(found, given, strict=True):
        np.testing.assert_allclose(host(result), expected(a, c), rtol=2e-5)
    assert len(held(gradient)) == 1


@every_device
def test_calls_of_other_sizes_and_layouts_have_other_copies(device: str) -> None:
    gradient = energy.using(lw.AllPairs()).gradient(wrt="size")
    for n, layout in ((5, lw.SoA()), (6, lw.SoA()), (5, lw.AoS()), (5, lw.SoA())):
        a, c = charges(device, n).with_layout(layout), weights(n, n)
        np.testing.assert_allclose(host(gradient(a, a, floor=0.5, cotangent=c)), expected(a, c), rtol=2e-5)
    assert len(held(gradient)) == 3


@every_device
def test_threads_do_not_share_a_copy(device: str) -> None:
    a, gradient = charges(device, 64), energy.using(lw.AllPairs()).gradient(wrt="size")
    gradient(a, a, floor=0.5, cotangent=weights(64, 0))

    def one(seed: int) -> None:
        c = weights(64, seed)
        for _ in range(20):
            np.testing.assert_allclose(
                host(gradient(a, a, floor=0.5, cotangent=c)), expected(a, c), rtol=1e-4, atol=1e-4
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    assert 1 <= len(held(gradient)) <= cotangents.MOST_IDLE


def test_large_copies_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cotangents, "MOST_HELD", 64)
    a, gradient = charges("cpu", 32), energy.using(lw.AllPairs()).gradient(wrt="size")
    gradient(a, a, floor=0.5, cotangent=weights(32, 0))
    assert held(gradient) == []


def test_copies_of_many_sizes_are_forgotten() -> None:
    gradient = energy.using(lw.AllPairs()).gradient(wrt="size")
    for n in range(2, 4 + cotangents.MOST_KINDS):
        a = charges("cpu", n)
        gradient(a, a, floor=0.5, cotangent=weights(n, 0))
    assert len(held(gradient)) <= cotangents.MOST_KINDS


def test_a_refused_cotangent_leaves_the_copy_for_the_next_call() -> None:
    a, gradient = charges("cpu"), energy.using(lw.AllPairs()).gradient(wrt="size")
    c = weights(5, 0)
    first = gradient(a, a, floor=0.5, cotangent=c)
    with pytest.raises(ArgumentError, match="cotangent"):
        gradient(a, a, floor=0.5, cotangent=np.ones(6, np.float32))
    assert len(held(gradient)) == 1
    np.testing.assert_array_equal(gradient(a, a, floor=0.5, cotangent=c), first)
