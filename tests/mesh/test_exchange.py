"""Exchanges between the parts of a mesh: tasks by name, and an order that nobody can break."""

from __future__ import annotations

import gc
import re
import weakref
from contextlib import nullcontext
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch.task_verifier import verify
from lanewise.launch.tasks import Exchange
from lanewise.patterns import mesh_launch
from lanewise.patterns.mesh_launch import MeshLaunch
from lanewise.profiling.lanes import WatchedWork
from lanewise.runtime.exchange import Gather, Move, Moves, Put, Receive, Wait, order_of, order_of_puts
from lanewise.runtime.host_device import HostDevice
from lanewise.support.errors import ArgumentError, DeviceError

DEVICES = [f"cuda:{n}" for n in range(4)]


class Body(lw.Record):
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.elementwise
def push(body: Body, force: lw.vec3, dt: lw.f32):
    body.velocity += force * dt
    body.position += body.velocity * dt


def bodies(n: int, parts: int, layout: lw.Layout | None = None) -> Any:
    rng = np.random.default_rng(n)
    mesh = lw.Mesh("cpu", parts=parts)
    return Body.array(position=rng.standard_normal((n, 3)), mass=rng.random(n), device=mesh, layout=layout or lw.SoA())


# ------------------------------------------------------------ the order of streams

Past = frozenset[tuple[str, str, int]]
"""What is done when something begins: events and stages of a device in some round."""


def run_rounds(routes: list[tuple[str, str]], rounds: int) -> None:
    """Steps of an exchange and a kernel that reads all targets and writes all sources of a device, with streams that
    wait only where they are told to: whatever must be done before an act has to be in its past.
    """
    devices = sorted({d for route in routes for d in route})
    stream: dict[str, Past] = {d: frozenset() for d in devices}
    event: dict[str, Past] = {}

    def does(device: str, what: str, n: int, needs: set[tuple[str, str, int]]) -> None:
        assert needs <= stream[device], (device, what, needs - stream[device])
        stream[device] |= {(what, device, n)}

    for n in range(rounds):
        for act in order_of(routes):
            match act:
                case Gather(device):  # the kernel of the round before has written what is read
                    does(device, "gather", n, {("kernel", device, n - 1)} if n else set())
                    event[device] = stream[device]
                case Wait(device, on):
                    stream[device] |= event[on]
                case Receive(device):  # reads what sources gathered; writes what the last kernel here has read
                    needs = {("gather", s, n) for s, t in routes if t == device}
                    does(device, "receive", n, needs | ({("kernel", device, n - 1)} if n else set()))
                    event[device] = stream[device]
        for device in devices:  # reads what came, writes what others have copied from here
            needs = {("receive", t, n) for s, t in routes if device in (s, t)}
            does(device, "kernel", n, needs)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(DEVICES), st.sampled_from(DEVICES)), min_size=1, max_size=12))
def test_no_copy_meets_its_readers_or_writers(routes: list[tuple[str, str]]) -> None:
    run_rounds(routes, 3)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(DEVICES), st.sampled_from(DEVICES)), min_size=1, max_size=12))
def test_no_write_to_another_device_meets_its_readers(routes: list[tuple[str, str]]) -> None:
    devices = sorted({d for route in routes for d in route})
    stream: dict[str, Past] = {d: frozenset() for d in devices}
    for n in range(3):
        event = dict(stream)  # of each device, before the first act
        for act in order_of_puts(routes):
            match act:
                case Wait(device, on):
                    stream[device] |= event[on]
                case Put(device):  # reads what the last kernel here has written; others have read what is there
                    ends = {device, *(t for s, t in routes if s == device)}
                    assert all(("kernel", d, n - 1) in stream[device] for d in ends) or not n
                    stream[device] |= {("put", device, n)}
                    event[device] = stream[device]
        for device in devices:
            assert {("put", s, n) for s, t in routes if device in (s, t)} <= stream[device]
            stream[device] |= {("kernel", device, n)}


def test_both_ways_at_once() -> None:
    """No device waits for copies to others before its own copies run."""
    order = order_of(product(DEVICES[:2], DEVICES[:2]))
    first = next(n for n, act in enumerate(order) if isinstance(act, Receive))
    assert [type(act) for act in order[:first]] == [Gather, Gather, Wait, Wait]
    assert [type(act) for act in order[first:]] == [Receive, Receive, Wait, Wait]


def test_one_gpu_waits_for_nothing() -> None:
    assert order_of([("cuda:0", "cuda:0")]) == (Gather("cuda:0"), Receive("cuda:0"))


def test_copies_on_a_host_run_at_once() -> None:
    a, b = np.arange(6.0), np.zeros(4)
    copies = Moves((Move("cpu", lambda: a[:3], "cpu", b[:3]), Move("cpu", lambda: a[5:], "cpu", b[3:])))
    copies()
    np.testing.assert_array_equal(b, [0, 1, 2, 5])
    assert copies.nbytes == 32


# ------------------------------------------------------------ tasks


def loop_of(b: Any, profile: lw.Profile | None = None) -> Any:
    force = pull.bind(b, b, softening2=0.1)
    return lw.steps([force, push.bind(b, force.results[0], dt=1e-2)], profile=profile)


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoSoA(8)], ids=str)
@pytest.mark.parametrize("parts", [1, 3])
def test_a_step_on_a_mesh_is_a_sound_sequence(parts: int, layout: lw.Layout) -> None:
    sequence = verify(loop_of(bodies(20, parts, layout)).sequence())
    (exchange,) = (task for task in sequence.tasks if isinstance(task, Exchange))
    assert exchange is not None
    assert sequence.tasks[0].name == "sources of pull"
    read = {a.buffer for a in exchange.accesses if a.reads}
    written = {a.buffer for a in exchange.accesses if a.writes}
    assert len(read) == parts
    assert written == {"sources of pull on cpu"}
    assert exchange.nbytes == 20 * 16
    (law,) = exchange.laws
    assert law((20 // parts,) * parts).total(["cpu"] * parts) == 20 // parts * parts * 16
    assert read <= sequence.changed  # what push writes is what the exchange reads
    assert [task.name for task in sequence.tasks[1:]] == ["pull"] * parts + ["push"] * parts


def test_explanations_list_parts_and_exchanges() -> None:
    b = bodies(1000, 3)
    compiled = pull.compile(b, b, softening2=0.1)
    said = compiled.explain()
    assert [row.name for row in said.launches] == ["sources of pull", "pull, part 0", "pull, part 1", "pull, part 2"]
    assert said.launches[0].nbytes == 16_000
    text = str(said)
    assert "  3 parts (3 x cpu), 333, 333, 334 rows\n" in text
    assert re.search("bring sources of pull  in every call +16,000  memory of the host, .* GB/s", text)
    assert said.analysis.facts["mesh"]["bytes_a_step"] == 16_000
    np.testing.assert_array_equal(compiled(b, b, softening2=0.1).numpy(), pull(b, b, softening2=0.1).numpy())
    with pytest.raises(ArgumentError, match="is for arrays on one device"):
        compiled.explain(measure=True)
    loop = str(loop_of(b).explain())
    assert "pull: 3 parts (3 x cpu), 333, 333, 334 rows; 16,000 bytes per call are copied for them" in loop
    assert "push, part 2" in loop
    assert "sources of pull  16,000 bytes" in loop
    assert "push: 3 parts (3 x cpu), 333, 333, 334 rows; nothing is copied" in loop


def test_profiles_have_each_part() -> None:
    profile = lw.Profile()
    loop_of(bodies(50, 2), profile).run(4)
    text = str(profile)
    for name in ("sources of pull", "pull, part 0", "pull, part 1", "push, part 1"):
        assert name in text


def test_traces_have_a_track_for_each_part() -> None:
    profile = lw.Profile()
    loop_of(bodies(50, 3), profile).run(4)
    events = profile.trace()["traceEvents"]
    labels = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    wanted = [f"cpu, part {n} (sampled steps)" for n in range(3)]
    assert [labels[tid] for tid in sorted(labels)] == ["host", *wanted]
    for number, label in enumerate(wanted):
        (tid,) = (t for t, name in labels.items() if name == label)
        names = {e["name"] for e in events if e["tid"] == tid and e["ph"] == "X"}
        assert names == {f"pull, part {number}", f"push, part {number}"}
    shares = profile.summary()["devices"]
    assert list(shares) == ["cpu, part 0", "cpu, part 1", "cpu, part 2"]
    assert 0 < sum(shares.values()) <= 1
    assert "cpu, part 1: at work in " in str(profile)
    alone = lw.Profile()
    loop_of(bodies(50, 1).to("cpu"), alone).run(4)
    assert alone.summary()["devices"] == {}


class BusyDevice:
    """A GPU that is done when it was asked so often."""

    def __init__(self, asked: int) -> None:
        self.left, self.target = asked, SimpleNamespace(host_memory=False)

    def is_busy(self) -> bool:
        self.left -= 1
        return self.left >= 0


def test_devices_that_work_at_once_are_looked_at_until_all_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = {"cuda:0": BusyDevice(3), "cuda:1": BusyDevice(40)}
    monkeypatch.setattr(mesh_launch, "get_device", devices.__getitem__)
    monkeypatch.setattr(mesh_launch, "together", lambda names: nullcontext())
    mesh = SimpleNamespace(devices=("cuda:0", "cuda:1", "cuda:0"), own=range(3))
    ran: list[int] = []
    calls = tuple(Launched(n, ran) for n in range(3))
    launch = mesh_launch.MeshLaunch(mesh, (1, 1, 1), (mesh_launch.MeshRound(None, calls),))  # pyright: ignore[reportArgumentType]
    ((name, work),) = launch.works()
    assert name == "pull"
    assert isinstance(work, WatchedWork)
    work()
    assert ran == [0, 1, 2]
    assert devices["cuda:1"].left == 40  # only sampled runs wait
    first, second = work.watch()
    assert (first.lane, second.lane) == ("cuda:0", "cuda:1")
    assert first.begin == second.begin < first.end < second.end
    assert ran == [0, 1, 2] * 2


class Launched:
    compiled = SimpleNamespace(name="pull")

    def __init__(self, number: int, ran: list[int]) -> None:
        self.number, self.ran = number, ran

    def __call__(self) -> None:
        self.ran.append(self.number)


def test_results_that_nothing_has_filled_are_refused() -> None:
    b = bodies(50, 2)
    force = pull.bind(b, b, softening2=0.1)
    loop = lw.steps([push.bind(b, force.results[0], dt=1e-2), force])
    with pytest.raises(ArgumentError, match="push reads the results of pull, which has not run yet"):
        loop.run(1)
    force()
    loop.run(1)


def test_sources_that_changed_in_length_are_refused() -> None:
    targets, sources = bodies(9, 2), bodies(7, 1).to("cpu")
    call = pull.bind(targets, sources, softening2=0.1)
    sources.append(sources[:2].copy())
    with pytest.raises(ArgumentError, match="pull: it was bound to 7 sources, which are 9 now; bind it anew"):
        call()


def test_memory_for_all_sources_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    b = bodies(100_000, 2)
    monkeypatch.setattr(HostDevice, "free_memory", lambda _: 2_000_000)
    with pytest.raises(
        DeviceError, match=r"a call of pull on a mesh needs 2,800,\d+ bytes on 'cpu', .* for all sources of pull"
    ):
        pull.bind(b, b, softening2=0.1)


def test_compiled_calls_keep_no_memory() -> None:
    b = bodies(100, 2)
    call = pull.bind(b, b, softening2=0.1)
    assert isinstance(call.launch, MeshLaunch)
    brought = call.launch.rounds[0].brought
    assert brought is not None
    seen = weakref.ref([*brought.bound.memory.values()][-1])
    compiled = call.compiled
    del call, brought
    gc.collect()
    assert seen() is None
    assert "sources of pull" in str(compiled.explain())
