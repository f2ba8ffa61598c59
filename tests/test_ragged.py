"""Ragged arrays: what goes in comes out, segments are views, one allocation holds everything, and mistakes are
explained.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.records.ragged import PAD, padding
from lanewise.runtime.memory import device_of, to_host

ROWS = st.lists(st.lists(st.floats(-1e6, 1e6, width=32), max_size=5), min_size=1, max_size=6)


@lw.record
class Item:
    when: lw.f64
    weight: lw.f32


@lw.record
class Scale:
    factor: lw.f32


def items(n: int) -> lw.RecordArray:
    return Item.array(when=np.arange(n, dtype=np.float64), weight=np.ones(n, np.float32))


@given(rows=ROWS, kind=st.sampled_from(["f4", "f8", "i4", "i8", "u4"]))
def test_arrays_come_back(rows: list[list[float]], kind: str) -> None:
    arrays = [np.array(np.abs(r), kind) for r in rows]
    found = lw.ragged(arrays, kind=None if any(r for r in rows) else lw.f32)
    assert found.tolist() == [a.tolist() for a in arrays]
    assert found.lengths.tolist() == [len(r) for r in rows]
    assert found.offsets[0].dtype == np.int64
    for view, wanted in zip(found, arrays, strict=True):
        assert view.tolist() == wanted.tolist()
        assert not len(view) or np.shares_memory(view, found.data)


@given(stacks=st.lists(ROWS, min_size=1, max_size=4))
def test_nested_lists_and_their_counts_mean_the_same(stacks: list[list[list[float]]]) -> None:
    nested = lw.ragged([[np.array(r, "f4") for r in stack] for stack in stacks], kind=lw.f32)
    flat = np.array([x for stack in stacks for r in stack for x in r], "f4")
    counts = (np.array([len(s) for s in stacks]), np.array([len(r) for s in stacks for r in s]))
    made = lw.ragged(flat, counts=counts)
    assert nested.tolist() == made.tolist() == [[np.array(r, "f4").tolist() for r in s] for s in stacks]
    assert [part.tolist() for part in made] == made.tolist()
    assert [part.copy().tolist() for part in made] == made.tolist()
    regular = len({len(s) for s in stacks}) == 1
    assert made.outer_shape == ((len(stacks), len(stacks[0])) if regular else None)


def test_nested_lists_of_records() -> None:
    found = lw.ragged(items(10), counts=np.array([[3, 0], [5, 2]]))
    assert (found.levels, found.outer_shape, len(found)) == (2, (2, 2), 2)
    assert found[1][1]["when"].tolist() == [8.0, 9.0]
    found[1][1]["when"][...] = 77.0
    assert found.data.when.tolist()[8:] == [77.0, 77.0]
    assert found.tolist()[0] == [[{"when": float(n), "weight": 1.0} for n in range(3)], []]
    same = lw.ragged([[items(3), items(0 + 1)], [items(2), items(4)]])
    assert same.outer_shape == (2, 2)
    assert same.lengths.tolist() == [3, 1, 2, 4]
    assert same[1][0]["when"].tolist() == [0.0, 1.0]


def test_pickles() -> None:
    for made in (lw.ragged(items(5), counts=[2, 0, 3]), lw.ragged(np.ones((3, 2), "f4"), counts=[[1, 2]])[0]):
        found = pickle.loads(pickle.dumps(made))
        assert (found.tolist(), repr(found), found.is_whole) == (made.tolist(), repr(made), True)


def test_one_allocation_and_copies() -> None:
    found = lw.ragged(items(5), counts=[2, 0, 3])
    whole = found._memory
    parts = [found.data.data, *found.offsets]
    assert all(np.shares_memory(p, whole) for p in parts)
    assert found.nbytes == whole.nbytes
    for other in (found.to("cpu"), found.copy(), copy.copy(found), copy.deepcopy(found)):
        assert other.tolist() == found.tolist()
        assert not np.shares_memory(other._memory, whole)
        other.data.weight[...] = 0.0
    assert found.data.weight.tolist() == [1.0] * 5


@lw.segmentwise
def total(scale: Scale, item: Item) -> lw.f32:
    return scale.factor * item.weight


def check_two_sides(device: str) -> None:
    """Lists of records have the sides that the records have, each in its layout, and both say the same."""
    records = Item.array(
        when=np.arange(5.0), weight=np.ones(5, "f4"), layout=lw.AoS(), host_layout=lw.AoSoA(4), device=device
    )
    made = lw.ragged(records, counts=[2, 0, 3])
    parts = [
        made,
        lw.ragged([records, records]),
        made.copy(),
        pickle.loads(pickle.dumps(made)),
        lw.ragged([[records]])[0].copy(),
    ]
    for found in parts:
        host = found.data.host
        assert (found.data.layout, host.layout, host.device) == (lw.AoS(), lw.AoSoA(4), "cpu")
        assert host is not found.data
        assert found.data.host is host
        lists = found.tolist()
        host.weight = np.arange(len(host), dtype="f4")
        assert to_host(found.data.weight).tolist() == list(range(len(host)))
        factors = Scale.array(factor=np.full(1, 2, "f4"), device=found.data.device)
        wanted = [2.0 * sum(x["weight"] for x in rows) for rows in found.tolist()]
        assert to_host(total(factors, found)).tolist() == [wanted]
        host.weight = np.ones(len(host), "f4")  # late on the device when it is copied
        assert found.copy().tolist() == found.to("cpu").tolist() == lists
        found.data.when = np.full(len(host), 7.0)
        assert host.when.tolist() == [7.0] * len(host)
        with pytest.raises(lw.ArgumentError, match="those of a ragged array are as many as its lists have"):
            host.append(host[:1])
    del made.data.host
    assert made.tolist()[2] == [{"when": 7.0, "weight": 1.0}] * 3


@pytest.mark.parametrize("default", ["cpu", "python"])
@pytest.mark.parametrize("lies", ["cpu", "python"])
def test_lists_lie_where_their_records_lie(lies: str, default: str) -> None:
    """Whatever the default device is: that is where lists of plain numbers go."""
    other = "python" if lies == "cpu" else "cpu"
    records = Item.array(when=np.arange(5.0), weight=np.ones(5, "f4"), device=lies)
    with lw.device(default):
        for made in (lw.ragged(records, counts=[2, 0, 3]), lw.ragged([records, records[:2]]), lw.ragged([[records]])):
            assert (made.device, made.data.device) == (lies, lies)
            assert made.to(other).device == other
        assert lw.ragged(records, counts=[5], device=other).device == other
        assert lw.ragged(np.arange(3.0), counts=[1, 2]).device == default
        assert lw.ragged([np.arange(3.0), []]).device == default
        with pytest.raises(lw.ArgumentError, match="the lists lie on cpu and python; give device="):
            lw.ragged([records, records.to(other)])


@pytest.mark.cuda
def test_lists_lie_where_values_on_a_gpu_lie() -> None:
    records = Item.array(when=np.arange(5.0), weight=np.ones(5, "f4"), device="cuda")
    with lw.device("cpu"):
        for made in (
            lw.ragged(records, counts=[2, 0, 3]), lw.ragged([records]), lw.ragged(records.weight, counts=[2, 0, 3]), lw.ragged([records.weight]),
        ):  # fmt: skip
            assert made.device == records.device
            assert device_of(getattr(made.data, "weight", made.data)) == records.device


def test_two_sides() -> None:
    check_two_sides("cpu")


@pytest.mark.cuda
def test_two_sides_on_a_gpu() -> None:
    check_two_sides("cuda")
    made = lw.ragged(items(5), counts=[2, 0, 3], device="cuda")
    assert made.data.host.when.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    found = lw.ragged([np.arange(3.0), np.zeros(0), np.arange(2.0)]).to("cuda")
    assert found.device.startswith("cuda")
    assert found.tolist() == [[0.0, 1.0, 2.0], [], [0.0, 1.0]]
    assert np.isnan(padding(found).get()).all()
    assert found.to("cpu").tolist() == found.tolist()
    made = lw.ragged(items(4), counts=[1, 3], device="cuda")
    assert made.tolist() == lw.ragged(items(4), counts=[1, 3]).tolist()


def test_complex_numbers_are_vectors_of_two() -> None:
    found = lw.ragged([np.array([1 + 2j, 3j], np.complex64), np.zeros(0, np.complex64)])
    assert str(found.kind) == "vec2"
    assert found.tolist() == [[[1.0, 2.0], [0.0, 3.0]], []]
    assert str(lw.ragged(np.zeros(3, complex), counts=[3]).kind) == "dvec2"
    assert str(lw.ragged(np.zeros((3, 4), "f4"), counts=[1, 2]).kind) == "vec4"


def test_what_follows_the_last_value_is_not_a_number() -> None:
    for made in (lw.ragged(np.ones((3, 2), "f4"), counts=[1, 2]), lw.ragged(np.ones(3), counts=[3]).copy()):
        pad = padding(made)
        assert np.isnan(pad).all()
        assert len(pad) == PAD * (2 if made.data.ndim == 2 else 1)
    assert len(padding(lw.ragged(np.ones(3, "i4"), counts=[3]))) == 0


def test_empty_everywhere() -> None:
    assert lw.ragged(np.zeros(0), counts=[0, 0]).tolist() == [[], []]
    assert lw.ragged(np.zeros(0), counts=np.zeros((2, 0), int)).tolist() == [[], []]
    assert lw.ragged([np.zeros(0), np.zeros(0)]).tolist() == [[], []]
    assert lw.ragged(np.zeros(0), counts=np.zeros(0, int)).tolist() == []


def test_awkward_arrays_come_and_go() -> None:
    ak = pytest.importorskip("awkward")
    rows: list[Any] = [[[1.5, 2.0], []], [], [[3.0]]]
    found = lw.ragged(ak.Array(rows))
    assert found.tolist() == rows
    assert found.awkward().tolist() == rows
    records = lw.ragged(items(3), counts=[1, 2]).awkward()
    assert records[1].when.tolist() == [1.0, 2.0]
    assert lw.ragged(np.ones((3, 2), "f4"), counts=[1, 2]).awkward().tolist() == [[[1, 1]], [[1, 1], [1, 1]]]
    with pytest.raises(lw.ArgumentError, match="one axis has no lists"):
        lw.ragged(ak.Array([1.0, 2.0]))
    with pytest.raises(lw.ArgumentError, match="missing values"):
        lw.ragged(ak.Array([[1.0, None], [2.0]]))


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (np.ones(3), {}, "takes nested lists of arrays, or all values with counts=...; found an array of shape (3,) and no counts"),
    ([1.0, 2.0], {}, "takes lists of lists, or all values with counts=...; found list [1.0, 2.0], which is one list of values"),
    ([[[1.0]], [2.0]], {}, "all lists of a level are as deep as each other; found that the list[0] has 1 level of lists and the list[1] has 0 levels of lists"),
    (np.ones(3), {"counts": [1, 1]}, "the counts add up to 2, and there are 3 values"),
    (np.ones(3), {"counts": [4, -1]}, "counts are integers from 0 on, found [4, -1]"),
    (np.ones(3), {"counts": [1.5, 1.5]}, "counts are integers from 0 on"),
    (np.ones(3), {"counts": ([2], [1, 1, 1])}, "the counts of level 0 add up to 2 lists, and level 1 has 3"),
    (np.ones((3, 5)), {"counts": [3]}, "wanted values of shape (n,), or (n, 2) to (n, 4) for vectors, found (3, 5)"),
    (np.ones(3), {"counts": [3], "kind": lw.vec2}, "values of type vec2 have shape (n, 2), found (3,)"),
    (np.ones(3), {"counts": [3], "kind": "vec2"}, "kind is the type of a value, such as lw.f32 or lw.vec2; found 'vec2'"),
    (np.ones(3), {"counts": [3], "kind": lw.i32}, "holds i32: float64 would lose information"),
    (np.ones(3, bool), {"counts": [3]}, "found values of bool"),
    ([np.ones(2), np.ones((2, 2))], {}, "wanted arrays of numbers of one shape after the first axis"),
    ([np.array(["a"]), np.ones(1)], {}, "wanted arrays of numbers of one shape after the first axis"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "named", "text"), WRONG)
def test_mistakes_are_explained(values: Any, named: dict[str, Any], text: str) -> None:
    with pytest.raises(lw.ArgumentError) as caught:
        lw.ragged(values, **named)
    assert text in str(caught.value)


def test_indices_are_checked() -> None:
    found = lw.ragged([np.ones(2), np.ones(1)])
    assert found[-1].tolist() == [1.0]
    with pytest.raises(IndexError, match="list 2 of 2"):
        found[2]
    with pytest.raises(TypeError, match="one by one with an integer, found True"):
        found[True]
    with pytest.raises(TypeError, match="lists of different lengths are no array"):
        np.asarray(found)
    assert repr(found) == "<ragged: 2 lists with 3 f64 on cpu>"
