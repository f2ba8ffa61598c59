"""Builders on the host: the same bits for any number of threads, and what they are for."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.search.builders import around, counting, dividing, merging
from lanewise.patterns.search.builders.ordering import (
    Parts,
    Recursive,
    draw_boxes,
    make_parts,
    world_box,
)
from lanewise.patterns.search.points import points_of_values
from lanewise.runtime import cpu
from tests.search.clouds import CLOUDS, Array, cloud

ORDERS: tuple[Recursive, ...] = ("sort", "1-D", "3-D")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few points are many pieces."""
    for module, name, value in (
        (dividing, "TASK", 40),
        (merging, "RUN", 32),
        (merging, "PIECE", 8),
        (cpu, "HANDING_OVER", 1e-9),
        (counting, "CELLS", 8),
    ):
        monkeypatch.setattr(module, name, value)


def of_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(cpu, "cpu_threads", lambda: threads)


def bits(parts: Parts) -> list[bytes]:
    return [x.tobytes() for x in (parts.order, parts.starts, parts.planes, parts.links)]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", CLOUDS)
def test_leaves_are_the_same_for_any_number_of_threads(
    name: str, order: Recursive, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, _ = cloud(name, 700, 3, "f4", seed=3)
    made: list[list[bytes]] = []
    for threads in (1, 2, 7):
        of_threads(monkeypatch, threads)
        made.append(bits(make_parts(x, order, 9, world_box(x))))
    assert made[0] == made[1] == made[2]


def test_a_build_of_a_large_machine_hands_over_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass over few elements is of one thread, however many there are: 64 threads took longer than two."""
    handed: list[int] = []

    def counted(threads: int, *run: Any) -> None:
        handed.append(threads)
        plain(threads, *run)

    plain: Any = cpu._share  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(cpu, "_share", counted)
    of_threads(monkeypatch, 64)
    for count, most in ((2_000, 1), (262_144, 14)):
        handed.clear()
        x = np.random.default_rng(0).random((count, 3), np.float32)
        make_parts(x, "3-D", 128, world_box(x))
        assert max(handed) <= most
        assert len(handed) <= 7


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("order", ORDERS[1:])
@pytest.mark.parametrize("name", CLOUDS)
def test_planes_lead_every_element_to_its_leaf(name: str, order: Recursive) -> None:
    x, _ = cloud(name, 500, 3, "f4", seed=4)
    parts = make_parts(x, order, 9, world_box(x))
    assert sorted(parts.order.tolist()) == list(range(500))
    assert parts.members.max() <= 9
    for leaf in range(parts.leaves):
        for place in range(parts.starts[leaf], parts.starts[leaf + 1]):
            at = 0
            while at >= 0:
                axis, plane = parts.planes[at]
                if plane == np.inf:  # halved by number: elements of one place
                    break
                at = parts.links[at, 0 if x[parts.order[place], int(axis)] < plane else 1]
            assert at >= 0 or -1 - at == leaf
    for division, links in enumerate(parts.links):  # those below come later
        assert all(to < 0 or to > division for to in links)


def lists_by_brute_force(parts: Parts, nodes: Array, axes: int, radius2: float, room: int) -> Array:
    """As the borders of cells and the boxes of leaves say, each cell with each leaf."""
    halves = 4 if axes == 3 else 2
    low, high = np.full((parts.leaves, axes), -np.inf), np.full((parts.leaves, axes), np.inf)

    def go_down(to: int, under: Array, over: Array) -> None:
        if to < 0:
            low[-1 - to], high[-1 - to] = under, over
            return
        axis, plane = int(parts.planes[to, 0]), parts.planes[to, 1]
        for side in range(2):
            u, o = under.copy(), over.copy()
            if plane < np.inf:
                (o if side == 0 else u)[axis] = plane
            go_down(int(parts.links[to, side]), u, o)

    go_down(0 if len(parts.planes) else -1, np.full(axes, -np.inf), np.full(axes, np.inf))
    rows = np.zeros((parts.leaves, room + 1), np.int32)
    centre, half = nodes[: parts.leaves, :axes], nodes[: parts.leaves, halves : halves + axes]
    for cell in range(parts.leaves):
        gaps = np.maximum(np.maximum((centre - half) - high[cell], low[cell] - (centre + half)), 0.0)
        near = np.flatnonzero((gaps * gaps).sum(axis=1) <= radius2)
        rows[cell, 0] = len(near) if len(near) <= room else -1
        if len(near) <= room:
            rows[cell, 1 : 1 + len(near)] = near
    return rows


@pytest.mark.grid(every=40)
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("deep", [2, 192])
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 3), ("f8", 2)])
@pytest.mark.parametrize("name", CLOUDS)
def test_lists_around_cells_are_those_of_all_leaves(
    name: str, dtype: str, axes: int, deep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(around, "LISTS", around.LISTS.replace(str(around.DEEP), str(deep)))
    x, radius = cloud(name, 400, axes, dtype, seed=5)
    points = points_of_values(x, "cpu")
    parts = make_parts(x, "3-D", 9, world_box(x))
    nodes = np.zeros((400, 8 if axes == 3 else 4), x.dtype)
    draw_boxes(parts, "3-D", x, np.empty((0, axes), x.dtype), nodes, points.precision)
    lists, room = np.zeros((parts.leaves, 31), np.int32), 30
    radius2 = float(radius) ** 2
    around.list_leaves(parts.planes, parts.links, parts.leaves, nodes, axes, radius2, lists)
    wanted = lists_by_brute_force(parts, nodes, axes, radius2, room)
    assert np.array_equal(lists[:, 0], wanted[:, 0])
    for row, right in zip(lists, wanted, strict=True):
        assert np.array_equal(row[1 : 1 + max(0, row[0])], right[1 : 1 + max(0, right[0])])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=300),
    st.sampled_from(["f4", "f8"]),
)
def test_merged_runs_are_a_stable_sort(values: list[float], dtype: str) -> None:
    x = np.array(values, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "RUN", 32)
        patch.setattr(merging, "PIECE", 8)
        order = merging.order_of(x)
    assert sorted(order.tolist()) == list(range(len(x)))
    numbers = ~np.isnan(x)
    found = order[numbers[order]]
    right = np.argsort(np.where(numbers, x, np.inf), kind="stable")
    assert np.array_equal(found, right[numbers[right]])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(0, 400), st.integers(1, 7), st.integers(0, 99))
def test_merged_counts_are_a_counting_sort(total: int, count: int, shares: int, seed: int) -> None:
    cells = np.random.default_rng(seed).integers(0, total, count).astype(np.int32)
    starts, order = np.empty(total + 1, np.int32), np.empty(count, np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "CELLS", 8)
        counting.sort_by_cell(cells, starts, order, shares)
    assert np.array_equal(order, np.argsort(cells, kind="stable"))
    assert np.array_equal(starts, np.searchsorted(np.sort(cells), np.arange(total + 1)))


def test_a_grid_is_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = cloud("uniform", 70_000, 3, "f4", seed=6)
    points = points_of_values(x, "cpu")
    search: Any = lw.StaticGrid(radius=0.1, cells=12, world=lw.Bounded((0, 0, 0), (1, 1, 1)))
    made: list[bytes] = []
    for threads in (1, 3, 8):
        of_threads(monkeypatch, threads)
        structure = search.make(points)
        for task in structure.tasks():
            task.run()
        made.append(structure.order.tobytes())
    assert made[0] == made[1] == made[2]
