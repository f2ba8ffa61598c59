"""Kernels that cannot be tuned are refused with the reason: without end, too slow, or with nothing that plans could be told by;
and those of which there is no room for a copy."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.host_device import HostDevice
from lanewise.tuning.first_run import check_finite, run_in_time


@lw.threadwise
def roots(x: lw.index, a: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
    r[x] = lw.sqrt(a[x])


def test_results_of_which_none_is_finite() -> None:
    a, r = np.full(1000, -1.0, np.float32), np.empty(1000, np.float32)
    with pytest.raises(lw.LanewiseError, match=r"roots cannot be tuned: none of the 1,000 numbers .* is finite"):
        roots.tune(a, r, grid=(1000,), seconds=1)
    a[3] = 4.0
    assert roots.tune(a, r, grid=(1000,), seconds=0.5).factor >= 1


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
    with pytest.raises(lw.LanewiseError, match=r"k cannot be tuned: its first run has not ended after 0\.2 s"):
        run_in_time("k", lambda: time.sleep(0.6), 0.2)


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


@lw.pairwise
def pull(a: Grain, b: Grain) -> lw.vec3:
    return (b.place - a.place) * b.size


@lw.elementwise
def grow(g: Grain, by: lw.f32):
    g.size += by


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
    assert roots.tune(a, r, grid=(1000,), seconds=0.3).factor >= 1
