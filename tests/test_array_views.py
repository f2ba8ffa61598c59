"""Slices are views that kernels run over, masks and integers make copies: in every layout, on every device."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.records import moves
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of, storage_of
from lanewise.support.errors import ArgumentError

LAYOUTS = (lw.AoS(), lw.SoA(), lw.AoAS(), lw.AoAS(8), lw.SoAoAS(), lw.AoSoA(1), lw.AoSoA(4), lw.AoSoA(8))
SLICES = (
    slice(8, 30),
    slice(3, 20),
    slice(None, None, 2),
    slice(1, 30, 3),
    slice(16, 16),
    slice(0, 8),
    slice(-2, None),
)
N = 37


@lw.record
class Grain:
    position: lw.vec3
    mass: lw.f32
    serial: lw.i64
    alive: lw.bool


@lw.elementwise
def push(grain: Grain, dt: lw.f32):
    grain.position += lw.vec3(grain.mass, 2 * grain.mass, 3 * grain.mass) * dt
    grain.serial += 1


@lw.elementwise
def copy_mass(grain: Grain, other: Grain):
    grain.mass = other.mass


@lw.pairwise
def attract(target: Grain, source: Grain) -> lw.f32:
    apart = source.position - target.position
    return source.mass * lw.dot(apart, apart)


@lw.pairwise(search=lw.Neighbors(radius=2.5))
def near(target: Grain, source: Grain) -> lw.f32:
    return source.mass


@pytest.fixture(params=["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=LAYOUTS, ids=str)
def layout(request: pytest.FixtureRequest) -> lw.Layout:
    return request.param


def grains(layout: lw.Layout, device: str, n: int = N) -> RecordArray:
    """Small integers: sums of them are exact in any order."""
    rng = np.random.default_rng(3)
    position, mass = rng.integers(0, 8, (n, 3)), rng.integers(1, 5, n)
    return Grain.array(position=position, mass=mass, serial=np.arange(n), layout=layout, device=device)


def host(values: Any) -> Any:
    return values.get() if hasattr(values, "get") else np.asarray(values)


def assert_equal(array: RecordArray, fields: dict[str, np.ndarray]) -> None:
    for name, values in array.numpy().items():
        np.testing.assert_array_equal(values, fields[name], err_msg=name)


def pushed(fields: dict[str, np.ndarray], chosen: Any) -> dict[str, np.ndarray]:
    after = {n: v.copy() for n, v in fields.items()}
    after["position"][chosen] += fields["mass"][chosen][:, None] * np.float32([1, 2, 3])
    after["serial"][chosen] += 1
    return after


def summed(targets: dict[str, np.ndarray], sources: dict[str, np.ndarray]) -> np.ndarray:
    apart = sources["position"][None] - targets["position"][:, None]
    return (sources["mass"] * (apart**2).sum(-1)).sum(1)


def in_blocks(view: RecordArray) -> bool:
    """Whether a view begins or steps within blocks: kernels refuse it, and say what to do."""
    if places_of(view).is_regular:
        return False
    with pytest.raises(ArgumentError, match=r"kernels run over a \.copy\(\) of it"):
        _ = view.arrangement
    return True


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("part", SLICES, ids=str)
def test_kernels_run_over_views(layout: lw.Layout, device: str, part: slice) -> None:
    array = grains(layout, device)
    view, before = array[part], array.numpy()
    assert len(view) == len(before["mass"][part])
    assert_equal(view, {n: v[part] for n, v in before.items()})
    assert_equal(view[1:4], {n: v[part][1:4] for n, v in before.items()})
    if in_blocks(view):
        assert isinstance(layout, lw.AoSoA)
        with pytest.raises(
            ArgumentError, match=r"push: 'grain': this view .* within the blocks of \d records .*\.copy\(\)"
        ):
            push(view, 1.0)
        assert_equal(array, before)
        changed = view.copy()
        push(changed, 1.0)
        array[part] = changed
    else:
        push(view, 1.0)
        after, seen = pushed(before, part), view.numpy()
        np.testing.assert_array_equal(host(attract(view, array)), summed(seen, after))
        np.testing.assert_array_equal(host(attract(array, view)), summed(after, seen))
        np.testing.assert_array_equal(host(attract(view, view)), summed(seen, seen))
    assert_equal(array, pushed(before, part))


@pytest.mark.parametrize("layout", [x for x in LAYOUTS if getattr(x, "width", 1) == 1], ids=str)
def test_wide_loops_leave_what_lies_between(layout: lw.Layout) -> None:
    """Loops over thousands of elements run in SIMD registers: they may not write back what they did not compute."""
    array = grains(layout, "cpu", 5001)
    for part in (slice(1, None, 2), slice(3, 4777), slice(2, None, 7)):
        before = array.numpy()
        push(array[part], 1.0)
        assert_equal(array, pushed(before, part))


def test_searches_run_over_views(layout: lw.Layout) -> None:
    array = grains(layout, "cpu", 400)
    for part, other in (
        (slice(8, 300), slice(8, 300)),
        (slice(0, 160), slice(160, None)),
        (slice(None, None, 3), slice(0, 80)),
    ):
        targets, sources = array[part], array[other]
        if in_blocks(targets):
            targets = targets.copy()
        t, s = targets.numpy(), sources.numpy()
        apart = ((s["position"][None] - t["position"][:, None]) ** 2).sum(-1)
        wanted = ((apart <= 2.5**2) * s["mass"]).sum(1)
        for _ in range(2):
            np.testing.assert_array_equal(near(targets, sources), wanted)


def test_calls_alike_on_other_parts(layout: lw.Layout) -> None:
    """What is remembered of a call holds for records that begin elsewhere in their memory only as far as it says."""
    array = grains(layout, "cpu", 64)
    for start in (0, 8, 16, 0, 24, 8):
        before = array.numpy()
        push(array[start : start + 16], 1.0)
        assert_equal(array, pushed(before, slice(start, start + 16)))
    a, b = array[0:16], array[16:32]
    np.testing.assert_array_equal(attract(a, a), summed(a.numpy(), a.numpy()))
    np.testing.assert_array_equal(attract(a, b), summed(a.numpy(), b.numpy()))
    np.testing.assert_array_equal(attract(array[0:16], array[0:16]), summed(a.numpy(), a.numpy()))


def test_records_that_are_updated_and_read_at_other_places() -> None:
    array = grains(lw.SoA(), "cpu")
    for first, second in (
        (slice(0, 8), slice(1, 9)),
        (slice(0, 20, 2), slice(4, 24, 2)),
        (slice(0, 30, 3), slice(0, 20, 2)),
    ):
        for _ in range(2):
            with pytest.raises(ArgumentError) as error:
                copy_mass(array[first], array[second])
            assert str(error.value) == (
                "copy_mass: 'grain' is updated, and 'other' has some of the same records, at other places; pass a .copy() of one"
            )
    mass = array.mass.copy()
    copy_mass(array[0:8], array[8:16])
    copy_mass(array[16:36:2], array[17:37:2])
    mass[0:8], mass[16:36:2] = mass[8:16].copy(), mass[17:37:2].copy()
    np.testing.assert_array_equal(array.mass, mass)


@lw.elementwise
def raise_mass(grain: Grain, by: lw.f32) -> None:
    grain.mass = 2 * by + 1


@lw.elementwise
def move_by(grain: Grain, by: lw.f32) -> None:
    grain.position = lw.vec3(by, 2 * by, 0)


@lw.record
class Weight:
    mass: lw.f32


@lw.elementwise
def weigh(weight: Weight, by: lw.f32) -> None:
    weight.mass = 2 * by + 1


PARTS = (slice(0, 12), slice(0, 24, 2), slice(1, 13), slice(1, 25, 2), slice(12, 24), slice(12, 36, 2))
VALUES = {"mass": lambda a: a.mass, "x": lambda a: a.position[:, 0], "y": lambda a: a.position[:, 1]}
"""What an elementwise call may be given as values that lie in the records."""


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kernel", [raise_mass, move_by], ids=lambda k: k.__name__)
@pytest.mark.parametrize("of", VALUES)
def test_values_that_lie_in_records_that_are_updated(layout: lw.Layout, kernel: Any, of: str) -> None:
    """A call is right or refused: whatever part is updated, values lie where no other element of it
    changes them. It is the same for first calls, repeated and bound ones.
    """
    array = grains(layout, "cpu")
    begun = array.numpy()
    refusals: list[tuple[bool, str]] = []
    for part, where in itertools.product(PARTS, PARTS):
        if in_blocks(array[part]):
            continue
        for call in (kernel, kernel, lambda *given: kernel.bind(*given)()):
            array.mass, array.position = begun["mass"], begun["position"]
            records, values = array[part], VALUES[of](array)[where]
            taken, wanted = values.copy(), array.numpy()
            if kernel is raise_mass:
                wanted["mass"][part] = 2 * taken + 1
            else:
                wanted["position"][part] = np.stack([taken, 2 * taken, 0 * taken], axis=1)
            shared = part != where and np.shares_memory(records.data, values)
            try:
                call(records, values)
            except ArgumentError as error:
                refusals.append((shared, str(error)))
                wanted = begun
            assert_equal(array, wanted)
    changes_what_it_reads = (kernel is raise_mass) == (of == "mass")
    assert bool(refusals) == (changes_what_it_reads and layout == lw.SoA())
    assert all(shared for shared, _ in refusals)
    assert all("is updated, and 'by' shares memory with grain." in text for _, text in refusals)


def test_values_that_are_the_memory_of_records() -> None:
    """Records over an array of the caller's, and that array as values of other elements."""
    memory = np.arange(16, dtype=np.float32)
    array = Weight.array(mass=memory, copy=False)
    for _ in range(3):
        weigh(array, np.ones(16, np.float32))
    np.testing.assert_array_equal(memory, 3 * np.ones(16))
    weigh(array, memory)
    np.testing.assert_array_equal(memory, 7 * np.ones(16))
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"shares memory with weight\.mass of other"):
            weigh(array[1:], memory[:-1])
    np.testing.assert_array_equal(memory, 7 * np.ones(16))


def test_masks_and_indices_make_copies(layout: lw.Layout, device: str) -> None:
    array = grains(layout, device)
    fields = array.numpy()
    mask = np.arange(N) % 3 == 1
    for key in (mask, mask.tolist(), np.zeros(N, bool), [0, 2], np.array([-1, 5, 5, 0]), []):
        taken = array[key]
        assert (taken.device, taken.layout) == (device, layout)
        assert_equal(taken, {n: v[key] for n, v in fields.items()})
        taken.mass = 0
        assert_equal(array, fields)


def test_assignments(layout: lw.Layout, device: str) -> None:
    array = grains(layout, device)
    fields = array.numpy()

    def same(key: Any, values: Any) -> None:
        for n, v in fields.items():
            v[key] = values(n, v)
        assert_equal(array, fields)

    array[0] = array[5]
    same(0, lambda n, v: v[5])
    array[1:20] = array[0:19]
    same(slice(1, 20), lambda n, v: v[0:19].copy())
    array[[7, 3]] = array[[3, 7]]
    same([7, 3], lambda n, v: v[[3, 7]])
    mask = np.arange(N) % 4 == 2
    array[mask] = array[: mask.sum()]
    same(mask, lambda n, v: v[: mask.sum()].copy())
    array[3:9:2] = Grain(mass=2, position=(1, 2, 3), serial=9, alive=True)
    same(slice(3, 9, 2), lambda n, v: {"mass": 2, "position": (1, 2, 3), "serial": 9, "alive": True}[n])


REFUSED = {
    "text": (lambda a: a["mass"], TypeError, "records are taken with an integer, a slice, a mask or integers, found 'mass'; fields are arrays: .position[...]"),
    "float": (lambda a: a[1.5], TypeError, "records are taken with an integer, a slice, a mask or integers, found 1.5; fields are arrays: .position[...]"),
    "two axes": (lambda a: a[0:2, 0], TypeError, "records are taken with an integer, a slice, a mask or integers, found (slice(0, 2, None), 0); fields are arrays: .position[...]"),
    "floats": (lambda a: a[np.ones(3)], TypeError, "records are taken with a mask of shape (37,) or with integers of shape (k,), found an array of float64 with shape (3,)"),
    "backwards": (lambda a: a[::-1], ArgumentError, "a slice of an array of Grain goes forward, found the step -1; array[np.arange(len(array))[::-1]] is a copy in that order"),
    "mask": (lambda a: a[np.ones(3, bool)], ArgumentError, "a mask of 37 records of Grain has the type bool and the shape (37,), found bool with shape (3,)"),
    "outside": (lambda a: a[[0, 37]], IndexError, "record 37 of 37: element 1 of the indices of an array of Grain"),
    "twice": (lambda a: a.__setitem__([1, 2, 1], a[:3]), ArgumentError, "record 1 of an array of Grain would be assigned twice; give each index once"),
    "number": (lambda a: a.__setitem__(slice(0, 3), a[:4]), ArgumentError, "3 records of Grain are replaced by as many, found 4"),
    "no records": (lambda a: a.__setitem__(slice(0, 3), 4), ArgumentError, "wanted an array of Grain(position: vec3, mass: f32, serial: i64, alive: bool), found int"),
    "append to a view": (lambda a: a[:4].append(a), ArgumentError, "append changes the length of an array of Grain, and a view has the records that it was cut with; .copy() is an independent array"),
    "append something": (lambda a: a.append(4), ArgumentError, "append takes a Grain, a list of them or an array of them, found int"),
    "append a list": (lambda a: a.append([Grain(), 4]), ArgumentError, "append takes records of Grain(position: vec3, mass: f32, serial: i64, alive: bool), found int at place 1"),
    "capacity": (lambda a: a.reserve(-1), ArgumentError, "Grain: the capacity must be an integer from 0 on, found -1"),
    "concatenate": (lambda a: lw.concatenate([]), ArgumentError, "concatenate takes a list of at least one array of records, found []"),
    "another device": (lambda a: lw.concatenate([a, a.to("python")]), ArgumentError, "the arrays of Grain lie on different devices (python and cpu); move one with .to(\"cpu\")"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    act, kind, text = REFUSED[what]
    array = grains(lw.SoA(), "cpu")
    before = array.numpy()
    with pytest.raises(kind) as error:
        act(array)
    assert str(error.value) == text
    assert_equal(array, before)


def test_views_are_tuned_and_explained() -> None:
    """What is measured are copies in the layout of the view."""
    array = grains(lw.SoA(), "cpu", 200)
    before = array.numpy()
    part = array[1::3]
    workload = push.tuning_job(part, 1.0).workload()
    (bound,) = (b for n, b in workload.bound.items() if n == "grain")
    assert bound.arrangement == part.layout.arrange(Grain.__record__.leaves)
    assert bound.data.nbytes == bound.arrangement.nbytes(len(part)) > part.copy().nbytes
    np.testing.assert_array_equal(workload.read()[-2], before["serial"][1::3])
    push.compile(part, 1.0).explain(part, 1.0, measure=True)
    assert_equal(array, before)


def test_layout_of_a_view() -> None:
    array = grains(lw.SoA(), "cpu")
    assert repr(array[::2][1:9:3]).endswith("as SoA in steps of 6 on cpu, a view>")
    assert array[2:9].layout == array[::2].copy().layout == lw.SoA()
    assert array.copy().nbytes == array.nbytes
    assert array[:5].numpy()["mass"].tolist() == array.mass[:5].tolist()


def test_what_is_assigned_lies_in_other_memory_than_what_changes() -> None:
    """Threads of a GPU would overwrite what others still have to read."""
    array = Grain.zeros(9)
    for part in (array, array[1:], array[::2]):
        source = moves.apart(storage_of(part), storage_of(array))
        assert not moves.share_memory(source.places, storage_of(array).places)
    other = storage_of(Grain.zeros(4))
    assert moves.apart(other, storage_of(array)) is other
