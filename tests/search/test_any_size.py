"""Calls over a search on arrays that come and go: what a first call gives, without one, in one memory."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.programs import Programs
from lanewise.patterns.search import any_size
from lanewise.patterns.search.any_size import AnySize
from lanewise.patterns.search.builders.geometry import Geometry, fitted
from lanewise.patterns.search.repeated import SOON
from lanewise.patterns.search.searched import Searched
from tests.search import emulated_builds
from tests.search.emulated_cuda import COMPILER
from tests.search.test_repeated_searches import SEARCHES, agents, bits, crowd

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
WORLD = lw.Periodic((1, 1, 1))
TREE = lw.Tree(theta=0.7)
OTHERS = {
    "cells": lw.StaticGrid(radius=0.2, world=WORLD, cells=(3, 4, 5)),
    "over a box": lw.StaticGrid(radius=0.2, over=((0, 1),) * 3),
    "curve in a closed world": lw.DynamicGrid(k=2, world=WORLD),
    "around": lw.DynamicGrid(radius=0.2, order="3-D", leaves="around"),
}
COUNTS = [33, 7, 600, 31, 3, 900, 32, 12, 257, 599, 33]


@lw.record
class Body:
    """A place, a weight and a number of its own."""

    position: lw.vec3
    weight: lw.f32
    number: lw.i64


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.weight * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise
def near(target: Body, source: Body) -> lw.i32:
    return 1


@lw.elementwise
def fate(body: Body, near: lw.i32) -> lw.Fate:
    choice = lw.Fate.KEEP
    if near > 9:
        choice = lw.Fate.DIE
    if near < 3:
        choice = lw.Fate.SPLIT
    return choice


def bodies(count: int, seed: int) -> Any:
    r = np.random.default_rng(seed)
    return Body.array(position=r.random((count, 3)), weight=r.random(count), number=np.arange(count))


def kinds(kernel: Any) -> tuple[AnySize, ...]:
    return kernel.searched._kinds._entries


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls were bound, and how often a kernel was requested."""
    seen, bind, get = [0, 0], Searched.bound, Programs.get

    def binding(self: Searched, *arguments: Any, **named: Any) -> Any:
        seen[0] += 1
        return bind(self, *arguments, **named)

    def getting(self: Programs, *arguments: Any, **named: Any) -> Any:
        seen[1] += 1
        return get(self, *arguments, **named)

    monkeypatch.setattr(Searched, "bound", binding)
    monkeypatch.setattr(Programs, "get", getting)
    return seen


@pytest.mark.grid(every=12)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [*SEARCHES, *OTHERS])
def test_every_size_gets_what_a_first_call_gives(name: str, device: str, bound: list[int]) -> None:
    search = (SEARCHES | OTHERS)[name]
    kernel = crowd.using(search)
    kernel(*[agents(50, 99, device)] * 2, 1.0)
    before, choices = list(bound), 0
    for n, count in enumerate(COUNTS):
        there = agents(count, n, device)
        found = bits(kernel(there, there, 1.0 + n))
        choices += bound[0] - before[0]
        assert found == bits(crowd.using(search)(there, there, 1.0 + n)), count
        before = list(bound)
    assert choices == 0


@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoA(), lw.AoSoA(8), lw.SoAoAS()], ids=str)
def test_every_layout_and_parts_of_arrays(layout: Any) -> None:
    search = SEARCHES["periodic grid"]
    kernel, whole = crowd.using(search), agents(1000, 5, layout=layout)
    kernel(*[agents(50, 99, layout=layout)] * 2, 1.0)
    for part in (whole[:96], whole[96:], whole[8:24], whole):
        other = part.copy()
        assert bits(kernel(part, part, 2.0)) == bits(crowd.using(search)(other, other, 2.0))
    wanted = crowd.using(search)(whole[:400], whole[200:], 2.0)
    kernel(agents(30, 1, layout=layout), agents(40, 2, layout=layout), 2.0)
    assert bits(kernel(whole[:400], whole[200:], 2.0)) == bits(wanted)  # with elements in common


def test_targets_of_one_size_and_sources_of_others() -> None:
    kernel = crowd.using(SEARCHES["curve"])
    kernel(agents(20, 1), agents(30, 2), 1.0)
    for n in range(1, 40, 7):
        targets, sources = agents(5 * n, n), agents(3 * n + 4, n + 100)
        wanted = crowd.using(SEARCHES["curve"])(targets, sources, 1.0)
        assert bits(kernel(targets, sources, 1.0)) == bits(wanted)
        assert bits(kernel(targets, targets, 1.0)) == bits(crowd.using(SEARCHES["curve"])(targets, targets, 1.0))
    assert len(kinds(kernel)) == 2  # of one array, and of two


def test_nobody_and_a_few() -> None:
    kernel = crowd.using(SEARCHES["periodic grid"])
    kernel(*[agents(50, 99)] * 2, 1.0)
    for count in (0, 1, 2, 0, 60):
        there = agents(count, count)
        assert bits(kernel(there, there, 1.0)) == bits(crowd.using(SEARCHES["periodic grid"])(there, there, 1.0))


@pytest.mark.filterwarnings("ignore::lanewise.FarFieldWarning")
@pytest.mark.parametrize(
    "search", [TREE, pytest.param(lw.Tree(theta=0.7, method="dual"), marks=pytest.mark.slow)], ids=str
)
def test_far_fields_of_every_size(search: Any, bound: list[int]) -> None:
    kernel = pull.using(search)
    for count in (700, 650, 1000, 520, 640, 700, 999):
        there = bodies(count, count)
        assert bits(kernel(there, there, 0.01)) == bits(pull.using(search)(there, there, 0.01)), count
    before = list(bound)
    for count in (701, 651, 998, 555):  # of sizes that were compared with all pairs
        there = bodies(count, count)
        kernel(there, there, 0.01)
    assert bound[0] == before[0]


def test_a_population_keeps_kernels_and_structure(bound: list[int]) -> None:
    search = lw.StaticGrid(radius=0.1, world=WORLD)
    kernel, people = near.using(search), lw.Population(bodies(800, 1), ids="number")
    kernel(people.records, people.records)
    before, sizes = list(bound), set[int]()
    r = np.random.default_rng(4)
    for _ in range(12):
        records = people.records
        records.position = r.random((len(records), 3))
        people.apply(fate(records, kernel(records, records)))
        sizes.add(len(people))
    assert len(sizes) > 6
    assert bound[0] == before[0]
    (kind,) = kinds(kernel)
    assert len(kind._variants) == 1
    last = people.records
    assert bits(kernel(last, last)) == bits(near.using(search)(last, last))


def test_structures_of_all_sizes_lie_in_one_memory() -> None:
    kernel = crowd.using(SEARCHES["curve"])
    kernel(*[agents(100, 1)] * 2, 1.0)
    for count in (100, 700, 90, 800, 720, 801):
        kernel(*[agents(count, count)] * 2, 1.0)
    (kind,) = kinds(kernel)
    (own,) = kind._own.values()
    alone = crowd.using(SEARCHES["curve"])
    alone(*[agents(100, 1)] * 2, 1.0)
    alone(*[agents(801, 1)] * 2, 1.0)
    (least,) = kinds(alone)[0]._own.values()
    held, needed = (sum(m.nbytes for m in o._kept.values()) for o in (own, least))
    assert needed <= held <= 1.3 * needed


def test_arrays_are_not_kept_alive() -> None:
    kernel = crowd.using(SEARCHES["periodic grid"])
    kernel(*[agents(50, 99)] * 2, 1.0)
    for _ in range(2):
        there = agents(300, 1)
        for _ in range(SOON - 1):
            kernel(there, there, 1.0)
        memory = weakref.ref(there.data)
        del there
        gc.collect()
        assert memory() is None


def test_what_is_wrong_is_said_of_arrays_of_other_sizes() -> None:
    kernel = crowd.using(SEARCHES["bounded grid"])
    kernel(*[agents(50, 99)] * 2, 1.0)
    for value, text in ((np.nan, "element 7 is"), (3.5, "lies outside the")):
        there = agents(80, 1)
        there.position[7, 1] = value
        with pytest.raises(lw.ArgumentError, match=text):
            kernel(there, there, 1.0)
    rings, few = crowd.using(SEARCHES["rings"]), agents(2, 1)
    rings(*[agents(50, 99)] * 2, 1.0)
    with pytest.raises(lw.ArgumentError, match="there are only 2 sources"):
        rings(few, few, 1.0)


def test_results_of_the_user() -> None:
    kernel = crowd.using(SEARCHES["periodic grid"])
    kernel(*[agents(50, 99)] * 2, 1.0)
    there, out = agents(80, 1), np.zeros(80, np.float32)
    assert kernel(there, there, 1.0, out=out) is out
    assert bits(out) == bits(kernel(there, there, 1.0))
    with pytest.raises(lw.ArgumentError):
        kernel(there, there, 1.0, out=np.zeros(79, np.float32))


def test_much_memory_is_not_shared(monkeypatch: pytest.MonkeyPatch, bound: list[int]) -> None:
    kernel = crowd.using(SEARCHES["periodic grid"])
    kernel(*[agents(50, 99)] * 2, 1.0)
    monkeypatch.setattr(any_size, "MOST_BYTES", 20_000)
    before = bound[0]
    for count, times in ((60, 0), (3000, 1), (61, 1), (2900, 2)):
        there = agents(count, count)
        found = bits(kernel(there, there, 1.0))
        assert bound[0] - before == times
        assert found == bits(crowd.using(SEARCHES["periodic grid"])(there, there, 1.0))
        before = bound[0] - times


def test_threads_take_turns() -> None:
    kernel, several = crowd.using(SEARCHES["curve"]), [agents(n, n) for n in range(30, 60)]
    wanted = [bits(crowd.using(SEARCHES["curve"])(a, a, 1.0)) for a in several]
    kernel(*[agents(50, 99)] * 2, 1.0)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = list(pool.map(lambda n: bits(kernel(several[n].copy(), several[n].copy(), 1.0)), range(30)))
            two = [bits(crowd.using(SEARCHES["curve"])(a.copy(), a.copy(), 1.0)) for a in several[:2]]
            assert found[:2] == two
            assert list(pool.map(lambda n: bits(kernel(*[several[n].copy()] * 2, 1.0)), range(30))) == wanted


@pytest.mark.skipif(COMPILER is None, reason="no g++")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["periodic grid", "curve"])
def test_structures_of_a_gpu_share_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernels, run as C++: what is zero before a build is so for every size."""
    emulated_builds.put_in(monkeypatch)
    kernel = crowd.using(SEARCHES[name])
    kernel(*[agents(50, 99)] * 2, 1.0)
    for count in (200, 30, 260):
        there = agents(count, count)
        found = bits(kernel(there, there, 1.0))
        assert found == bits(crowd.using(SEARCHES[name])(there, there, 1.0)), count


def halved(extent: tuple[float, ...], least: float, most: int) -> tuple[int, ...]:
    """The cells of `fitted` by its rule, without an early end."""

    def along(side: float) -> tuple[int, ...]:
        return tuple(max(1, int(min(e / side, 2**20))) if side > 0 else 1 for e in extent)

    widest = max(*extent, least)
    small, large = max(least, widest * 1e-7), widest
    if np.prod(along(small), dtype=object) > most:
        for _ in range(50):
            middle = float(np.sqrt(small * large))
            few = np.prod(along(middle), dtype=object) <= most
            small, large = (small, middle) if few else (middle, large)
        small = large
    return along(small)


def test_cells_are_found_by_halves_that_end_early() -> None:
    r = np.random.default_rng(3)
    for n in range(600):
        axes = 2 + n % 2
        extent = tuple(float(x) for x in (10 ** r.uniform(-5, 5, axes), r.choice((0.5, 1.0, 3.0), axes))[n % 3 > 0])
        least = float(max(extent) * 10 ** r.uniform(-4, 0)) if n % 5 else 0.0
        most = int(r.integers(1, 10 ** r.integers(1, 7)))
        found: Geometry = fitted((0.0,) * axes, extent, least, most, periodic=False)
        assert found.cells == halved(extent, least, most), (extent, least, most)
