"""Ragged arrays with two sides: lists are added on either, what is read is the newest, and copies are counted to the
byte.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.records.ragged import PAD, padding
from lanewise.runtime.memory import to_host


class Sample(lw.Record):
    when: lw.f64
    weight: lw.f32
    bias: lw.f32


@lw.segmentwise
def weights(sample: Sample) -> lw.f32:
    return sample.weight


@lw.segmentwise
def at_first(sample: Sample, row: lw.Row[lw.f32]) -> lw.f32:
    return row[0] if len(row) > 0 else lw.f32(0)


@lw.elementwise
def later(sample: Sample, by: lw.f64):
    sample.when += by


def samples(count: int, first: int = 0, device: str = "cpu", **more: Any) -> lw.RecordArray[Sample]:
    number = np.arange(first, first + count)
    return Sample.array(when=number, weight=number % 7, bias=number % 3, device=device, **more)


def two_sided(counts: Any, device: str = "cpu") -> lw.RaggedArray:
    total = int(np.sum(counts[-1] if isinstance(counts, tuple) else counts))
    return lw.ragged(samples(total, device=device, layout=lw.AoS(), host_layout=lw.SoA()), counts=counts)


def values_with_sides(values: Any, counts: Any, device: str) -> lw.RaggedArray:
    made = lw.ragged(values, counts=counts, device=device)
    if device == "cpu":  # where nobody asks for another side of values
        made._flat.storage.make_host(lw.AoS())
    return made


def counted(what: Any) -> dict[tuple[str, str], list[int]]:
    """What was copied while it ran: field and direction, with how often and how many bytes."""
    profile = lw.Profile()
    with profile.span("here"):
        what()
    return {key: [*found] for key, found in profile.copied.items()}


def check_copies_to_the_byte(device: str) -> None:
    lists = two_sided([3, 0, 4, 1], device)
    host: list[lw.RaggedArray] = []
    assert counted(lambda: host.append(lists.host)) == {("Sample.offsets", "to host"): [1, 5 * 8]}
    assert lists.host is host[0]
    assert (host[0].device, host[0].is_whole, host[0].data.layout) == ("cpu", True, lw.SoA())
    wanted = [float(np.sum(np.arange(8)[a:b] % 7)) for a, b in [(0, 3), (3, 3), (3, 7), (7, 8)]]
    assert counted(lambda: host[0].data.weight) == {("Sample.weight", "to host"): [1, 8 * 4]}
    assert counted(lambda: [weights(lists), weights(host[0]), weights(lists)]) == {}  # reading alone
    assert to_host(weights(lists)).tolist() == weights(host[0]).tolist() == wanted
    later(lists.data, 2.0)
    assert counted(lambda: [weights(lists), weights(host[0])]) == {}  # another field has changed
    assert counted(lambda: host[0].data.when) == {("Sample.when", "to host"): [1, 8 * 8]}
    host[0].data.weight = np.full(8, 2.0)
    again = counted(lambda: [weights(lists) for _ in range(3)])
    assert again == {("Sample.weight", "to device"): [1, 8 * 4]}
    assert to_host(weights(lists)).tolist() == [6.0, 0.0, 8.0, 2.0]
    grown = counted(lambda: lists.append([samples(2, 100, device)]))
    rest = {("Sample.bias", "to device"), ("Sample.when", "to device"), ("Sample.weight", "to device")}
    assert not rest & set(grown)
    assert grown == {("Sample.offsets", "to host"): [1, 6 * 8]}
    assert counted(lambda: host[0].data.bias) == {("Sample.bias", "to host"): [1, 10 * 4]}
    assert host[0].tolist() == lists.tolist()
    assert len(host[0]) == len(lists) == 5


def check_calls_take_the_newest(device: str) -> None:
    """First, repeated and bound calls, after changes on the host's side."""
    lists = two_sided([2, 4], device)
    bound = weights.bind(lists)
    for factor in range(1, 5):
        lists.host.data.weight = np.full(6, factor)
        assert to_host(weights(lists)).tolist() == [2.0 * factor, 4.0 * factor]
        lists.host.data.weight = np.full(6, 10 * factor)
        assert to_host(bound()).tolist() == [20.0 * factor, 40.0 * factor]
    lists.host.append([samples(1, 3)])
    assert to_host(weights(lists)).tolist() == [80.0, 160.0, 3.0]
    with pytest.raises(lw.ArgumentError, match="bind the call again"):
        bound()


def check_values(device: str) -> None:
    rows = values_with_sides(np.arange(6, dtype="f4"), [2, 0, 4], device)
    items = lw.ragged(samples(3, device=device), counts=[3])
    bound = at_first.bind(items, rows)
    assert to_host(at_first(items, rows)).tolist() == [2.0]
    host = rows.host
    assert host.tolist() == [[0.0, 1.0], [], [2.0, 3.0, 4.0, 5.0]]
    rows.data[2] = 7.0
    gc.collect()
    copied = counted(lambda: host.data)
    assert copied == {("f32.values", "to host"): [1, 6 * 4]}
    assert counted(lambda: [host.data, at_first(items, rows)]) == {}
    assert host[2].tolist() == [7.0, 3.0, 4.0, 5.0]
    with pytest.raises(ValueError, match="read-only"):
        host.data[0] = 1.0
    assert np.isnan(padding(host)).all()
    assert padding(host).shape == (PAD,)
    del rows.host
    assert rows.host is not None
    longer = lw.ragged(samples(4, device=device), counts=[4])
    rows.append([[9.0]])
    assert to_host(at_first(longer, rows)).tolist() == [16.0]
    assert rows.host.tolist()[3] == [9.0]
    assert np.isnan(to_host(padding(rows))).all()
    with pytest.raises(lw.ArgumentError, match="'row' had 3 lists when a call was bound to it, and lists were added"):
        bound()


CHECKS = [check_copies_to_the_byte, check_calls_take_the_newest, check_values]


@pytest.mark.parametrize("check", CHECKS)
def test_on_a_cpu(check: Any) -> None:
    check("cpu")


@pytest.mark.cuda
@pytest.mark.parametrize("check", CHECKS)
def test_on_a_gpu(check: Any) -> None:
    check("cuda")


ROWS = st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=4)


def counts_of(stacks: list[list[list[int]]], deep: bool) -> Any:
    lengths = np.array([len(r) for rows in stacks for r in rows], int)
    return (np.array([len(rows) for rows in stacks]), lengths) if deep else lengths


@settings(max_examples=60)
@given(
    turns=st.lists(st.tuples(st.booleans(), ROWS), max_size=6),
    deep=st.booleans(),
    kind=st.sampled_from([lw.f32, lw.i32]),
)
def test_lists_added_on_either_side_are_those_of_one_array(turns: Any, deep: bool, kind: Any) -> None:
    """A ragged array that grows holds what lw.ragged makes of all lists at once."""
    dtype = "f4" if kind is lw.f32 else "i4"

    def flat(stacks: list[list[list[int]]]) -> tuple[Any, Any]:
        return np.array([x for rows in stacks for r in rows for x in r], dtype), counts_of(stacks, deep)

    every = [[[1, 2], []]]
    found = lw.ragged(*flat(every))
    found._flat.storage.make_host(lw.AoS())
    for on_host, rows in turns:
        values, counts = flat([rows])
        (found.host if on_host else found).append(values, counts=counts)
        every.append(rows)
        same = lw.ragged(*flat(every))
        for one in (found, found.host, found.copy(), found.to("cpu"), found.host.copy()):
            assert one.tolist() == same.tolist()
            assert one.outer_shape == same.outer_shape
            assert one.lengths.tolist() == same.lengths.tolist()
            assert [part.tolist() for part in one] == same.tolist()


@settings(max_examples=30)
@given(turns=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 5), min_size=1, max_size=3)), max_size=6))
def test_records_that_grow_on_either_side(turns: Any) -> None:
    found, counts = two_sided([0, 0]), [0, 0]
    for on_host, more in turns:
        (found.host if on_host else found).append(samples(sum(more), sum(counts)), counts=more)
        counts += more
        same = lw.ragged(samples(sum(counts)), counts=counts)
        assert found.tolist() == found.host.tolist() == same.tolist()
        assert weights(found).tolist() == weights(found.host).tolist() == weights(same).tolist()
        assert len(found.data) == len(found.host.data) == max(1, sum(counts)) or not sum(counts)


def test_lists_one_by_one_cost_some_copies_of_all() -> None:
    rows = lw.ragged([np.zeros(3, "f4")])
    moved, places = 0, rows._flat.storage.memory.data
    for n in range(400):
        rows.append([np.full(3, n, "f4")])
        moved += rows._flat.storage.memory.data is not places
        places = rows._flat.storage.memory.data
    assert moved < 15
    assert rows[400].tolist() == [399.0] * 3


@pytest.mark.parametrize(
    ("lists", "text"),
    [
        ([[[1.0]]], "append: wanted lists of 1 level, found 2 levels"),
        ([np.ones((2, 3))], "append: lw.ragged: values of type f32 have shape ('n',), found (2, 3)"),
        ([samples(1)], "append: lw.ragged: kind is for values, and these are records of Sample"),
        (lw.ragged(samples(1), counts=[1]), "append: wanted lists of f32, found some of Sample"),
        (3, "append: lw.ragged takes nested lists"),
        ([], "append: found [], which has no list in it, so its depth is unknown; [[]] is one empty list"),
    ],
)
def test_what_does_not_fit_is_refused(lists: Any, text: str) -> None:
    rows = lw.ragged([np.ones(2, "f4"), np.ones(1, "f4")])
    with pytest.raises(lw.ArgumentError) as error:
        rows.append(lists)
    assert text.replace("'", "") in str(error.value).replace("'", "")
    assert rows.tolist() == [[1.0, 1.0], [1.0]]


def test_parts_have_their_own_lists() -> None:
    stacks = two_sided((np.array([2, 1]), np.array([1, 2, 3])))
    part = stacks[0]
    assert part.host.tolist() == part.tolist()
    assert part.host.device == "cpu"
    with pytest.raises(lw.ArgumentError, match=r"this is a part of another one; .copy\(\) is an independent array"):
        part.append([[samples(1)]])
    stacks.append([[samples(2, 50)]])
    assert part.tolist() == stacks.tolist()[0]
    assert stacks.host[2].tolist() == [
        [{"when": 50.0, "weight": 1.0, "bias": 2.0}, {"when": 51.0, "weight": 2.0, "bias": 0.0}]
    ]


def test_one_side_is_its_own() -> None:
    rows = lw.ragged([np.ones(2, "f4")])
    assert rows.host is rows
