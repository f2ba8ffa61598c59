"""Calls like an earlier one: the same results, the same refusals, and nothing that is remembered for too long."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.repeatable import Repeatable
from lanewise.launch.repeated import Repeated
from lanewise.launch.slots import RecordSlot, SameRecords, ValueSlot
from lanewise.patterns.tuning_jobs import specialisation_of
from lanewise.primitives import buckets
from lanewise.records.binding import places_of
from lanewise.records.storage import MOST_PARTS
from lanewise.runtime import cuda
from lanewise.runtime.memory import overlap, to_host
from lanewise.support.errors import ArgumentError

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoSoA(8)]


@lw.record
class Body:
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.record
class Other:
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32
    charge: lw.f32


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * d / lw.sqrt(lw.dot(d, d) + softening2) ** 3


@lw.pairwise
def softened(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0.0)
    d = source.position - target.position
    return source.mass * d * lw.rsqrt(lw.dot(d, d) + softening2) ** 3


@lw.pairwise(search=lw.StaticGrid(radius=0.4))
def crowd(target: Body, source: Body, weight: lw.f32) -> lw.f32:
    return weight * source.mass


@lw.elementwise
def kick(body: Body, force: lw.vec3, wind: lw.vec3, dt: lw.f32, rounds: lw.i32):
    for _ in range(rounds):
        body.velocity += (force + wind) * dt


@lw.elementwise
def energy(body: Body) -> tuple[lw.f32, lw.vec3]:
    return 0.5 * body.mass * lw.dot(body.velocity, body.velocity), body.mass * body.velocity


@lw.elementwise
def scaled(x: lw.f32, by: lw.f64) -> lw.f32:
    return lw.f32(x * by)


@lw.record
class Sample:
    time: lw.f64
    weight: lw.f32


@lw.segmentwise
def seen(body: Body, sample: Sample, row: lw.Row[lw.f32], scale: lw.f32) -> tuple[lw.f32, lw.vec2]:
    near = row[lw.i32(sample.time)]
    return scale * sample.weight * near, body.mass * lw.vec2(near, sample.weight)


@lw.segmentwise
def total(sample: Sample) -> lw.f32:
    return sample.weight


def samples(device: str, counts: Any, seed: int = 0) -> tuple[Any, Any]:
    """Samples by their counts, and a row of four numbers for each."""
    random = np.random.default_rng(seed)
    n = int(np.sum(counts))
    items = Sample.array(time=random.uniform(0, 4, n), weight=random.random(n), device=device)
    rows = random.random(4 * n).astype(np.float32)
    return lw.ragged(items, counts=counts, device=device), lw.ragged(rows, counts=[4] * n, device=device)


def bodies(device: str, count: int = 20, layout: Any = None, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return Body.array(
        position=random.random((count, 3)), velocity=random.random((count, 3)), mass=random.random(count),
        layout=layout or lw.SoA(), device=device,
    )  # fmt: skip


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple):
        return all(same(f, w) for f, w in zip(found, wanted, strict=True))
    return to_host(found).tobytes() == to_host(wanted).tobytes()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_pairs_again_and_with_other_arrays_sizes_and_values(device: str, layout: Any) -> None:
    for seed, count, softening2 in ((0, 20, 0.1), (0, 20, 0.1), (1, 20, 0.25), (2, 9, 0.25), (0, 20, 1)):
        a, b = bodies(device, count, layout, seed), bodies(device, 13, layout, seed + 5)
        assert same(gravity(a, a, softening2), gravity.bind(a, a, softening2)())
        assert same(gravity(a, b, softening2=softening2), gravity.bind(a, b, softening2)())
        assert same(gravity(softening2=softening2, source=b, target=a), gravity.bind(a, b, softening2)())
        assert same(crowd(a, b, softening2), crowd.bind(a, b, softening2)())
        assert same(crowd(a, a, softening2), crowd.bind(a, a, softening2)())


RAGGED = [np.array([[3, 0], [5, 1]]), np.array([[2, 2], [2, 3]]), np.array([9]), np.array([4, 0, 5])]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_segments_again_and_with_other_arrays_lengths_and_values(device: str, layout: Any) -> None:
    """The same number of items, in segments of other lengths, numbers and shapes."""
    for seed, counts in enumerate((*RAGGED, *RAGGED, RAGGED[0], RAGGED[0])):
        a, (items, rows) = bodies(device, 3, layout, seed), samples(device, counts, seed)
        for scale in (0.5, 2):
            wanted = seen.bind(a, items, rows, scale)()
            assert wanted[1].shape == (3, *counts.shape, 2)
            assert same(seen(a, items, rows, scale), wanted)
            assert same(seen(a, items, scale=scale, row=rows), wanted)
        assert same(total(items), total.bind(items)())
        assert same(total(items), total.bind(items)())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_calls_over_segments_are_known_again(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, only = lw.segmentwise(seen.python), lw.segmentwise(total.python)
    a, (items, rows) = bodies(device, 3), samples(device, RAGGED[0])
    kernel(a, items, rows, 0.5)
    only(items)
    monkeypatch.setattr(Repeatable, "of", _never)
    moved, other = samples(device, RAGGED[1], 5)  # as many items in as many segments
    for arguments in ((a, items, rows, 0.25), (bodies(device, 3, seed=3), moved, other, 2)):
        wanted = seen.bind(*arguments)()
        assert same(kernel(*arguments), wanted)
        results = tuple(x + 1 for x in wanted)
        assert kernel(*arguments, out=results) is results
        assert same(results, wanted)
    assert same(only(moved), total.bind(moved)())
    for other in (RAGGED[2], RAGGED[3], np.array([3, 0, 5, 1])):  # of other sizes
        items, _ = samples(device, other)
        assert same(only(items), total.bind(items)())


@pytest.mark.parametrize("device", DEVICES)
def test_segments_that_do_not_fit_are_refused_after_those_that_did(device: str) -> None:
    a, (items, rows) = bodies(device, 3), samples(device, RAGGED[0])
    weights = seen(a, items, rows, 1.0)
    for wrong, text in (
        ((a, items.data, rows, 1.0), "'sample' must be lw.ragged"), ((a, items, samples(device, [8])[1], 1.0), "wanted one for each"),
        ((a, items[0], rows, 1.0), "is a part of another ragged array"), ((a, items, rows, 1j), "'scale' must be an f32"),
        ((a, items, rows), "needs scale"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            seen(*wrong)
    for out, text in (
        (weights[0], "a tuple of 2 arrays"), ((weights[0][:2], weights[1]), "out must be a contiguous array of shape"),
        ((rows.data[:12].reshape(3, 2, 2), weights[1]), "out shares memory with"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            seen(a, items, rows, 1.0, out=out)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_no_ragged_array_is_kept_alive(device: str) -> None:
    items, rows = samples(device, RAGGED[0])
    for _ in range(3):
        seen(bodies(device, 3), items, rows, 1.0)
    gone = [weakref.ref(x) for x in (items, rows)]
    gc.disable()
    try:
        del items, rows
        assert [g() for g in gone] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("device", DEVICES)
def test_results_are_new_arrays_or_those_of_the_caller(device: str) -> None:
    a = bodies(device)
    first, second = gravity(a, a, 0.1), gravity(a, a, 0.1)
    kept = to_host(first).copy()
    gravity(a, a, 5.0, out=second)
    assert to_host(first).tobytes() == kept.tobytes()
    assert same(second, gravity.bind(a, a, 5.0)())
    with pytest.raises(ArgumentError, match="out must be a contiguous array"):
        gravity(a, a, 0.1, out=second[:5])


@pytest.mark.parametrize("device", DEVICES)
def test_elements_are_updated_by_every_call(device: str) -> None:
    again, bound = bodies(device), bodies(device)
    force = gravity(again, again, 0.1)
    winds = ((0.1, 0.2, 0.3), [1, 2, 3], np.array([0.5, 0.5, 0.5]), lw.vec3(1, 0, 0), (0.1, 0.2, 0.3))
    for n, wind in enumerate(winds):
        for rounds in (1, np.int32(2)):
            kick(again, force, wind, 0.01 * n, rounds)
            kick.bind(bound, force, wind, 0.01 * n, rounds)()
    assert same(again.velocity, bound.velocity)
    assert same(energy(again), energy(again))
    assert same(energy(again), energy.bind(bound)())
    kinetic, momentum = energy.sum(again)
    assert (kinetic, list(momentum)) == (energy.sum(bound)[0], list(energy.sum(bound)[1]))
    assert kinetic == pytest.approx(float(to_host(energy(again)[0]).astype(np.float64).sum()), rel=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_what_does_not_fit_is_refused_after_what_did(device: str) -> None:
    a, other = bodies(device), Other.zeros(20, device=device)
    gravity(a, a, 0.1)
    for wrong, text in (
        ((a, other, 0.1), "'source' must be an array of Body"), ((a, a, "x"), "'softening2' must be"),
        ((a, a, 1e39), "do not fit"), ((a, a), "needs softening2"), ((a, a, 0.1, 2), "takes 3 arguments"),
        ((a, a, 1j), "'softening2' must be an f32"), ((a, a, (1.0,)), "'softening2' must be one f32"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            gravity(*wrong)
    force = gravity(a, a, 0.1)
    kick(a, force, (0, 0, 0), 0.1, 1)
    for wrong, text in (
        ((a, force[:5], (0, 0, 0), 0.1, 1), "differ in length"), ((a, force, (0, 0), 0.1, 1), "'wind' must be"),
        ((a, force, (0, 0, 0), 0.1, 1.5), "would lose information"), ((a, force, (0, 0, 0), 0.1, 2**31), "does not fit"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            kick(*wrong)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_arrays_that_have_to_be_converted_are_so_in_every_call(device: str) -> None:
    with lw.device(device):
        x = np.arange(12, dtype=np.float32)
        wanted = 2 * x
        frozen = x.copy()
        frozen.flags.writeable = False
        for _ in range(2):
            for given in (x, x.astype(np.float64), np.repeat(x, 2)[::2], frozen, list(x)):
                assert to_host(scaled(given, 2)).tolist() == wanted.tolist()
        x += 1
        assert to_host(scaled(x, 2)).tolist() == (2 * x).tolist()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_numbers_of_other_types_are_known_again(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = bodies(device)
    force, x = gravity(a, a, 0.1), a.mass + 0
    with lw.device(device):
        scaled(x, 2.0)
        gravity(a, a, 0.5)
        kick(a, force, (0, 0, 0), 0.5, 1)
        monkeypatch.setattr(Repeatable, "of", _never)
        for by in (2.0, 2, np.float32(2), np.float64(2), np.int64(2)):
            assert same(scaled(x, by), scaled.bind(x, by)())
        for softening2 in (0.5, np.float32(0.5), np.float64(0.5), np.int64(1)):
            assert same(gravity(a, a, softening2), gravity.bind(a, a, softening2)())
        for rounds in (1, np.int32(1), np.int64(1)):
            kick(a, force, (0, 0, 0), 0.5, rounds)


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("a call was not known again")


def test_what_is_never_known_again_pushes_nothing_out() -> None:
    x = np.arange(6, dtype=np.float32)
    scaled(x, 2.0)
    calls = scaled._calls.repeated[None]  # pyright: ignore[reportPrivateUsage]
    kept = calls._entries  # pyright: ignore[reportPrivateUsage]
    for n in range(20):
        assert scaled(x, np.float16(n)).tolist() == (n * x).tolist()
        assert scaled(list(x), n).tolist() == (n * x).tolist()
    assert calls._entries == kept  # pyright: ignore[reportPrivateUsage]


@pytest.mark.cuda
def test_arrays_on_a_gpu_say_where_a_call_runs() -> None:
    import cupy

    x = cupy.arange(50, dtype=cupy.float32)
    for _ in range(2):
        assert isinstance(scaled(x, 3), cupy.ndarray)  # outside of lw.device("cuda")
    assert scaled._calls.repeated[None].find((x, 3), {}) is not None  # pyright: ignore[reportPrivateUsage]
    with lw.device("cuda"):
        assert same(scaled(x, 3), 3 * x)


def test_a_tuned_plan_comes_back_after_values_that_it_does_not_hold_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs does not depend on the calls before."""
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    kernel, a = lw.pairwise(softened.python), bodies("cpu", 40)
    tuned = lw.Plan(self_term="drop").filled(kernel.compile(a, a, 0.1).plan)
    assert tuned != kernel.compile(a, a, 0.1).plan
    given = kernel._calls.given((a, a, 0.1), {})  # pyright: ignore[reportPrivateUsage]
    calls = kernel._calls  # pyright: ignore[reportPrivateUsage]
    calls.adopt(lw.Plan(), specialisation_of(calls.subject, given), tuned)
    chosen: list[bool] = []
    for softening2 in (0.1, 0.0, 0.2, 0.0, 0.1):
        kernel(a, a, softening2)
        found = kernel._calls.repeated[None].find((a, a, softening2), {})  # pyright: ignore[reportPrivateUsage]
        chosen.append(found is not None)
        plan = kernel.compile(a, a, softening2).plan
        assert (plan == tuned) is (softening2 != 0)
    assert chosen == [True, False, True, False, True]


def test_an_array_forgets_kernels_that_are_gone() -> None:
    a = bodies("cpu")
    for _ in range(3 * MOST_PARTS):
        kernel = lw.elementwise(energy.python)
        kernel._calls.compiled = energy._calls.compiled  # pyright: ignore[reportPrivateUsage]
        kernel(a)
        kernel(a)
    assert len(a._storage._parts) <= MOST_PARTS  # pyright: ignore[reportPrivateUsage]


def test_the_default_device_decides_anew() -> None:
    x = np.arange(5, dtype=np.float32)
    with lw.device("cpu"):
        scaled(x, 3)
    with lw.device("python"):
        assert scaled.compile(x, 3).executable.device == "python"
        assert scaled(x, 3).tolist() == [0, 3, 6, 9, 12]


@pytest.mark.parametrize("kernel", [gravity, crowd], ids=["pairs", "search"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_no_memory_is_kept_alive(kernel: Any, device: str) -> None:
    a = bodies(device, 30)
    for _ in range(3):
        kernel(a, a, 0.1)
    memory = weakref.ref(a.data)
    gc.disable()
    try:
        del a
        assert memory() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("device", DEVICES)
def test_a_pair_with_itself_is_left_out_where_that_holds_and_not_elsewhere(device: str) -> None:
    a = bodies(device)
    for softening2 in (0.1, 0.0, 0.2, 0.0):
        found, wanted = to_host(gravity(a, a, softening2)), to_host(gravity.bind(a, a, softening2)())
        assert found.tobytes() == wanted.tobytes()
        assert np.isnan(found).all() == (softening2 == 0)


def test_threads_share_calls() -> None:
    a = bodies("cpu", 200)
    wanted = {s: gravity.bind(a, a, s)().tobytes() for s in (0.1, 0.2, 0.3, 0.4)}
    crowded = {s: crowd.bind(a, a, s)().tobytes() for s in wanted}
    wrong: list[float] = []

    def work(softening2: float) -> None:
        for _ in range(50):
            if gravity(a, a, softening2).tobytes() != wanted[softening2]:
                wrong.append(softening2)
            if crowd(a, a, softening2).tobytes() != crowded[softening2]:
                wrong.append(-softening2)

    threads = [threading.Thread(target=work, args=(s,)) for s in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_positions_that_moved_are_found_where_they_are() -> None:
    a = bodies("cpu", 60)
    for seed in range(4):
        a.position = np.random.default_rng(seed).random((60, 3))
        assert same(crowd(a, a, 1.0), crowd.bind(a, a, 1.0)())
        assert same(crowd(a, a, 1.0), crowd.using(lw.AllPairs(radius=0.4))(a, a, 1.0)) or np.allclose(
            crowd(a, a, 1.0), crowd.using(lw.AllPairs(radius=0.4))(a, a, 1.0), rtol=1e-5
        )


FLOW_STEPS = 7


@lw.sitewise(lw.D2Q9)
def relaxed(f: lw.populations, omega: lw.f32):
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q]
    for q in lw.D2Q9:
        f[q] += omega * (q.weight * total - f[q])


# ------------------------------------------------------------ scatters


@lw.elementwise
def deposit(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place, v)


@lw.elementwise
def doubled(body: Body, place: lw.i32, sums: lw.Array1[lw.f64], tops: lw.Array1[lw.f32]) -> lw.f32:
    lw.scatter_add(sums, place, 2.0 * lw.f64(body.mass))
    lw.scatter_max(tops, place, body.mass)
    return body.mass


@lw.threadwise
def counted(i: lw.index, place: lw.Array1[lw.i32], counts: lw.Array1[lw.i64]):
    lw.scatter_add(counts, place[i], 3)


@pytest.mark.parametrize("count", [50, 70_000], ids=["kernel", "buckets"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_scatters_again_and_with_other_arrays(device: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "FEW", 60_000)
    kernels = lw.elementwise(deposit.python), lw.elementwise(doubled.python), lw.threadwise(counted.python)
    rng = np.random.default_rng(count)
    found: list[bool] = []
    find = Repeated.find
    monkeypatch.setattr(
        Repeated, "find", lambda self, *a, **n: found.append((m := find(self, *a, **n)) is not None) or m
    )

    def there(array: Any) -> Any:
        return array if device == "cpu" else pytest.importorskip("cupy").asarray(array)

    for turn in range(3):
        place = rng.integers(0, 20_000, count).astype(np.int32)
        v = np.ldexp(rng.normal(size=count), rng.integers(-60, 60, count)).astype(np.float32)
        sums = rng.normal(size=20_000).astype(np.float32)
        bodies = Body.array(position=np.zeros((count, 3)), velocity=np.zeros((count, 3)), mass=v, device=device)
        wide, tops, counts = np.ones(20_000), np.zeros(20_000, np.float32), np.arange(20_000)
        calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], int]] = [
            (kernels[0], (there(place), there(v)), {}, 1), (kernels[1], (bodies, there(place)), {}, 2),
            (kernels[2], (there(place),), {"grid": count}, 1),
        ]  # fmt: skip
        for (kernel, arguments, named, _), results in zip(calls, ((sums,), (wide, tops), (counts,)), strict=True):
            again, bound = [there(r.copy()) for r in results], [there(r.copy()) for r in results]
            found.clear()
            for _ in range(2):
                kernel(*arguments, *again, **named)
            assert found == [turn > 0, True]
            call = kernel.bind(*arguments, *bound, **named)
            for _ in range(2):
                call()
            assert [to_host(a).tobytes() for a in again] == [to_host(b).tobytes() for b in bound]
            assert any((to_host(a) != r).any() for a, r in zip(again, results, strict=True))


def test_a_scatter_to_what_it_reads_is_refused_after_one_that_was_not() -> None:
    place, v, sums = np.zeros(9, np.int32), np.ones(9, np.float32), np.zeros(9, np.float32)
    for _ in range(2):
        deposit(place, v, sums)
    with pytest.raises(ArgumentError, match="'sums' is written, and shares memory with 'v'"):
        deposit(place, sums, sums)
    assert sums.tolist() == [18.0] + [0.0] * 8


@pytest.mark.parametrize("device", DEVICES)
def test_steps_of_sites_again_and_with_other_values(device: str) -> None:
    start = np.random.default_rng(0).random((9, 6, 8))
    again, bound = relaxed.sites((6, 8), device=device), relaxed.sites((6, 8), device=device)
    for sites in (again, bound):
        relaxed.set_populations(sites, start)
    for n in range(FLOW_STEPS):
        omega: Any = 0.5 if n % 3 else np.float32(0.25)
        relaxed(again, omega=omega)
        relaxed.stepper(bound, omega=omega).run(1)
    relaxed.set_populations(again, relaxed.populations(bound, omega=0.5))
    assert (again.step, bound.step) == (0, FLOW_STEPS)
    relaxed(again, omega=0.5)
    relaxed(bound, omega=0.5)
    assert same(relaxed.populations(again, omega=0.5), relaxed.populations(bound, omega=0.5))
    memory = weakref.ref(again.copies[0])
    gc.disable()
    try:
        del again
        assert memory() is None
    finally:
        gc.enable()


@lw.elementwise
def told(body: Body, sign: lw.f32, turns: lw.i32, wind: lw.vec3) -> tuple[lw.f32, lw.f32, lw.f32]:
    """What the arguments are, seen from a kernel: of a zero also its sign."""
    return lw.atan2(sign, lw.f32(-1)), lw.f32(turns), body.mass + wind.x


@pytest.mark.parametrize("device", DEVICES)
def test_of_the_very_same_arguments_each_may_change(device: str) -> None:
    """Every call is made often enough to be known by its arguments before one of them is another."""
    a, b = bodies(device, seed=1), bodies(device, seed=2)
    wind = np.array([1.0, 0.0, 0.0], np.float32)
    calls: list[tuple[Any, ...]] = [
        (a, 0.0, 1, (1.0, 0.0, 0.0)), (a, -0.0, 1, (1.0, 0.0, 0.0)), (a, 1.0, 1, (1.0, 0.0, 0.0)), (a, 1, 1, (1.0, 0.0, 0.0)),
        (a, 1.0, 2, (1.0, 0.0, 0.0)), (a, 1.0, 2, (2.0, 0.0, 0.0)), (a, 1.0, 2, lw.vec3(3.0, 0.0, 0.0)), (a, 1.0, 2, [4.0, 0.0, 0.0]),
        (b, 1.0, 2, lw.vec3(3.0, 0.0, 0.0)), (a, float("nan"), 2, lw.vec3(3.0, 0.0, 0.0)), (a, np.float32(0.5), 2, wind),
    ]  # fmt: skip
    for arguments in (*calls, *reversed(calls)):
        wanted = told.bind(*arguments)()
        for _ in range(4):
            assert same(told(*arguments), wanted)
    for _ in range(4):
        wind[0] += 1  # the same array, which holds another number
        assert same(told(a, 1.0, 2, wind), told.bind(a, 1.0, 2, wind)())
    values = [1.0, 0.0, 0.0]
    for _ in range(4):
        values[0] += 1
        assert same(told(a, 1.0, 2, values), told.bind(a, 1.0, 2, values)())
    with pytest.raises(ArgumentError, match="'turns' holds i32: float64 would lose information"):
        told(a, 1.0, 2.5, (1.0, 0.0, 0.0))


@pytest.mark.parametrize("device", DEVICES)
def test_the_very_same_records_change_grow_and_are_two(device: str) -> None:
    a, b = bodies(device, seed=1), bodies(device, seed=2)
    for targets, sources in ((a, a), (a, b), (a, a), (b, a), (b, b)):
        for _ in range(3):
            assert same(gravity(targets, sources, 0.1), gravity.bind(targets, sources, 0.1)())
    a.mass = 3.0
    assert same(gravity(a, a, 0.1), gravity.bind(a, a, 0.1)())
    a.append(bodies(device, 5, seed=3))
    for _ in range(3):
        assert gravity(a, a, 0.1).shape == (25, 3)
        assert same(gravity(a, a, 0.1), gravity.bind(a, a, 0.1)())
    half = a[::2]
    for _ in range(3):
        assert same(energy(half), energy.bind(half)())
    a.append(b)
    with pytest.raises(ArgumentError, match="the array was changed in length since"):
        energy(half)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_the_very_same_records_have_two_sides(device: str) -> None:
    """What the other side changed between two calls is brought, and what a call changes is late there."""
    random = np.random.default_rng(4)
    a = Body.array(
        position=random.random((20, 3)),
        velocity=np.zeros((20, 3)),
        mass=np.ones(20),
        device=device,
        host_layout=lw.AoS(),
    )
    one, nothing = np.ones((20, 3), np.float32), (0.0, 0.0, 0.0)
    force = one if device == "cpu" else cuda.cupy().asarray(one)
    for n in range(6):
        kick(a, force, nothing, 1.0, 1)
        assert (np.asarray(a.host.velocity) == n + 1).all()
        a.host.mass = float(n)
        assert (to_host(energy(a)[0]) == 1.5 * n * (n + 1) ** 2).all()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_results_of_the_very_same_call_are_new_ones_or_those_of_the_caller(device: str) -> None:
    a = bodies(device)
    first = [gravity(a, a, 0.1) for _ in range(4)]
    assert all(x is not y and not overlap(x, y) for x, y in itertools.combinations(first, 2))
    out = first[0].copy()
    out[:] = 0
    assert gravity(a, a, 0.1, out=out) is out
    assert same(out, first[1])
    with pytest.raises(ArgumentError):
        gravity(a, a, 0.1, out=a.position)
    assert all(same(gravity(a, a, 0.1), first[0]) for _ in range(2))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_the_very_same_call_is_known_by_its_arguments(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and numbers are not looked at one by one."""
    kernel, searched, a = (
        lw.pairwise(gravity.python),
        lw.pairwise(search=lw.StaticGrid(radius=0.4))(crowd.python),
        bodies(device),
    )
    wanted, near = kernel(a, a, 0.1), searched(a, a, 0.5)
    for _ in range(2):
        kernel(a, a, 0.1), searched(a, a, 0.5)
    for cls in (RecordSlot, SameRecords, ValueSlot):
        monkeypatch.setattr(cls, "take", lambda *_: pytest.fail("was looked at"))
    assert same(kernel(a, a, 0.1), wanted)
    assert same(searched(a, a, 0.5), near)


def test_the_very_same_call_drops_memory_that_has_grown() -> None:
    a = bodies("cpu", 1000)
    for _ in range(3):
        energy(a)
    memory = weakref.ref(places_of(a).data)
    a.append(a.copy())
    gc.collect()
    assert memory() is None
