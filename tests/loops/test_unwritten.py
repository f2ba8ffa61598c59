"""A loop whose first step would read results that nothing has filled is refused; every other one runs."""

import gc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch.steps import unwritten
from lanewise.launch.steps.loop import bound_in
from lanewise.launch.steps.unwritten import MARK, refuse_unwritten
from lanewise.launch.tasks import Role
from lanewise.runtime import cuda
from lanewise.runtime.host_device import HostDevice
from lanewise.runtime.memory import address, module_of, to_host, unlocked
from lanewise.sims.boids import Flock
from tests.loops.loop_problems import PROBLEMS, Cluster, gather, grains, settle

KINDS: dict[str, Any] = {"f4": lw.f32, "f8": lw.f64, "i4": lw.i32, "i8": lw.i64, "u4": lw.u32}


@lw.record
class Body:
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.elementwise
def kick(body: Body, a: lw.vec3, dt: lw.f32):
    body.velocity += dt * a


@lw.pairwise
def force(target: Body, source: Body) -> lw.vec3:
    d = source.position - target.position
    return source.mass * d


def made(name: str) -> tuple[Any, Any]:
    kind = KINDS[name]

    @lw.elementwise
    def produce(x: kind) -> kind:
        return x + x

    @lw.elementwise
    def consume(y: kind) -> kind:
        return y + y

    return produce, consume


READERS = {kind: made(kind) for kind in KINDS}


def bound(kind: str, count: int, device: str) -> tuple[Any, Any]:
    produce, consume = made(kind)
    with lw.device(device):
        x = np.ones(count, kind)
        first = produce.bind(x)
        return first, consume.bind(first.results[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 5, 1000])
def test_results_that_nothing_has_filled(kind: str, count: int) -> None:
    first, second = bound(kind, count, "cpu")
    with pytest.raises(lw.ArgumentError) as error:
        lw.steps([second, first]).run(3)
    assert str(error.value) == (
        "lw.steps: consume reads the results of produce, which has not run yet: nothing is in "
        "them. Call produce once before the loop, put it before consume, or fill its results"
    )


READY: dict[str, Callable[[Any, Any], Any]] = {
    "called once": lambda first, second: (first(), lw.steps([second, first]))[1],
    "in order": lambda first, second: lw.steps([first, second]),
    "filled": lambda first, second: (first.results[0].fill(3), lw.steps([second, first]))[1],
    "run by a loop": lambda first, second: (lw.steps([first]).run(1), lw.steps([second, first]))[1],
}


@pytest.mark.parametrize("way", READY)
@pytest.mark.parametrize("kind", KINDS)
def test_every_other_loop_runs(way: str, kind: str) -> None:
    first, second = bound(kind, 5, "cpu")
    READY[way](first, second).run(2)
    np.testing.assert_array_equal(second.results[0], np.full(5, 4, kind))


def test_one_function_twice_and_results_of_calls_outside() -> None:
    produce, _ = made("f4")
    first = produce.bind(np.ones(5, "f4"))
    second = produce.bind(first.results[0])
    with pytest.raises(lw.ArgumentError, match="produce reads the results of produce, which has not run yet"):
        lw.steps([second, first]).run(1)
    with pytest.raises(lw.ArgumentError, match="produce reads the results of a bound call that has not run"):
        lw.steps([second]).run(1)
    first()
    lw.steps([second]).run(1)
    np.testing.assert_array_equal(second.results[0], np.full(5, 4, "f4"))


def test_calls_that_write_into_the_results_of_others() -> None:
    (f, g), (h, _) = made("f4"), made("f4")
    a = f.bind(np.ones(5, "f4"))
    b = g.bind(a.results[0], out=a.results[0])
    c = h.bind(a.results[0])
    lw.steps([a, c, b]).run(1)
    np.testing.assert_array_equal(c.results[0], np.full(5, 4, "f4"))


def test_what_a_function_fills_nobody_knows() -> None:
    first, second = bound("f4", 5, "cpu")
    lw.steps([lambda: first.results[0].fill(2), second]).run(1)
    np.testing.assert_array_equal(second.results[0], np.full(5, 4, "f4"))


def test_a_kick_before_the_first_force() -> None:
    n = 6
    bodies = Body.array(position=np.ones((n, 3), "f4"), velocity=np.zeros((n, 3), "f4"), mass=np.ones(n, "f4"))
    forces = force.bind(bodies, bodies)
    kicks = kick.bind(bodies, forces.results[0], 0.5)
    with pytest.raises(lw.ArgumentError, match="kick reads the results of force, which has not run yet"):
        lw.steps([kicks, forces]).run(1)
    with pytest.raises(lw.ArgumentError, match="has not run yet"):
        lw.steps([[kicks], [forces, kicks]], cycle=2).run(4)
    lw.steps([[forces, kicks], [kicks]], cycle=2).run(4)
    lw.steps([kicks, forces]).run(1)


# ---------------------------------------------------------------- parts of results, and results filled in part

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
MOST = 12
PARTS = st.tuples(st.integers(0, MOST), st.integers(0, MOST)).map(lambda ends: (min(ends), max(ends)))


def unwritten_among(written: list[bool], filled: list[bool], kind: str) -> bool:
    """Whether an element is neither written before the loop nor filled by a call before the reader.

    Of integers, which may be any number, two that follow each other, or all between those that are filled.
    """
    runs, run = [], list[bool]()
    for before, there in zip([*written, False], [*filled, True], strict=True):
        if not there:
            run.append(not before)
        elif run:
            runs, run = [*runs, run], []
    if kind[0] == "f" or KINDS[kind] is lw.i64:
        return any(any(r) for r in runs)
    return any(any(a and b for a, b in pairwise(r)) or r == [True] for r in runs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
@given(
    count=st.integers(1, MOST), read=PARTS, by_hand=st.lists(PARTS, max_size=3), by_calls=st.lists(PARTS, max_size=3)
)
@example(count=5, read=(2, 5), by_hand=[], by_calls=[])
@example(count=5, read=(0, 5), by_hand=[], by_calls=[(0, 2)])
@example(count=5, read=(0, 5), by_hand=[(0, 1)], by_calls=[])
@example(count=5, read=(0, 5), by_hand=[(1, 5)], by_calls=[])
@example(count=5, read=(2, 5), by_hand=[(2, 5)], by_calls=[])
@example(count=5, read=(1, 4), by_hand=[(3, 5)], by_calls=[(0, 1), (1, 2), (2, 3)])
def test_parts_that_nothing_has_filled(
    kind: str, device: str, count: int, read: tuple[int, int], by_hand: list[Any], by_calls: list[Any]
) -> None:
    """A loop is refused where what it reads is unwritten in any place, and nowhere else."""
    produce, consume = READERS[kind]
    result = bound_result(produce, kind, count, device)
    written, filled = [False] * count, [False] * count
    calls = []
    for first, last in by_hand:
        result[first:last] = 3
        written[first:last] = [True] * len(written[first:last])
    with lw.device(device):
        for first, last in by_calls:
            if len(part := result[first:last]):
                calls.append(produce.bind(there(np.ones(len(part), kind), device), out=part))
                filled[first:last] = [True] * len(part)
        part = slice(*read)
        reader = consume.bind(result[part])
    loop = lw.steps([*calls, reader])
    if unwritten_among(written[part], filled[part], kind):
        with pytest.raises(lw.ArgumentError, match="consume reads the results of"):
            loop.run(1)
    else:
        loop.run(1)
        known = [w or f for w, f in zip(written, filled, strict=True)][part]
        wanted = np.where(filled, 4, 6)[part]
        np.testing.assert_array_equal(to_host(reader.results[0])[known], wanted[known].astype(kind))


def there(values: Any, device: str) -> Any:
    """An array on a device: a loop takes no copies."""
    if device == "cpu":
        return values
    import cupy

    return cupy.asarray(values)


def bound_result(produce: Any, kind: str, count: int, device: str) -> Any:
    with lw.device(device):
        return produce.bind(np.ones(count, kind)).results[0]


@pytest.mark.parametrize("stretch", [2, 4, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_marks_in_every_place_of_long_results(kind: str, stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that is looked at in stretches: whatever two elements are left are found."""
    monkeypatch.setattr(unwritten, "_STRETCH", stretch)
    produce, consume = READERS[kind]
    for place in range(14):
        result = bound_result(produce, kind, 15, "cpu")
        result[:place] = result[place + 2 :] = 3
        with pytest.raises(lw.ArgumentError, match="consume reads"):
            lw.steps([consume.bind(result[place // 2 :])]).run(1)
        result[place : place + 2] = 3
        lw.steps([consume.bind(result[place // 2 :])]).run(1)


# ---------------------------------------------------------------- memory that is nobody's result


def fill_with_marks(data: Any) -> None:
    """As many marks as there is room for, from the first byte on."""
    there = data.reshape(-1).view("uint8")
    there[...] = module_of(data).asarray(np.resize(MARK, len(there)))


class MarkedArrays:
    """NumPy, whose new memory holds marks where nobody asks for anything else."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        array = np.empty(shape, dtype)
        fill_with_marks(array)
        return array

    def empty_like(self, other: Any) -> Any:
        return self.empty(other.shape, other.dtype)


@pytest.fixture
def marked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose memory comes as that of a GPU's pool may: with what was in it before."""
    allocate = HostDevice.allocate

    def allocated(self: HostDevice, nbytes: int, *, zeroed: bool) -> Any:
        data = allocate(self, nbytes, zeroed=zeroed)
        if not zeroed:
            fill_with_marks(data)
        return data

    monkeypatch.setattr(HostDevice, "allocate", allocated)
    monkeypatch.setattr(HostDevice, "arrays", property(lambda _: MarkedArrays()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_marks_in_memory_of_every_other_kind(name: str) -> None:
    """Whatever a loop touches may hold the mark: records, values, tables, structures, partial sums."""
    loop = PROBLEMS[name]("cpu").loop()
    calls = bound_in(loop._rhythm, 0, loop.cycle)
    results = [
        b.memory[n] for b in calls for n, own in b.sequence.buffers.items() if own.role is Role.RESULT and n in b.memory
    ]
    others = [data for b in calls for data in b.memory.values() if not any(np.shares_memory(data, r) for r in results)]
    assert others
    for data in others:
        fill_with_marks(unlocked(data))
    refuse_unwritten("lw.steps", loop._rhythm, 0)


@pytest.mark.usefixtures("marked_memory")
@pytest.mark.parametrize("name", PROBLEMS)
def test_loops_in_memory_that_holds_marks(name: str) -> None:
    PROBLEMS[name]("cpu").loop().run(2)


@pytest.mark.usefixtures("marked_memory")
@pytest.mark.parametrize("search", ["all-pairs", "static-grid", "dynamic-grid"])
def test_flocks_in_memory_that_holds_marks(search: str) -> None:
    Flock(80, world=40.0, seed=3, search=search, device="cpu").run(2)


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_the_user_that_holds_marks(kind: str) -> None:
    _, consume = made(kind)
    mine = np.empty(9, kind)
    fill_with_marks(mine)
    lw.steps([consume.bind(mine)]).run(1)


@pytest.mark.parametrize("device", DEVICES)
def test_memory_of_results_that_comes_back_as_somebody_elses(device: str) -> None:
    first, _ = bound("f4", 100, device)
    place, module = address(first.results[0]), module_of(first.results[0])
    memory = first.results[0].copy()
    fill_with_marks(memory)
    copy_of_marks = made("f4")[1].bind(memory)
    lw.steps([copy_of_marks]).run(1)
    del first, _
    gc.collect()
    kept = [module.empty(100, "f4") for _ in range(20)]
    again = [k for k in kept if address(k) == place] or [memory]
    fill_with_marks(again[0])
    lw.steps([made("f4")[1].bind(again[0])]).run(1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(100,), (10, 10), (7,)])
def test_a_view_is_all_that_is_left_of_results(shape: tuple[int, ...], device: str) -> None:
    first, _ = bound("f4", 100, device)
    view = first.results[0][: np.prod(shape)].reshape(shape).reshape(-1)
    del first, _
    gc.collect()
    consume = made("f4")[1].bind(view)
    del view
    with pytest.raises(lw.ArgumentError, match="consume reads the results of a bound call that has not run"):
        lw.steps([consume]).run(1)


@pytest.mark.parametrize("device", DEVICES)
def test_segments_that_nothing_has_summed(device: str) -> None:
    ragged = lw.ragged(grains(60, device), counts=np.array([10, 0, 30, 20]), device=device)
    clusters = Cluster.array(weight=np.ones(4, np.float32), device=device)
    sums = gather.bind(clusters, ragged, 1.0)
    (result,) = sums.results
    settled = settle.bind(clusters, result.reshape(4, -1, 2)[:1].reshape(-1, 2)[:4], 0.25)
    with pytest.raises(lw.ArgumentError, match="settle reads the results of gather, which has not run yet"):
        lw.steps([settled, sums]).run(1)
    lw.steps([sums, settled]).run(1)


@pytest.mark.parametrize("device", DEVICES)
def test_one_of_two_results_is_the_users(device: str) -> None:
    @lw.elementwise
    def both(x: lw.f32) -> tuple[lw.f32, lw.f32]:
        return x + 1.0, x + 2.0

    with lw.device(device):
        mine = both.bind(np.ones(5, "f4")).results[0]
        mine.fill(3)
        x = mine.copy()
        call = both.bind(x, out=(mine, None))
        of_mine, of_new = (made("f4")[1].bind(r) for r in call.results)
    lw.steps([of_mine]).run(1)
    with pytest.raises(lw.ArgumentError, match="consume reads the results of both, which has not run yet"):
        lw.steps([of_new, call]).run(1)


@pytest.mark.cuda
@pytest.mark.parametrize("count", [3, 80, 128, 200, 1000])
def test_loops_in_memory_of_a_pool_that_held_marks(count: int) -> None:
    """Memory of marked results goes back to the pool, and comes back as memory of all kinds."""
    produce, consume = made("f4")
    for _ in range(3):
        for n in (count, 2 * count, 4 * count, 12 * count):
            with lw.device("cuda"):
                produce.bind(np.ones(n, "f4"))
        gc.collect()
        for search in ("static-grid", "dynamic-grid"):
            Flock(count, world=40.0, seed=3, search=search, device="cuda").run(2)
        lw.steps([consume.bind(cuda.cupy().empty(count, "f4"))]).run(1)
    for make in PROBLEMS.values():
        make("cuda").loop().run(2)
