"""`layout="auto"`: kernels choose, at the first call and once more; what is lent or bound stays where it is, and every
result has the bits that the same array has with that layout given.
"""

from __future__ import annotations

import gc
import math
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.advice import auto
from lanewise.launch.programs import Programs
from lanewise.live.clouds import CloudScene, Shown
from lanewise.live.scenes import Asked, finished
from lanewise.patterns.calls import Calls
from lanewise.patterns.known_kernels import kernels_naming
from lanewise.patterns.search.searched import Searched
from lanewise.records import storage
from lanewise.records.arrays import storage_of
from lanewise.records.open_layout import OpenLayout, read_layout
from lanewise.runtime.device import get_device

N = 300


class Grain(lw.Record):
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32
    charge: lw.f32
    kind: lw.i32
    ident: lw.i64


@lw.elementwise
def drift(g: Grain, dt: lw.f32):
    g.position += g.velocity * dt


@lw.elementwise
def energy(g: Grain) -> lw.f32:
    return 0.5 * g.mass * lw.dot(g.velocity, g.velocity)


def attraction(target: Grain, source: Grain, h: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + h) * d


pairs = lw.pairwise(attraction)
near = lw.pairwise(search=lw.Neighbors(radius=0.3))(attraction)


class Wide(lw.Record):
    position: lw.vec3
    mass: lw.f32
    a: lw.vec3
    b: lw.vec3
    c: lw.vec3


@lw.pairwise(search=lw.Neighbors(radius=0.1))
def density(target: Wide, source: Wide) -> lw.f32:
    d = source.position - target.position
    return source.mass * lw.dot(d, d)


@lw.elementwise
def swim(w: Wide, dt: lw.f32):
    w.a += w.b * dt
    w.b += w.c * dt
    w.c *= 0.5


def grains(layout: Any = "auto", n: int = N, **options: Any) -> Any:
    rng = np.random.default_rng(7)
    return Grain.array(
        position=rng.random((n, 3)),
        velocity=rng.standard_normal((n, 3)),
        mass=rng.random(n),
        charge=rng.random(n),
        kind=np.arange(n) % 5,
        ident=np.arange(n),
        layout=layout,
        **options,
    )


def left(array: Any) -> Any:
    return storage_of(array).owner.open


def same(one: Any, other: Any) -> bool:
    a, b = one.numpy(), other.numpy()
    return all(np.array_equal(a[n], b[n]) for n in a)


WANTED = {
    "SoA": lw.SoA(),
    "AoS": lw.AoS(),
    "AoAS": lw.AoAS(16),
    "SoAoAS": lw.SoAoAS(),
    "grouped": lw.SoAoAS([("position", "mass"), ("velocity",), ("charge",), ("kind",), ("ident",)]),
}


class Chosen:
    """A choice that is always this layout."""

    def __init__(self, layout: lw.Layout, current: lw.Layout) -> None:
        self.layout, self.current, self.worth_changing, self.gain = layout, current, True, 0.5
        self.best = self
        self.seconds, self.memory = 0.0, 0

    @property
    def before(self) -> Any:
        return type("Before", (), {"seconds": 1e9, "memory": 0})


@pytest.fixture(autouse=True, name="_nothing_is_kept")
def nothing_is_kept() -> None:
    forget_choices()


def forget_choices() -> None:
    """Kernels keep choices, and these tests choose otherwise each time."""
    for calls in {*kernels_naming(Grain), *kernels_naming(Wide)}:
        for key in [k for k in calls.kept if isinstance(k, tuple) and k[0] == "layout"]:
            del calls.kept[key]


@pytest.fixture(params=WANTED)
def wanted(request: Any, monkeypatch: pytest.MonkeyPatch) -> lw.Layout:
    """All kernels want this layout."""
    layout = WANTED[request.param]
    monkeypatch.setattr(auto, "_choice", lambda s, v, current: Chosen(layout, current))
    return layout


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> list[lw.Layout]:
    """The layouts that kernels want, in turn; then the last one."""
    layouts = [lw.AoS(), lw.SoAoAS(), lw.AoAS(16)]
    monkeypatch.setattr(
        auto, "_choice", lambda s, v, current: Chosen(layouts.pop(0) if len(layouts) > 1 else layouts[0], current)
    )
    return layouts


# ------------------------------------------------------------ the same bits

USES: dict[str, Any] = {
    "elements": lambda a: drift(a, 0.25),
    "results": energy,
    "sum": energy.sum,
    "pairs": lambda a: pairs(a, a, 1e-3),
    "near": lambda a: near(a, a, 1e-3),
    "gradient": lambda a: energy.gradient("velocity")(a),
    "pair gradient": lambda a: pairs.gradient("target.position")(a, a, 1e-3),
    "plan": lambda a: energy(a, plan=lw.Plan(fma=False)),
    "bound": lambda a: pairs.bind(a, a, 1e-3)(),
    "two": lambda a: pairs(a, grains(), 1e-3),
    "compiled": lambda a: energy.compile(a)(a),
}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("use", USES)
def test_results_have_the_bits_of_the_layout_given(use: str, wanted: lw.Layout) -> None:
    array, given = grains(), grains(wanted)
    for _ in range(3):
        found, expected = USES[use](array), USES[use](given)
        assert array.layout == wanted
        assert np.array_equal(np.asarray(found), np.asarray(expected))
        assert same(array, given)


@pytest.mark.parametrize("part", [slice(10, 200), slice(3, None, 2), slice(5, 6), slice(4, 4)])
def test_a_call_on_a_part_decides_for_the_whole(part: slice, wanted: lw.Layout) -> None:
    array, given = grains(), grains(wanted)
    views = array[part], array[:50][1:20]
    for _ in range(2):
        drift(views[0], 0.5)
        drift(given[part], 0.5)
        assert array.layout == wanted
        assert same(array, given)
        assert same(views[0], given[part])
        assert same(views[1], given[1:20])
    assert str(views[0].layout) == str(given[part].layout)
    energy(views[1])
    views[1].mass = 2.0
    assert (array.mass[1:20] == 2).all()


# ------------------------------------------------------------ lent, bound, views, rows

LENT: dict[str, Any] = {
    "field": lambda a: a.position,
    "scalar": lambda a: a.mass[3:5],
    "memory": lambda a: a.data,
    "dlpack": lambda a: np.from_dlpack(a.mass),
    "memoryview": lambda a: memoryview(a.charge),
    "field of a part": lambda a: a[10:20].velocity,
}


@pytest.mark.parametrize("what", LENT)
def test_lent_memory_is_never_moved(what: str, wanted: lw.Layout) -> None:
    array = grains()
    before, lent = storage_of(array).placement, LENT[what](array)
    for _ in range(20):
        drift(array, 0.25)
        assert storage_of(array).placement is before
    assert array.layout == lw.SoA()
    if wanted != lw.SoA():
        assert "not moved, as arrays of its memory are out" in left(array).reason
    kept = np.array(np.asarray(lent))
    if kept.dtype == np.float32 and not np.asarray(lent).flags.writeable:
        return
    np.asarray(lent).reshape(-1)[:1] = 0
    assert any(np.asarray(v).reshape(-1)[0] == 0 or (np.asarray(v) == 0).any() for v in array.numpy().values())


def test_what_was_lent_may_move_when_it_is_back(wanted: lw.Layout) -> None:
    array = grains()
    lent = array.position
    drift(array, 0.25)
    assert array.layout == lw.SoA()
    del lent
    gc.collect()
    for _ in range(20):
        drift(array, 0.25)
    assert array.layout == wanted


def test_a_bound_array_is_never_moved(first: list[lw.Layout]) -> None:
    array = grains()
    call = energy.bind(array)
    placement = storage_of(array).placement
    assert array.layout == lw.AoS()  # the first decision comes before
    for _ in range(20):
        drift(array, 0.25)
        pairs(array, array, 1e-3)
    assert storage_of(array).placement is placement
    assert np.array_equal(call(), energy(array))
    assert "a call of energy was bound to it" in left(array).reason


def test_rows_and_loops_over_rows_go_on(first: list[lw.Layout]) -> None:
    array = grains()
    row, of_part = array[7], array[5:30:3][2]
    position = row.position
    drift(array, 0.5)
    assert array.layout == lw.AoS()
    row.mass, of_part.mass = 11.0, 12.0
    assert (row.ident, of_part.ident) == (7, 11)
    for number, each in enumerate(array):
        assert each.ident == number
        if number < 30:
            energy(array)
    assert array.layout == lw.SoAoAS()
    row.mass = 13.0
    assert (array.mass[7], array.mass[11]) == (13, 12)
    assert row.position != position
    array.append(array[:1])
    for each in (row, of_part):
        with pytest.raises(lw.ArgumentError, match="changed in length"):
            each.mass  # noqa: B018


# ------------------------------------------------------------ undecided


def test_an_undecided_array_is_an_array(tmp_path: Path, wanted: lw.Layout) -> None:
    array, given = grains(), grains(lw.SoA())
    assert "auto (SoA so far)" in repr(array)
    for a in (array, given):
        a.mass = 3.0
        a[4:6].charge = 5.0
        a[9] = Grain(mass=4.0)
        a.position[3] = 1.0
        a.append(a[:3])
        a.compact(a.ident != 17)
        a.reserve(1000)
    assert same(array, given)
    assert not left(array).decided
    lw.save(tmp_path / "a.h5", array)
    loaded = lw.load(tmp_path / "a.h5")
    assert same(loaded, array)
    assert left(loaded) is None
    assert loaded.layout == lw.SoA()
    again = lw.load(tmp_path / "a.h5", layout="auto")
    copies = [
        array.copy(), array[[1, 2]], array[array.mass > 0], array.to("cpu"), pickle.loads(pickle.dumps(array)),
        given.with_layout("auto"), again, array[3:9].copy(),
    ]  # fmt: skip
    for copy in copies:
        assert not left(copy).decided
        energy(copy)
        assert copy.layout == wanted
    assert not left(array).decided
    assert array.layout == lw.SoA()
    assert left(array.with_layout(lw.AoS())) is None


def test_copies_of_what_was_decided_have_its_layout(tmp_path: Path, wanted: lw.Layout) -> None:
    array = grains()
    energy(array)
    lw.save(tmp_path / "a.h5", array)
    for copy in (array.copy(), array[[1, 2]], array.to("cpu"), pickle.loads(pickle.dumps(array))):
        assert copy.layout == wanted
        assert left(copy) is None
    assert lw.load(tmp_path / "a.h5").layout == wanted


def test_an_explicit_layout_is_never_touched(wanted: lw.Layout) -> None:
    for layout in (None, lw.SoA(), lw.AoSoA(8)):
        array = grains(layout)
        drift(array, 0.5)
        assert array.layout == (layout or lw.SoA())
        assert left(array) is None


def test_it_is_the_default_where_the_layout_changes_no_bits() -> None:
    for device, layout, is_open in (("cpu", lw.SoA(), False), ("python", lw.SoA(), False), ("cuda", lw.SoAoAS(), True)):
        assert read_layout(None, Grain.__record__, device) == (layout, is_open)
        assert read_layout("auto", Grain.__record__, device) == (layout, True)
        assert read_layout(lw.AoS(), Grain.__record__, device) == (lw.AoS(), False)


@pytest.mark.cuda
def test_arrays_of_a_gpu_leave_it_open(wanted: lw.Layout) -> None:
    for make in (lambda: grains(None, device="cuda"), lambda: Grain.zeros(N, device="cuda")):
        array = make()
        assert not left(array).decided
        again = pickle.loads(pickle.dumps(array))
        drift(array, 0.5)
        assert array.layout == wanted
        assert not left(again).decided
        assert pickle.loads(pickle.dumps(array)).layout == wanted


GRADIENT = pairs.using(lw.AllPairs()).gradient("target.position")
PREPARED: dict[str, Any] = {
    **{name: USES[name] for name in ("elements", "results", "sum", "pairs", "near", "plan", "two")},
    "pair gradient": lambda a: GRADIENT(a, a, 1e-3),
    "cotangents": lambda a: GRADIENT(a, a, 1e-3, cotangent=np.ones((len(a), 3), np.float32)),
}


@pytest.mark.parametrize("use", PREPARED)
def test_first_calls_of_later_arrays_prepare_nothing(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They move their arrays, and are calls like the first one then; nor does looking again prepare any."""
    prepared: list[str] = []

    def counted(cls: Any, name: str) -> None:
        method = getattr(cls, name)

        def counting(self: Any, *arguments: Any, **named: Any) -> Any:
            prepared.append(f"{cls.__name__}.{name}")
            return method(self, *arguments, **named)

        monkeypatch.setattr(cls, name, counting)

    monkeypatch.setattr(auto, "_choice", lambda s, v, current: Chosen(lw.AoS(), current))
    call = PREPARED[use]
    for _ in range(2):
        call(grains())
    counted(Programs, "get")
    if use != "plan":  # which is a bound call
        counted(Calls, "bind")
        counted(Searched, "bound")
    for turn in range(6):
        array = grains(n=N + 8 * turn)
        call(array)
        assert array.layout == lw.AoS()
    assert prepared == []
    if use != "near":  # a search is bound to arrays that come again
        for _ in range(40):
            call(array)
        assert prepared == []


def test_records_stay_where_there_is_no_memory_for_a_copy(
    first: list[lw.Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **named: Any) -> Any:
        raise lw.DeviceError("no memory")

    array, given = grains(), grains(lw.SoA())
    with monkeypatch.context() as patch:
        patch.setattr(storage, "allocate", full)
        drift(array, 0.5)
    drift(given, 0.5)
    assert array.layout == lw.SoA()
    assert left(array).reason.endswith("not moved, as there is no memory for a copy")
    assert same(array, given)
    array.append(array[:3])
    given.append(given[:3])
    drift(array, 0.5)
    drift(given, 0.5)
    assert same(array, given)


def test_choices_are_kept_for_calls_that_round_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs make arrays in loops, and a choice takes milliseconds."""
    asked: list[dict[str, float]] = []

    def choice(storage: Any, votes: Any, current: Any) -> Any:
        asked.append({c.name: n for c, n in votes.items()})
        return Chosen(lw.AoS(), current)

    monkeypatch.setattr(auto, "_choice", choice)
    for _ in range(40):
        array = grains(n=90)
        energy(array)
        assert array.layout == lw.AoS()
    assert len(asked) <= 7, asked
    assert all(math.log2(n) % 1 == 0 for votes in asked for n in votes.values())
    energy(grains(n=2000))
    assert len(asked) >= 2, "another number of records"


def test_later_looks_at_the_same_kernels_choose_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice takes as long as thousands of short calls, and calls are looked at after 4, 8, 16, ... of them."""
    asked: list[list[str]] = []
    chosen = auto._choice

    def choice(storage: Any, votes: Any, current: Any) -> Any:
        asked.append([c.name for c in votes])
        return chosen(storage, votes, current)

    monkeypatch.setattr(auto, "_choice", choice)
    array = grains()
    for _ in range(2**11):
        energy(array)
    assert left(array)._next > 2**8, "it is looked at"
    assert len(asked) <= 2, asked
    for _ in range(2**11):
        energy(array)
        drift(array, 0.5)
    assert len(asked) <= 6, asked


def test_it_is_settled_after_thousands_of_calls() -> None:
    array, given = grains(), grains(lw.SoA())
    for _ in range(2**14):
        energy(array)
    assert left(array).settled
    assert left(array).reason.endswith("it stays, as thousands of calls wanted no other")
    np.testing.assert_array_equal(energy(array), energy(given))


def test_growth_after_the_decision(wanted: lw.Layout) -> None:
    array, given = grains(), grains(wanted)
    array.reserve(700)
    given.reserve(700)
    for n in (5, 400, 900):
        for a in (array, given):
            drift(a, 0.5)
            a.append(a[:n])
            a.compact(a.kind != 3)
        assert same(array, given)
        assert array.layout == wanted


# ------------------------------------------------------------ once more


def test_the_records_move_once_more_and_never_again(first: list[lw.Layout]) -> None:
    array = grains()
    seen = [array.layout]
    for _ in range(70):
        for call in (energy, lambda a: pairs(a, a, 1e-3)):
            call(array)
            if array.layout != seen[-1]:
                seen.append(array.layout)
    assert seen == [lw.SoA(), lw.AoS(), lw.SoAoAS()]
    assert left(array).reason.endswith("moved once more")
    assert left(array).settled
    assert "moved once more" in str(energy.compile(array).explain())
    assert energy.compile(array).explain().as_dict()["layout_reasons"] == {"g": left(array).reason}
    assert "layout_reasons" not in energy.compile(grains(lw.SoA())).explain().as_dict()
    pickle.loads(pickle.dumps(array))


@pytest.mark.parametrize("kernel", [near, pairs])
def test_repeated_calls_follow_a_move(kernel: Any, first: list[lw.Layout]) -> None:
    """Also those that know where positions lie."""
    array, given = grains(), grains(lw.SoA())
    part, other = array[:100], given[:100]
    for n in range(40):
        for a in (array, given):
            a.position = a.numpy()["position"] + 0.01 * n
        assert np.allclose(kernel(array, array, 1e-3), kernel(given, given, 1e-3), rtol=1e-3, atol=1e-3)
        assert np.allclose(kernel(part, array, 1e-3), kernel(other, given, 1e-3), rtol=1e-3, atol=1e-3)
    assert array.layout == lw.SoAoAS()


def test_a_search_whose_structure_fits_no_more_looks_where_records_are(
    first: list[lw.Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had looked at the positions before the records moved."""
    monkeypatch.setattr(OpenLayout, "is_due", property(lambda left: left.decided))
    monkeypatch.setattr(OpenLayout, "asks", lambda left: not left.decided)
    array, given = grains(), grains(lw.SoA())
    for n in range(12):
        for a in (array, given):
            a.position = a.numpy()["position"] * (3.0 if n % 3 == 1 else 0.9)
        assert np.allclose(near(array, array, 1e-3), near(given, given, 1e-3), rtol=1e-3, atol=1e-3)
    assert array.layout == lw.SoAoAS()


def test_it_moves_only_where_that_is_worth_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the calls since: 1 s saved in each of them, and a copy that costs as much as 9."""
    array = grains()
    energy(array)

    def choice(storage: Any, votes: Any, current: Any) -> Any:
        chosen = Chosen(lw.AoS(), current)
        seconds = float(sum(votes.values()))
        monkeypatch.setattr(Chosen, "before", type("Before", (), {"seconds": seconds, "memory": 0}))
        return chosen

    monkeypatch.setattr(auto, "_choice", choice)
    monkeypatch.setattr(auto, "_cost_of_moving", lambda *a: 9.0)
    moved = next(n for n in range(2, 60) if (energy(array), array.layout == lw.AoS())[1])
    assert 9 < moved < 40
    assert f"energy x {moved}" in left(array).reason


def test_a_kernel_that_knows_such_calls_decides_all_the_same(wanted: lw.Layout) -> None:
    """Calls on other arrays were made, so that none is a first one for the kernel."""
    for _ in range(3):
        drift(grains(lw.SoA()), 0.5)
    array = grains()
    drift(array, 0.5)
    assert array.layout == wanted


def test_choices_of_the_model() -> None:
    """Wide records that are streamed lie in arrays of scalars, on a GPU as well, whose default is another one; searches
    compute more than they read; and every field has a view in what is chosen.
    """
    default = lw.SoAoAS()
    for kernels in ([swim], [swim, density], [density]):
        votes = {k._calls: 1.0 for k in kernels}
        choice = auto.layout_wanted(Wide.__record__, 4_000_000, "cuda", votes, default)
        assert choice is not None
        assert (choice.layout == lw.SoA()) is (kernels == [swim])
        assert all(c.copies == 0 for c in choice.reasons)
        on_cpu = auto.layout_wanted(Wide.__record__, 4_000_000, "cpu", votes, lw.SoA())
        assert on_cpu is not None
        assert on_cpu.layout == lw.SoA()
        reason = auto._reason(choice, choice.layout, votes)
        assert ", ".join(f"{c.name} x 1" for c in votes) in reason
        assert ("times as fast as SoAoAS by the model" in reason) is (kernels == [swim])


# ------------------------------------------------------------ other places


def test_two_sides(first: list[lw.Layout]) -> None:
    array, given = grains(host_layout=lw.SoA()), grains(lw.AoS(), host_layout=lw.SoA())
    for n in range(12):
        for a in (array, given):
            drift(a, 0.5)
            a.host.mass = float(n)
            energy(a)
            a.mass = a.host.mass + 1
        assert same(array, given)
        assert same(array.host, given.host)
        assert array.host.layout == lw.SoA()
    assert array.layout == lw.SoAoAS()
    array.host.append(array.host[:2])
    given.host.append(given.host[:2])
    drift(array, 0.5)
    drift(given, 0.5)
    assert same(array, given)
    del array.host
    assert same(array, given)


def test_a_mesh_refuses_and_takes_what_is_there(first: list[lw.Layout]) -> None:
    mesh = lw.Mesh(["cpu", "cpu"])
    with pytest.raises(lw.ArgumentError, match=r"layout='auto' is for arrays of Grain in one memory.*mesh"):
        grains(device=mesh)
    split = grains().to(mesh)
    assert same(split, grains())
    assert np.array_equal(np.asarray(energy(split).numpy()), energy(grains(lw.SoA())))
    with pytest.raises(lw.ArgumentError, match="one memory"):
        split.with_layout("auto")
    for kernel in (pairs, near):
        whole, given = grains(), grains(lw.SoA())
        for _ in range(4):
            found = kernel(split, whole, 1e-3).numpy()
            assert np.allclose(found, kernel(given, given, 1e-3), rtol=1e-3, atol=1e-3)
    with pytest.raises(lw.ArgumentError, match="memory is that of another array"):
        Grain.array(np.zeros(3, Grain.dtype), copy=False, layout="auto")


def test_an_interpreter_is_as_fast_in_every_layout(wanted: lw.Layout) -> None:
    with lw.device("python"):
        array = grains(n=5)
        found = pairs(array, array, 1e-3)
        assert array.layout == lw.SoA()
        assert left(array).settled
        assert np.array_equal(found, pairs(grains(lw.SoA(), n=5), grains(lw.SoA(), n=5), 1e-3))
    assert "interpreter" in left(array).reason


def test_a_population(first: list[lw.Layout]) -> None:
    def end(layout: Any) -> Any:
        array = grains(layout)
        people = lw.Population(array, ids="ident")
        for n in range(10):
            drift(array, 0.5)
            people.apply(np.where(np.arange(len(array)) % 7 == n % 7, n % 3, 1))
            energy(array)
        return array

    assert same(end("auto"), end(lw.SoA()))


def test_steps(first: list[lw.Layout]) -> None:
    array, given = grains(), grains(lw.AoS())
    for a in (array, given):
        force = pairs.bind(a, a, 1e-3)
        lw.steps([force, drift.bind(a, 0.1)]).run(9)
        drift(a, 0.1)
    assert array.layout == lw.AoS()
    assert same(array, given)


def test_a_second_thread_ends_the_moves(first: list[lw.Layout]) -> None:
    array = grains()
    energy(array)
    thread = threading.Thread(target=energy, args=(array,))
    thread.start()
    thread.join()
    for _ in range(20):
        energy(array)
    assert array.layout == lw.AoS()
    assert "several threads" in left(array).reason


def test_what_a_second_thread_writes_during_a_move_is_not_lost(
    first: list[lw.Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    array, moving, copied = grains(), threading.Event(), storage.copy_columns

    def slow(*arguments: Any) -> None:
        copied(*arguments)
        moving.set()
        time.sleep(0.2)

    def write() -> None:
        assert moving.wait(20)
        array.mass[...] = 7
        part[3].charge = 5

    monkeypatch.setattr(storage, "copy_columns", slow)
    part = array[2:]
    thread = threading.Thread(target=write)
    thread.start()
    energy(array)
    thread.join()
    assert array.layout == lw.AoS()
    assert (array.mass == 7).all()
    assert array[5].charge == 5


CAPTURES: dict[str, Any] = {
    "call": energy,
    "call on a part": lambda a: energy(a[3:]),
    "search": lambda a: near(a, a, 1e-3),
    "sum": energy.sum,
    "field": lambda a: a.mass.sum(),
    "memory": lambda a: len(a.data),
    "field of a part": lambda a: a[3:].mass.sum(),
}


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("what", CAPTURES)
def test_what_a_graph_has_captured_stays(
    what: str, before: int, first: list[lw.Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    array = grains()
    for _ in range(before):
        CAPTURES[what](array)
    with monkeypatch.context() as patch:
        patch.setattr(type(get_device("cpu")), "is_capturing", lambda self: True)
        CAPTURES[what](array)
    captured = storage_of(array).placement
    for _ in range(70):
        energy(array)
        pairs(array, array, 1e-3)
    assert storage_of(array).placement is captured
    assert "captured in a graph" in left(array).reason


def test_a_view_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither decides, nor has a say, nor counts as a call: the same layouts at the same calls."""

    def run(frames: int) -> tuple[list[lw.Layout], list[dict[str, float]]]:
        layouts, votes, wanted = list[lw.Layout](), list[dict[str, float]](), [lw.AoS(), lw.SoAoAS()]

        def choice(array: Any, given: Any, current: lw.Layout) -> Any:
            votes.append({calls.name: times for calls, times in given.items()})
            assert "look" not in {calls.name for calls in given}
            return Chosen(wanted.pop(0) if wanted else current, current)

        monkeypatch.setattr(auto, "_choice", choice)
        forget_choices()
        array = grains()
        scene = CloudScene(array, Shown(position="e.position", values={"mass": "e.mass"}), {}, lambda: (0, 0.0))
        for _ in range(40):
            for _ in range(frames):
                finished(scene.frames(Asked(field="mass", points=100)))
            layouts.append(array.layout)
            energy(array)
        return layouts, votes

    (plain, votes), (seen, others) = run(0), run(3)
    assert seen == plain
    assert {lw.SoA(), lw.AoS(), lw.SoAoAS()} == set(plain)
    assert len(votes) == len(others)


def test_a_ragged_array_has_the_layout_of_its_records(tmp_path: Path, wanted: lw.Layout) -> None:
    array = grains()
    lists = lw.ragged([array[:3], array[3:7]])
    energy(array)
    assert array.layout == wanted
    assert np.array_equal(lists[1]["mass"], array.mass[3:7])
    assert left(lists.data) is None
    lw.save(tmp_path / "lists.h5", lists)
    with pytest.raises(lw.InputError, match="layout='auto' is for arrays of records, and 'array' is a ragged array"):
        lw.load(tmp_path / "lists.h5", layout="auto")


@pytest.mark.parametrize("layout", ["soa", "AUTO", lw.SoA, 3])
def test_other_words_are_refused(layout: Any) -> None:
    with pytest.raises(lw.ArgumentError, match="a layout is"):
        grains(layout)


@pytest.mark.parametrize("search", [None, lw.Tree(theta=0.6)])
def test_a_simulation_of_gravity(search: Any, first: list[lw.Layout]) -> None:
    """Which makes calls of many kernels, and looks whether its bodies are where they were."""
    bodies = lw.sims.gravity.make_bodies(lw.sims.gravity.make_initial_conditions("plummer", 50, 1))
    array, given = bodies.with_layout("auto"), bodies.with_layout(lw.AoS())
    for each in (array, given):
        lw.sims.gravity.Simulation(each, softening=0.05, search=search).run(2, 0.01)
    assert array.layout == lw.AoS()
    assert same(array, given)
