"""Records that are born and die: the same on every device and in every layout, with ids that stay."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.support.errors import ArgumentError
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


@pytest.mark.grid(every=40)
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
@pytest.mark.parametrize("handed_over", ["never", "copied", "pickled", "as next_id"])
def test_no_id_is_given_twice_in_any_history(handed_over: str, device: str) -> None:
    """Few records that die as often as not: whoever has the largest id is often gone when the next one is born."""
    rng = np.random.default_rng(5)
    given_again = 0
    for _ in range(60):
        n = int(rng.integers(1, 5))
        population, ever = lw.Population(cells(n, device=device), ids="serial"), set(range(n))
        for _ in range(8):
            if not len(population) or len(population) > 30:
                break
            before = population.records.numpy()["serial"].max()
            turnover = population.apply(rng.integers(0, 3, len(population)).astype(np.int32))
            serials = population.records.numpy()["serial"].tolist()
            newborn = serials[turnover.kept :]
            assert not ever & set(newborn), f"ids {newborn} had been given before: {sorted(ever)}"
            assert all(i < population.next_id for i in (*ever, *serials))
            given_again += bool(newborn) and before < max(ever)  # where a count by the living would have gone wrong
            ever |= set(newborn)
            match handed_over:
                case "copied":
                    population = copy.deepcopy(population)
                case "pickled":
                    population = pickle.loads(pickle.dumps(population))
                case "as next_id":
                    population = lw.Population(population.records, ids="serial", next_id=population.next_id)
                case _:
                    pass
    assert given_again > 4


def test_the_id_of_the_dead_is_not_given_to_the_next() -> None:
    population = lw.Population(cells(3), ids="serial")
    population.apply(np.array([lw.Fate.KEEP, lw.Fate.KEEP, lw.Fate.SPLIT], np.int32))
    population.apply(np.array([lw.Fate.KEEP] * 3 + [lw.Fate.DIE], np.int32))
    population.apply(np.array([lw.Fate.SPLIT, lw.Fate.KEEP, lw.Fate.KEEP], np.int32))
    assert population.records.serial.tolist() == [0, 1, 2, 4]
    assert population.next_id == 5


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_the_last_death_ends_nothing(device: str) -> None:
    population = lw.Population(cells(5, device=device), ids="serial")
    turnover = population.step(doomed)
    assert (turnover.kept, turnover.died, turnover.born) == (0, 5, 0)
    for step in range(2):
        turnover = population.step(live, step)
        assert (turnover.kept, turnover.died, turnover.born) == (0, 0, 0)
    population.records.append(Cell(serial=population.next_id))
    assert (population.next_id, len(population)) == (6, 1)


def refused(act: Any) -> str:
    with pytest.raises(ArgumentError) as error:
        act()
    return str(error.value)


def test_refused() -> None:
    population = lw.Population(cells(3), ids="serial")
    for fates, text in (
        ([1, 1], "fates are integers of shape (3,), one for each record, found an array of int64 with shape (2,)"),
        (
            [1.0, 1, 1],
            "fates are integers of shape (3,), one for each record, found an array of float64 with shape (3,)",
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
        "Population(next_id=2): wanted an integer from 3 on, which no record has"
    )
    assert refused(lambda: lw.Population(cells(3), ids="serial").step(start)) == (
        "fates are integers, one for each record, found None; the kernel returns them: -> lw.Fate"
    )
    assert "a view has the records that it was cut with" in refused(lambda: lw.Population(cells(9)[:3], ids="serial"))
    assert lw.Population(cells(3), ids="serial", next_id=11).next_id == 11


def test_ids_are_those_of_the_population() -> None:
    for act in (lambda born: setattr(born, "serial", 0), lambda born: born.__setitem__(slice(None), Cell(age=1))):
        population = lw.Population(cells(3), ids="serial")
        text = refused(lambda act=act, population=population: population.apply([2, 1, 2], newborn=act))
        assert text == (
            "newborn changed the field 'serial' of records that are born, which holds the ids that the population gave them; "
            "assign the other fields alone"
        )
        assert population.records.serial.tolist() == [0, 1, 2]
        assert population.next_id == 3


def test_records_that_others_add_are_counted() -> None:
    population = lw.Population(cells(3), ids="serial")
    for _ in range(2):
        population.records.append(Cell(serial=population.next_id))
    population.records.reserve(100)
    assert population.apply([1, 1, 1, 1, 2]).born == 1
    assert population.records.serial.tolist() == [0, 1, 2, 3, 4, 5]
    population.records.append(Cell(serial=2))
    assert "two records of Cell have the serial 2" in refused(lambda: population.apply([1] * 7))


@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_ids_that_others_write_are_looked_at(device: str, layout: lw.Layout) -> None:
    """By an assignment, a view, a row or a kernel: they are different, or nothing happens to the population."""

    @lw.elementwise
    def renumber(cell: Cell, number: lw.i64) -> lw.Fate:
        cell.serial = number
        return lw.Fate.KEEP

    def assign(population: lw.Population) -> None:
        population.records.serial = 0

    def write_a_row(population: lw.Population) -> None:
        population.records[2].serial = 0

    for write in (assign, write_a_row):
        population = lw.Population(cells(3, layout=layout, device=device), ids="serial")
        write(population)
        before = population.records.serial.tolist()
        for act in (lambda p=population: p.apply([0, 1, 2]), lambda p=population: p.next_id):
            assert refused(act) == "two records of Cell have the serial 0; number them first: .serial = np.arange(3)"
        assert population.records.serial.tolist() == before
    population = lw.Population(cells(3, layout=layout, device=device), ids="serial")
    assert "two records of Cell have the serial 7" in refused(lambda: population.step(renumber, 7))
    population.records.serial = [9, 8, 20]
    assert population.apply([2, 1, 1]).born == 1
    assert population.records.serial.tolist() == [9, 8, 20, 21]


def test_copies_are_populations_of_their_own() -> None:
    population = lw.Population(cells(3), ids="serial", next_id=9)
    for other in (copy.deepcopy(population), pickle.loads(pickle.dumps(population))):
        assert other.apply([2, 0, 1]).born == 1
        assert (other.records.serial.tolist(), other.next_id) == ([0, 2, 9], 10)
    assert (population.records.serial.tolist(), population.next_id) == ([0, 1, 2], 9)


def test_views_and_ids_without_end_are_refused() -> None:
    assert refused(lambda: lw.Population(cells(3)[1:], ids="serial")) == (
        "Population changes the length of an array of Cell, and a view has the records that it was cut with; .copy() is an independent array"
    )
    last = 2**63 - 1
    assert "ids are i64" in refused(lambda: lw.Population(cells(3), ids="serial", next_id=last + 1))
    assert "i64 ends at" in refused(lambda: lw.Population(cells(3), ids="serial", next_id=last - 1).apply([2, 2, 2]))
