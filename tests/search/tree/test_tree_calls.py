"""Calls over lw.Tree, against all pairs in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lanewise as lw
from lanewise.patterns.search.builders.hilbert_host import HostOrder
from lanewise.patterns.search.points import Points

Array = NDArray[Any]
SOFTENING2 = 1e-3


@lw.record
class Body:
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.record
class Flat:
    position: lw.dvec2
    mass: lw.f64


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0.0)
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv * inv * inv * d


@lw.pairwise
def in_a_plane(target: Flat, source: Flat, softening2: lw.f64) -> lw.dvec2:
    if lw.same(target, source):
        return lw.dvec2(0.0)
    d = source.position - target.position
    return source.mass / (lw.dot(d, d) + softening2) * d


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


def far(theta: float = 0.3, order: int = 1, leaf: int = 32) -> Any:
    return gravity.using(search=lw.Tree(theta=theta, order=order, leaf=leaf))


def bodies(count: int, seed: int = 0, device: str = "cpu", layout: Any = None) -> Any:
    rng = np.random.default_rng(seed)
    fields = {"position": rng.normal(size=(count, 3)), "mass": rng.uniform(0.5, 1.5, count)}
    return Body.array(**fields, device=device, layout=layout)


def exact(
    targets: Any,
    sources: Any,
    same: Callable[[int], int] = lambda i: -1,
    softening2: float = SOFTENING2,
) -> Array:
    """All pairs. same: which source a target is, -1 for none."""
    t, s = (np.asarray(a.position, np.float64) for a in (targets, sources))
    mass, axes = np.asarray(sources.mass, np.float64), t.shape[1]
    found = np.empty_like(t)
    for begin in range(0, len(t), 128):  # few at a time stay in the caches
        rows = slice(begin, begin + 128)
        d = s.T[:, None] - t.T[:, rows, None]
        near = (d * d).sum(0) + softening2
        factor = mass / (near * np.sqrt(near) if axes == 3 else near ** (axes / 2))
        for i in range(*rows.indices(len(t))):
            if same(i) >= 0:
                factor[i - begin, same(i)] = 0
        found[rows] = (factor * d).sum(-1).T
    return found


def errors(found: Any, wanted: Array) -> Array:
    """Of each target, relative to its own result."""
    away = np.linalg.norm(np.asarray(found, np.float64) - wanted, axis=1)
    return away / np.maximum(np.linalg.norm(wanted, axis=1), 1e-300)


def test_errors_fall_with_theta() -> None:
    b = bodies(1500)
    wanted = exact(b, b, lambda i: i)
    narrow = np.quantile(errors(far(0.3)(b, b, SOFTENING2), wanted), 0.99)
    with pytest.warns(lw.FarFieldWarning, match="theta 0.8, order 1"):
        wide = np.quantile(errors(far(0.8)(b, b, SOFTENING2), wanted), 0.99)
    assert wide > 5 * narrow
    assert narrow < 5e-3


@pytest.mark.slow
def test_errors_fall_with_the_order() -> None:
    b = bodies(3000)
    wanted = exact(b, b, lambda i: i)
    typical = [np.median(errors(far(0.6, n)(b, b, SOFTENING2), wanted)) for n in range(5)]
    assert typical[0] > typical[1]  # by little: around the mean place moments of order 1 are small
    assert all(more > 2 * less for more, less in itertools.pairwise(typical[1:]))
    assert typical[-1] < 2e-4


def test_a_small_angle_meets_every_pair() -> None:
    b = bodies(500)
    found = far(1e-6)(b, b, SOFTENING2)
    assert errors(found, exact(b, b, lambda i: i)).max() < 5e-6  # 500 terms in float32


@pytest.mark.parametrize("count", [1, 2, 31, 33])
def test_few_bodies(count: int) -> None:
    b = bodies(count)
    assert errors(far()(b, b, SOFTENING2), exact(b, b, lambda i: i)).max() < 2e-6


def test_no_bodies() -> None:
    some, none = bodies(3), bodies(0)
    assert np.asarray(far()(none, some, SOFTENING2)).shape == (0, 3)
    assert np.array_equal(np.asarray(far()(some, none, SOFTENING2)), np.zeros((3, 3)))


@pytest.mark.parametrize(("count", "leaf"), [(300, 1), (301, 3)])
def test_a_leaf_of_one_body_is_not_far_from_itself(count: int, leaf: int) -> None:
    """A group of one body has no radius, and the box of its targets may end there."""
    unsoftened = 0.0
    for seed in range(8):
        b = bodies(count, seed)
        with np.errstate(divide="ignore"):  # what a body is to itself
            wanted = exact(b, b, lambda i: i, unsoftened)
        found = far(leaf=leaf)(b, b, unsoftened)
        assert np.isfinite(found).all()
        assert np.median(errors(found, wanted)) < 1e-2


def test_all_bodies_in_one_place() -> None:
    b = bodies(200)
    b.position = [0.1, 0.2, 0.3]
    assert np.array_equal(np.asarray(far()(b, b, SOFTENING2)), np.zeros((200, 3)))
    apart = bodies(50, 1)
    assert errors(far()(apart, b, SOFTENING2), exact(apart, b)).max() < 1e-5


def test_one_body_far_away() -> None:
    b = bodies(400)
    b.position[7] = 1e6
    assert np.quantile(errors(far()(b, b, SOFTENING2), exact(b, b, lambda i: i)), 0.99) < 3e-3


def test_targets_are_others() -> None:
    targets, b = bodies(333, 1), bodies(700)
    assert np.quantile(errors(far()(targets, b, SOFTENING2), exact(targets, b)), 0.99) < 3e-3


def test_targets_are_a_part_of_the_sources() -> None:
    b = bodies(700)
    found = far()(b[100:300], b, SOFTENING2)
    assert np.quantile(errors(found, exact(b[100:300], b, lambda i: i + 100)), 0.99) < 3e-3
    b.position[:] = [1.0, 2.0, 3.0]  # nothing but pairs with itself, and pairs without a distance
    assert not np.asarray(far()(b[100:300], b, SOFTENING2)).any()


def test_parts_with_a_step_on_either_side() -> None:
    """Also bound: an element of a part is that of the whole, whichever parts a call took before."""
    b, numbers = bodies(700), np.arange(700)
    for targets, sources in (
        (slice(5, 400, 3), slice(None)), (slice(None), slice(1, None, 2)), (slice(0, None, 2), slice(100, 600, 3)), (slice(6, 7), slice(None)),
    ):  # fmt: skip
        place = {int(n): k for k, n in enumerate(numbers[sources])}
        here = numbers[targets]
        wanted = exact(b[targets], b[sources], lambda i, here=here, place=place: place.get(int(here[i]), -1))
        bound = far().bind(b[targets], b[sources], SOFTENING2)
        for found in (far()(b[targets], b[sources], SOFTENING2), bound()):
            assert np.quantile(errors(found, wanted), 0.99) < 3e-3


@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoA(), lw.AoSoA(8)], ids=str)
def test_layouts_change_no_bit(layout: Any) -> None:
    found = [np.asarray(far()(b, b, SOFTENING2)) for b in (bodies(600), bodies(600, layout=layout))]
    assert np.array_equal(*found)


@pytest.mark.slow
def test_two_axes_in_float64() -> None:
    rng = np.random.default_rng(4)
    b = Flat.array(position=rng.normal(size=(500, 2)), mass=1.0, device="cpu")
    found = in_a_plane.using(lw.Tree(theta=0.3, order=2))(b, b, SOFTENING2)
    assert np.quantile(errors(found, exact(b, b, lambda i: i)), 0.99) < 3e-3


def test_the_interpreter_walks_through_the_same_tree() -> None:
    found = [np.asarray(far(0.6, 1, leaf=4)(b, b, SOFTENING2)) for b in (bodies(50, device="python"), bodies(50))]
    assert np.allclose(*found, rtol=1e-4, atol=1e-5)


def test_results_follow_the_bodies() -> None:
    b, search = bodies(600), far()
    search(b, b, SOFTENING2)
    b.position *= np.float32(2.0)
    b.position[::2] += np.float32(1.0)
    again = np.asarray(search(b, b, SOFTENING2))
    assert np.quantile(errors(again, exact(b, b, lambda i: i)), 0.99) < 3e-3
    bound = search.bind(b, b, SOFTENING2)
    bound()
    assert np.array_equal(np.asarray(bound.results[0]), again)


@pytest.mark.slow
@pytest.mark.parametrize("wrt", ["target.position", "source.position", "source.mass"])
def test_the_gradient_of_a_far_field_is_a_far_field(wrt: str) -> None:
    b = bodies(1500)
    found, wanted = (
        np.asarray(f.gradient(wrt)(b, b, SOFTENING2), np.float64).reshape(1500, -1) for f in (far(0.5, 2), gravity)
    )
    error = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert 1e-6 < np.median(error) < 1e-3
    assert np.quantile(error, 0.99) < 2e-2


def run_in(pieces: tuple[int, ...], every: int = 1) -> Array:
    b = bodies(300)
    force = far(0.7).bind(b, b, SOFTENING2)
    loop = lw.steps([lw.every(every, force), kick_drift.bind(b, force.results[0], 1e-3)])
    force()
    for piece in pieces:
        loop.run(piece)
    return np.asarray(b.position)


@pytest.mark.parametrize("every", [1, 3])
def test_no_bit_depends_on_where_a_run_is_cut(every: int) -> None:
    assert np.array_equal(run_in((70,), every), run_in((1, 30, 2, 37), every))


def test_a_loop_makes_the_order_at_every_32nd_step() -> None:
    b = bodies(300)
    force = far(0.7).bind(b, b, SOFTENING2)
    rows = {r.name: r.steps for r in lw.steps([force]).explain().calls}
    assert rows == {"order of gravity": "n % 32 == 0", "gravity": "all"}
    rows = {r.name: r.steps for r in lw.steps([lw.every(3, force, at=1)]).explain().calls}
    assert rows == {"order of gravity": "n % 96 == 1", "gravity": "n % 3 == 1"}
    lists = lw.steps([[force], [kick_drift.bind(b, force.results[0], 1e-3)]], cycle=2)
    assert lists.explain().calls[0].steps == "n % 2 == 0, n % 64 == 0"
    long = [force, lw.every(1000, kick_drift.bind(b, force.results[0], 1e-3))]
    assert lw.steps(long).explain().calls[0].steps == "all"


def test_a_loop_refuses_places_that_are_no_numbers() -> None:
    b = bodies(300)
    force = far(0.7).bind(b, b, SOFTENING2)
    loop = lw.steps([force])
    loop.run(2)
    b.position[17] = np.nan
    with pytest.raises(lw.ArgumentError, match="the position of element 17 is") as caught:
        loop.run(1)
    assert "found in step 2 of the loop" in str(caught.value)


def test_a_call_that_stands_twice_in_a_step_makes_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    b, made = bodies(300), list[int]()
    build = HostOrder.build

    def counted(order: HostOrder, to: Array, points: Points | None = None) -> None:
        made.append(1)
        build(order, to, points)

    monkeypatch.setattr(HostOrder, "build", counted)
    force = far(0.5).bind(b, b, SOFTENING2)
    drift = kick_drift.bind(b, force.results[0], 1e-3)
    made.clear()
    loop = lw.steps([force, drift, force, drift])
    assert len(made) == 1
    loop.run(64)
    assert len(made) == 3
    twice = np.asarray(b.position).copy()
    other = bodies(300)
    force = far(0.5).bind(other, other, SOFTENING2)
    drift = kick_drift.bind(other, force.results[0], 1e-3)
    cut = lw.steps([force, drift, force, drift])
    for piece in (1, 30, 4, 29):
        cut.run(piece)
    np.testing.assert_array_equal(twice, np.asarray(other.position))


def test_reports_name_every_task() -> None:
    b = bodies(300)
    compiled = far(0.7).compile(b, b, SOFTENING2)
    assert compiled.search == ("tree: theta 0.7, order 1, leaves of 32; 10 leaves, 19 groups, 5 levels (requested)")
    names = [row.name for row in compiled.explain().launches]
    assert names[:3] == ["tree order", "gather", "gravity_leaf_moments"]
    assert names[3:] == ["gravity_parent_moments"] * 4 + ["gravity_walk"]
    profile = lw.Profile()
    lw.steps([far(0.7).bind(b, b, SOFTENING2)], profile=profile).run(5)
    told = str(profile)
    for name in ("order", "gather", "gravity_leaf_moments", "gravity_parent_moments", "gravity"):
        assert name in told


def test_an_accuracy_is_kept() -> None:
    one, found = bodies(3000), list[Any]()
    wanted = exact(one, one, lambda i: i)
    for accuracy in (3e-2, 1e-2):
        call = gravity.using(search=lw.Tree(accuracy=accuracy, order=2))
        found.append(call(one, one, softening2=SOFTENING2))
        away = np.quantile(errors(found[-1], wanted), 0.99)
        assert 1e-5 < away < accuracy
    again = call(one, one, softening2=SOFTENING2)
    np.testing.assert_array_equal(np.asarray(found[-1]), np.asarray(again))


@pytest.mark.slow
@pytest.mark.grid(every=4)
@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("apart", [1e-4, 1e-2])
def test_an_accuracy_is_kept_beside_close_pairs(share: float, apart: float) -> None:
    """Single bodies of a cluster some of whose bodies have a companion, whose force is larger than
    all others together.
    """
    rng, count = np.random.default_rng(5), 2500
    place = rng.normal(size=(count, 3))
    pairs = int(share * count / 2)
    place[:pairs] = place[pairs : 2 * pairs] + apart * rng.normal(size=(pairs, 3))
    one = bodies(count)
    one.position, softening2 = place.astype("f4"), 1e-10
    wanted = exact(one, one, lambda i: i, softening2)[2 * pairs :]
    for accuracy in (1e-2, 1e-3):
        call = gravity.using(search=lw.Tree(accuracy=accuracy))
        found = np.asarray(call(one, one, softening2=softening2))[2 * pairs :]
        assert np.quantile(errors(found, wanted), 0.99) < accuracy


def sheet(count: int, outside: float, rng: np.random.Generator) -> Array:
    """A square without thickness, some of it in a small disc, so that groups of many in one place have a few
    outside.
    """
    place = rng.random((count, 3)) * [1, 1, 0]
    crowd = int((1 - outside) * count)
    place[:crowd, :2] = 0.05 * rng.normal(size=(crowd, 2)) + [0.5, 0.82]
    return place


PLACES: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "cube": lambda n, rng: rng.random((n, 3)),
    "cluster": lambda n, rng: rng.normal(size=(n, 3)) / np.sqrt(rng.gamma(1, size=(n, 1)) + 0.01),
    "sheet": lambda n, rng: rng.random((n, 3)) * [1, 1, 0],
    "sheet at an angle": lambda n, rng: rng.random((n, 2)) @ [[0.6, 0.5, 0.3], [-0.2, 0.7, 0.9]],
    "crowd in a sheet": lambda n, rng: sheet(n, 0.3, rng),
    "line": lambda n, rng: rng.random((n, 3)) * [1, 0, 0],
    "clumps": lambda n, rng: rng.random((40, 3))[rng.integers(0, 40, n)] + 0.01 * rng.normal(size=(n, 3)),
    "two far clumps": lambda n, rng: rng.normal(size=(n, 3)) + [100, 0, 0] * rng.integers(0, 2, (n, 1)),
}


@lw.record
class Exact:
    position: lw.dvec3
    mass: lw.f64


@lw.pairwise
def exact_gravity(target: Exact, source: Exact, softening2: lw.f64) -> lw.dvec3:
    d = source.position - target.position
    pull = source.mass * (lw.dot(d, d) + softening2) ** -1.5
    return lw.dvec3(0.0) if lw.same(target, source) else pull * d


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("accuracy", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("kind", PLACES)
def test_an_accuracy_is_kept_wherever_bodies_lie(kind: str, accuracy: float, seed: int) -> None:
    kept(kind, 10_000, accuracy, seed)


@pytest.mark.slow
@pytest.mark.quick("0.001-sheet")
@pytest.mark.parametrize("kind", ["cube", "sheet", "crowd in a sheet"])
@pytest.mark.parametrize("accuracy", [1e-3, 1e-6])
def test_an_accuracy_is_kept_in_a_sheet(kind: str, accuracy: float) -> None:
    """Errors of flat groups have one sign, and do not cancel."""
    kept(kind, 6000, accuracy, 5)


def kept(kind: str, count: int, accuracy: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one = Exact.array(position=PLACES[kind](count, rng), mass=rng.uniform(0.5, 1.5, count))  # type: ignore[attr-defined]
    wanted = np.asarray(exact_gravity(one, one, softening2=1e-8))
    found = exact_gravity.using(search=lw.Tree(accuracy=accuracy))(one, one, softening2=1e-8)
    away, size = errors(found, wanted), np.linalg.norm(wanted, axis=1)
    assert np.quantile(away, 0.99) < accuracy
    assert away[size > np.quantile(size, 0.01)].max() < 20 * accuracy  # others cancel


def test_an_accuracy_is_kept_at_other_targets() -> None:
    one, other = bodies(90, device="python"), bodies(40, 1, "python")
    call = gravity.using(search=lw.Tree(accuracy=3e-2, leaf=4))
    found = call(other, one, softening2=SOFTENING2)
    assert 1e-5 < np.quantile(errors(found, exact(other, one)), 0.99) < 3e-2


@lw.pairwise
def force_and_potential(target: Body, source: Body, softening2: lw.f32) -> tuple[lw.vec3, lw.f32]:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv * inv * inv * d, -source.mass * inv


def test_what_has_no_accuracy() -> None:
    call = force_and_potential.using(search=lw.Tree(accuracy=1e-2))
    with pytest.raises(lw.CompileError, match="no error of this function is estimated: it has sev"):
        call(bodies(50), bodies(50), softening2=SOFTENING2)
    finer = gravity.using(search=lw.Tree(accuracy=1e-6))
    with pytest.raises(lw.ArgumentError, match="results in f32 are no closer than about 1e-05"):
        finer(bodies(50), bodies(50), softening2=SOFTENING2)


@pytest.mark.parametrize(
    "tree", [lw.Tree(), lw.Tree(method="dual"), lw.Tree(accuracy=1e-2)], ids=["walk", "dual", "accuracy"]
)
def test_no_bodies_after_some(tree: lw.Tree) -> None:
    """What is remembered of calls before does not ask for the form of places that are not there."""
    kernel = gravity.using(search=tree)
    position = np.random.default_rng(1).random((600, 3), np.float32)
    some = Body.array(position=position, mass=np.ones(600, np.float32))
    none = Body.array(position=position[:0], mass=np.ones(0, np.float32))
    for _ in range(2):
        assert np.isfinite(kernel(some, some, softening2=SOFTENING2)).all()
        assert kernel(none, none, softening2=SOFTENING2).shape == (0, 3)
