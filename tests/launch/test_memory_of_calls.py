"""What a call needs is requested once, in sum, before any of it is allocated."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch import repeatable
from lanewise.patterns.search.static_grid import StaticGrid
from lanewise.runtime.host_device import HostDevice
from lanewise.support.errors import DeviceError

PLENTY = 1 << 40
ROUNDING = 2048  # bytes: pieces are aligned, and numbers of a call take some


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    kind: lw.i32


@lw.elementwise
def halves(body: Body) -> tuple[lw.vec3, lw.f32, lw.f64]:
    return body.position * 0.5, body.mass * 0.5, lw.f64(body.mass)


@lw.elementwise
def deposit(body: Body, bins: lw.Array1[lw.f32]):
    lw.scatter_add(bins, body.kind, body.mass)


@lw.threadwise
def spread(i: lw.index, a: lw.Array1[lw.f32]) -> lw.f32:
    return a[i] * 2.0


@lw.pairwise
def force(a: Body, b: Body) -> lw.vec3:
    d = b.position - a.position
    return d * (b.mass / (lw.dot(d, d) + 0.01) ** 1.5)


@lw.pairwise
def close(a: Body, b: Body) -> lw.f32:
    d = b.position - a.position
    return b.mass * (0.04 - lw.dot(d, d))


class Recorder:
    """The host as a device with so many bytes, which notes what is allocated, and how much at most at a time."""

    def __init__(self) -> None:
        self.free, self.taken = PLENTY, list[int]()
        self.live = self.most = 0

    def begin(self) -> None:
        self.taken, self.live, self.most = [], 0, 0

    def note(self, memory: Any, nbytes: int) -> None:
        self.taken.append(nbytes)
        self.live += nbytes
        self.most = max(self.most, self.live)
        weakref.finalize(memory, self.forget, self.taken, nbytes)

    def forget(self, taken: list[int], nbytes: int) -> None:
        if taken is self.taken:
            self.live -= nbytes

    def allocate(self, nbytes: int, *, zeroed: bool) -> Any:
        made = _allocate(HostDevice("cpu"), nbytes, zeroed=zeroed)
        self.note(made.base, nbytes)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        made: Any = np.empty(shape, dtype)
        self.note(made, made.nbytes)
        return made


_allocate = HostDevice.allocate
HOST = Recorder()  # one, as kernels keep the library of their arrays


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Asks and notes every byte; what stands in the memory of a process before is not counted."""
    HOST.free = PLENTY
    recorder = HOST
    monkeypatch.setattr(HostDevice, "allocate", lambda _, n, *, zeroed: recorder.allocate(n, zeroed=zeroed))
    monkeypatch.setattr(HostDevice, "free_memory", lambda _: recorder.free)
    monkeypatch.setattr(HostDevice, "asks_from", property(lambda _: 0))
    monkeypatch.setattr(HostDevice, "arrays", property(lambda _: recorder))
    monkeypatch.setattr(repeatable, "ASKS_FROM", 0)
    return recorder


def bodies(count: int) -> Any:
    rng = np.random.default_rng(count)
    kind = rng.integers(0, 8, count).astype(np.int32)
    return Body.array(position=rng.random((count, 3), np.float32), mass=rng.random(count, np.float32), kind=kind)


def over(search: Any) -> Callable[[Any], Any]:
    return lambda b: close.using(search=search)(b, b)


def tree(b: Any) -> Any:
    return force.using(search=lw.Tree())(b, b)


def derivative(b: Any) -> Any:
    weights = np.ones((len(b), 3), np.float32)
    return force.gradient("a.position")(b, b, cotangent=weights)


def positions(b: Any) -> Any:
    return np.ascontiguousarray(b.position)


OTHERS = np.random.default_rng(3).random((5000, 3), np.float32)
CALLS: dict[str, Callable[[Any], Any]] = {
    "elementwise": halves,
    "bound elementwise": lambda b: halves.bind(b)(),
    "elementwise sums": halves.sum,
    "scattered": lambda b: deposit(b, np.zeros(8000, np.float32)),
    "pairwise": lambda b: force(b, b),
    "whole arrays": lambda b: spread(np.ones(len(b), np.float32), grid=len(b)),
    "gradient": derivative,
    "static grid": over(StaticGrid(radius=0.2)),
    "curve": over(lw.DynamicGrid(radius=0.2)),
    "thesis": over(lw.DynamicGrid(radius=0.2, order="sort")),
    "leaves around": over(lw.DynamicGrid(radius=0.2, order="3-D", leaves="around")),
    "all pairs near": over(lw.AllPairs(radius=0.2)),
    "automatic": over(lw.Neighbors(radius=0.2)),
    "tree": tree,
    "nearest": lambda b: lw.nearest(positions(b), 3),
    "nearest of others": lambda b: lw.nearest(positions(b), 3, queries=OTHERS),
    "steps": lambda b: lw.steps([halves.bind(b)]).run(3),
}


def told(error: DeviceError) -> int:
    """The sum that a refusal names."""
    found = re.search(r"needs ([\d,]+) bytes", str(error))
    assert found is not None, error
    return int(found[1].replace(",", ""))


def refused(host: Recorder, call: Callable[[], Any]) -> int:
    """The sum that a call needs, which a device without memory has to refuse."""
    host.free, host.taken = 0, []
    with pytest.raises(DeviceError) as caught:
        call()
    assert not host.taken, caught.value
    host.free = PLENTY
    return told(caught.value)


@pytest.mark.slow_cases("tree")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_refused_before_anything_is_allocated(name: str, host: Recorder) -> None:
    b, call = bodies(700), CALLS[name]
    needed = refused(host, lambda: call(b))
    host.free, host.taken = needed - 1, []
    with pytest.raises(DeviceError):
        call(b)
    assert not host.taken
    host.free = needed
    host.begin()
    call(b)
    assert abs(host.most - needed) <= ROUNDING, (needed, host.taken)


@pytest.mark.parametrize("name", ["elementwise", "pairwise", "static grid", "curve", "tree", "automatic"])
def test_so_is_one_like_it(name: str, host: Recorder) -> None:
    """The same again, and another size."""
    b, call = bodies(700), CALLS[name]
    call(b)
    call(b)
    for again in (b, bodies(900)):
        host.free = PLENTY
        needed = refused(host, lambda again=again: call(again))
        host.free = needed
        host.begin()
        call(again)
        assert abs(host.most - needed) <= ROUNDING, (needed, host.taken)


def test_results_of_the_caller_need_no_memory(host: Recorder) -> None:
    b = bodies(700)
    out = tuple(np.empty(s, d) for s, d in (((700, 3), "f4"), (700, "f4"), (700, "f8")))
    host.free = 0
    halves(b, out=out)
    host.free = PLENTY
    halves(b)
    fewer = bodies(300)
    host.free, host.taken = 0, []
    halves(b, out=out)
    halves(fewer, out=tuple(o[:300] for o in out))
    assert not host.taken


def test_the_largest_pieces_are_named(host: Recorder) -> None:
    b = bodies(1000)
    host.free = 20_000
    with pytest.raises(DeviceError) as caught:
        halves(b)
    assert str(caught.value) == (
        "a call of halves needs 24,000 bytes on 'cpu', and 20,000 are available: 12,000 for result 1 of 3, "
        "8,000 for result 3 of 3 and 4,000 for result 2 of 3; call it for parts of the arrays one after the "
        "other, or let go of other memory there"
    )
    with pytest.raises(DeviceError, match=r"a call of close needs .* for a dynamic grid, .* for the sorted copy"):
        CALLS["curve"](b)


def test_neighbours_whose_number_is_not_known_yet(host: Recorder) -> None:
    x = positions(bodies(700))
    needed = refused(host, lambda: lw.neighbors(x, 0.2))
    host.begin()
    rows = lw.neighbors(x, 0.2)
    assert abs(host.most - rows.indices.nbytes - needed) <= ROUNDING


def test_a_capture_asks_nothing(monkeypatch: pytest.MonkeyPatch, host: Recorder) -> None:
    """A graph is made of memory that is there; what the driver says of it then is not wanted."""
    monkeypatch.setattr(HostDevice, "is_capturing", lambda _: True)
    monkeypatch.setattr(HostDevice, "overcommits", property(lambda _: False))
    host.free = 0
    halves(bodies(10))
