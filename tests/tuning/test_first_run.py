"""Kernels that cannot be tuned are refused with the reason: without end, too slow, or with nothing that plans could be
told by; and those of which there is no room for a copy.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.host_device import HostDevice
from lanewise.tuning.first_run import SLOWEST, check_copying, check_finite, copying_rate, run_in_time
from lanewise.tuning.measure import KernelMeasurer


@lw.threadwise
def roots(x: lw.index, a: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
    r[x] = lw.sqrt(a[x])


def test_results_of_which_none_is_finite() -> None:
    a, r = np.full(1000, -1.0, np.float32), np.empty(1000, np.float32)
    with pytest.raises(lw.LanewiseError, match=r"roots cannot be tuned: none of the 1,000 numbers .* is finite"):
        roots.tune(a, r, grid=(1000,), seconds=1)
    a[3] = 4.0
    assert roots.tune(a, r, grid=(1000,), seconds=3).factor >= 1


def test_whole_numbers_and_nothing_at_all_are_finite() -> None:
    check_finite("k", [np.zeros(3, np.int32), np.zeros(0, np.float32)])
    check_finite("k", [])
    check_finite("k", [np.array([np.nan, np.inf, 1.0])])


def test_errors_of_a_run_are_those_of_the_caller() -> None:
    def run() -> None:
        raise lw.PlanError("no")

    with pytest.raises(lw.PlanError, match="no"):
        run_in_time("k", run, 1.0)


def test_a_run_that_takes_too_long() -> None:
    ends = threading.Event()
    with pytest.raises(lw.LanewiseError, match=r"k cannot be tuned: its first run has not ended after 0\.2 s"):
        run_in_time("k", ends.wait, 0.2)
    ends.set()


def test_what_takes_long_to_compile_is_no_run_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a first run is that of the kernel: a machine that does much else compiles for seconds."""
    compiled, compiling = KernelMeasurer._bind, [0.3]

    def slowly(self: KernelMeasurer, executable: Any, work: Any) -> Any:
        time.sleep(compiling.pop() if compiling else 0.0)
        return compiled(self, executable, work)

    monkeypatch.setattr(KernelMeasurer, "_bind", slowly)
    a, r = np.ones(1000, np.float32), np.empty(1000, np.float32)
    assert roots.tune(a, r, grid=(1000,), seconds=0.25).factor >= 1


WITHOUT_END = """
    import numpy as np
    import lanewise as lw

    @lw.threadwise
    def waits(x: lw.index, a: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
        s = a[x]
        while s > 0.0:
            s = s * 1.5 + 1.0 - s * 0.5 - 1.0 + 0.001
        r[x] = s

    a = np.ones(64, np.float32)
    try:
        waits.tune(a, a.copy(), grid=(64,), seconds=0.5)
    except lw.LanewiseError as error:
        print(error)
"""


def test_a_loop_without_end_is_said_and_ends_with_the_program(tmp_path) -> None:
    file = tmp_path / "waits.py"
    file.write_text(textwrap.dedent(WITHOUT_END), encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=True)
    assert "waits cannot be tuned: its first run has not ended after 0.5 s" in done.stdout
    assert "A loop of it may never end" in done.stdout


class Grain(lw.Record):
    place: lw.vec3
    size: lw.f32


KERNELS = """
    import os, time
    import numpy as np
    import lanewise as lw

    @lw.record
    class Grain:
        place: lw.vec3
        size: lw.f32

    @lw.elementwise
    def element(g: Grain) -> lw.f32:
        s = g.size
        {body}
        return s

    @lw.pairwise
    def pair(a: Grain, b: Grain) -> lw.f32:
        s = b.size
        {body}
        return s

    @lw.threadwise
    def thread(x: lw.index, a: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
        s = a[x]
        {body}
        r[x] = s

    @lw.stencil(lw.D2Q5)
    def stencil(u: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
        s = u[0] * rate
        {body}
        return s

    @lw.sitewise(lw.D2Q9)
    def flow(f: lw.populations, rate: lw.f32):
        for q in lw.D2Q9:
            s = f[q] * rate
            {inner}
            f[q] = s

    flow.wall(1, "wall")

    def measured(seconds):
        from lanewise.explanation import measure
        measure.time_limit = lambda kind, asked: seconds
        return element.compile(grains).explain(measure=True)

    rng = np.random.default_rng(0)
    a = np.ones(64, np.float32)
    grains = Grain.array(place=rng.random((300, 3), np.float32), size=1.0)
    fields = stencil.sites((16, 16), u=np.ones((16, 16), np.float32))
    sites = flow.sites((16, 16), mask=(np.arange(256) % 7 == 0).reshape(16, 16).astype(np.uint8))
    flow.set_populations(sites, np.full((9, 16, 16), 0.125, np.float32))
    near = pair.using(search=lw.Neighbors(radius=0.2, position="place"))
    nearest = pair.using(search=lw.Nearest(k=3, position="place"))
    calls = {{
        "element": lambda **k: element.tune(grains, **k),
        "pair": lambda **k: pair.tune(grains, grains, **k),
        "thread": lambda **k: thread.tune(a, a.copy(), grid=(64,), **k),
        "neighbors": lambda **k: near.tune(grains, grains, **k),
        "nearest": lambda **k: nearest.tune(grains, grains, **k),
        "stencil": lambda **k: stencil.tune(fields, rate=1.0, **k),
        "measured": lambda seconds: measured(seconds),
        "flow": lambda **k: flow.tune(sites, rate=1.0, **k),
    }}
    {before}
    begun = time.perf_counter()
    try:
        print(calls["{call}"](seconds={seconds}))
    except lw.LanewiseError as error:
        print(error)
    {after}
"""
CALLS = ("element", "pair", "thread", "neighbors", "nearest", "stencil", "flow")
ENDLESS = "while s < 1e30: s = s * 0.5"
NO_NUMBER = "s = lw.sqrt(-1.0 - s * s)"


def said(
    tmp_path: Path, call: str, body: str, *, seconds: float, before: str = "", after: str = "", within: float = 60
) -> str:
    text = KERNELS.format(call=call, body=body, inner=body, seconds=seconds, before=before, after=after)
    file = tmp_path / "kernels.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=within, check=True)
    return done.stdout


@pytest.mark.slow_cases("pair", "nearest", "stencil")
@pytest.mark.parametrize("call", CALLS)
def test_no_pattern_waits_for_a_loop_without_end(tmp_path: Path, call: str) -> None:
    found = said(tmp_path, call, ENDLESS, seconds=1.5)
    assert "cannot be tuned: its first run has not ended after 1.5 s" in found


@pytest.mark.parametrize("call", CALLS)
def test_no_pattern_compares_plans_by_results_that_are_no_numbers(tmp_path: Path, call: str) -> None:
    found = said(tmp_path, call, NO_NUMBER, seconds=20)
    assert re.search(r"cannot be tuned: none of the [\d,]+ numbers that it computes is finite", found)


def test_no_explanation_measures_without_end(tmp_path: Path) -> None:
    """It has the time that tuning has by default."""
    found = said(tmp_path, "measured", ENDLESS, seconds=1.5)
    assert "its first run has not ended after 1.5 s" in found


SLOW = "for k in range(20000): s = lw.sin(s) + 0.5"  # some seconds for all sites
LATER = """
    try:
        flow.populations(sites)
    except lw.StateError as error:
        print(error)
    for _ in range(1200):
        time.sleep(0.1)
        try:
            held = flow.populations(sites)
        except lw.StateError:
            continue
        print("as they were", sites.step, bool(np.all(held[:, sites.mask == 0] == 0.125)))
        break
"""


def test_sites_of_a_run_that_tuning_left_belong_to_it_until_it_ends(tmp_path: Path) -> None:
    """Then they hold what they held."""
    after = LATER.replace("sites.mask == 0", "(np.arange(256) % 7 != 0).reshape(16, 16)")
    found = said(tmp_path, "flow", SLOW, seconds=0.3, after=after.strip(), within=180)
    assert "first run has not ended after 0.3 s" in found
    assert "these sites are still used by a run that tuning stopped waiting for" in found
    assert "as they were 0 True" in found


@lw.pairwise
def pull(a: Grain, b: Grain) -> lw.vec3:
    return (b.place - a.place) * b.size


@lw.elementwise
def grow(g: Grain, by: lw.f32):
    g.size += by


@lw.stencil(lw.D2Q5)
def spread(u: lw.Field[lw.f32]) -> lw.f32:
    return u[0] * 0.5 + u[1] * 0.25 + u[2] * 0.25


def little(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(HostDevice, "free_memory", lambda _: free)
    monkeypatch.setattr(HostDevice, "asks_from", property(lambda _: 0))


REMEDY = "; measure it with fewer elements, or let go of other memory there"


def test_copies_that_do_not_fit_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of memory that a set takes: written out, copied for results of pairs, and records of elements."""
    a, r = np.ones((10, 100), np.float32), np.empty(1000, np.float32)
    grains = Grain.zeros(1000, layout=lw.SoA())
    cases = [
        (lambda: roots.tune(a.reshape(-1), r, grid=(1000,), seconds=1),
         "measuring roots needs 8,000 bytes on 'cpu', and 7,999 are available: 4,000 for a copy of a and 4,000 for a copy of r"),
        (lambda: pull.tune(grains, grains, seconds=1),
         "measuring pull needs 12,000 bytes on 'cpu', and 7,999 are available: 12,000 for results"),
        (lambda: grow.tune(grains, by=1.0, seconds=1),
         f"measuring grow needs {grains.nbytes:,} bytes on 'cpu', and 7,999 are available: {grains.nbytes:,} for a copy of g"),
    ]  # fmt: skip
    little(monkeypatch, 7_999)
    for tune, said in cases:
        with pytest.raises(lw.DeviceError, match="^" + re.escape(said + REMEDY) + "$"):
            tune()


def test_copies_that_fit_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    a, r = np.ones(1000, np.float32), np.empty(1000, np.float32)
    little(monkeypatch, 8_000)
    assert roots.tune(a, r, grid=(1000,), seconds=3).factor >= 1


def slowly(monkeypatch: pytest.MonkeyPatch, rate: float, slowest: float = 1.0) -> None:
    monkeypatch.setattr("lanewise.tuning.first_run.copying_rate", lambda: rate)
    monkeypatch.setattr("lanewise.tuning.first_run.SLOWEST", slowest)


def test_copies_that_take_longer_than_tuning_may_are_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of every pattern: what it would copy of its arrays and results, at the rate of the machine."""
    a, r = np.ones(1000, np.float32), np.empty(1000, np.float32)
    grains = Grain.zeros(1000, layout=lw.SoA())
    grains.size = 1.0
    fields = spread.sites((10, 10), u=np.ones((10, 10), np.float32))
    near = pull.using(search=lw.Neighbors(radius=0.2, position="place"))
    cases = [
        (lambda: roots.tune(a, r, grid=(1000,), seconds=3), "roots", 8_000, 3),
        (lambda: pull.tune(grains, grains, seconds=3), "pull", 12_000, 3),
        (lambda: near.tune(grains, grains, seconds=3), "pull", 12_000, 3),
        (lambda: grow.tune(grains, by=1.0, seconds=3), "grow", grains.nbytes, 3),
        (lambda: spread.tune(fields, seconds=3), "spread", sum(c.data.nbytes for c in fields.copies), 6),
    ]
    for tune, name, nbytes, times in cases:
        needed = 12.0
        slowly(monkeypatch, times * nbytes / needed)
        said = (
            f"{name} cannot be tuned in 3 s: before any plan is compared it copies {nbytes:,} bytes {times} times, "
            "about 12 s at the rate of this machine; tune with fewer elements, or with seconds=48 or more"
        )
        with pytest.raises(lw.LanewiseError, match="^" + re.escape(said) + "$"):
            tune()


def test_an_explanation_does_not_measure_what_it_has_no_time_to_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    grains = Grain.zeros(1000, layout=lw.SoA())
    compiled = grow.compile(grains, by=1.0)
    slowly(monkeypatch, 1.0)
    with pytest.raises(
        lw.LanewiseError,
        match=r"^explain\(measure=True\) measures as tune\(\) does, in 120 s: grow cannot be tuned in 120 s: before any "
        r"plan is compared it copies",
    ):
        compiled.explain(measure=True)


def test_the_rate_is_that_of_this_machine() -> None:
    assert SLOWEST < copying_rate() < 1e12
    check_copying("k", 10**6, 1.0)


LONG_LAUNCH = "for k in range(100000): s = lw.sin(s) + 0.5"
OUT_OF_TIME = r"no plan can be compared with the default plan in \S+ s: a launch takes|its first run has not ended after|\d+ plans? measured in"


@pytest.mark.slow_cases("pair", "element", "nearest", "stencil")
@pytest.mark.parametrize("call", CALLS)
def test_no_pattern_continues_long_after_its_time(tmp_path: Path, call: str) -> None:
    """A launch takes a large part of the time: tuning ends near it, or says that nothing can be compared.

    The clock is the work of this program alone: other ones on the machine change nothing.
    """
    after = 'print("took", time.perf_counter() - begun)'
    before = "time.perf_counter = time.process_time"
    found = said(tmp_path, call, LONG_LAUNCH, seconds=4.0, before=before, after=after, within=120)
    assert re.search(OUT_OF_TIME, found), found
    took = float(found.rpartition("took ")[2])
    assert took < 4.0 + 8.0, found  # a run that had begun and the compiler
