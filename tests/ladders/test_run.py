from __future__ import annotations

import os
import re

import pytest

from lanewise.ladders import run
from lanewise.ladders.run import RUNS, Version, duration, one_thread
from lanewise.layouts import SoA
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.devices import cpu_threads
from tests.ladders.problems import runner


def version(name: str, plan: Plan | None = NEUTRAL, **more: object) -> Version:
    return Version(name=name, plan=plan, layout=SoA(), device="cpu", **more)  # type: ignore[arg-type]


def test_a_rung_is_checked_and_timed():
    climb = runner()
    first = climb.measure(version("first"), None)
    assert first.skipped is None
    assert first.seconds is not None
    assert first.relative_error is not None
    assert 0 < first.relative_error < climb.problem.tolerance
    assert (first.speedup, first.over, first.extra["runs"]) == (None, None, RUNS)
    assert first.extra["pairs_per_second"] == pytest.approx(300**2 / first.seconds)
    assert first.extra["gflops"] == pytest.approx(20 * 300**2 / first.seconds * 1e-9)
    second = climb.measure(version("second", Plan(fast_math=True).filled(NEUTRAL), paper={"GPU": 1.5}), first)
    assert second.seconds is not None
    assert (second.over, second.paper, second.plan) == ("first", {"GPU": 1.5}, "fast_math=True")
    assert second.speedup == pytest.approx(first.seconds / second.seconds)


@pytest.mark.parametrize("law", ["wrong power", "slightly wrong"])
def test_a_wrong_kernel_gets_no_time(law):
    rung = runner(law=law).measure(version("wrong"), None)
    assert rung.seconds is None
    assert rung.extra["skip"] == "wrong"
    assert rung.relative_error is not None
    assert rung.skipped == (
        f"wrong: the relative error against float64 is {rung.relative_error:.1e}, and {runner().problem.tolerance:.1e} is allowed"
    )


def test_a_kernel_that_writes_nothing_gets_no_time(monkeypatch):
    class Nothing:
        def run(self, steps: int) -> None: ...

    monkeypatch.setattr(run, "loop_of", lambda call: Nothing())
    rung = runner().measure(version("nothing"), None)
    assert (rung.seconds, rung.skipped) == (
        None, f"wrong: the relative error against float64 is inf, and {runner().problem.tolerance:.1e} is allowed",
    )  # fmt: skip


def test_the_reason_of_the_pass():
    rung = runner().measure(version("parts", Plan(parts=2).filled(NEUTRAL)), None)
    assert rung.extra["skip"] == "illegal"
    assert rung.skipped == "Plan(parts=2): only a GPU divides the sources of one target; on a CPU parts is 1"


def test_the_same_code_is_not_measured_as_news():
    climb = runner()
    first = climb.measure(version("first"), None)
    again = climb.measure(version("block", Plan(block=512).filled(NEUTRAL)), first)
    assert (again.seconds, again.extra["skip"]) == (None, "same code")
    assert again.skipped == "its code is that of 'first': nothing changes on this device"
    assert climb.measure(version("requested"), first, again=True).seconds is not None


def test_one_thread_is_not_the_same():
    climb = runner()
    assert climb.measure(version("one", serial=True), None).seconds is not None
    assert climb.measure(version("all"), None).seconds is not None


def test_what_would_take_too_long(monkeypatch):
    monkeypatch.setattr(run, "PILOT", {"serial": 64, "cpu": 64, "cuda": 64})
    monkeypatch.setattr(run, "QUICK_LIMIT", 1e-9)
    rung = runner().measure(version("long"), None)
    assert rung.seconds is None
    assert rung.extra["skip"] == "too long"
    assert rung.skipped is not None
    wanted = r"a run would take about \d+ \w+, and a rung gets 1 second \(64 bodies take \d+\.\d+"  # as slow as this machine is now
    assert re.match(wanted, rung.skipped)


def test_a_long_version_runs_once(monkeypatch):
    climb = runner()
    assert climb.measure(version("short"), None).extra["runs"] == 3
    monkeypatch.setattr(run, "ENOUGH", 0.0)
    long = climb.measure(version("long"), None, again=True)
    assert long.seconds is not None
    assert long.seconds > 0
    assert long.extra["runs"] == 1


def test_durations():
    texts = [duration(s) for s in (0.2, 1.2, 89, 95, 5_000, 6_000, 100_000, 200_000)]
    assert texts == [
        "1 second", "1 second", "89 seconds", "2 minutes", "83 minutes", "2 hours", "28 hours", "2 days",
    ]  # fmt: skip


def test_one_thread_and_back(monkeypatch):
    monkeypatch.delenv("LANEWISE_THREADS", raising=False)
    with one_thread():
        assert cpu_threads() == 1
    assert "LANEWISE_THREADS" not in os.environ
    monkeypatch.setenv("LANEWISE_THREADS", "3")
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert cpu_threads() == 3
