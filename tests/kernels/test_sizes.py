"""A size is a number of a launch: calls of any size are of one kind, with the bits of bound calls, and cost about the
same.

What they cost is counted in Python functions that are called, not in seconds.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.language.target import Machine
from lanewise.launch.own_memory import OwnMemory
from lanewise.launch.repeatable import MOST_SIZES, Repeatable
from lanewise.launch.slots import RecordSlot
from lanewise.launch.support import machine_of
from lanewise.patterns.kernels import AbstractKernel
from lanewise.runtime.memory import to_host
from lanewise.support.errors import ArgumentError

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
COMPILED = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoSoA(8)]
COUNTS = [0, 1, 7, 31, 32, 33, 1000]


@lw.record
class Body:
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.record
class Sample:
    weight: lw.f32


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * d * lw.rsqrt(lw.dot(d, d) + softening2) ** 3


@lw.pairwise
def nearest(target: Body, source: Body) -> lw.Min[lw.f32]:
    d = source.position - target.position
    return lw.dot(d, d)


@lw.elementwise
def drift(body: Body, force: lw.vec3, dt: lw.f32):
    body.velocity += force * dt
    body.position += body.velocity * dt


@lw.elementwise
def energy(body: Body) -> tuple[lw.f32, lw.vec3]:
    return 0.5 * body.mass * lw.dot(body.velocity, body.velocity), body.mass * body.velocity


@lw.elementwise
def axpy(a: lw.f32, x: lw.f32, y: lw.f32) -> lw.f32:
    return a * x + y


@lw.elementwise
def looked_up(at: lw.i32, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[lw.min(at, len(table) - 1)]


@lw.segmentwise
def weighed(body: Body, sample: Sample, scale: lw.f32) -> lw.f32:
    return scale * body.mass * sample.weight


@lw.threadwise
def stretched(i: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32]):
    b[i] = 2 * a[i] + i


@lw.threadwise
def weight(i: lw.index, a: lw.Array1[lw.f32]) -> lw.f32:
    return a[i] * a[i]


def bodies(device: str, count: int, layout: Any = None, **more: Any) -> Any:
    random = np.random.default_rng(count)
    return Body.array(
        position=random.random((count, 3)), velocity=random.random((count, 3)), mass=random.random(count),
        layout=layout or lw.SoA(), device=device, **more,
    )  # fmt: skip


def numbers(device: str, count: int, seed: int = 0) -> Any:
    made = np.random.default_rng(seed).random(count).astype(np.float32)
    return made if device != "cuda" else pytest.importorskip("cupy").asarray(made)


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple):
        return all(same(f, w) for f, w in zip(found, wanted, strict=True))
    return to_host(found).tobytes() == to_host(wanted).tobytes()


def shuffled(times: int = 3) -> list[int]:
    order = COUNTS * times
    np.random.default_rng(5).shuffle(order)
    return order


def kinds(kernel: AbstractKernel, operation: str | None = None) -> tuple[Repeatable, ...]:
    """The kinds of calls that a kernel remembers."""
    return kernel._calls.repeated[operation]._entries  # pyright: ignore[reportPrivateUsage]


# ---------------------------------------------------------------- the bits of bound calls


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_records_of_any_size_have_the_bits_of_bound_calls(device: str, layout: Any) -> None:
    kernels = [lw.pairwise(pull.python), lw.elementwise(drift.python), lw.elementwise(energy.python)]
    force, move, kinetic = kernels
    for count in (1, 7, 1, 0, 9) if device == "python" else shuffled():
        a, b = (bodies(device, count, layout) for _ in range(2))
        found = force(a, a, 0.1)
        assert same(found, pull.bind(b, b, 0.1)())
        assert same(force(a, bodies(device, 9, layout), 0.1), pull.bind(b, bodies(device, 9, layout), 0.1)())
        move(a, found, 0.01)
        drift.bind(b, found, 0.01)()
        assert same(a.position, b.position)
        assert same(kinetic(a), energy.bind(b)())
        if count:
            assert same(nearest(a, b), nearest.bind(a, b)())
            assert [same(np.asarray(x), np.asarray(y)) for x, y in zip(kinetic.sum(a), energy.sum(b), strict=True)]
    if device != "python":
        assert [len(kinds(k)) for k in kernels] == [2, 1, 1]  # of pairs: with itself, and with another array


@pytest.mark.parametrize("device", COMPILED)
def test_arrays_of_any_size_have_the_bits_of_bound_calls(device: str) -> None:
    kernels = lw.elementwise(axpy.python), lw.elementwise(looked_up.python), lw.threadwise(stretched.python)
    add, look, stretch = kernels
    with lw.device(device):
        for count in shuffled():
            x, y = numbers(device, count), numbers(device, count, 1)
            assert same(add(2.0, x, y), axpy.bind(2.0, x, y)())
            assert add.sum(2.0, x, y) == lw.elementwise(axpy.python).sum(2.0, x, y)
            at = (x * 50).astype(np.int32)
            for rows in (3, 40):
                table = numbers(device, rows, 2)
                assert same(look(at, table), looked_up.bind(at, table)())
            found, wanted = numbers(device, count), numbers(device, count)
            stretch(x, found, grid=count)
            stretched.bind(x, wanted, grid=count)()
            assert same(found, wanted)
            assert weight(x, grid=count) == weight.bind(x, grid=count)().item()
    assert [len(kinds(k)) for k in kernels] == [1, 1, 1]


@pytest.mark.parametrize("device", COMPILED)
def test_segments_of_any_size_have_the_bits_of_bound_calls(device: str) -> None:
    kernel = lw.segmentwise(weighed.python)
    for count in shuffled(2):
        lengths = np.random.default_rng(count).integers(0, 4, (count, 2))
        items = lw.ragged(Sample.array(weight=np.random.random(int(lengths.sum()))), counts=lengths, device=device)
        for dense in (1, 5, 70):
            body = bodies(device, dense)
            assert same(kernel(body, items, 2.0), weighed.bind(body, items, 2.0)())
    assert len(kinds(kernel)) == 1


@pytest.mark.parametrize("device", COMPILED)
def test_parts_of_arrays_begin_where_they_do(device: str) -> None:
    kernel, whole = lw.elementwise(energy.python), bodies(device, 200)
    for start, stop in ((0, 200), (3, 40), (40, 77), (3, 40), (5, 42), (0, 7)):
        part = whole[start:stop]
        assert same(kernel(part), energy.bind(part.copy())())
        assert same(kernel(whole[start:stop:3]), energy.bind(whole[start:stop:3].copy())())


def test_sides_of_arrays_of_any_size_are_brought_up_to_date() -> None:
    """On a host with two sides of one memory a field is read where it was written last."""
    kernel = lw.elementwise(drift.python)
    for count in (9, 70, 9, 33, 70):
        a, b = bodies("cpu", count, host_layout=lw.AoS()), bodies("cpu", count)
        a.host.velocity = np.full((count, 3), 2.0)
        b.velocity = np.full((count, 3), 2.0)
        force = np.ones((count, 3), np.float32)
        kernel(a, force, 0.5)
        drift.bind(b, force, 0.5)()
        assert same(a.host.position, b.position)
    assert len(kinds(kernel)) == 1


# ---------------------------------------------------------------- what is compiled and kept


def test_sizes_compile_as_many_texts_as_they_have_plans() -> None:
    kernel, moved = lw.pairwise(pull.python), lw.elementwise(drift.python)
    for count in range(1, 201):
        a = bodies("cpu", count)
        moved(a, kernel(a, a, 0.1), 0.1)
    calls = kernel._calls  # pyright: ignore[reportPrivateUsage]
    work = calls.subject.work(calls.given((bodies("cpu", 5), bodies("cpu", 5), 0.1), {}))
    plan_class, machine = calls.skeleton.pattern.plan_class, machine_of("cpu")
    assert plan_class is not None
    assert len(calls.compiled) <= len({plan_class(machine, work, n) for n in range(1, 201)})
    assert len(moved._calls.compiled) == 1  # pyright: ignore[reportPrivateUsage]
    assert len(kinds(kernel)) == len(kinds(moved)) == 1


def test_a_kind_keeps_so_many_sizes_and_takes_any() -> None:
    kernel = lw.elementwise(axpy.python)
    for count in [*range(MOST_SIZES + 40), 3, MOST_SIZES + 50]:
        x = np.arange(count, dtype=np.float32)
        assert kernel(2.0, x, x).tolist() == (3 * x).tolist()
    (kind,) = kinds(kernel)
    assert len(kind._sizes) == MOST_SIZES  # pyright: ignore[reportPrivateUsage]


def machines() -> list[Machine]:
    return [Machine("cpu", 2), Machine("cpu", 8, 512), Machine("cuda", 132), Machine("cuda", 24, copies=False)]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("machine", machines(), ids=str)
@pytest.mark.parametrize("name", ["pull", "nearest", "wide", "drift", "axpy"])
def test_equal_classes_of_sizes_have_equal_plans(machine: Machine, name: str) -> None:
    """From 1 to 2^24, around powers of two and at random."""
    from lanewise.compiler.work import describe_work
    from lanewise.launch.support import index_type

    kernel = {"pull": pull, "nearest": nearest, "wide": wide, "drift": drift, "axpy": axpy}[name]
    calls, a = kernel._calls, bodies("cpu", 5)  # pyright: ignore[reportPrivateUsage]
    x = np.ones(5, np.float32)
    arguments = {
        "pull": (a, a, 0.1), "nearest": (a, bodies("cpu", 5)), "wide": (a, a), "drift": (a, np.ones((5, 3), np.float32), 0.1),
        "axpy": (1.0, x, x),
    }[name]  # fmt: skip
    given = calls.given(arguments, {})
    reference = calls.skeleton.build(calls.lowered, calls.signature, given, index_type("cpu"))
    work, plan_class = describe_work(reference, 1, machine.target), calls.skeleton.pattern.plan_class
    assert plan_class is not None
    random = np.random.default_rng(3)
    edges = [n for k in range(25) for n in (2**k - 1, 2**k, 2**k + 1)]
    counts = sorted({int(n) for n in (*edges, *np.exp2(random.uniform(0, 24, 400)), *range(1, 200))} - {0})
    plans: dict[Any, Any] = {}
    for n in (x for x in counts if x <= 2**24):
        from dataclasses import replace

        plan = complete_plan(None, machine, replace(work, targets=n))
        assert plans.setdefault(plan_class(machine, work, n), plan) == plan
    assert len(plans) >= len(set(plans.values()))


@lw.pairwise
def wide(target: Body, source: Body) -> lw.f64:
    return lw.f64(target.mass) / lw.f64(source.mass)


def test_own_memory_grows_by_a_quarter_and_never_shrinks() -> None:
    moved: list[int] = []
    own = OwnMemory("a test", "cpu", lambda: moved.append(1))
    sizes = list(range(1000, 4000, 7))
    there = [own.reserve("sums", n, "a test", zeroed=True) for n in (*sizes, *reversed(sizes))]
    assert there[-1].nbytes <= 1.25 * max(sizes)
    assert len(moved) == len({id(data) for data in there}) - 1 <= 8
    assert not own.reserve("sums", 5000, "a test", zeroed=True).any()


def test_no_size_keeps_what_it_was_called_with() -> None:
    kernel, threads = lw.elementwise(drift.python), lw.threadwise(stretched.python)
    gone: list[Any] = []
    gc.disable()
    try:
        for count in (9, 20, 9, 31):
            a, x, y = bodies("cpu", count), np.ones(count, np.float32), np.ones(count, np.float32)
            kernel(a, np.ones((count, 3), np.float32), 0.1)
            threads(x, y, grid=count)
            gone += [weakref.ref(a), weakref.ref(x), weakref.ref(y)]
            del a, x, y
        assert [g() for g in gone] == [None] * len(gone)
    finally:
        gc.enable()


# ---------------------------------------------------------------- refused as by a first call


def test_sizes_that_do_not_go_together_are_refused_after_those_that_did() -> None:
    a, force = bodies("cpu", 12), np.ones((12, 3), np.float32)
    x = np.ones(12, np.float32)
    for _ in range(2):
        drift(a, force, 0.1)
        axpy(2.0, x, x)
        stretched(x, x.copy(), grid=12)
        with pytest.raises(ArgumentError, match="differ in length"):
            drift(a, force[:11].copy(), 0.1)
        with pytest.raises(ArgumentError, match="differ in length"):
            axpy(2.0, x, x[:5].copy())
        with pytest.raises(ArgumentError, match="outside"):
            stretched(x, x.copy(), grid=13)
        with pytest.raises(ArgumentError, match=r"grid"):
            stretched(x, x.copy(), grid=12.0)
        with pytest.raises(ArgumentError, match="wanted shape"):
            drift(a, np.ones((12, 2), np.float32), 0.1)


def test_a_result_of_another_size_is_refused() -> None:
    x, y = np.ones(12, np.float32), np.ones(30, np.float32)
    for values in (x, y, x):
        assert axpy(2.0, values, values, out=np.empty_like(values)).tolist() == [3.0] * len(values)
        with pytest.raises(ArgumentError, match="out must be a contiguous array"):
            axpy(2.0, values, values, out=np.empty(13, np.float32))


def test_threads_may_bring_any_sizes_at_once() -> None:
    kernel = lw.pairwise(pull.python)
    arrays = {n: bodies("cpu", n) for n in (1, 5, 8, 33, 40, 64)}
    wanted = {n: pull.bind(a, a, 0.1)().tobytes() for n, a in arrays.items()}
    wrong: list[int] = []

    def work(seed: int) -> None:
        for n in np.random.default_rng(seed).choice([*arrays], 400).tolist():
            if kernel(arrays[n], arrays[n], 0.1).tobytes() != wanted[n]:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_with_other_sizes_take_turns_at_own_memory() -> None:
    """Partial sums of all sizes lie in one memory."""
    kernel = lw.threadwise(weight.python)
    arrays = {n: np.random.default_rng(n).random(n).astype(np.float32) for n in (70_000, 50_000, 90_000, 1_000)}
    wanted = {n: weight(a, grid=n) for n, a in arrays.items()}
    kernel(arrays[1_000], grid=1_000)  # which all others are like
    wrong: list[int] = []

    def work(seed: int) -> None:
        for n in np.random.default_rng(seed).choice([*arrays], 60).tolist():
            if kernel(arrays[n], grid=n) != wanted[n]:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    (kind,) = kinds(kernel)
    lease = {id(sized.flat.lease) for sized in kind._sizes.values()}  # pyright: ignore
    assert len(lease) == 1


# ---------------------------------------------------------------- what a call costs


def called(work: Callable[[], Any]) -> int:
    """How many Python functions of lanewise and of contexts run, kernels and the outermost one included."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        del argument
        if event == "call" and ("lanewise" in (file := frame.f_code.co_filename) or file == contextlib.__file__):
            count += 1

    gc.disable()  # what other tests left is theirs: its end would be counted here
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


COSTS = {"moved": (25, 50, 100), "energies": (25, 46, 130), "pairs": (24, 67, 140), "arrays": (28, 32, 100)}


@pytest.mark.parametrize("name", COSTS)
def test_a_call_costs_so_many_functions(name: str) -> None:
    """(The very same call, also in turn with others; one of a size that was there before, with other arrays; one of a
    size that was never there.)
    """
    again, before, never = COSTS[name]
    kernel = {"moved": drift, "energies": energy, "pairs": pull, "arrays": axpy}[name]
    fresh = type(kernel)(kernel.python)

    def call(count: int) -> Callable[[], Any]:
        a, x = bodies("cpu", count), np.ones(count, np.float32)
        forces = np.ones((count, 3), np.float32)
        arguments = {"moved": (a, forces, 0.1), "energies": (a,), "pairs": (a, a, 0.1), "arrays": (2.0, x, x)}[name]
        return lambda: fresh(*arguments)

    first, other = call(40), call(41)
    for _ in range(4):
        first()
    call(42)()  # sizes of one class are known from the second on
    other()
    for _ in range(5):
        first()
    assert called(first) <= again
    for _ in range(3):
        other(), call(43)()
    assert called(other) <= again
    # the least of three: where the memory of an array that is gone comes back, a call looks at it anew
    assert min(called(call(41)) for _ in range(3)) <= before
    assert min(called(call(n)) for n in (44, 45, 46)) <= never


def test_records_that_come_in_turn_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of their calls are the very same again, with results of their own."""
    kernel = lw.pairwise(pull.python)
    several = [bodies("cpu", 20 + n) for n in range(30)]
    wanted = [[kernel(a, a, value) for a in several] for value in (0.1, 0.2)]
    for value, results in zip((0.1, 0.2, 0.1), (*wanted, wanted[0]), strict=True):
        for _ in range(9):
            for a, result in zip(several, results, strict=True):
                assert kernel(a, a, value).tobytes() == result.tobytes()
        with monkeypatch.context() as patch:
            patch.setattr(RecordSlot, "take", lambda *_: pytest.fail("a call was looked at again"))
            for a, result in zip(several, results, strict=True):
                assert kernel(a, a, value).tobytes() == result.tobytes()


def test_calls_let_go_of_own_memory_that_has_moved() -> None:
    kernel = lw.threadwise(weight.python)

    def call(count: int) -> None:
        kernel(np.ones(count, np.float32), grid=count)

    for _ in range(5):
        call(50_000)
    (kind,) = kinds(kernel)
    sizing: Any = kind._resize
    (own,) = {id(o): o for _, o in sizing.__self__._own.values()}.values()
    ((name, before),) = ((n, weakref.ref(data)) for n, data in own._kept.items())
    own.reserve(name, 100_000, "a test", zeroed=False)
    call(60_000)
    gc.collect()
    assert before() is None


def test_what_was_remembered_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(12, np.float32)
    axpy(2.0, x, x)
    monkeypatch.setattr(Repeatable, "of", lambda *_, **__: pytest.fail("a size was taken for another kind of call"))
    for count in (5, 100, 70_000):
        y = np.ones(count, np.float32)
        assert axpy(2.0, y, y).tolist() == [3.0] * count
