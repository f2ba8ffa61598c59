"""Records that are born and die: the same on every device and in every layout, with ids that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.errors import ArgumentError
from tests.test_array_views import LAYOUTS


@lw.record
class Cell:
    position: lw.vec2
    age: lw.i32
    serial: lw.i64


@lw.elementwise
def live(cell: Cell, step: lw.i32) -> lw.Fate:
    u = lw.random(7, step, cell.serial)
    cell.age += 1
    if u < 0.1:
        return lw.Fate.DIE
    return lw.Fate.SPLIT if u > 0.8 else lw.Fate.KEEP


@lw.elementwise
def start(cell: Cell):
    cell.age = 0
    cell.position += lw.vec2(0.5, 0.25)


@lw.elementwise
def doomed(cell: Cell) -> lw.Fate:
    return lw.Fate.DIE


def cells(n: int, **named: Any) -> Any:
    return Cell.array(position=np.arange(2 * n).reshape(n, 2), serial=np.arange(n), **named)


class Model:
    """The same in plain Python, one cell after the other."""

    def __init__(self, n: int) -> None:
        self.rows = [[(2.0 * i, 2.0 * i + 1), 0, i] for i in range(n)]
        self.next = n

    def step(self, step: int) -> None:
        stay, born = [], []
        for (x, y), age, serial in self.rows:
            u = lw.random(7, step, np.int64(serial))
            if u >= 0.1:
                stay.append([(x, y), age + 1, serial])
            if u > 0.8:
                born.append([(x + 0.5, y + 0.25), 0, self.next])
                self.next += 1
        self.rows = stay + born


@pytest.mark.grid(every=6)
@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_like_one_after_the_other(layout: lw.Layout, device: str) -> None:
    population, model = lw.Population(cells(40, layout=layout, device=device), ids="serial"), Model(40)
    for step in range(8):
        before = len(population)
        turnover = population.step(live, step, newborn=start)
        model.step(step)
        assert turnover.kept + turnover.died == before
        assert turnover.kept + turnover.born == len(population) == len(model.rows)
    fields = population.records.numpy()
    for n, name in enumerate(("position", "age", "serial")):
        np.testing.assert_array_equal(fields[name], [row[n] for row in model.rows])
    assert population.next_id == model.next
    assert (population.records.layout, population.records.device) == (layout, device)


@given(steps=st.lists(st.lists(st.sampled_from(list(lw.Fate)), max_size=12), max_size=6), n=st.integers(0, 8))
def test_ids_are_never_used_again(steps: list[list[lw.Fate]], n: int) -> None:
    population, seen = lw.Population(cells(n), ids="serial"), set(range(n))
    for chosen in steps:
        alive = population.records.serial.tolist()
        fates = np.array([*chosen, *[lw.Fate.KEEP] * len(alive)][: len(alive)], np.int32)
        turnover = population.apply(fates)
        now = population.records.serial.tolist()
        assert now[: turnover.kept] == [i for i, f in zip(alive, fates, strict=True) if f != lw.Fate.DIE]
        assert len(now[turnover.kept :]) == turnover.born == (fates == lw.Fate.SPLIT).sum()
        assert not seen & set(now[turnover.kept :])
        seen |= set(now)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_the_last_death_ends_nothing(device: str) -> None:
    population = lw.Population(cells(5, device=device), ids="serial")
    turnover = population.step(doomed)
    assert (turnover.kept, turnover.died, turnover.born) == (0, 5, 0)
    for step in range(2):
        turnover = population.step(live, step)
        assert (turnover.kept, turnover.died, turnover.born) == (0, 0, 0)
    population.records.append(Cell(serial=population.next_id))
    assert (population.next_id, len(population)) == (5, 1)


def refused(act: Any) -> str:
    with pytest.raises(ArgumentError) as error:
        act()
    return str(error.value)


def test_refused() -> None:
    population = lw.Population(cells(3), ids="serial")
    for fates, text in (
        ([1, 1], "fates are whole numbers of shape (3,), one for each record, found an array of int64 with shape (2,)"),
        (
            [1.0, 1, 1],
            "fates are whole numbers of shape (3,), one for each record, found an array of float64 with shape (3,)",
        ),
        ([1, 7, 1], "the fate of record 1 is 7; wanted lw.Fate.DIE, KEEP or SPLIT (0, 1, 2)"),
    ):
        assert refused(lambda fates=fates: population.apply(fates)) == text
    assert refused(lambda: population.apply([2, 1, 2], newborn=lambda born: born.append(Cell()))) == (
        "newborn was given 2 records and left 3; fates decide how many there are"
    )
    assert population.records.serial.tolist() == [0, 1, 2]
    twice = Cell.array(serial=[4, 2, 4, 2])
    assert refused(lambda: lw.Population(twice, ids="serial")) == (
        "two records of Cell have the serial 2; number them first: .serial = np.arange(4)"
    )
    assert (
        refused(lambda: lw.Population(cells(3), ids="age"))
        == "the ids of Cell are in the field 'age' of type i32; wanted age: lw.i64"
    )
    assert refused(lambda: lw.Population(cells(3), ids="number")).startswith("Cell has no field 'number'")
    assert refused(lambda: lw.Population(cells(3), ids="serial", next_id=2)) == (
        "Population(next_id=2): wanted a whole number from 3 on, which no record has"
    )
    assert "a view has the records that it was cut with" in refused(lambda: lw.Population(cells(9)[:3], ids="serial"))
    assert lw.Population(cells(3), ids="serial", next_id=11).next_id == 11
