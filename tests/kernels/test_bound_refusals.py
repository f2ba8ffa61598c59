"""What a plain call refuses, its bound call refuses, too: whatever was changed since it was bound, in every pattern."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search import Search, watched
from lanewise.patterns.search.points import points_of
from lanewise.runtime.cuda_device import Cuda
from lanewise.runtime.memory import to_host
from lanewise.support.errors import LanewiseError
from tests.pickled_kernels import bounce

CPUS = ["python", "cpu"]
COUNT = 40
BOX = lw.Bounded((0, 0, 0), (1, 1, 1))
SEARCHES: dict[str, Search] = {
    "neighbours": lw.Neighbors(radius=0.3), "nearest": lw.Nearest(k=3), "static grid": lw.StaticGrid(radius=0.3),
    "rings": lw.StaticGrid(k=3), "host grid": lw.StaticGrid(radius=0.3, build="host"), "curve": lw.DynamicGrid(radius=0.3),
    "curve, k": lw.DynamicGrid(k=3), "sort": lw.DynamicGrid(radius=0.3, order="sort"), "1-D": lw.DynamicGrid(radius=0.3, order="1-D"),
    "3-D": lw.DynamicGrid(radius=0.3, order="3-D"), "all pairs": lw.AllPairs(radius=0.3), "all pairs, k": lw.AllPairs(k=3),
    "bounded grid": lw.StaticGrid(radius=0.3, world=BOX), "bounded curve": lw.DynamicGrid(radius=0.3, world=BOX),
    "bounded, nearest": lw.Nearest(k=3, world=BOX), "periodic": lw.StaticGrid(radius=0.3, world=lw.Periodic((1, 1, 1))),
}  # fmt: skip
SPOILT = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "far": 3e30, "outside": 1.5}


class Thing(lw.Record):
    position: lw.vec3
    n: lw.i32
    x: lw.f32


@lw.pairwise
def count(target: Thing, source: Thing) -> lw.i32:
    return 1


@lw.elementwise
def energy(a: Thing) -> lw.f32:
    return 2 * a.x


@lw.elementwise
def move(a: Thing, b: Thing):
    a.x += b.x


@lw.pairwise
def attract(a: Thing, b: Thing) -> lw.f32:
    return b.x


@lw.segmentwise
def weigh(a: Thing, b: Thing) -> lw.f32:
    return a.x * b.x


@lw.elementwise
def look_up(a: Thing, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[a.n]


@lw.pairwise
def look_up_pairs(a: Thing, b: Thing, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[b.n]


@lw.threadwise
def permute(i: lw.index, places: lw.Array1[lw.i32], values: lw.Array1[lw.f32]):
    values[places[i]] = lw.f32(i)


def things(seed: int, device: str = "cpu", layout: Any = None) -> Any:
    rng = np.random.default_rng(seed)
    return Thing.array(
        position=rng.random((COUNT, 3)), n=np.arange(COUNT), x=np.ones(COUNT), device=device, layout=layout
    )


def answer(call: Callable[[], Any]) -> str:
    """What a call is refused with, or nothing."""
    try:
        call()
    except LanewiseError as error:
        return str(error)
    return ""


def spoil(array: Any, value: float, element: int = 7) -> None:
    places = to_host(array.position).copy()
    places[element, 1] = value
    array.position = places


def check_search(name: str, device: str, layout: Any) -> None:
    kernel, one, other = count.using(SEARCHES[name]), things(1, device, layout), things(2, device, layout)
    for targets, sources in ((one, one), (one, other), (one[::2] if layout is None else one[8:], one)):
        call = kernel.bind(targets, sources)
        before = to_host(call()).copy()
        for array in {id(a): a for a in (targets, sources)}.values():
            kept = to_host(array.position).copy()
            for what, value in SPOILT.items():
                spoil(array, value)
                plain = answer(partial(kernel, targets, sources))
                for _ in range(3):
                    assert answer(call) == plain, (name, what)
                assert plain or what not in ("nan", "inf", "-inf"), (name, what)
            array.position = kept
        assert (to_host(call()) == before).all()  # a refusal leaves nothing behind


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", CPUS)
@pytest.mark.parametrize("search", ["neighbours", "bounded grid", "all pairs, k", "curve"])
def test_positions_that_no_search_can_use(search: str, device: str) -> None:
    check_search(search, device, None)


@pytest.mark.cuda
@pytest.mark.parametrize("search", SEARCHES)
def test_positions_on_a_gpu(search: str) -> None:
    check_search(search, "cuda", None)


@pytest.mark.cuda
@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoA(), lw.AoSoA(8)], ids=str)
def test_positions_in_every_layout_of_a_gpu(layout: Any) -> None:
    check_search("curve", "cuda", layout)


@pytest.mark.cuda
def test_a_captured_bound_call_does_not_look() -> None:
    """A graph answers nobody while it runs; the same bound call, called without a graph, refuses."""
    from lanewise.runtime.cuda_graphs import Graph, wait_for_graphs

    bodies = things(9, "cuda")
    call = count.using(SEARCHES["curve"]).bind(bodies, bodies)
    right = to_host(call()).copy()
    graph = Graph("cuda", call)
    spoil(bodies, np.nan)
    assert "a search needs finite numbers" in answer(call)
    graph.launch()
    wait_for_graphs("cuda")
    met = to_host(call.results[0])
    assert met[7] == 0
    assert (met <= right).all()
    spoil(bodies, float(things(9).position[7, 1]))
    assert (to_host(call()) == right).all()


class Late:
    """A look with an answer that is given."""

    def __init__(self, sound: bool) -> None:
        self.answer, self.steps = sound, list[str]()

    def begin(self) -> None:
        self.steps.append("begin")

    def sound(self) -> bool:
        self.steps.append("wait")
        return self.answer


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("in_graphs", [False, True])
@pytest.mark.parametrize("sound", [False, True])
def test_what_a_gpu_does_before_the_kernel(
    sound: bool, in_graphs: bool, captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In which order a bound call on a GPU looks, waits, fills and refuses, without a GPU."""
    made = list[tuple[int, int]]()
    look = Late(sound)

    def fake(device: str, looks: Any, filling: Any) -> Late:
        made.append((len(looks), len(filling)))
        return look

    monkeypatch.setattr(watched, "DeviceLook", fake)
    monkeypatch.setattr(Cuda, "is_capturing", Mock(return_value=captured))
    points = points_of(things(3), "position")
    guard = watched.Guard("count: 'target'", points, lw.Open(), 1e18)
    steps = look.steps
    filling = watched.DeviceFilling("cuda", (guard,), lambda: steps.append("fill"), in_graphs)
    for _ in range(2):
        steps.clear()
        filling()
        if captured:
            assert steps == ["fill"]
        else:
            assert steps == ["begin", "wait", *["fill"] * (not in_graphs or not sound)]
    assert made == [] if captured else made == [(1, int(in_graphs))]
    if captured or sound:
        return
    spoiled = things(3)
    spoil(spoiled, np.nan)
    guard = watched.Guard("count: 'target'", points_of(spoiled, "position"), lw.Open(), 1e18)
    with pytest.raises(
        LanewiseError, match=r"count: 'target': the position of element 7 is .* a search needs finite numbers"
    ):
        watched.DeviceFilling("cuda", (guard,), lambda: steps.append("never"), in_graphs)()
    assert "never" not in steps


@pytest.mark.slow
@pytest.mark.parametrize("device", CPUS)
@pytest.mark.parametrize("layout", [None, lw.AoS(), lw.SoA(), lw.AoSoA(8)], ids=str)
@pytest.mark.parametrize("search", SEARCHES)
def test_positions_in_every_layout(search: str, layout: Any, device: str) -> None:
    check_search(search, device, layout)


def test_positions_in_blocks() -> None:
    check_search("bounded grid", "cpu", lw.AoSoA(8))


def bound_calls(a: Any, b: Any) -> dict[str, Callable[[], Any]]:
    """Calls that all have to do with the array b."""
    lists = lw.ragged(things(4), counts=[COUNT - 3, 0, 3]).to(a.device)
    search = count.using(SEARCHES["curve"])
    return {
        "elementwise": energy.bind(b), "in place": move.bind(b, a), "beside": move.bind(a, b), "a view": energy.bind(b[3:]),
        "sources": attract.bind(a, b), "targets": attract.bind(b, a), "a part": attract.bind(b[:9], b), "a search": search.bind(b, b),
        "targets of a search": search.bind(b, a), "lists": weigh.bind(b, lists),
    }  # fmt: skip


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", CPUS)
@pytest.mark.parametrize("change", ["append", "compact"])
def test_lengths_that_change(change: str, device: str) -> None:
    b = things(6, device)
    calls = bound_calls(things(5, device), b)
    for call in calls.values():
        call()
    b.append(b[:1]) if change == "append" else b.compact(np.arange(COUNT) != 4)
    for name, call in calls.items():
        assert "changed in length" in answer(call), name


@lw.threadwise
def number(i: lw.index, values: lw.Array1[lw.f32]):
    values[i] = lw.f32(i)


@lw.threadwise
def add_up(i: lw.index, values: lw.Array1[lw.f32]):
    lw.scatter_add(values, 0, lw.f32(i))


@lw.elementwise
def scatter(a: Thing, values: lw.Array1[lw.f32]):
    lw.scatter_add(values, a.n, a.x)


@lw.elementwise
def scatter_largest(a: Thing, values: lw.Array1[lw.f32]):
    lw.scatter_max(values, a.n, a.x)


@lw.elementwise
def twice(x: lw.f32) -> lw.f32:
    return 2 * x


Written = dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]]


def written_arrays(device: str) -> Written:
    """Plain calls, how they are bound, and the array that each of them writes."""
    a, b = things(10, device), things(11, device)
    lists = lw.ragged(things(4), counts=[COUNT - 3, 0, 3]).to(a.device)
    calls: Written = {}
    for name, kernel, named in (
        ("threads", number, {"grid": COUNT}), ("threads that add", add_up, {"grid": COUNT}),
    ):  # fmt: skip
        array = np.zeros(COUNT, "f4")
        calls[name] = partial(kernel, array, **named), partial(kernel.bind, array, **named), array
    for name, kernel in (("scattered", scatter), ("largest", scatter_largest)):
        array = np.zeros(COUNT, "f4")
        calls[name] = partial(kernel, a, array), partial(kernel.bind, a, array), array
    search = SEARCHES["curve"]
    for name, kernel, given in (
        ("elementwise", energy, (a,)), ("of values", twice, (np.ones(COUNT, "f4"),)), ("of a grid", twice, (np.ones((5, 8), "f4"),)),
        ("pairwise", attract, (a, b)), ("a search", attract.using(search), (a, b)), ("segmentwise", weigh, (a, lists)),
    ):  # fmt: skip
        array = np.zeros(np.shape(kernel(*given)), "f4")
        calls[f"out of {name}"] = partial(kernel, *given, out=array), partial(kernel.bind, *given, out=array), array
    return calls


@pytest.mark.parametrize("device", CPUS)
def test_arrays_that_became_read_only(device: str) -> None:
    with lw.device(device):
        for name, (plain, bind, array) in written_arrays(device).items():
            bound = bind()
            assert answer(bound) == "", name
            kept = array.copy()
            array.flags.writeable = False
            assert "read-only" in answer(plain), name
            for _ in range(2):
                assert "read-only" in answer(bound), name
            assert (array == kept).all()
            array.flags.writeable = True
            assert answer(bound) == "", name


@pytest.mark.parametrize("device", CPUS)
def test_masks_that_came_later(device: str) -> None:
    """Hidden elements are no values, also where they were hidden after the call was bound."""
    with lw.device(device):
        values = np.ma.MaskedArray(np.ones(COUNT, "f4"))
        bound = twice.bind(values)
        assert answer(bound) == ""
        values[3] = np.ma.masked
        assert "mask" in answer(lambda: twice(values))
        assert answer(bound) == answer(lambda: twice(values))


@pytest.mark.parametrize("device", CPUS)
def test_indices_with_checks(device: str) -> None:
    """The contents of tables and of indices are tested in every run."""
    a, table = things(7, device), np.zeros(COUNT, "f4")
    places, values = np.arange(COUNT, dtype="i4"), np.zeros(COUNT, "f4")
    with lw.device(device):
        pairs = [
            (lambda: look_up(a, table, checks=True), look_up.bind(a, table, checks=True)),
            (lambda: look_up_pairs(a, a, table, checks=True), look_up_pairs.bind(a, a, table, checks=True)),
            (
                lambda: look_up_pairs.using(SEARCHES["curve"])(a, a, table, checks=True),
                look_up_pairs.using(SEARCHES["curve"]).bind(a, a, table, checks=True),
            ),
            (
                lambda: permute(places, values, grid=COUNT, checks=True),
                permute.bind(places, values, grid=COUNT, checks=True),
            ),
        ]
        for plain, bound in pairs:
            assert answer(plain) == answer(bound) == ""
        numbers = np.array(a.n)
        numbers[5] = COUNT
        a.n = numbers
        places[5] = COUNT
        for plain, bound in pairs:
            assert "outside" in answer(plain) or "index" in answer(plain)
            assert answer(bound) == answer(plain)


@pytest.mark.parametrize("device", CPUS)
def test_races_with_checks(device: str) -> None:
    places, values = np.arange(COUNT, dtype="i4"), np.zeros(COUNT, "f4")
    with lw.device(device):
        bound = permute.bind(places, values, grid=COUNT, checks=True)
        assert answer(bound) == ""
        places[5] = 6
        assert answer(lambda: permute(places, values, grid=COUNT, checks=True)) == answer(bound)


def test_bound_calls_of_threads_refuse_alike() -> None:
    """A call that several threads share: those that come while a position is spoilt are refused, and the others are
    right.
    """
    from concurrent.futures import ThreadPoolExecutor

    bodies = things(8)
    call = count.using(SEARCHES["static grid"]).bind(bodies, bodies)
    right = call().copy()
    spoil(bodies, np.nan)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(answer, [call] * 32))
    assert all("a search needs finite numbers" in a for a in answers)
    spoil(bodies, float(things(8).position[7, 1]))
    assert (call() == right).all()


def every_bound_call() -> dict[str, Any]:
    """Of every pattern."""
    a, b = things(13), things(14)
    written = {name: bind() for name, (_, bind, _) in written_arrays("cpu").items()}
    tree = weighed.using(search=lw.Tree(theta=0.5, order=2)).bind(a, a, scale=2.0)
    slopes = energy.gradient("a.x").bind(a)
    sites = {"sites": bounce.compile(bounce.sites((4, 4), device="cpu"))}
    return bound_calls(a, b) | written | sites | {"a tree": tree, "a gradient": slopes}


@lw.pairwise
def weighed(target: Thing, source: Thing, scale: lw.f32) -> lw.f32:
    d = source.position - target.position
    return scale * source.x / (lw.dot(d, d) + 0.01)


GIVEN: tuple[tuple[tuple[Any, ...], dict[str, Any], str], ...] = (
    ((3,), {}, "3"), ((), {"scale": 0.5}, "scale=0.5"), ((1, 2), {"out": None}, "1, 2, out=None"),
)  # fmt: skip


def test_arguments_of_a_bound_call_are_refused_in_words() -> None:
    for pattern, call in every_bound_call().items():
        for given, named, found in GIVEN:
            with pytest.raises(lw.ArgumentError) as error:
                call(*given, **named)
            assert isinstance(error.value, TypeError), pattern
            name, _, text = str(error.value).partition(": ")
            assert name in repr(call), pattern
            assert text == (
                f"a bound call takes no arguments, found {found}; it has those that it was bound "
                "with: write new numbers into its arrays, or bind another call"
            ), pattern
        call()
