"""The rhythm of loops: which steps have which tasks, and the parts that runs are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import Task, Timed
from lanewise.support.whole_steps import LONG_GRAPH


@dataclass(eq=False)
class Box:
    """What a rhythm asks of sites."""

    cycle: int
    step: int = 0
    fresh: bool = False


def task(name: str, *sites: Any, alone: str = "") -> Task:
    return Task(name, "", lambda _: (), "cpu", sites, alone=alone)


def written(rhythm: Rhythm, schedule: Any) -> str:
    """A schedule as the names of the tasks of each part, and how often it is repeated."""
    return " ".join(
        f"{''.join('(' + ''.join(t.name for t in rhythm.tasks_of(k)) + ')' for k in kinds)}*{n}"
        for (kinds, _), n in schedule
    )


def rhythm(*lists: list[Timed], cut: bool = False) -> Rhythm:
    return Rhythm(tuple(map(tuple, lists)), cut)


def test_one_list_is_one_part() -> None:
    r = rhythm([Timed(task("a")), Timed(task("b"))])
    assert (r.steps, r.period) == (1, 1)
    assert written(r, r.schedule(5, 1005)) == "(ab)*1000"


def test_short_cycles_are_parts() -> None:
    r = rhythm([Timed(task("a"))], [Timed(task("b"))])
    assert written(r, r.schedule(0, 99)) == "(a)(b)*49 (a)*1"
    assert written(r, r.schedule(3, 5)) == "(b)*1 (a)*1"
    assert r.schedule(3, 3) == []


def test_what_comes_seldom_stands_between_long_stretches() -> None:
    r = rhythm([Timed(task("a")), Timed(task("b"), 100)])
    assert r.period == 100
    assert written(r, r.schedule(0, 250)) == "(ab)*1 (a)*99 (ab)*1 (a)*99 (ab)*1 (a)*49"
    assert written(r, r.schedule(40, 102)) == "(a)*60 (ab)*1 (a)*1"


def test_many_different_steps_are_rows() -> None:
    r = rhythm([Timed(task("a"), 7), Timed(task("b"), 11)])
    assert r.period == 77
    rows = [len(kinds) for (kinds, _), _ in r.schedule(0, 77)]
    assert rows == [LONG_GRAPH, LONG_GRAPH, 13]
    assert len({key for key, _ in r.schedule(0, 7_700)}) == 3


def test_sites_lengthen_the_period() -> None:
    box = Box(4)
    r = rhythm([Timed(task("a", box), 3), Timed(task("b"))])
    assert (r.steps, r.period) == (3, 12)
    assert r.count(box, 2, 13) == 4  # type: ignore[arg-type]
    assert written(r, r.schedule(0, 24)) == "(ab)(b)(b)(ab)(b)(b)(ab)(b)(b)(ab)(b)(b)*2"
    box.step = 1
    assert r.schedule(0, 12)[0][0][1] == ((False, 1),)


def test_fresh_sites_stand_alone() -> None:
    box = Box(2, fresh=True)
    r = rhythm([Timed(task("a", box))])
    schedule = r.schedule(0, 9)
    assert written(r, schedule) == "(a)*1 (a)(a)*4"
    assert [states for (_, states), _ in schedule] == [((True, 0),), ((False, 1),)]


def test_sites_that_are_stepped_twice() -> None:
    box = Box(2)
    r = rhythm([Timed(task("a", box)), Timed(task("b", box))])
    assert r.period == 1
    assert r.count(box, 0, 5) == 10  # type: ignore[arg-type]


def test_steps_that_no_graph_holds_make_parts_of_their_own() -> None:
    lists = [Timed(task("a")), Timed(task("h", alone="a function"), 10)]
    whole = rhythm(lists)
    assert written(whole, whole.schedule(0, 20)) == "(ah)" + "(a)" * 9 + "*2"
    cut = rhythm(lists, cut=True)
    nine = "(a)" * 9 + "*1"
    assert written(cut, cut.schedule(0, 20)) == f"(ah)*1 {nine} (ah)*1 {nine}"


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 39)), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 90),
    st.integers(0, 200),
    st.booleans(),
    st.booleans(),
)
def test_every_step_comes_once_and_in_order(
    timed: Any, cycle: int, turns: int, begin: int, steps: int, fresh: bool, cut: bool
) -> None:
    """Whatever the parts are, their steps one after the other are those of a plain loop."""
    box = Box(turns, begin % 5, fresh)
    tasks = [task("a", box), task("b"), task("c", alone="x")]
    lists = [[Timed(t, k, at % k) for t, (k, at) in zip(tasks, timed, strict=False)]] * cycle
    r = rhythm(*lists, cut=cut)
    states, found = r.states(), list[tuple[int, Any]]()
    for (kinds, stand), times in r.schedule(begin, begin + steps):
        for _ in range(times):
            assert stand == tuple((f, n % turns) for f, n in states)
            found += [(k, None) for k in kinds]
            states = r.after(kinds, states)
    assert [k for k, _ in found] == [r.kinds[(begin + n) % r.steps] for n in range(steps)]
    ((still, last),) = states if r.stepped else ((fresh, box.step),)
    if r.stepped:
        assert last - box.step == r.count(box, begin, begin + steps)  # type: ignore[arg-type]
        assert still == (fresh and last == box.step)


@pytest.mark.parametrize("steps", [1, 31, 32, 33, 100])
def test_parts_are_few(steps: int) -> None:
    r = rhythm([Timed(task("a")), Timed(task("b"), steps)])
    keys = {key for begin in range(0, 300, 7) for key, _ in r.schedule(begin, begin + 250)}
    assert len(keys) <= 4
