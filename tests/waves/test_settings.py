"""Settings at their ends: refused when they are made, with what is wanted, or computed with all digits; losses are said."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal, getcontext

import numpy as np
import pytest

from lanewise.sims import waves
from lanewise.sims.waves.hough import Significance
from lanewise.sims.waves.lost import ALLOWED, mismatch
from lanewise.sims.waves.ranges import LOUDEST, QUIETEST
from lanewise.support.errors import InputError
from tests.waves.test_invariance import START, ephemeris, made

SEARCH = {"freq": 60.0, "freq_band": 0.1, "f1dot": 0.0, "f1dot_band": 0.0, "reference": 0, "stack": 3600.0}
BAND = {"freq": 60.0, "step": 1e-5, "count": 3, "alpha": 0.0, "delta": 0.0, "reference": 0}
SIGNAL = {"h0": 1e-24, "cosi": 0.0, "freq": 60.0, "alpha": 0.0, "delta": 0.0, "reference": 0}
TEMPLATES = {"freq": 60.0, "alpha": 0.0, "delta": 0.0, "reference": 0}
ORBIT = {"size": 1.0, "period": 50000.0, "periapsis": 0}
MADE = [
    (waves.Search, SEARCH),
    (waves.Band, BAND),
    (waves.Signal, SIGNAL),
    (waves.Templates, TEMPLATES),
    (waves.Orbit, ORBIT),
]
WRONG = [
    math.nan,
    math.inf,
    -math.inf,
    "x",
    True,
    1j,
    None,
    object,
    [],
    {},
    (1, "a"),
    lambda: 1,
    np.full((2, 2), np.nan),
    10**30,
]


@pytest.mark.parametrize(("kind", "good"), MADE, ids=lambda x: getattr(x, "__name__", ""))
def test_every_field_refuses_what_it_cannot_be(kind, good):
    kind(**good)
    for name in good:
        for value in WRONG:
            with pytest.raises(InputError, match="wanted"):
                kind(**{**good, name: value})


@pytest.mark.parametrize(
    ("kind", "good", "changed", "text"),
    [
        (waves.Search, SEARCH, {"residuals": (3, 3)}, "Search(residuals=(3, 3)): wanted a whole number"),
        (waves.Search, SEARCH, {"residuals": 2.5}, "Search(residuals=2.5): wanted a whole number"),
        (waves.Search, SEARCH, {"patch": math.nan}, "Search(patch=nan): wanted 2 numbers"),
        (waves.Search, SEARCH, {"patch": (0.1, 4.0)}, "patch is (0.1, 4.0); wanted two sizes above 0, at most pi radians"),
        (waves.Search, SEARCH, {"threshold": 800.0}, "threshold is 800; wanted 0.0001 to 700 of F = 2F / 2"),
        (waves.Search, SEARCH, {"threshold": 1e-9}, "threshold is 1e-09; wanted 0.0001 to 700 of F = 2F / 2"),
        (waves.Search, SEARCH, {"window": 2}, "window is 2; wanted 3 to 1048576 bins"),
        (waves.Band, BAND, {"count": 1.5}, "Band(count=1.5): wanted a whole number"),
        (waves.Band, BAND, {"freq": 1e6, "step": 1.0}, "the last frequency of the band is 1000002; wanted above 0, at most 1000000 Hz"),
        (waves.Signal, SIGNAL, {"delta": 9}, "delta is 9; wanted -1.57079632679 to 1.57079632679 radians"),
        (waves.Templates, TEMPLATES, {"alpha": [0.0, 1e30]}, "alpha of template 1 is 1e+30; wanted -12.5663706144 to 12.5663706144 radians"),
        (waves.Templates, TEMPLATES, {"freq": []}, "there are no templates; wanted at least one"),
        (waves.Templates, TEMPLATES, {"freq": "60"}, "freq of the templates is '60'; wanted numbers"),
    ],
)  # fmt: skip
def test_the_words(kind, good, changed, text):
    with pytest.raises(InputError) as caught:
        kind(**{**good, **changed})
    assert str(caught.value) == text


def test_gps_times():
    for wrong in (math.nan, math.inf, np.zeros(3), "1", True, None, 1e300, 10**400, -(10**10)):
        with pytest.raises(InputError, match="wanted"):
            waves.gps_time(wrong)
    for wrong in ("x", [None], [1.5], np.zeros(2)):
        with pytest.raises(InputError, match=r"wanted|numbers"):
            waves.leap_seconds(wrong)
    assert waves.gps_time(np.int64(START)) == START * 10**9


def test_transforms_without_end():
    data = waves.prepare(made(), (1399.82, 1400.18))
    with pytest.raises(
        InputError, match=r"frequencies 1e-12 Hz apart ask for a Fourier transform of .* samples; wanted at most"
    ):
        waves.f_statistic_band(data, waves.Band(**{**BAND, "freq": 1400.0, "step": 1e-12}), ephemeris())


@pytest.mark.parametrize("count", [1, 2, 100])
@pytest.mark.parametrize("step", [5e-324, 1e-300, 1e-30, 1e-13])
def test_a_step_that_no_frequency_takes(step, count):
    with pytest.raises(
        InputError, match=r"step is .* Hz; wanted at least 2.3e-13 Hz: float64 has no frequencies closer"
    ):
        waves.Band(**{**BAND, "freq": 1400.0, "step": step, "count": count})


@pytest.mark.parametrize("threshold", [QUIETEST, 1e-3, 0.1, 0.999, 1.001, 2.6, 30.0, 300.0, LOUDEST])
def test_the_significance_at_all_thresholds(threshold):
    getcontext().prec = 60
    f = Decimal(threshold)
    alpha = (-f).exp() * (1 + f)
    weights = np.array([0.5, 1.0, 1.5])
    found = Significance.of(weights, threshold)
    assert found.mean == pytest.approx(float(3 * alpha), rel=1e-13)
    exact = (Decimal(float(np.sum(weights**2))) * alpha * (1 - alpha)).sqrt()
    assert found.deviation == pytest.approx(float(exact), rel=1e-12)
    assert np.isfinite(found(np.array([0.0, 1.0, 3.0]))).all()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("threshold", [QUIETEST, LOUDEST])
def test_a_search_at_the_ends_of_the_threshold(device, threshold):
    search = waves.Search(
        freq=1400.0, freq_band=2e-4, f1dot=0.0, f1dot_band=0.0, reference=START * 10**9, stack=9000.0, patch=(1e-4, 1e-4),
        threshold=threshold,
    )  # fmt: skip
    sfts = made()
    found = waves.hierarchical_search(sfts, search, ephemeris(), [(2.0, 0.3)], most=5, device=device)
    assert all(np.isfinite(found[n]).all() for n in found.dtype.names)
    (stacks,) = {len(waves.split(sfts, 9000.0))}
    assert set(found["count"]) == ({stacks} if threshold == QUIETEST else {0})


def test_how_long_sfts_may_be():
    """Limits of LALPulsar's ComputeFstat for a mismatch of 0.05: 2455 s at 1400 Hz."""
    assert mismatch(1400.0, 2455.0) == pytest.approx(ALLOWED, rel=2e-3)
    assert mismatch(1400.0, 3600.0) == pytest.approx(0.05 * (3600 / 2455) ** 4, rel=4e-3)
    # The variance of a quadratic phase about the line that fits it best.
    t = (np.arange(20001) - 10000) / 20000 * 3600.0
    phase = np.pi * 1400.0 * 1.1313e-10 * t**2
    assert np.var(phase) == pytest.approx(mismatch(1400.0, 3600.0), rel=1e-3)
    orbit = waves.Orbit(0.5, 20000.0, 0)
    assert mismatch(731.0, 1800.0, orbit) > mismatch(731.0, 1800.0)
    assert mismatch(60.0, 1800.0, None, 1e-6) > mismatch(60.0, 1800.0)


def call(which, freq, orbit=None):
    data = waves.prepare(made(freq=freq, wide=0.7), (freq - 0.18, freq + 0.18))
    if which == "f_statistic":
        waves.f_statistic(data, waves.Templates(freq, 1.0, 0.3, reference=START * 10**9, orbit=orbit), ephemeris())
    elif which == "f_statistic_band":
        waves.f_statistic_band(data, waves.Band(freq, 1e-5, 2, 1.0, 0.3, START * 10**9, orbit=orbit), ephemeris())
    else:
        waves.set_up(
            made(freq=freq, wide=0.7),
            waves.Search(**{**SEARCH, "freq": freq, "freq_band": 1e-4, "reference": START * 10**9}),
        )


@pytest.mark.parametrize("which", ["f_statistic", "f_statistic_band", "set_up"])
def test_what_is_lost_is_said(which):
    with pytest.warns(
        waves.SignalLossWarning, match=r"SFTs of 1800 s are too long for the rotation of the Earth at 4000 Hz"
    ) as warned:
        call(which, 4000.0)
    assert warned[0].filename == __file__
    assert "up to 12% of 2F is lost" in str(warned[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(which, 1400.0)
    if which != "set_up":
        with pytest.warns(waves.SignalLossWarning, match="for this orbit and the rotation of the Earth at 60 Hz"):
            call(which, 60.0, waves.Orbit(5.0, 20000.0, 0))


def test_a_stack_is_no_longer_than_the_data():
    sfts = made()
    whole = (sfts.end - sfts.start) / 10**9
    search = {**SEARCH, "freq": 1400.0, "freq_band": 1e-4, "reference": START * 10**9}
    waves.set_up(sfts, waves.Search(**{**search, "stack": whole}))
    with pytest.raises(
        InputError, match=rf"^a stack lasts {whole + 1:g} s, and the data {whole:g} s; wanted at most that \(--stack\)$"
    ):
        waves.set_up(sfts, waves.Search(**{**search, "stack": whole + 1}))
