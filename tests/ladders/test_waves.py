"""The ladder of the F-statistic: every version is right and compared; what is wrong or too long says so."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import lanewise as lw
from lanewise.ladders import find_ladder, waves
from lanewise.ladders.rung import Options, Rung, as_json
from lanewise.ladders.waves import LADDER, SIZES, climb, idle_threads, measure, summary
from lanewise.ladders.waves_data import DTERMS, THESIS, Data, Size, size_of
from lanewise.ladders.waves_maps import MAP_VERSIONS, MOST, MapData, measure_maps
from lanewise.ladders.waves_thesis import (
    BAND,
    BUFFERED,
    CALLS,
    CPU,
    DOUBLE,
    GPU,
    HOUGH,
    HOUGH_BESIDE,
    HOUGH_HOST,
    PACKED,
    STACKED,
)
from lanewise.ladders.waves_versions import KINDS, VERSIONS, SecondsByKind
from lanewise.sims.waves.hierarchical import search_maps
from lanewise.sims.waves.kernels import Sft, Template, demodulate

CELLS = 20
SMALL = Size(2, 6, 2, 5, 3)


@pytest.fixture(scope="module")
def rungs() -> list[Rung]:
    return list(climb(Options("cpu", (CELLS,), quick=True)))


def test_every_version_is_right_and_compared(rungs: list[Rung]) -> None:
    maps = [HOUGH_HOST, HOUGH_BESIDE, HOUGH, BUFFERED]
    assert [r.name for r in rungs] == [CPU, CALLS, PACKED, BAND, STACKED, DOUBLE, *maps]
    assert [r.over for r in rungs] == [None, CPU, CALLS, PACKED, BAND, STACKED, None, HOUGH_HOST, HOUGH_HOST, HOUGH]
    assert [r.extra["calls"] for r in rungs[:6]] == [1, 20, 20, 1, 1, 1]
    assert [r.paper for r in rungs] == [None, {GPU: 0.0143}, {GPU: 70.0}, {GPU: 3.0}, *[None] * 6]
    cpu, double = rungs[0].seconds, rungs[5].relative_error
    assert cpu is not None
    assert [r.extra["over_cpu"] for r in rungs[1:6]] == [cpu / (r.seconds or 1) for r in rungs[1:6]]
    assert double is not None
    assert double < 1e-13 < (rungs[4].relative_error or 0)  # what float32 costs
    for r in rungs[6:]:
        assert r.skipped is None
        assert r.relative_error is not None
        assert 0 < r.relative_error < 1e-5
    for r in rungs[:6]:
        assert r.skipped is None
        assert r.seconds is not None
        assert r.relative_error is not None
        assert 0 < r.relative_error < 1e-5
        parts = [r.extra[f"{k}_seconds"] for k in (*KINDS, "rest")]
        assert sum(p for p in parts if isinstance(p, float)) == pytest.approx(r.seconds)


def test_the_thesis_is_beside_it(rungs: list[Rung]) -> None:
    lines = summary(rungs)
    assert lines[2].startswith(f"{CALLS}: 23,300 s, > 70 x the CPU; 95 % memory management")
    whole = [replace(r, bodies=THESIS.cells, seconds=2.0) for r in rungs]
    assert summary(whole)[-2].startswith(f"405 such spin-downs, all of the thesis's data, are 810 s by {CPU!r}")
    assert summary(whole[6:])[-1].startswith(
        f"405 such spin-downs, all of the thesis's data, are 810 s by {HOUGH_HOST!r}"
    )
    assert "with Hough maps; its version 1 took 23,300 s" in summary(whole)[-1]
    assert json.loads(json.dumps(as_json({}, LADDER, rungs)))["rungs"][1]["thesis_where"] == "section 4.3.1, figure 4.5"
    assert find_ladder("waves") is LADDER


def test_sizes() -> None:
    assert SIZES("cuda", False) == (THESIS.cells,) == (84 * 2 * 161,)
    assert [size_of(n).stacks for n in (*SIZES("cpu", False), *SIZES("cpu", True))] == [4, 1]
    assert size_of(THESIS.cells) == THESIS
    assert size_of(CELLS).cells == CELLS


@pytest.mark.parametrize("version", VERSIONS, ids=lambda v: v.name)
def test_all_spin_downs_of_a_version(version: waves.Version) -> None:
    """Not only the one that is checked: all versions give what one call of `demodulate` does."""
    data = Data(SMALL, 3)
    sfts = Sft.array(delay=data.delay, bins_per_hertz=data.rate, a=data.a, b=data.b, first_bin=data.first_bin)
    lists = lw.ragged(sfts, counts=np.full((2, 2), 6))
    bins = lw.ragged(data.bins.reshape(-1), counts=np.full(len(data.bins), data.bins.shape[1]))
    clock = SecondsByKind("cpu")
    prepared = version.prepare(data, clock)
    for spin, f1dot in enumerate(data.f1dots):
        n = len(data.frequencies)
        templates = Template.array(frequency=data.frequencies, f1dot=np.full(n, f1dot), f2dot=np.zeros(n))
        expected = demodulate(templates, lists, bins, dterms=DTERMS, method="dirichlet")
        np.testing.assert_allclose(version.run(data, prepared, spin, clock), expected, rtol=0, atol=1e-5)
    assert data.error(version.run(data, prepared, 0, clock)) < 1e-5 < data.error(version.run(data, prepared, 2, clock))


def test_what_is_wrong_or_too_long_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    options, data = Options("cpu", (CELLS,), quick=True), Data(SMALL, 0)
    band = VERSIONS[3]
    wrong = replace(band, run=lambda *given: 1.001 * band.run(*given))
    rung = measure(wrong, data, CELLS, options)
    assert (rung.seconds, rung.extra["skip"]) == (None, "wrong")
    assert str(rung.skipped).startswith("wrong: the relative error against float64 is 1.0e-03, and 1e-04 is allowed")
    monkeypatch.setattr(waves, "QUICK_LIMIT", 1e-9)
    rung = measure(band, data, CELLS, options)
    assert (rung.seconds, rung.extra["skip"]) == (None, "too long")
    assert "a spin-down would take about" in str(rung.skipped)


def test_maps_of_all_versions_are_the_same() -> None:
    """Whole lists of several stacks: cells, counts and, to float32 sums, mean 2F."""
    data = MapData(Size(3, 6, 2, 12, 2), 1)
    points = data.points(2)
    expected = list(search_maps(data.grids, data.ephemeris, points, MOST, device="numpy"))
    assert len(expected) == len(points) == 4
    for version in MAP_VERSIONS:
        for ours, theirs in zip(version.run(data, points, "cpu"), expected, strict=True):
            for name in ("freq", "alpha", "delta", "f1dot", "count"):
                np.testing.assert_array_equal(ours[name], theirs[name])
            np.testing.assert_allclose(ours["twoF"], theirs["twoF"], rtol=1e-5)


def test_wrong_maps_have_no_time() -> None:
    options, data = Options("cpu", (CELLS,), quick=True), MapData(Size(2, 6, 2, 5, 1), 0)
    expected = next(search_maps(data.grids, data.ephemeris, data.points(1), MOST, device="numpy"))
    off = expected.copy()
    off["twoF"] *= 1.01
    rung = measure_maps(replace(MAP_VERSIONS[0], run=lambda *given: iter([off])), data, CELLS, options, expected)
    assert (rung.seconds, rung.extra["skip"]) == (None, "wrong")
    assert "the relative error of mean 2F is 1.0e-02, and 100% of the candidates are those of float64" in str(
        rung.skipped
    )
    off["freq"] += 1.0
    rung = measure_maps(replace(MAP_VERSIONS[0], run=lambda *given: iter([off])), data, CELLS, options, expected)
    assert "and 0% of the candidates are those of float64; wanted at most 1e-04, and 90%" in str(rung.skipped)


def test_idle_threads_are_those_without_a_cell() -> None:
    """The thesis: 161 frequencies, a thread each; a block of 32 leaves 31 idle, two lists of detectors beside each
    other none.
    """
    thread = (32, 1, 1)
    assert idle_threads({}, thread, 161) == {}  # of a CPU
    assert idle_threads({"blocks": 6.0}, thread, 161) == {"threads": 192, "idle_threads": 31}
    assert idle_threads({"blocks": 3.0}, (32, 2, 1), 161) == {"threads": 96, "idle_threads": 15}
    assert idle_threads({"blocks": 6.0}, thread, 192) == {"threads": 192, "idle_threads": 0}
