"""Lists with a skin meet the sources of all pairs, in every step, with the same bits whenever they were made."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch.executable import build_executable
from lanewise.patterns.search import neighbor_lists
from lanewise.patterns.search.neighbor_lists import NeighborLists
from lanewise.patterns.search.points import points_of_values
from lanewise.patterns.search.queries import neighbors
from lanewise.patterns.search.searched_launch import structure_of
from lanewise.runtime.memory import bring
from lanewise.sims import boids
from lanewise.support.errors import ArgumentError
from tests.search.clouds import CLOUDS, cloud
from tests.search.kernels import cuda_program
from tests.search.numbered import KINDS, met, numbered
from tests.search.test_dynamic_grid import check

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
UNIT = lw.Periodic((1.0, 1.0, 1.0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud(name: str, device: str) -> None:
    x, radius = cloud(name, 200, 3, "f4", seed=1)
    for wanted in ({}, {"k": 4}):
        check(NeighborLists(radius=radius, skin=0.3 * radius, **wanted), x, device=device)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=8, deadline=None)
@given(st.floats(0.02, 0.6), st.integers(0, 99), st.booleans(), st.booleans())
def test_every_step_of_those_who_move(device: str, skin: float, seed: int, periodic: bool, nearest: bool) -> None:
    """Slowly, then at once, then not at all: what is met is what all pairs meet, and lists live."""
    rng = np.random.default_rng(seed)
    x = rng.random((150, 3)).astype("f4")
    world = UNIT if periodic else lw.Open()
    wanted: dict[str, Any] = {"radius": 0.15, "world": world, **({"k": 3} if nearest else {})}
    kernel, records = KINDS["f4", 3][1], numbered(x, None, device)
    search = NeighborLists(skin=min(skin, 0.34), **wanted)
    lists, every = (kernel.using(s).bind(records, records) for s in (search, lw.AllPairs(**wanted)))
    step = 0.02 * search.skin
    for turn in range(12):
        assert np.array_equal(met(lists()), met(every()))
        moved = x + rng.uniform(-step, step, x.shape) if turn != 7 else rng.random(x.shape)
        x = (moved % 1.0 if periodic else moved).astype("f4") if turn != 9 else x
        records.position = bring(x, device)
    assert 2 <= structure_of(lists).made <= 4  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("moved", [False, True])
def test_the_first_lists_are_made_once(moved: bool, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are counted serve, where nobody moved since."""
    made: list[Any] = []
    monkeypatch.setattr(neighbor_lists, "neighbors", lambda *a, **named: made.append(a) or neighbors(*a, **named))
    x, wanted = np.random.default_rng(7).random((90, 3)).astype("f4"), {"radius": 0.2}
    kernel, records = KINDS["f4", 3][1], numbered(x, None, device)
    every = met(kernel.using(lw.AllPairs(**wanted))(records, records))
    if moved:
        records.position = bring(x[::-1].copy(), device)
    call = kernel.using(NeighborLists(**wanted, skin=0.1)).bind(records, records)
    records.position = bring(x, device)
    for _ in range(3):
        assert np.array_equal(met(call()), every)
    assert len(made) == 1 + moved


def test_bits_do_not_depend_on_when_lists_are_made() -> None:
    rng = np.random.default_rng(3)
    x = rng.random((200, 3)).astype("f4")
    kernel = KINDS["f4", 3][1].using(NeighborLists(radius=0.2, skin=0.1))
    lived, now = numbered(x), numbered(x)
    call = kernel.bind(lived, lived)
    for _ in range(4):
        x = (x + rng.uniform(-0.008, 0.008, x.shape)).astype("f4")
        lived.position = x
        call()
        now.position = x
        for a, b in zip(call.results, kernel.bind(now, now)(), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_members_without_room_are_all_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbor_lists, "ROOM", 0)
    x, radius = cloud("uniform", 120, 3, "f4", seed=4)
    structure: Any = NeighborLists(radius=radius, skin=radius).make(points_of_values(x, "cpu"))
    for task in structure.tasks():
        task.run()
    assert structure.arrays["$lists.starts"].data.view(np.int32).max() == -1
    check(NeighborLists(radius=radius, skin=radius), x)
    assert not structure.fits(points_of_values(x, "cpu"))


def test_a_flock_flies_the_same() -> None:
    """Over lists as over all pairs, up to the order of sums."""
    how: dict[str, Any] = {"world": 20.0, "seed": 1, "precision": "f64", "device": "cpu"}
    search = NeighborLists(radius=9.0, skin=1.0, world=boids.Flock(2, world=20.0).search.world)
    lists, pairs = (boids.Flock(200, search=s, **how) for s in (search, "all-pairs"))
    for flock in (lists, pairs):
        flock.advance(30)
    np.testing.assert_allclose(lists.state.position, pairs.state.position, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dtype", "axes"), KINDS)
def test_it_compiles_for_a_gpu(dtype: str, axes: int) -> None:
    records = numbered(np.zeros((4, axes), dtype))
    program = cuda_program(KINDS[dtype, axes][1], NeighborLists(radius=1.0, skin=0.1), records, records)
    (cubin,) = build_executable(program, "cuda", "sm_90").cubins
    assert cubin.resources.spill_stores <= 16


def test_refusals() -> None:
    x, radius = cloud("uniform", 50, 3, "f4")
    with pytest.raises(ArgumentError, match="wanted targets that are the sources"):
        check(NeighborLists(radius=radius, skin=radius), x, x + 1)
    with pytest.raises(ArgumentError, match=r"skin=0\): wanted a length of at least 0\.01 radii, 0\.02"):
        NeighborLists(radius=2.0, skin=0)
    with pytest.raises(ArgumentError, match=r"at most half the smallest size, 0\.5"):
        NeighborLists(radius=0.4, skin=0.2, world=UNIT)
    with pytest.raises(ArgumentError, match="wanted a radius, which lists are made for"):
        NeighborLists(k=3, skin=1.0)
