"""Where every scalar lies: literal offsets, proofs, and arrangements that must not pass them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language import types as t
from lanewise.language.record import Field, Record
from lanewise.layouts import Arrangement, Buffer, Layout, Slot, draw, layout_by_name, prove
from lanewise.layouts.strided import strided
from tests.corpus_kernels import Body, Mixed

BODY = ("position.x", "position.y", "position.z", "mass", "velocity.x", "velocity.y", "velocity.z")
ALL: tuple[Layout, ...] = (
    lw.AoS(), lw.SoA(), lw.AoAS(), lw.AoAS(8), lw.SoAoAS(), lw.AoSoA(1), lw.AoSoA(4), lw.AoSoA(32),
)  # fmt: skip
SCALARS = st.sampled_from(t.SCALARS)
RECORDS = st.lists(
    st.one_of(SCALARS, st.builds(t.Vector, st.sampled_from([t.F32, t.F64, t.I32]), st.integers(2, 4))),
    min_size=1,
    max_size=6,
).map(lambda kinds: Record("Any", tuple(Field(f"f{i}", k) for i, k in enumerate(kinds))))


def places(record: type, layout: Layout, index: int, count: int) -> list[int]:
    arrangement = layout.arrange(record.__record__.leaves)
    return [arrangement.address(leaf.name, index, count) for leaf in record.__record__.leaves]


@pytest.mark.parametrize(("layout", "first", "second", "size"), [
    (lw.AoS(), [0, 4, 8, 12, 16, 20, 24], [28, 32, 36, 40, 44, 48, 52], 280),
    (lw.SoA(), [0, 128, 256, 384, 512, 640, 768], [4, 132, 260, 388, 516, 644, 772], 808),
    (lw.AoAS(), [0, 4, 8, 12, 16, 20, 24], [32, 36, 40, 44, 48, 52, 56], 320),
    (lw.SoAoAS(), [0, 4, 8, 12, 256, 260, 264], [16, 20, 24, 28, 272, 276, 280], 416),
    (lw.SoAoAS([["mass", "velocity"]]), [256, 260, 264, 0, 4, 8, 12], [272, 276, 280, 16, 20, 24, 28], 416),
    (lw.AoSoA(4), [0, 16, 32, 48, 64, 80, 96], [4, 20, 36, 52, 68, 84, 100], 336),
], ids=str)  # fmt: skip
def test_body(layout: Layout, first: list[int], second: list[int], size: int) -> None:
    assert tuple(leaf.name for leaf in Body.__record__.leaves) == BODY
    assert places(Body, layout, 0, 10) == first
    assert places(Body, layout, 1, 10) == second
    assert Body.zeros(10, layout=layout).nbytes == size


@pytest.mark.parametrize(("layout", "first"), [
    # alive, key, stamp, weight, cell.x, cell.y, cell.z, flags, half
    (lw.AoS(), [0, 4, 8, 16, 24, 28, 32, 36, 40]),
    (lw.AoAS(8), [0, 4, 8, 16, 24, 28, 32, 36, 40]),
    (lw.AoSoA(2), [0, 4, 16, 32, 48, 56, 64, 72, 80]),
], ids=str)  # fmt: skip
def test_mixed(layout: Layout, first: list[int]) -> None:
    assert places(Mixed, layout, 0, 3) == first


@given(record=RECORDS, layout=st.sampled_from(ALL), count=st.integers(1, 70))
def test_every_arrangement_is_proven(record: Record, layout: Layout, count: int) -> None:
    prove(layout.arrange(record.leaves), count)


@given(
    record=RECORDS,
    layout=st.sampled_from([x for x in ALL if not isinstance(x, lw.AoSoA)]),
    step=st.integers(2, 5),
    count=st.integers(1, 9),
)
def test_every_arrangement_of_a_view_is_proven(record: Record, layout: Layout, step: int, count: int) -> None:
    """No vector load of every n-th element reaches into the elements between, which others may be writing."""
    arrangement = strided(layout, step).arrange(record.leaves)
    prove(arrangement, count)
    for slot in arrangement.slots:
        size = arrangement.lanes(slot) * slot.type.size
        assert slot.offset // size * size + size <= layout.arrange(record.leaves).buffers[slot.buffer].block


def test_no_vector_load_leaves_the_last_element_of_a_view() -> None:
    """Blocks of 24 bytes may be read in pieces of 8, the 12 of an element's own may not: the second piece ends behind
    them.
    """
    leaves = Record("Three", tuple(Field(n, t.F32) for n in "abc")).leaves
    arrangement = strided(lw.AoS(), 2).arrange(leaves)
    assert [arrangement.lanes(s) for s in arrangement.slots] == [1, 1, 1]
    wider = replace(arrangement, buffers=(replace(arrangement.buffers[0], own=0),))
    assert [wider.lanes(s) for s in wider.slots] == [2, 2, 2]


A, B = Slot("a", t.F32, 0, 0, 0), Slot("b", t.F32, 0, 4, 0)


@pytest.mark.parametrize(("slots", "buffers", "text"), [
    ((A, Slot("b", t.F32, 0, 2, 0)), (Buffer("r", 1, 8),), r"b\[0\] lies at byte 2, not a multiple of its size 4"),
    ((A, Slot("b", t.F32, 0, 0, 0)), (Buffer("r", 1, 8),), r"b\[0\] and a\[0\] share byte 0"),
    ((A, B), (Buffer("r", 1, 4),), r"(a\[1\] and|b\[0\] and|b\[2\] lies at byte 12, outside)"),
    ((A, Slot("b", t.F32, 0, 8, 0)), (Buffer("r", 1, 8),), r"outside the allocation of 24 bytes|share byte"),
    ((A, Slot("b", t.F64, 0, 8, 0)), (Buffer("r", 1, 12),), r"b\[0\] and a\[1\] share byte 12"),
    ((Slot("b", t.F64, 0, 0, 0),), (Buffer("r", 1, 12),), r"b\[1\] lies at byte 12, not a multiple of its size 8"),
    ((Slot("a", t.F32, 0, 0, 2),), (Buffer("r", 4, 16),), r"a\[1\] lies at byte 2, not a multiple"),
    ((Slot("a", t.F32, 0, 0, 0),), (Buffer("r", 4, 16),), r"a\[1\] and a\[0\] share byte 0"),
    ((Slot("a", t.F32, 0, -4, 0),), (Buffer("r", 1, 4),), r"a\[0\] lies at byte -4, outside"),
], ids=str)  # fmt: skip
def test_broken_arrangements_are_found(slots: tuple[Slot, ...], buffers: tuple[Buffer, ...], text: str) -> None:
    with pytest.raises(lw.VerificationError, match=text):
        prove(Arrangement(slots, buffers), 3)


class Boasting(Arrangement):
    """Claims wider loads than there are."""

    def lanes(self, slot: Slot) -> int:
        return 4


@pytest.mark.parametrize(("slots", "block", "text"), [
    ((A, B), 8, "takes 16 bytes from byte 0 of a structure of 8"),
    ((A, B), 20, r"\[1\] starts at byte 20, not a multiple of 16"),
    ((A, Slot("n", t.I32, 0, 4, 0)), 16, "brings n, an i32"),
], ids=str)  # fmt: skip
def test_broken_loads_are_found(slots: tuple[Slot, ...], block: int, text: str) -> None:
    with pytest.raises(lw.VerificationError, match=text):
        prove(Boasting(slots, (Buffer("r", 1, block),)), 3)


def test_loads() -> None:
    leaves = Body.__record__.leaves
    for layout, wanted in ((lw.AoS(), 1), (lw.AoAS(), 4), (lw.AoAS(8), 4), (lw.SoAoAS(), 4), (lw.AoSoA(8), 1)):
        arrangement = layout.arrange(leaves)
        assert arrangement.lanes(arrangement.slot("position.x")) == wanted, layout


def test_drawings(golden: Callable[[str, str], None]) -> None:
    text = [f"{r.__record__} as {x}\n{draw(x.arrange(r.__record__.leaves))}\n" for r in (Body, Mixed) for x in ALL]
    golden("drawings", "\n".join(text))


@pytest.mark.parametrize(("make", "text"), [
    (lambda: lw.AoAS(4), r"AoAS\(align=4\): a GPU thread loads at most 16 bytes at once; align must be 8 or 16"),
    (lambda: lw.AoSoA(3), r"AoSoA\(width=3\): the width must be a power of two from 1 to 1024"),
    (lambda: lw.AoSoA(2048), r"a power of two from 1 to 1024"),
    (lambda: lw.SoAoAS([[]]), "SoAoAS got an empty group"),
    (lambda: Body.zeros(3, layout=lw.SoAoAS([["speed"]])), "SoAoAS names a field 'speed' that is missing or named twice"),
    (lambda: Body.zeros(3, layout=lw.SoAoAS([["mass"], ["mass"]])), "'mass' that is missing or named twice"),
    (lambda: Body.zeros(3, layout=lw.SoAoAS([["mass", "mass"]])), "names a field twice in the group mass mass"),
])  # fmt: skip
def test_refused_layouts(make: Callable[[], object], text: str) -> None:
    with pytest.raises(lw.RecordError, match=text):
        make()


def test_names() -> None:
    for layout in (lw.AoS(), lw.SoA(), lw.AoAS(8), lw.SoAoAS(), lw.AoSoA(16)):
        assert layout_by_name(str(layout)) == layout
    for name, text in (("rows", "unknown layout 'rows'"), ("soa(4)", "the layout soa takes no number")):
        with pytest.raises(lw.InputError, match=text):
            layout_by_name(name)


@given(record=RECORDS, layout=st.sampled_from(ALL), records=st.sampled_from([1, 2, 3, 4, 8]), group=st.integers(0, 20))
def test_what_lies_beside_is_one_aligned_piece(record: Record, layout: Layout, records: int, group: int) -> None:
    """A leaf of neighbouring records as one vector: next to each other, at a multiple of its size, for any group of
    them.
    """
    arrangement = layout.arrange(record.leaves)
    for slot in (s for s in arrangement.slots if arrangement.lies_beside(s, records)):
        size = slot.type.size
        places = [arrangement.address(slot.leaf, group * records + r, 8 * 21) for r in range(records)]
        assert places == [places[0] + r * size for r in range(records)]
        assert places[0] % (records * size) == 0
        assert records * size <= 16


@pytest.mark.parametrize(("layout", "two", "four"), [
    (lw.AoS(), False, False), (lw.SoA(), True, True), (lw.AoAS(), False, False), (lw.SoAoAS(), False, False),
    (lw.AoSoA(1), False, False), (lw.AoSoA(2), True, False), (lw.AoSoA(32), True, True),
], ids=str)  # fmt: skip
def test_where_records_lie_side_by_side(layout: Layout, two: bool, four: bool) -> None:
    arrangement = layout.arrange(Body.__record__.leaves)
    assert [arrangement.lies_beside(arrangement.slot("mass"), n) for n in (1, 2, 3, 4, 8)] == [
        False,
        two,
        False,
        four,
        False,
    ]
