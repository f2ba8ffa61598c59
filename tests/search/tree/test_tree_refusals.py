"""What lw.Tree refuses, word by word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests import far_kernels as kernels


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    radius: lw.f32


def refused(error: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


FAR = "a far field has all sources in it, near and far; lw.Neighbors(radius=...) and lw.Nearest(k=...) find near ones"
ANGLE = (
    "wanted a number above 0 and at most 0.9: a group counts as far where its radius is less than "
    "theta times its distance"
)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"radius": 1.0}, f"Tree(radius=1.0): {FAR}"),
        ({"k": 3}, f"Tree(k=3): {FAR}"),
        (
            {"world": lw.Periodic((1, 1, 1))},
            "Tree(world=periodic world of 1 x 1 x 1): the images of far groups are an infinite "
            "sum, which a tree does not have; wanted lw.Open()",
        ),
        (
            {"world": lw.Bounded((0, 0), (1, 1))},
            f"Tree(world={lw.Bounded((0, 0), (1, 1))}): the box of a tree follows from its elements "
            "and needs no bounds; wanted lw.Open()",
        ),
        (
            {"accuracy": 1.0},
            "Tree(accuracy=1.0): wanted a number above 0 and below 1: the error of results relative to themselves",
        ),
        (
            {"method": "dual", "accuracy": 1e-2},
            "Tree(method='dual', accuracy=...): errors are estimated where targets meet groups, and "
            "not of pairs of groups; choose theta= and order=, or method='walk'",
        ),
        ({"method": "octree"}, "Tree(method='octree'): wanted 'walk' or 'dual'"),
        ({"method": 3}, "Tree(method=3): wanted 'walk' or 'dual'"),
        ({"theta": 0}, f"Tree(theta=0): {ANGLE}"),
        ({"theta": 1.0}, f"Tree(theta=1.0): {ANGLE}"),
        ({"theta": float("nan")}, f"Tree(theta=nan): {ANGLE}"),
        ({"theta": "wide"}, f"Tree(theta='wide'): {ANGLE}"),
        ({"order": 9}, "Tree(order=9): wanted an integer from 0 to 8"),
        ({"order": 2.0}, "Tree(order=2.0): wanted an integer from 0 to 8"),
        ({"order": True}, "Tree(order=True): wanted an integer from 0 to 8"),
        ({"leaf": 0}, "Tree(leaf=0): wanted an integer from 1 to 256"),
        ({"leaf": 257}, "Tree(leaf=257): wanted an integer from 1 to 256"),
        ({"position": ""}, "Tree(position=''): wanted the name of a field, such as 'position'"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_settings(given: dict[str, Any], text: str) -> None:
    assert refused(lw.ArgumentError, lambda: lw.Tree(**given)) == text


def test_numbers_of_numpy_are_numbers() -> None:
    tree = lw.Tree(theta=np.float32(0.5), order=np.int64(3), leaf=np.int32(16))
    assert tree == lw.Tree(theta=0.5, order=3, leaf=16)
    assert hash(tree) == hash(lw.Tree(theta=0.5, order=3, leaf=16))


def bodies(count: int = 4) -> Any:
    return Body.array(position=np.eye(count, 3), mass=1.0, device="cpu")


def told(function: Any, *arguments: Any) -> str:
    return refused(lw.CompileError, lambda: function.using(lw.Tree())(*arguments))


def test_a_group_has_no_radius() -> None:
    @lw.pairwise
    def touching(target: Body, source: Body) -> lw.f32:
        d = source.position - target.position
        return lw.sqrt(source.radius) * lw.dot(d, d)

    text = told(touching, bodies(), bodies())
    assert "source.radius stands under sqrt: a group of sources has no radius" in text
    assert "return lw.sqrt(source.radius) * lw.dot(d, d)" in text


def test_results_are_sums() -> None:
    @lw.pairwise
    def nearest(target: Body, source: Body) -> lw.Min[lw.f32]:
        d = source.position - target.position
        return lw.dot(d, d)

    text = told(nearest, bodies(), bodies())
    assert "a result is no sum over the sources: the min of a group is not known" in text


def test_indices_of_sources_and_random_numbers() -> None:
    @lw.pairwise
    def numbered(target: Body, source: Body) -> lw.f32:
        return source.mass * lw.f32(lw.index_of(source))

    assert "lw.index_of(source) stands in the function" in told(numbered, bodies(), bodies())

    @lw.pairwise
    def shaken(target: Body, source: Body) -> lw.f32:
        return source.mass * lw.random(1, lw.index_of(target))

    assert "a random number stands in the function" in told(shaken, bodies(), bodies())


def test_tables() -> None:
    @lw.pairwise
    def listed(target: Body, source: Body, factors: lw.Array1[lw.f32]) -> lw.f32:
        return source.mass * factors[0]

    text = told(listed, bodies(), bodies(), np.ones(3, np.float32))
    assert "a function over lw.Tree reads no tables, and this one reads 'factors'" in text


def test_branches_of_functions_that_are_not_radial() -> None:
    @lw.pairwise
    def cut(target: Body, source: Body) -> lw.f32:
        return source.mass if source.position.x < target.position.x else 0.0

    @lw.pairwise
    def stepped(target: Body, source: Body) -> lw.f32:
        return source.mass * lw.floor(source.position.x * 8.0)

    for function in (cut, stepped):
        text = told(function, bodies(), bodies())
        assert "the place of the source decides a branch, and the function is not radial" in text
        assert "lw.far_field(...) shows what is proved" in text


def test_an_accuracy_of_functions_that_are_not_radial() -> None:
    stars = kernels.Star.array(position=np.eye(3), mass=1.0, softening=0.1, device="cpu")
    text = refused(lw.CompileError, lambda: kernels.adaptive.using(lw.Tree(accuracy=1e-3))(stars, stars))
    assert "no error of this function is estimated: it is not radial" in text
    assert "choose theta= and order= instead" in text


@lw.pairwise
def gravity(target: Body, source: Body) -> lw.vec3:
    d = source.position - target.position
    return source.mass / (lw.dot(d, d) + 1.0) * d


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_places_that_are_no_numbers(value: float) -> None:
    b = bodies(3)
    far = gravity.using(lw.Tree())
    call = far.bind(b, b)
    call()
    b.position[1, 2] = value
    text = f"gravity: 'source': the position of element 1 is (0, 1, {value:g}); a search needs finite numbers"
    for again in (lambda: far(b, b), call, call):
        assert refused(lw.ArgumentError, again) == text


def test_places_whose_distances_have_no_squares() -> None:
    b = bodies(3)
    b.position[2, 0] = 1e19
    text = refused(lw.ArgumentError, lambda: gravity.using(lw.Tree())(b, b))
    assert "distances in f32 are held for coordinates up to 5.3e+18" in text


def test_queries_find_near_points_alone() -> None:
    places = np.eye(4, 3)
    why = "has all sources in it, near and far, and no list of neighbours; wanted a structure such as"
    with pytest.raises(lw.ArgumentError, match=f"nearest: tree: theta .* {why}"):
        lw.nearest(places, 2, search=lw.Tree())
    with pytest.raises(lw.ArgumentError, match=f"neighbors: tree: theta .* {why}"):
        lw.neighbors(places, 0.5, search=lw.Tree())


def test_what_a_tree_takes_is_said_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.runtime import memory

    def almost_none(device: str) -> int:
        del device
        return 1000

    b = Body.zeros(1_000_000, device="cpu")
    monkeypatch.setattr(memory, "available_memory", almost_none)
    text = refused(lw.DeviceError, lambda: gravity.using(lw.Tree())(b, b))
    assert text == ("the order of a tree needs 24,000,000 bytes on 'cpu', and 1,000 are available")


def test_a_tree_leaves_nothing_to_tune() -> None:
    b = bodies()
    text = refused(lw.ArgumentError, lambda: gravity.using(lw.Tree()).tune(b, b))
    assert text.startswith("gravity runs over tree: theta 0.6, order 4, leaves of 32, which was requested")


@lw.record
class Weighted:
    position: lw.dvec3
    mass: lw.f64
    spin: lw.vec3


@lw.pairwise
def weighted(target: Weighted, source: Weighted) -> tuple[lw.f64, lw.f64]:
    d = source.position - target.position
    s = lw.dot(d, d) + 0.01
    return source.mass / s, lw.f64(source.spin.y) / s


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoSoA(8)], ids=str)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_weights_that_are_no_numbers_are_named(value: float, layout: Any) -> None:
    """Of one element they would be those of all groups above it."""
    record: Any = Weighted
    place = np.random.default_rng(1).random((100, 3))
    b = record.array(position=place, mass=1.0, spin=[1.0, 1.0, 1.0], layout=layout)
    far = weighted.using(search=lw.Tree(theta=0.5, order=2, leaf=8))
    call = far.bind(b, b)
    loop = lw.steps([call])
    far(b, b)
    b[3].mass = value
    for attempt in (lambda: far(b, b), call, lambda: loop.run(1), lambda: far.bind(b, b)):
        with pytest.raises(lw.ArgumentError, match=f"weighted: 'source': the mass of element 3 is {value:g}; a search"):
            attempt()
    b[3].mass = 1.0
    far(b, b)
    b[7].spin = [1.0, value, 1.0]
    with pytest.raises(lw.ArgumentError, match=r"the spin of element 7 is \(1, .*, 1\); a search needs finite"):
        far(b, b)
