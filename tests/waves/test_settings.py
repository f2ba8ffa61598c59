"""Settings at their ends: refused when they are made, with what is wanted, or computed with all digits; losses are said."""

from __future__ import annotations

# ruff: noqa: PT017  (what is refused and what is computed are both right)
import math
import warnings
from dataclasses import fields
from decimal import Decimal, getcontext
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.sims import waves
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.hough import Significance
from lanewise.sims.waves.lost import ALLOWED, mismatch
from lanewise.sims.waves.ranges import LOUDEST, QUIETEST
from lanewise.support.errors import InputError, LanewiseError
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
        (waves.Search, SEARCH, {"residuals": (3, 3)}, "Search(residuals=(3, 3)): wanted an integer"),
        (waves.Search, SEARCH, {"residuals": 2.5}, "Search(residuals=2.5): wanted an integer"),
        (waves.Search, SEARCH, {"patch": math.nan}, "Search(patch=nan): wanted 2 numbers"),
        (waves.Search, SEARCH, {"patch": (0.1, 4.0)}, "patch is (0.1, 4.0); wanted two sizes above 0, at most pi radians"),
        (waves.Search, SEARCH, {"threshold": 800.0}, "threshold is 800; wanted 0.0001 to 700 of F = 2F / 2"),
        (waves.Search, SEARCH, {"threshold": 1e-9}, "threshold is 1e-09; wanted 0.0001 to 700 of F = 2F / 2"),
        (waves.Search, SEARCH, {"window": 2}, "window is 2; wanted 3 to 1048576 bins"),
        (waves.Band, BAND, {"count": 1.5}, "Band(count=1.5): wanted an integer"),
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


@pytest.mark.parametrize(
    ("kind", "good", "changed", "text"),
    [
        (waves.Search, SEARCH, {"freq_band": 0.0, "resolution": 5e-324}, "resolution is 4.94065645841e-324 Hz, which makes the search end at bin inf"),
        (waves.Search, SEARCH, {"stack": 1e-300}, "stack is 1e-300; wanted 1e-09 to 4000000000 seconds"),
        (waves.Search, SEARCH, {"resolution": 1e-9, "f1dot_band": 1e-3, "f1dot_step": 1e-9}, "the search has 1e+08 frequencies, 1e+06 spin-downs and 1 about each"),
        (waves.Orbit, ORBIT, {"size": 0.0, "period": 1e-300}, "period is 1e-300; wanted 1e-06 to 4000000000 seconds"),
    ],
)  # fmt: skip
def test_what_together_has_no_end_is_refused_when_it_is_made(kind, good, changed, text):
    with pytest.raises(InputError) as caught:
        kind(**{**good, **changed})
    assert str(caught.value).startswith(text)


def test_a_signal_that_runs_away():
    signal = waves.Signal(**{**SIGNAL, "f2dot": 1.0})
    with pytest.raises(InputError, match=r"the signal has .* Hz at GPS .*; wanted at most 1000000 Hz in all SFTs"):
        waves.make_data({"H1": [START]}, (59.9, 60.1), signals=[signal], ephemeris=ephemeris())


EXTREMES = st.sampled_from(
    [0, 0.0, -0.0, 1, -1, 5e-324, 1e-300, 1e-15, 1e-9, 1e-3, 2.5, 60.0, 1e6, 1e15, 1e300, 1.7e308, math.nan, math.inf,
     -math.inf, 2**31, 2**53, 2**63, -(2**63), 10**400, np.float32(1e-30), np.int64(2**62), True, None, "1", b"1", 1j,
     (), (1.0, 2.0), (1e-300, math.pi), (math.pi, math.pi), [], np.zeros(0), np.zeros((2, 2)), object(), 3, 1400.0]
)  # fmt: skip


@cache
def few():
    """Two SFTs, and what is made of them."""
    sfts = made_of_two()
    return sfts, waves.prepare(sfts, (59.9, 60.1))


def made_of_two():
    return waves.make_data({"H1": [START, START + 1800]}, (59.0, 61.0), sqrt_s={"H1": 1e-23}, seed=1)


def used(kind, setting):
    """The setting in what it is for, as far as that takes less than a second."""
    sfts, data = few()
    match kind:
        case waves.Band:
            choice = waves.choose_method(data, setting)
            if setting.count < 1000 and choice is not None:
                return [waves.f_statistic_band(data, setting, ephemeris()).two_f]
        case waves.Search:
            grids = waves.set_up(sfts, setting)
            if grids.frequencies * len(grids.f1dot) * len(grids.residuals) < 1000 and max(grids.patch) < 0.1:
                found = waves.hierarchical_search(sfts, setting, ephemeris(), [(2.0, 0.3)], most=3)
                return [found[name] for name in found.dtype.names]
        case waves.Signal:
            made = waves.make_data({"H1": [START]}, (59.9, 60.1), signals=[setting], ephemeris=ephemeris())
            return [d.data.view(np.float32) for d in made]
        case waves.Templates:
            return [waves.f_statistic(data, setting, ephemeris()).two_f]
        case _:
            orbited = waves.Templates(**{**TEMPLATES, "reference": START * 10**9}, orbit=setting)
            return [waves.f_statistic(data, orbited, ephemeris()).two_f]
    return []


def check_extremes(kind, good, data):
    names = [f.name for f in fields(kind) if f.name != "orbit"]
    changed = data.draw(st.dictionaries(st.sampled_from(names), EXTREMES, min_size=1, max_size=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no arithmetic beyond its range without a word
        warnings.simplefilter("ignore", waves.SignalLossWarning)
        try:
            setting = kind(**{**good, **changed})
        except InputError as error:
            assert "wanted" in str(error)
            return
        try:
            results = used(kind, setting)
        except InputError as error:
            assert str(error)
            return
        assert all(np.isfinite(x).all() for x in results), changed


@pytest.mark.parametrize(("kind", "good"), MADE, ids=lambda x: getattr(x, "__name__", ""))
@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(data=st.data())
def test_extremes_are_refused_or_computed(kind, good, data):
    """Any value of any type in any field: refused with an own error when made or used, or finite."""
    check_extremes(kind, good, data)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "good"), MADE, ids=lambda x: getattr(x, "__name__", ""))
@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_many_extremes_are_refused_or_computed(kind, good, data):
    check_extremes(kind, good, data)


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


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"resolution": 1e-8, "patch": (0.02, 0.02)}, r"a patch of .* x .* pixels"),
        ({"resolution": 1e-9, "freq_band": 0.1, "patch": (1e-9, 1e-9)}, "a search of 1e\\+08 frequencies|a map of 100,000,001 frequencies|the search needs"),
        ({"resolution": 1e-10, "freq_band": 0.5}, "a search of 5e\\+09 frequencies"),
        ({"f1dot_band": 1e-7, "f1dot_step": 1e-18}, "a search of .* frequencies and 1e\\+11 spin-downs"),
        ({"residuals": 1 << 20, "patch": (math.pi, math.pi)}, "a map of 1 frequencies, 1,048,577 spin-downs|the search needs"),
        ({"residuals": 3, "f1dot_step": 1.0, "resolution": 1e-6, "patch": (1e-9, 1e-9)}, "F of 2 stacks at .* frequencies|the search needs"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(device, changed, what, monkeypatch):
    """In words, whatever there is too much of, before memory is taken."""
    for module in ("lanewise.runtime.memory", "lanewise.sims.waves.device.memory"):
        monkeypatch.setattr(f"{module}.available_memory", lambda device: 1 << 28)
    search = waves.Search(
        **{
            **SEARCH,
            "reference": START * SECOND,
            "freq_band": 0.0,
            "patch": (0.01, 0.01),
            "residuals": 1,
            "stack": 3600.0,
            **changed,
        }
    )
    starts = START + 1800 * np.arange(4)
    sfts = waves.make_data({"H1": starts}, (59.7, 60.9), sqrt_s={"H1": 1e-23})
    with pytest.raises(LanewiseError, match=what):
        waves.hierarchical_search(sfts, search, ephemeris(), [(2.0, 0.3)], 3, device=device)
