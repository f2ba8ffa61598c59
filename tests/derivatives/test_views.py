"""Gradients of views and of arrays without elements: those of copies of the same elements, and of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.derivatives.test_gradients import host

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(4)]
EVERY = ["python", pytest.param("cuda", marks=pytest.mark.cuda)]


class Spring(lw.Record):
    """A place with a stiffness; `number` is read by no kernel."""

    position: lw.dvec2
    stiffness: lw.f64
    number: lw.i32


@lw.pairwise
def tension(target: Spring, source: Spring, scale: lw.f64) -> lw.f64:
    """Not symmetric, so that both roles of an element have derivatives of their own."""
    d = source.position - target.position
    return 0.0 if lw.same(target, source) else scale * source.stiffness * (1.0 + target.position.x) * lw.dot(d, d)


@lw.elementwise
def height(spring: Spring, scale: lw.f64) -> lw.f64:
    return scale * spring.stiffness * spring.position.y**2


N = 17
RNG = np.random.default_rng(11)
POSITION, STIFFNESS = RNG.uniform(0, 1, (N, 2)), RNG.uniform(0.5, 1.5, N)
SLICES = (slice(3, 12), slice(1, None, 3), slice(None, None, 2), slice(16, None))
WHOLE_BLOCKS = (slice(4, 13), slice(0, 8), slice(16, None))  # where kernels run over views of blocks of 4


def springs(device: str, layout: lw.Layout | None = None) -> Any:
    return Spring.array(position=POSITION, stiffness=STIFFNESS, number=np.arange(N), layout=layout, device=device)


def derivatives(a: slice, b: slice, weights: Any, *, same: bool) -> dict[str, Any]:
    """Those of sum_i w_i sum_j tension(i, j), by NumPy, for a scale of 2."""
    x, y, k = POSITION[a], POSITION[b], STIFFNESS[b]
    d = y[None] - x[:, None]
    counts = weights[:, None] * 2 * k * (1 - np.eye(len(x), len(y)) if same else 1)
    squares, factor = (d * d).sum(-1), 1 + x[:, :1]
    along = (counts * factor)[..., None] * 2 * d
    target = -along.sum(1)
    target[:, 0] += (counts * squares).sum(1)
    return {
        "target.position": target,
        "source.position": along.sum(0),
        "source.stiffness": (counts * factor * squares / k).sum(0),
        "scale": (counts * factor * squares).sum() / 2,
    }


def compare(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(host(found), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("device", EVERY)
def test_views_of_one_array(device: str, layout: lw.Layout) -> None:
    """Two parts of one array are two arrays, whether they share elements or not, and whatever memory is theirs."""
    whole = springs(device, layout)
    parts = WHOLE_BLOCKS if isinstance(layout, lw.AoSoA) else SLICES
    for a in parts:
        check_two(whole[a], whole[8:15], a, slice(8, 15))
    check_two(whole[parts[0]], whole, parts[0], slice(None))


@pytest.mark.parametrize("device", DEVICES)
def test_steps(device: str) -> None:
    whole = springs(device, lw.AoS())
    check_two(whole[::2], whole[1::2], slice(None, None, 2), slice(1, None, 2))
    check_one(whole[1::3], whole[1::3], slice(1, None, 3))


def check_two(targets: Any, sources: Any, a: slice, b: slice) -> None:
    names = ("target.position", "source.position", "stiffness", "scale")
    gradient = tension.gradient(wrt=names)
    weights = np.random.default_rng(2).normal(size=len(targets))
    before = host(targets.position).copy()
    for cotangent, w in ((None, np.ones(len(targets))), (weights, weights)):
        wanted = derivatives(a, b, w, same=False)
        for name, found in zip(names, gradient(targets, sources, 2.0, cotangent=cotangent), strict=True):
            compare(found, wanted["source.stiffness" if name == "stiffness" else name])
    np.testing.assert_array_equal(host(targets.position), before)
    with pytest.raises(lw.ArgumentError, match="targets and sources are two arrays here, and both have a position"):
        tension.gradient(wrt="position")(targets, sources, 2.0)


@pytest.mark.parametrize("cotangent", [None, 1.0])
def test_views_within_blocks(cotangent: Any) -> None:
    """Refused as by every kernel, in the words of the user's function."""
    view = springs("python", lw.AoSoA(4))[3:12]
    with pytest.raises(lw.ArgumentError, match="'target': this view of an array of Spring begins within the blocks"):
        tension.gradient(wrt="target.position")(view, view, 2.0, cotangent=cotangent)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("device", EVERY)
def test_one_view(device: str, layout: lw.Layout) -> None:
    """The same part, made twice, is one array: its elements count as targets and as sources, and `lw.same`
    knows them.
    """
    whole = springs(device, layout)
    for a in WHOLE_BLOCKS if isinstance(layout, lw.AoSoA) else SLICES:
        check_one(whole[a], whole[a], a)


@pytest.mark.parametrize("device", EVERY)
def test_one_and_two_in_turns(device: str) -> None:
    """Calls that differ only in which elements the sources are: what is remembered of one does not run for
    the other.
    """
    whole = springs(device)
    gradient = tension.gradient(wrt=("target.position", "source.position"))
    a, b = slice(0, 8), slice(8, 16)
    for sources in (a, b, a, a, b, slice(4, 12), a):
        for cotangent in (None, 1.0):
            wanted = derivatives(a, sources, np.ones(8), same=sources == a)
            target, source = gradient(whole[a], whole[sources], 2.0, cotangent=cotangent)
            compare(target, wanted["target.position"])
            compare(source, wanted["source.position"])


def check_one(targets: Any, sources: Any, a: slice) -> None:
    names = ("position", "source.position", "stiffness", "scale")
    gradient = tension.gradient(wrt=names)
    weights = np.random.default_rng(2).normal(size=len(targets))
    for cotangent, w in ((None, np.ones(len(targets))), (weights, weights)):
        wanted = derivatives(a, a, w, same=True)
        wanted |= {
            "position": wanted["target.position"] + wanted["source.position"],
            "stiffness": wanted["source.stiffness"],
        }
        for name, found in zip(names, gradient(targets, sources, 2.0, cotangent=cotangent), strict=True):
            compare(found, wanted[name])


def of_the_nearest(a: slice, b: slice, weights: Any, k: int) -> tuple[Any, Any]:
    """The derivatives by the positions of targets and by the scale, over the k nearest other elements, by NumPy, for a
    scale of 2.
    """
    numbers = np.arange(N)
    position, scale = np.zeros((len(weights), 2)), 0.0
    for row, i in enumerate(numbers[a]):
        others = np.array([j for j in numbers[b] if j != i])
        d = POSITION[others] - POSITION[i]
        for j in np.argsort((d * d).sum(1))[:k]:
            strength, square, factor = weights[row] * STIFFNESS[others[j]], d[j] @ d[j], 1 + POSITION[i, 0]
            scale += strength * factor * square
            position[row] += 2 * strength * (np.array([square, 0.0]) - 2 * factor * d[j])
    return position, np.float64(scale)


@pytest.mark.parametrize("search", [lw.Neighbors(radius=0.4), lw.AllPairs(radius=0.4), lw.Nearest(k=3)], ids=str)
@pytest.mark.parametrize("device", DEVICES[1:])
def test_views_over_a_search(device: str, search: Any) -> None:
    """As of copies, but that the nearest of a part do not have its own elements; all follow one another in one gradient."""
    whole = springs(device)
    names = ("target.position", "scale") if search.k is not None else ("target.position", "stiffness", "scale")
    gradient = tension.using(search).gradient(wrt=names)
    for a, b in ((slice(2, 9), slice(4, None)), (slice(0, 9), slice(4, None)), (slice(9, 11), slice(0, 8))):
        weights = np.random.default_rng(2).normal(size=len(whole[a]))
        for cotangent in (None, weights):
            views = gradient(whole[a], whole[b], 2.0, cotangent=cotangent)
            if search.k is not None:
                wanted = of_the_nearest(a, b, np.ones(len(whole[a])) if cotangent is None else cotangent, search.k)
                for x, y in zip(views, wanted, strict=True):
                    compare(x, y)
                continue
            copies = gradient(whole[a].copy(), whole[b].copy(), 2.0, cotangent=cotangent)
            for x, y in zip(views, copies, strict=True):
                compare(x, host(y))


@pytest.mark.parametrize("device", DEVICES)
def test_elements_of_views(device: str) -> None:
    whole = springs(device, lw.AoS())
    gradient = height.gradient(wrt=("position", "scale"))
    for a in SLICES:
        y, k = POSITION[a, 1], STIFFNESS[a]
        for w in (np.ones(len(y)), np.random.default_rng(2).normal(size=len(y))):
            position, scale = gradient(whole[a], 2.0, cotangent=w)
            compare(position, np.stack([np.zeros(len(y)), w * 4 * k * y], -1))
            compare(scale, (w * k * y * y).sum())


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("device", EVERY)
def test_no_elements(device: str, layout: lw.Layout) -> None:
    """No targets: no rows, zeros for sources, and a total of 0.0. No sources: zeros for targets."""
    check_none(springs(device, layout), Spring.zeros(0, layout=layout, device=device))
    check_none(springs(device, layout), springs(device, layout)[0:0])


@pytest.mark.parametrize("device", DEVICES[1:2])
def test_no_elements_compiled(device: str) -> None:
    check_none(springs(device), Spring.zeros(0, device=device))


def check_none(some: Any, none: Any) -> None:
    names = ("target.position", "source.position", "stiffness", "scale")
    gradient, one = tension.gradient(wrt=names), tension.gradient(wrt=("position", "stiffness", "scale"))
    for cotangent in (None, np.zeros(0)):
        target, source, stiffness, scale = (host(x) for x in gradient(none, some, 2.0, cotangent=cotangent))
        assert (target.shape, scale) == ((0, 2), 0.0)
        np.testing.assert_array_equal(source, np.zeros((N, 2)))
        np.testing.assert_array_equal(stiffness, np.zeros(N))
        position, stiffness, scale = (host(x) for x in one(none, none, 2.0, cotangent=cotangent))
        assert (position.shape, stiffness.shape, scale) == ((0, 2), (0,), 0.0)
        position, scale = height.gradient(wrt=("position", "scale"))(none, 2.0, cotangent=cotangent)
        assert (position.shape, scale) == ((0, 2), 0.0)
    for cotangent in (None, np.ones(N)):
        target, source, stiffness, scale = (host(x) for x in gradient(some, none, 2.0, cotangent=cotangent))
        assert (source.shape, stiffness.shape, scale) == ((0, 2), (0,), 0.0)
        np.testing.assert_array_equal(target, np.zeros((N, 2)))


@pytest.mark.parametrize("search", [lw.Neighbors(radius=0.4), lw.Nearest(k=3)], ids=str)
@pytest.mark.parametrize("device", DEVICES[1:])
def test_no_elements_over_a_search(device: str, search: Any) -> None:
    some, none = springs(device), Spring.zeros(0, device=device)
    gradient = tension.using(search).gradient(wrt=("target.position", "scale"))
    for cotangent in (None, 1.0):
        position, scale = gradient(none, some, 2.0, cotangent=cotangent)
        assert (position.shape, scale) == ((0, 2), 0.0)
        if search.k is not None:
            with pytest.raises(lw.ArgumentError, match="the 3 nearest: there are only 0 sources"):
                gradient(some, none, 2.0, cotangent=cotangent)
            continue
        position, scale = gradient(some, none, 2.0, cotangent=cotangent)
        np.testing.assert_array_equal(host(position), np.zeros((N, 2)))
        assert scale == 0.0
