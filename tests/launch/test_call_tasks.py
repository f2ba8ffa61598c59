"""Whole calls as lists of tasks: tests of indices, buckets, exact sums and searches, each verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.compiled import Call
from lanewise.launch.task_list import TaskList
from lanewise.launch.task_verifier import verify
from lanewise.launch.tasks import Buffer, Host, Launch, Primitive, Role, Sequence
from lanewise.patterns.search.gather import SORTED
from lanewise.patterns.search.points import points_of_values
from lanewise.patterns.search.query_calls import TURNING, Queried
from lanewise.primitives import buckets, exact_sums
from lanewise.support.errors import VerificationError


@lw.record
class Grain:
    position: lw.dvec3
    weight: lw.f64


@lw.elementwise
def deposit(at: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, at, v)


@lw.elementwise
def both(at: lw.i32, v: lw.f64, some: lw.Array1[lw.f32], others: lw.Array2[lw.f64]):
    lw.scatter_add(some, at, lw.f32(v))
    lw.scatter_add(others, (at, 0), v)


@lw.elementwise
def counted(at: lw.i32, counts: lw.Array1[lw.i32]):
    lw.scatter_add(counts, at, 1)


@lw.elementwise
def look_up(at: lw.i32, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[at]


@lw.threadwise
def move(i: lw.index, at: lw.Array1[lw.i32], a: lw.Array1[lw.f32], b: lw.Array1[lw.f32]):
    b[at[i]] = a[i]


@lw.threadwise
def added(i: lw.index, at: lw.Array1[lw.i32], a: lw.Array1[lw.f32], b: lw.Array1[lw.f32]):
    lw.scatter_add(b, at[i], a[i])


@lw.threadwise
def total(i: lw.index, at: lw.Array1[lw.i32], a: lw.Array1[lw.f32]) -> lw.f32:
    return a[at[i]]


@lw.pairwise
def crowd(target: Grain, source: Grain, table: lw.Array1[lw.f64]) -> lw.f64:
    return source.weight * table[lw.i32(source.weight)]


SEARCHES: dict[str, lw.Search] = {
    "cells": lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1))),
    "cells in open space": lw.StaticGrid(radius=0.2),
    "rings of cells": lw.StaticGrid(k=3),
    "cells by the host": lw.StaticGrid(radius=0.2, build="host"),
    "curve": lw.DynamicGrid(radius=0.2),
    "curve, nearest": lw.DynamicGrid(k=3, world=lw.Periodic((1, 1, 1))),
    "sort": lw.DynamicGrid(radius=0.2, order="sort"),
    "1-D": lw.DynamicGrid(radius=0.2, order="1-D", leaves="all"),
    "3-D": lw.DynamicGrid(radius=0.2, order="3-D", leaves="around"),
    "pairs": lw.AllPairs(radius=0.2),
    "automatic": lw.Neighbors(radius=0.2),
}


def sequence_of(call: Call) -> Sequence:
    return verify(call.compiled.tasks.sequence)


def names(sequence: Sequence) -> list[str]:
    return [task.name for task in sequence.tasks]


def integers(count: int = 90, most: int = 7) -> Any:
    return np.random.default_rng(2).integers(0, most, count).astype(np.int32)


def grains(count: int) -> Any:
    random = np.random.default_rng(3)
    return Grain.array(position=random.random((count, 3)), weight=random.integers(0, 5, count))


def values(count: int = 90) -> Any:
    return np.random.default_rng(4).random(count).astype(np.float32)


def test_exact_sums_are_words_a_kernel_and_a_rounding() -> None:
    sums = np.zeros(7, np.float32)
    sequence = sequence_of(deposit.bind(integers(), values(), sums))
    assert names(sequence) == ["deposit", "rounding of sums"]
    words = sequence.buffers["$words.sums"]
    assert (words.role, words.clean) == (Role.KEPT, True)
    assert sequence.buffers["sums"].role is Role.ARGUMENT
    kernel, rounding = ({a.buffer: (a.reads, a.writes) for a in t.accesses} for t in sequence.tasks)
    assert kernel == {"at": (True, False), "v": (True, False), "$words.sums": (True, True)}
    assert rounding == {"$words.sums": (True, True), "sums": (True, True)}


def test_each_array_of_sums_has_words_and_a_rounding() -> None:
    call = both.bind(integers(), values().astype(np.float64), np.zeros(7, np.float32), np.zeros((7, 2)))
    assert names(sequence_of(call)) == ["both", "rounding of sums, 1 of 2", "rounding of sums, 2 of 2"]


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_memory_that_a_call_takes_besides(device: str) -> None:
    sums, kind = np.zeros(70, np.float32), exact_sums.exact_sums.FORMATS["float32"]
    with lw.device(device):
        compiled = deposit.compile(integers(), values(), sums)
    words = exact_sums.words_for(sums, device)
    assert compiled.tasks.memory(compiled.environment) == words.nbytes >= 8 * kind.words * 70


def test_tests_come_before_a_kernel_that_changes_something() -> None:
    sequence = sequence_of(look_up.bind(integers(), values(9), checks=True))
    assert names(sequence) == ["look_up_indices", "test of indices", "look_up"]
    gate = sequence.tasks[1]
    assert isinstance(gate, Host)
    assert gate.gate
    sequence = sequence_of(deposit.bind(integers(), values(), np.zeros(7, np.float32), checks=True))
    assert names(sequence) == ["deposit_indices", "test of indices", "deposit", "rounding of sums"]


def test_threads_are_tested_within_their_kernel_and_sums_before_it() -> None:
    given = {"at": integers(), "a": values()}
    within = sequence_of(move.bind(**given, b=values(9), grid=1, checks=True))
    assert names(within) == ["move", "test of indices"]
    before = sequence_of(total.bind(**given, grid=90, checks=True))
    assert names(before)[:2] == ["total", "test of indices"]
    assert "rounding of sums" == names(sequence_of(added.bind(**given, b=values(9), grid=90, checks=True)))[-1]


def test_buckets_run_in_place_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    count, many = buckets.HOST_FEW, 1_001
    monkeypatch.setattr(buckets, "HOST_CACHED", 4 * (many - 1))
    at, v = integers(count), values(count)
    by_threads = added.bind(at, v, np.zeros(7, np.float32), grid=count)
    for call, names_of_tasks in (
        (counted.bind(at, np.zeros(many, np.int32)), ["sums by buckets"]),
        (counted.bind(at, np.zeros(many - 1, np.int32)), ["counted"]),
        (deposit.bind(at, v, np.zeros(7, np.float32)), ["sums by buckets", "rounding of sums"]),
        (by_threads, ["sums by buckets", "rounding of sums"]),
    ):
        assert names(sequence_of(call)) == names_of_tasks
    planned = counted.bind(at, np.zeros(many, np.int32), plan=lw.Plan(vector_bits=0))
    assert names(sequence_of(planned)) == ["counted"]


@pytest.mark.quick(
    "cells-True",
    "cells in open space-True",
    "rings of cells-True",
    "cells by the host-True",
    "curve-True",
    "curve, nearest-True",
    "sort-True",
    "1-D-True",
    "3-D-True",
    "pairs-True",
    "automatic-True",
    "cells in open space-False",
    "cells by the host-False",
    "curve, nearest-False",
    "pairs-False",
    "automatic-False",
)
@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("search", SEARCHES)
def test_searches_fill_gather_and_walk(search: str, checks: bool) -> None:
    same = not checks
    sources, table = grains(80), np.arange(5, dtype=np.float64)
    call = crowd.using(SEARCHES[search]).bind(sources if same else grains(30), sources, table, checks=checks)
    sequence = sequence_of(call)
    walks = ["crowd_indices", "test of indices", "crowd"] if checks else ["crowd"]
    assert names(sequence)[-len(walks) :] == walks
    built = sequence.tasks[: -len(walks)]
    structured = search != "pairs" and not isinstance(SEARCHES[search], lw.AllPairs | lw.Neighbors)
    assert [type(task) for task in built] == ([Primitive, Launch] if structured else [])


def test_what_fills_a_structure_cannot_be_left_out() -> None:
    sources = grains(80)
    call = crowd.using(SEARCHES["cells"]).bind(sources, sources, np.arange(5, dtype=np.float64))
    sequence = sequence_of(call)
    cells, gather, walk = sequence.tasks
    for tasks, why in (
        ((gather, walk), "gather reads '\\$order', which nothing has written before"),
        ((cells, walk), "crowd reads '\\$sorted', which nothing has written before"),
        ((walk, cells, gather), "which nothing has written before"),
        ((cells, gather), "nothing reads after it|nothing writes the result"),
    ):
        with pytest.raises(VerificationError, match=why):
            verify(replace(sequence, tasks=tasks))


def test_words_that_nobody_rounds_are_refused() -> None:
    sequence = sequence_of(deposit.bind(integers(), values(), np.zeros(7, np.float32)))
    kernel, rounding = sequence.tasks
    words_alone = tuple(a for a in kernel.accesses if not a.buffer.startswith("$words"))
    harmless = Primitive("nothing", lambda: None, words_alone)
    with pytest.raises(VerificationError, match=r"depends on .*, which no kernel knows"):
        verify(replace(sequence, tasks=(harmless, rounding), counts=frozenset()))
    with pytest.raises(VerificationError, match=r"nothing brings '\$words.sums' back to zero"):
        verify(replace(sequence, tasks=(harmless,)))


@pytest.mark.parametrize("bound", [True, False])
def test_sums_are_right_after_an_exception_between_kernel_and_rounding(
    bound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, v, sums = integers(), values(), np.zeros(7, np.float32)
    call: Any = deposit.bind(at, v, sums) if bound else lambda: deposit(at, v, sums)
    call()
    first = sums.copy()
    sums[:] = 0
    stopped = False

    def close(*_: Any) -> None:
        nonlocal stopped
        stopped = True
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(exact_sums.own_sums, "finish", close)
        with pytest.raises(KeyboardInterrupt):
            call()
    assert stopped
    assert not sums.any()
    call()
    np.testing.assert_array_equal(sums, first)


def test_memory_that_calls_of_another_size_have_left_is_mended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The very same call goes on with the memory that it had before a larger one was seen."""
    at, v, sums = integers(), values(), np.zeros(7, np.float32)
    larger = np.zeros(700, np.float32)
    for _ in range(3):
        sums[:] = 0
        deposit(at, v, sums)
    first = sums.copy()
    deposit(at, v, larger)
    sums[:] = 0

    def close(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(exact_sums.own_sums, "finish", close)
        with pytest.raises(KeyboardInterrupt):
            deposit(at, v, sums)
    deposit(at, v, sums)
    np.testing.assert_array_equal(sums, first)


def sequence_of_query(make: Callable[[], Queried], what: str) -> Sequence:
    """All that a query runs, from its structures on, as one sequence."""
    ran: list[Sequence] = []
    bound = TaskList.bound

    def watched(tasks: TaskList, *given: Any) -> Any:
        ran.append(tasks.sequence)
        return bound(tasks, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskList, "bound", watched)
        query = make()
        count, k = query.targets.count, query.search.k or 1
        match what:
            case "nearest":
                query.nearest(np.empty((count, k), np.int32), np.empty((count, k)))
            case "count":
                query.count(np.empty(count, np.int32))
            case _:
                found = np.empty(count, np.int32)
                query.count(found)
                del ran[-1]
                query.fill(np.cumsum(found) - found, np.empty(int(found.sum()), np.int32))
    buffers = {n: b for s in reversed(ran) for n, b in s.buffers.items()}
    # the order of targets alone is read; what else their structure has goes unread
    kept = {n: replace(b, role=Role.KEPT) for n, b in buffers.items() if n.startswith(("$targets", "$turns"))}
    copied = {n: Buffer(n, Role.TEMPORARY) for n in buffers if n == SORTED}
    tasks = tuple(task for s in ran for task in s.tasks)
    changed = frozenset[str]().union(*(s.changed for s in ran))
    return Sequence(what, {**buffers, **copied, **kept}, tasks, changed)


QUERIED: dict[str, lw.Search] = {
    "cells": lw.StaticGrid(k=3),
    "curve": lw.DynamicGrid(k=3),
    "leaves": lw.DynamicGrid(k=3, order="sort"),
    "pairs": lw.AllPairs(k=3),
}


@pytest.mark.parametrize("search", QUERIED)
def test_queries_fill_gather_order_their_targets_and_walk(search: str) -> None:
    random = np.random.default_rng(5)
    sources, targets = (points_of_values(random.random((n, 3)), "cpu") for n in (300, TURNING))
    built = [] if search == "pairs" else [search, "gather"]
    same = verify(sequence_of_query(lambda: Queried(QUERIED[search], sources, None), "nearest"))
    assert names(same) == [*built, "nearest"]
    others = verify(sequence_of_query(lambda: Queried(QUERIED[search], sources, targets), "nearest"))
    assert names(others) == [*built, *([] if search == "pairs" else [search]), "nearest"]
    for n in range(len(built)):
        with pytest.raises(VerificationError, match="which nothing has written before"):
            verify(replace(same, tasks=same.tasks[:n] + same.tasks[n + 1 :]))


def test_lists_of_neighbours_are_counted_and_filled_over_one_structure() -> None:
    sources = points_of_values(np.random.default_rng(6).random((300, 3)), "cpu")
    search = lw.StaticGrid(radius=0.1)
    for what in ("count", "fill"):
        sequence = verify(sequence_of_query(lambda: Queried(search, sources, None), what))
        assert names(sequence) == ["cells", "gather", f"neighbors_{what}"]
