"""Profiles: spans nest, shares add up to the whole, samples stand for all steps, traces are valid, and results stay as
they are.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.profiling import profile as profile_module
from lanewise.profiling import span
from lanewise.profiling.sequence import DEVICE_COST, HOST_COST, SHARE, interval
from lanewise.runtime import stepping
from lanewise.runtime.programs import NamedLaunch, ProgramPart
from lanewise.runtime.stepping import make_program
from lanewise.support.errors import InputError
from lanewise.support.whole_steps import LONG_GRAPH
from tests.runtime.stepper import make_stepper

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


class Clock:
    """Nanoseconds that pass only when work says so."""

    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now

    def passing(self, nanoseconds: int) -> Callable[[], None]:
        def work() -> None:
            self.now += nanoseconds

        return work


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(profile_module, "clock", made)
    monkeypatch.setattr(stepping, "clock", made)
    return made


def shares(summary: dict[str, Any]) -> float:
    return sum(row["share"] for row in summary["stages"].values())


def stage_seconds(profile: lw.Profile) -> dict[str, float]:
    return {name: row["seconds"] for name, row in profile.summary()["stages"].items()}


# ------------------------------------------------------------ spans


def test_a_span_counts_without_those_within_it(clock: Clock) -> None:
    profile = lw.Profile()
    with profile.span("rest", name="run"):
        clock.passing(5)()
        with profile.span("checkpoint"):
            clock.passing(10)()
            with profile.span("transfer", name="to the host", nbytes=4096):
                clock.passing(30)()
            clock.passing(1)()
        with profile.span("transfer", name="to the device", nbytes=100):
            clock.passing(4)()
    summary = profile.summary()
    assert summary["seconds"] == pytest.approx(50e-9)
    assert stage_seconds(profile) == pytest.approx({"transfer": 34e-9, "checkpoint": 11e-9, "rest": 5e-9})
    assert list(summary["stages"]) == ["transfer", "checkpoint", "rest"]  # the longest first
    transfer = summary["stages"]["transfer"]
    assert (transfer["calls"], transfer["bytes"], set(transfer["parts"])) == (2, 4196, {"to the host", "to the device"})
    assert transfer["parts"]["to the host"] == {
        "seconds": pytest.approx(30e-9), "share": pytest.approx(0.6), "calls": 1, "bytes": 4096
    }  # fmt: skip
    assert shares(summary) == pytest.approx(1)


def test_a_span_that_raises_is_closed(clock: Clock) -> None:
    profile = lw.Profile()

    def fail() -> None:
        clock.passing(7)()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), profile.span("outer"), profile.span("inner"):
        fail()
    with profile.span("after"):
        clock.passing(3)()
    assert stage_seconds(profile) == pytest.approx({"inner": 7e-9, "after": 3e-9, "outer": 0})
    assert profile.summary()["seconds"] == pytest.approx(10e-9)


def test_without_a_profile_a_span_is_nothing() -> None:
    with span(None, "anything", name="at all"):
        pass


def test_an_empty_profile_says_so() -> None:
    profile = lw.Profile()
    assert profile.summary() == {
        "seconds": 0.0, "stages": {}, "dropped_events": 0, "devices": {},
        "copies": {direction: {"count": 0, "bytes": 0, "fields": {}} for direction in ("to host", "to device")},
        "steps": {"count": 0, "seconds": 0.0, "sampled": 0, "sampled_over_mean": None},
    }  # fmt: skip
    assert "where the time goes" in str(profile)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9)), max_size=30))
def test_shares_add_up_to_one(pieces: list[tuple[int, int]]) -> None:
    made, old = Clock(), profile_module.clock
    profile_module.clock = made  # hypothesis runs a test many times: a fixture would be made once
    try:
        profile = lw.Profile()
        with profile.span("rest"):
            for depth, nanoseconds in pieces:
                spans = [profile.span(f"level {d}") for d in range(depth)]
                for s in spans:
                    s.__enter__()
                made.passing(nanoseconds)()
                for s in reversed(spans):
                    s.__exit__(None, None, None)
    finally:
        profile_module.clock = old
    total = sum(n for _, n in pieces)
    assert profile.summary()["seconds"] == pytest.approx(total * 1e-9)
    assert shares(profile.summary()) == pytest.approx(1 if total else 0)


# ------------------------------------------------------------ steps


@given(st.integers(1, 10**11), st.integers(1, 40), st.sampled_from([HOST_COST, DEVICE_COST]))
def test_sampling_keeps_to_its_share(nanoseconds: int, launches: int, cost: Any) -> None:
    n, price = interval(nanoseconds, launches, cost), cost.sample + launches * cost.launch
    assert price <= max(1.0, SHARE * nanoseconds) * n
    assert n == 1 or price > max(1.0, SHARE * nanoseconds) * (n - 1)  # and not rarer than that


@given(st.lists(st.integers(0, 400), max_size=6), st.integers(1, 2_000_000))
def test_every_step_runs_once_and_in_order(runs: list[int], nanoseconds: int) -> None:
    done: list[str] = []
    calls = [NamedLaunch("a", "x", lambda: done.append("x")), lambda: done.append("y")]
    profile = lw.Profile()
    stepper = make_stepper("cpu", calls, profile)
    for steps in runs:
        stepper.run(steps)
    assert done == ["x", "y"] * sum(runs)
    found = profile.summary()["steps"]
    assert found["count"] == sum(runs)
    assert (found["sampled"] > 0) == (sum(runs) > 0)


def test_long_steps_are_all_measured(clock: Clock) -> None:
    profile = lw.Profile()
    calls = [NamedLaunch("search", "s", clock.passing(3_000_000)), NamedLaunch("update", "u", clock.passing(1_000_000))]
    make_stepper("cpu", calls, profile).run(40)
    summary = profile.summary()
    assert summary["steps"] == {
        "count": 40, "seconds": pytest.approx(0.16), "sampled": 40, "sampled_over_mean": pytest.approx(1)
    }  # fmt: skip
    assert stage_seconds(profile) == pytest.approx({"search": 0.12, "update": 0.04})
    assert summary["stages"]["search"]["calls"] == 40


def test_short_steps_are_sampled(clock: Clock) -> None:
    """A step of 2 us: a sample costs `HOST_COST`, so one in many is measured, however the steps are divided
    into runs.
    """
    profile = lw.Profile()
    calls = [NamedLaunch("search", "s", clock.passing(1_500)), NamedLaunch("update", "u", clock.passing(500))]
    stepper = make_stepper("cpu", calls, profile)
    for _ in range(100):
        stepper.run(100)
    every = interval(2_000, 2, HOST_COST)
    assert every > 100
    found = profile.summary()["steps"]
    assert found["sampled"] == -(-10_000 // every)
    assert found["sampled_over_mean"] == pytest.approx(1)
    assert stage_seconds(profile) == pytest.approx({"search": 0.015, "update": 0.005})


def test_a_slow_first_step_stands_for_itself_alone(clock: Clock) -> None:
    profile = lw.Profile()
    times = itertools.chain([50_000_000], itertools.repeat(1_000))
    calls = [
        NamedLaunch("cold", "c", lambda: clock.passing(next(times))()),
        NamedLaunch("warm", "w", clock.passing(1_000)),
    ]
    make_stepper("cpu", calls, profile).run(20_000)
    found = stage_seconds(profile)
    assert found["cold"] + found["warm"] == pytest.approx(50e-3 + 40e-3 - 1e-6)
    assert found["warm"] == pytest.approx(20e-3, rel=0.05)


def test_launches_of_one_name_are_added_up_and_a_repetition_may_be_several_steps(clock: Clock) -> None:
    profile = lw.Profile()
    calls = [NamedLaunch("integrate", "kick", clock.passing(1_000_000)), NamedLaunch("forces", "g", clock.passing(5_000_000)),
             NamedLaunch("integrate", "kick", clock.passing(2_000_000))]  # fmt: skip
    make_program("cpu", {"twice": ProgramPart(calls, 2)}, profile).run([("twice", 3)])
    summary = profile.summary()
    assert summary["steps"]["count"] == 6
    assert summary["stages"]["integrate"]["parts"]["kick"]["calls"] == 6
    assert stage_seconds(profile) == pytest.approx({"forces": 0.015, "integrate": 0.009})


# ------------------------------------------------------------ graphs, on a device that is played


class PlayedDevice:
    """What `stepping` asks of `cuda`: graphs replay what was captured, events read a clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.capturing, self.origins, self.waits = clock, False, 0, 0
        self.captured: list[Callable[[], None]] = []
        device = self

        class Graph:
            def __init__(self, name: str, work: Callable[[], None]) -> None:
                device.captured, device.capturing = [], True
                work()
                self.work, device.capturing = list(device.captured), False

            def launch(self) -> None:
                for launch in self.work:
                    launch()

        class Marks:
            def __init__(self, name: str, count: int) -> None:
                self.at = [0] * count

            def record(self, number: int) -> None:
                def read() -> None:
                    self.at[number] = device.clock()

                device.captured.append(read)

            def seconds(self) -> list[float]:
                return [1e-9 * (b - a) for a, b in itertools.pairwise(self.at)]

            def since(self, event: int) -> float:
                return 1e-9 * (self.at[0] - event)

        self.Graph, self.Marks = Graph, Marks

    def kernel(self, work: Callable[[], None]) -> Callable[[], None]:
        def launch() -> None:
            assert self.capturing, "on a GPU steps run as graphs"
            self.captured.append(work)

        return launch

    def synchronize(self, device: str) -> None: ...

    def wait_for_graphs(self, device: str) -> None:
        self.waits += 1

    def graph_event(self, device: str) -> int:
        self.origins += 1
        return self.clock()


@pytest.fixture
def played(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> PlayedDevice:
    device = PlayedDevice(clock)
    monkeypatch.setattr(stepping, "cuda", device)
    monkeypatch.setattr(stepping, "cuda_graphs", device)
    return device


@pytest.mark.parametrize("runs", [(1,), (31, 1), (100, 0, 7), (5 * LONG_GRAPH,)])
def test_graphs_run_every_step_once_and_in_order(clock: Clock, played: PlayedDevice, runs: tuple[int, ...]) -> None:
    done: list[str] = []

    def kernel(name: str, nanoseconds: int) -> NamedLaunch:
        def work() -> None:
            done.append(name)
            clock.now += nanoseconds

        return NamedLaunch(name, f"{name} kernel", played.kernel(work))

    profile = lw.Profile()
    stepper = make_stepper("cuda", [kernel("build", 9_000), kernel("search", 21_000)], profile)
    for steps in runs:
        stepper.run(steps)
    assert done == ["build", "search"] * sum(runs)
    found = profile.summary()
    assert found["steps"]["count"] == sum(runs)
    assert found["steps"]["sampled_over_mean"] == pytest.approx(1)
    times = stage_seconds(profile)
    assert (times["build"], times["search"]) == pytest.approx((9e-6 * sum(runs), 21e-6 * sum(runs)))
    assert shares(found) == pytest.approx(1)


def test_few_graphs_have_events(clock: Clock, played: PlayedDevice) -> None:
    profile = lw.Profile()
    steps = 4_000 * LONG_GRAPH
    stepper = make_stepper("cuda", [NamedLaunch("forces", "g", played.kernel(clock.passing(3_000)))], profile)
    stepper.run(steps)
    every = interval(3_000, 1, DEVICE_COST)
    graphs = -(-every // LONG_GRAPH)  # samples are a whole number of graphs apart
    sampled = profile.summary()["steps"]["sampled"]
    assert sampled == pytest.approx(4_000 / graphs, abs=2)
    device = [e for e in profile.trace()["traceEvents"] if e["tid"] == 2 and e["ph"] == "X"]
    assert len(device) == 2 * sampled
    assert device[0]["ts"] == pytest.approx(
        (1_000 + 16 * 3_000 - profile.origin) / 1e3
    )  # the step in the middle of the first


def test_runs_without_a_sample_record_no_event(clock: Clock, played: PlayedDevice) -> None:
    """Short runs, such as those up to the next frame of a film: most have nothing to measure."""
    profile = lw.Profile()
    stepper = make_stepper("cuda", [NamedLaunch("search", "k", played.kernel(clock.passing(68_000)))], profile)
    for _ in range(200):
        stepper.run(LONG_GRAPH)
    sampled = profile.summary()["steps"]["sampled"]
    every = -(-interval(68_000, 1, DEVICE_COST) // LONG_GRAPH)
    assert sampled == pytest.approx(200 / every, abs=2)
    assert played.origins == sampled
    assert profile.summary()["steps"]["count"] == 200 * LONG_GRAPH
    assert stage_seconds(profile)["search"] == pytest.approx(68e-6 * 200 * LONG_GRAPH)


@pytest.mark.parametrize("told", [False, True])
def test_a_schedule_runs_in_its_order_and_nobody_waits_within_it(
    clock: Clock, played: PlayedDevice, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    monkeypatch.setattr(stepping, "cuda", played)
    monkeypatch.setattr(stepping, "cuda_graphs", played)
    done: list[str] = []

    def part(name: str, nanoseconds: int, steps: int) -> ProgramPart:
        def work() -> None:
            done.append(name)
            clock.now += nanoseconds

        return ProgramPart([NamedLaunch(name, f"{name} kernel", played.kernel(work))], steps)

    profile = lw.Profile() if told else None
    parts: dict[Hashable, ProgramPart] = {"sort": part("sort", 100_000, 0), "step": part("step", 50_000, 1)}
    program = make_program("cuda", parts, profile)
    program.run([("sort", 1), ("step", 32)] * 50)
    parts["last"] = part("last", 10_000, 2)  # parts may come later
    program.run([("step", 7), ("last", 3), ("step", 0)])
    program.run([("step", 0)])
    assert done == (["sort"] + ["step"] * 32) * 50 + ["step"] * 7 + ["last"] * 3
    assert played.waits == 2 + (not told)  # once a run; without a profile also for one that is empty
    if profile is None:
        return
    found = profile.summary()
    assert found["steps"]["count"] == 50 * 32 + 7 + 2 * 3
    assert found["steps"]["sampled_over_mean"] == pytest.approx(1)
    assert stage_seconds(profile) == pytest.approx({"sort": 50 * 1e-4, "step": 1607 * 5e-5, "last": 3e-5, "setup": 0})
    assert shares(found) == pytest.approx(1)


# ------------------------------------------------------------ traces


def check_trace(trace: dict[str, Any]) -> None:
    """Every event has what viewers want, and on each track spans lie within each other or apart."""
    assert trace["traceEvents"]
    for event in trace["traceEvents"]:
        assert {"name", "ph", "ts", "dur", "pid", "tid"} <= event.keys()
        assert event["ph"] in "XM"
        assert event["dur"] >= 0
    for track in {e["tid"] for e in trace["traceEvents"]}:
        open_until: list[float] = []
        for event in (e for e in trace["traceEvents"] if e["tid"] == track and e["ph"] == "X"):
            while open_until and event["ts"] >= open_until[-1] - 1e-6:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 1e-3, event  # microseconds: ends are rounded
            open_until.append(end)


def test_a_trace_has_spans_steps_and_launches(tmp_path: Path) -> None:
    profile = lw.Profile()
    with profile.span("rest", name="run"):
        stepper = make_stepper("cpu", [NamedLaunch("forces", "gravity", lambda: None)], profile)
        stepper.run(1)
        stepper.run(2_000)
        with profile.span("output", name="picture"):
            pass
    path = tmp_path / "trace.json"
    profile.write_trace(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    check_trace(trace)
    rows = {(e["name"], e["cat"]) for e in trace["traceEvents"] if e["ph"] == "X"}
    assert rows == {
        ("run", "rest"), ("1 step", "steps"), ("2,000 steps", "steps"), ("step", "steps"), ("gravity", "forces"), ("picture", "output"),
    }  # fmt: skip
    assert {e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"} == {"lanewise", "host"}
    assert trace["otherData"] == {"dropped_events": 0}
    with pytest.raises(InputError, match="the file exists already; give --overwrite to replace it"):
        profile.write_trace(path)
    profile.write_trace(path, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]


def test_a_full_trace_says_what_it_lacks_and_the_table_counts_all() -> None:
    profile = lw.Profile(most_events=3)
    for _ in range(5):
        with profile.span("output"):
            pass
    make_stepper("cpu", [NamedLaunch("a", "b", lambda: None)], profile).run(1)
    assert profile.summary()["stages"]["output"]["calls"] == 5
    assert len([e for e in profile.trace()["traceEvents"] if e["ph"] == "X"]) == 3
    assert profile.summary()["dropped_events"] == profile.trace()["otherData"]["dropped_events"] == 5
    assert "the trace lacks 5 later events" in str(profile)


# ------------------------------------------------------------ tables


def test_the_table_lists_stages_and_their_parts(clock: Clock) -> None:
    profile = lw.Profile()
    with profile.span("rest", name="run"):
        with profile.span("transfer", name="bodies to the device", nbytes=3_000_000):
            clock.passing(1_000_000)()
        with profile.span("transfer", name="bodies to the host"):
            clock.passing(2_000_000)()
        make_stepper("cpu", [NamedLaunch("forces", "gravity", clock.passing(7_000_000))], profile).run(1)
    text = str(profile)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert rows == [
        ["forces", "1", "7 ms", "7 ms", "70.0 %"],
        ["transfer", "2", "3 ms", "1.5 ms (1 GB/s)", "30.0 %"],
        ["bodies to the host", "1", "2 ms", "2 ms", "20.0 %"],
        ["bodies to the device", "1", "1 ms", "1 ms (3 GB/s)", "10.0 %"],
        ["rest", "1", "0 ns", "0 ns", "0.0 %"],
        ["all", "", "10 ms", "", "100.0 %"],
    ]
    assert text.endswith("1 of 1 steps were measured launch by launch\na measured step took 1.00 times the mean of all")


# ------------------------------------------------------------ simulations


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("integrator", ["leapfrog", "yoshida4"])
def test_gravity_has_the_same_bits_with_a_profile(device: str, integrator: str) -> None:
    from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions

    found: list[bytes] = []
    profile = lw.Profile()
    for told in (None, profile):
        particles = make_initial_conditions("plummer", 64, seed=1)
        bodies = make_bodies(particles, device=device, profile=told)
        simulation = Simulation(bodies, softening=0.05, integrator=integrator, profile=told)
        simulation.run(100, 1e-3, callback=lambda s: s.energy(), every=37)
        found.append(b"".join(np.asarray(bodies.numpy()[n]).tobytes() for n in ("position", "velocity")))
    assert found[0] == found[1]
    summary = profile.summary()
    assert {"setup", "transfer", "forces", "integrate", "check", "diagnostics"} <= summary["stages"].keys()
    drifts = {"leapfrog": 1, "yoshida4": 3}[integrator]
    assert summary["stages"]["forces"]["calls"] == 100 * drifts
    assert summary["stages"]["integrate"]["calls"] == 100 * (drifts + 1)
    assert (summary["steps"]["count"], summary["stages"]["check"]["calls"]) == (100, 3)
    assert shares(summary) == pytest.approx(1)
    check_trace(profile.trace())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("streaming", ["in-place", "pull"])
def test_a_flow_has_the_same_bits_with_a_profile(device: str, streaming: str) -> None:
    from lanewise.sims.lbm import Simulation

    found: list[bytes] = []
    profile = lw.Profile()
    for told in (None, profile):
        flow = Simulation(
            shape=(12, 16), viscosity=0.05, velocity=(0.05, 0.0), edges={"y": "wall"}, streaming=streaming, device=device,
            profile=told,
        )  # fmt: skip
        flow.run(101, callback=lambda s: s.mass, every=50)
        found.append(flow.engine.arriving().tobytes())
    assert found[0] == found[1]
    summary = profile.summary()
    assert {"setup", "collide-stream", "observe"} <= summary["stages"].keys()
    assert summary["steps"]["count"] == 101
    assert shares(summary) == pytest.approx(1)
    check_trace(profile.trace())
