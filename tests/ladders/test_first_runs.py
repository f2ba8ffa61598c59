"""No ladder takes the first run of anything for its measurement: it may have compiled."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lanewise.ladders import boids_run, compiler_run, run, waves
from lanewise.ladders.rung import Options, Rung
from lanewise.ladders.waves_data import Data, Size
from lanewise.ladders.waves_versions import VERSIONS


class MadeUpClock:
    """It moves where it is looked at, and by what is slept: a busy machine changes nothing."""

    def __init__(self) -> None:
        self.now = 0.0

    def look(self) -> float:
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


CLOCK = MadeUpClock()
COMPILING = 1.2  # seconds: more than every ladder's ENOUGH
BLANK = Rung(name="a", bodies=1, device="cpu", skipped="not run")


class Compiles:
    """What takes long the first time."""

    def __init__(self) -> None:
        self.runs = self.step = 0

    def run(self, count: int = 1) -> None:
        self.runs += 1
        self.step += count
        CLOCK.sleep(COMPILING if self.runs == 1 else 0.001 * count)


@pytest.fixture(autouse=True)
def made_up_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", CLOCK.look)


def test_all_of_them_give_up_after_less() -> None:
    assert max(run.ENOUGH, compiler_run.ENOUGH, boids_run.ENOUGH, waves.ENOUGH) < COMPILING


@pytest.mark.parametrize(
    "version",
    [pytest.param(v, id=v.name, marks=[] if v is VERSIONS[2] else pytest.mark.slow) for v in VERSIONS],
)
def test_waves(version: Any) -> None:
    """Each size is compiled for itself, as lanes of another number are."""
    seen: set[int] = set()

    def compiling(data: Data, prepared: Any, spin: int, clock: Any) -> Any:
        if data.size.frequencies == 24 and not seen:  # not the pilot, which is smaller
            seen.add(data.size.frequencies)
            CLOCK.sleep(COMPILING)
        return version.run(data, prepared, spin, clock)

    rung = waves.measure(
        replace(version, run=compiling), Data(Size(1, 4, 1, 24, 2), 1), 24, Options("cpu", (24,), quick=True)
    )
    assert rung.seconds is not None
    assert rung.seconds < 1.0


def test_steppers() -> None:
    problem = SimpleNamespace(error=lambda result: 0.0, tolerance=1.0)
    itself: Any = SimpleNamespace(problem=problem, options=SimpleNamespace(quick=True))
    stepper: Any = Compiles()
    rung = next(c for c in vars(run).values() if hasattr(c, "_timed"))._timed(itself, stepper, BLANK, None)
    assert rung.seconds < 1.0


def test_benchmarks() -> None:
    kind = next(c for c in vars(compiler_run).values() if hasattr(c, "_timed"))
    case = SimpleNamespace(
        reset=lambda: None, error=lambda result: 0.0, n=1, benchmark=SimpleNamespace(tolerance=lambda n: 1.0)
    )
    itself: Any = SimpleNamespace(
        case=case, options=SimpleNamespace(quick=True), device="cpu", _rated=lambda rung, runs: rung
    )
    itself._seconds = lambda work, repeats: kind._seconds(itself, work, repeats)
    assert kind._timed(itself, BLANK, Compiles().run, lambda: None).seconds < 1.0


@pytest.mark.slow
def test_flocks() -> None:
    flock: Any = Compiles()
    first = boids_run.clock(lambda: flock.run(1))
    itself: Any = SimpleNamespace(options=SimpleNamespace(quick=True))
    kind = next(c for c in vars(boids_run).values() if hasattr(c, "_seconds"))
    assert kind._seconds(itself, flock, first)[0] < 1.0
