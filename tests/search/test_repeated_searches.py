"""Calls over a search like an earlier one give what a first call gives, wherever the elements are meanwhile."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search import repeated
from lanewise.patterns.search.repeated import LEAST, MOST, RARELY, SOON, RepeatedSearches
from lanewise.patterns.search.searched import Searched
from lanewise.runtime.memory import to_host
from lanewise.support.errors import ArgumentError

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
SEARCHES = {
    "periodic grid": lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1))),
    "bounded grid": lw.StaticGrid(radius=0.2, world=lw.Bounded((-1, -1, -1), (2, 2, 2))),
    "open grid": lw.StaticGrid(radius=0.2),
    "rings": lw.StaticGrid(k=3),
    "curve": lw.DynamicGrid(radius=0.2),
    "slices": lw.DynamicGrid(radius=0.2, order="sort"),
    "parts": lw.DynamicGrid(radius=0.2, order="3-D"),
    "all pairs": lw.AllPairs(radius=0.2),
    "neighbours": lw.Neighbors(radius=0.2),
    "nearest": lw.Nearest(k=3, radius=0.3),
}


@lw.record
class Agent:
    """A place and a weight."""

    position: lw.vec3
    weight: lw.f32


@lw.pairwise
def crowd(target: Agent, source: Agent, scale: lw.f32) -> lw.f32:
    return scale * source.weight * lw.dot(source.position - target.position, source.position - target.position)


@lw.pairwise
def number(target: Agent, source: Agent) -> lw.i32:
    return 1


def agents(count: int, seed: int, device: str = "cpu", layout: Any = None) -> Any:
    r = np.random.default_rng(seed)
    made = Agent.array(position=r.random((count, 3), np.float32), weight=r.random(count, np.float32), layout=layout)
    return made.to(device)


def bits(results: Any) -> bytes:
    return to_host(results).tobytes()


def entries(kernel: Pairwise) -> tuple[Any, ...]:
    over = kernel.searched
    assert over is not None
    return kept_of(over)._entries


def kept_of(over: Searched) -> RepeatedSearches:
    return over._repeated


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls were bound anew."""
    seen, bound = [0], Searched.bound

    def counting(self: Searched, *arguments: Any, **named: Any) -> Any:
        seen[0] += 1
        return bound(self, *arguments, **named)

    monkeypatch.setattr(Searched, "bound", counting)
    return seen


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
def test_moved_elements_get_what_a_first_call_gives(search: Any, device: str) -> None:
    count = 24 if device == "python" else 600
    kernel, bodies, r = crowd.using(search), agents(count, 1, device), np.random.default_rng(2)
    for step in range(4):
        if step:  # a little, then far, then nobody
            place = to_host(bodies.position) + r.normal(0, (0.0, 0.01, 0.2, 0.0)[step], (count, 3))
            there = Agent.array(position=np.clip(place, 0, 1), weight=np.ones(count)).to(device)
            bodies.position[:] = there.position
        again, first = kernel(bodies, bodies, 2.0 + step), crowd.using(search)(bodies, bodies, 2.0 + step)
        assert bits(again) == bits(first), step


@pytest.mark.parametrize("device", [d for d in DEVICES if d != "python"])
@pytest.mark.parametrize(
    "name", ["periodic grid", "bounded grid", "open grid", "curve", "parts", "all pairs", "neighbours", "nearest"]
)
def test_what_did_not_change_is_not_made_again(name: str, device: str, counted: list[int]) -> None:
    kernel, bodies = crowd.using(SEARCHES[name]), agents(600, 3, device)
    first = kernel(bodies, bodies, 1.0)
    before = counted[0]
    again = kernel(bodies, bodies, scale=1.0), kernel(bodies, bodies, 1.0), kernel(bodies, bodies, np.float32(1))
    assert {bits(x) for x in again} == {bits(first)}
    assert len({id(x) for x in (first, *again)}) == 4
    assert counted[0] == before + 1  # a keyword is another form of call


def test_an_open_world_follows_its_elements(counted: list[int]) -> None:
    kernel, bodies = crowd.using(lw.StaticGrid(radius=0.2)), agents(600, 3)
    kernel(bodies, bodies, 1.0)
    before = counted[0]
    bodies.position[:] *= 3
    moved = kernel(bodies, bodies, 1.0)
    assert counted[0] == before + 1
    assert bits(moved) == bits(crowd.using(lw.StaticGrid(radius=0.2))(bodies, bodies, 1.0))


@pytest.mark.parametrize("device", [d for d in DEVICES if d != "python"])
@pytest.mark.parametrize(
    ("search", "place", "text"),
    [
        (lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1))), np.nan, "element 5 is"),
        (lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1))), -np.inf, "a search needs finite numbers"),
        (lw.StaticGrid(radius=0.2, world=lw.Bounded((0, 0, 0), (1, 1, 1))), 1.5, "lies outside the"),
        (lw.DynamicGrid(k=3), 1e20, "distances in f32 are held for coordinates up"),
    ],
)
def test_positions_are_looked_at_in_every_call(search: Any, place: float, text: str, device: str) -> None:
    kernel, bodies = crowd.using(search), agents(600, 3, device)
    wanted = bits(kernel(bodies, bodies, 1.0))
    kept = to_host(bodies.position)[[5, 400], 1].tolist()
    for element in (5, 400):
        bodies.position[element, 1] = place
    for _ in range(2):
        with pytest.raises(ArgumentError, match=text):
            kernel(bodies, bodies, 1.0)
    for element, here in zip((5, 400), kept, strict=True):
        bodies.position[element, 1] = here
    assert bits(kernel(bodies, bodies, 1.0)) == wanted


@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoA(), lw.AoSoA(8), lw.SoAoAS()], ids=str)
@pytest.mark.parametrize("count", [600, 3000])
def test_every_layout_is_looked_at(layout: Any, count: int) -> None:
    search = lw.StaticGrid(radius=0.2, world=lw.Bounded((-1, -1, -1), (2, 2, 2)))
    kernel, bodies = crowd.using(search), agents(count, 3, layout=layout)
    kernel(bodies, bodies, 1.0)
    for value in (np.nan, np.inf, 2.5, -1.5):
        row = bodies[count - 1]
        kept = tuple(row.position)
        row.position = (kept[0], kept[1], value)
        with pytest.raises(ArgumentError, match=f"element {count - 1}"):
            kernel(bodies, bodies, 1.0)
        row.position = kept
    assert bits(kernel(bodies, bodies, 1.0)) == bits(crowd.using(search)(bodies, bodies, 1.0))


def test_targets_and_sources_of_two_arrays() -> None:
    kernel, targets, sources = crowd.using(SEARCHES["curve"]), agents(300, 1), agents(500, 2)
    for _ in range(3):
        sources.position[:] += 0.01
        wanted = crowd.using(SEARCHES["curve"])(targets, sources, 1.0)
        assert bits(kernel(targets, sources, 1.0)) == bits(wanted)
    targets.position[7, 0] = np.nan
    with pytest.raises(ArgumentError, match="'target': the position of element 7"):
        kernel(targets, sources, 1.0)


@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoA(), lw.SoAoAS()], ids=str)
def test_targets_and_sources_of_one_array(layout: Any, counted: list[int]) -> None:
    """Parts of one array that share some of their elements are again the parts that they were."""
    search = lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1)))
    kernel, bodies = crowd.using(search), agents(600, 4, layout=layout)
    targets, sources = bodies[:400], bodies[200:]
    for step in range(3):
        bodies.position[:] = np.random.default_rng(step).random((600, 3), np.float32)
        wanted = crowd.using(search)(targets, sources, 1.0)
        before = counted[0]
        assert bits(kernel(targets, sources, 1.0)) == bits(wanted)
        assert counted[0] - before == (step == 0)


def test_results_of_the_user() -> None:
    kernel, bodies, out = crowd.using(SEARCHES["curve"]), agents(300, 1), np.zeros(300, np.float32)
    wanted = kernel(bodies, bodies, 1.0)
    assert kernel(bodies, bodies, 1.0, out=out) is out
    assert bits(out) == bits(wanted)
    with pytest.raises(ArgumentError):
        kernel(bodies, bodies, 1.0, out=np.zeros(299, np.float32))


def test_arrays_are_not_kept_alive() -> None:
    kernel, bodies = crowd.using(SEARCHES["curve"]), agents(300, 1)
    kernel(bodies, bodies, 1.0)
    (kept,) = entries(kernel)
    memory, structure = weakref.ref(bodies.data), weakref.ref(kept.structure)
    del bodies, kept
    gc.collect()
    assert entries(kernel) == ()
    assert memory() is None
    assert structure() is None


def test_so_many_calls_are_kept_as_are_small_together(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, several = crowd.using(SEARCHES["curve"]), [agents(30, n) for n in range(MOST + 2)]
    for bodies in several * SOON:
        kernel(bodies, bodies, 1.0)
    assert len(entries(kernel)) == MOST
    monkeypatch.setattr(repeated, "MOST_BYTES", 0)
    for _ in range(RARELY - SOON):  # seldom, as another one has to go
        assert len(entries(kernel)) == MOST
        kernel(several[-1], several[-1], 1.0)
    assert len(entries(kernel)) == LEAST


@pytest.mark.quick("open grid", "curve", "all pairs")
@pytest.mark.parametrize("name", ["periodic grid", "open grid", "curve", "parts", "all pairs", "neighbours"])
def test_sizes_in_turn_are_bound_once(name: str, counted: list[int]) -> None:
    kernel, several = crowd.using(SEARCHES[name]), [agents(n, n) for n in range(20, 50)]
    wanted = [bits(crowd.using(SEARCHES[name])(a, a, 2.0)) for a in several]
    before = counted[0]
    for round in range(SOON + 2):
        assert [bits(kernel(a, a, 2.0)) for a in several] == wanted
        assert counted[0] - before == (1 if round + 1 < SOON else len(several))


def test_what_was_changed_in_length_is_not_kept() -> None:
    kernel, bodies = crowd.using(SEARCHES["periodic grid"]), agents(300, 1)
    kernel(bodies, bodies, 1.0)
    memory = weakref.ref(bodies.data)
    for count in (290, 280):
        bodies.compact(np.arange(len(bodies)) < count)
        assert bits(kernel(bodies, bodies, 1.0)) == bits(crowd.using(SEARCHES["periodic grid"])(bodies, bodies, 1.0))
        assert entries(kernel) == ()
    bodies.append(bodies[:200])
    gc.collect()
    assert entries(kernel) == ()
    assert memory() is None


def test_threads_take_turns() -> None:
    kernel, bodies = crowd.using(SEARCHES["periodic grid"]), agents(600, 1)
    wanted = {float(n): bits(crowd.using(SEARCHES["periodic grid"])(bodies, bodies, float(n))) for n in range(1, 5)}
    kernel(bodies, bodies, 1.0)
    with ThreadPoolExecutor(4) as pool:
        scales = [float(1 + n % 4) for n in range(200)]
        found = list(pool.map(lambda s: bits(kernel(bodies, bodies, s)), scales))
    assert all(f == wanted[s] for f, s in zip(found, scales, strict=True))


def test_what_was_tuned_is_used(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    kernel, bodies = crowd.using(lw.Neighbors(radius=0.2)), agents(600, 1)
    kernel(bodies, bodies, 1.0)
    assert len(entries(kernel)) == 1
    kernel.tune(bodies, bodies, 1.0, seconds=0.5)
    assert entries(kernel) == ()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("change", ["append", "compact"])
@pytest.mark.parametrize(
    "search", [lw.Neighbors(radius=0.3), lw.Nearest(k=2), lw.StaticGrid(radius=0.3), lw.AllPairs()], ids=str
)
def test_a_stale_view_concerns_no_other_call(search: Any, change: str) -> None:
    """Views that live on, as targets, sources or both, after their array was changed in length."""
    rng = np.random.default_rng(3)
    changed, other = (Agent.array(position=rng.random((20, 3))) for _ in range(2))
    kernel = number.using(search)
    views = [changed[5:], changed[:9]]
    for pair in ((views[0], changed), (changed, views[0]), (views[0], views[1])):
        kernel(*pair)
    expected = kernel(other, other)
    changed.append(changed[:1]) if change == "append" else changed.compact(np.arange(20) != 4)
    for _ in range(3):
        assert (kernel(other, other) == expected).all()
        assert len(kernel(changed, other)) == len(changed)
        with pytest.raises(lw.ArgumentError, match="take the view again"):
            kernel(views[0], other)
