"""Synthetic data: signals against sums over dense samples and against LALPulsar, noise against its distribution."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.detectors import detector
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.prepared import prepare, search_margin
from lanewise.sims.waves.sft import load_sfts, write_sfts
from lanewise.sims.waves.synthesis import Signal, make_data
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris, Orbit, antenna_patterns, barycentre, earth_state, emission
from lanewise.support.errors import InputError
from tests.waves.truth import TRUTH, needs_tables, needs_truth, table

REFERENCE = 1238166018 * SECOND
STARTS = {"H1": 1238166018 + 1800 * np.arange(24), "L1": 1238166018 + 1800 * np.arange(24)}
SQRT_S = {"H1": 1e-23, "L1": 1.7e-23}


def model() -> Ephemeris:
    pytest.importorskip("erfa")
    return Ephemeris.load("EPV00")


def signal(**more) -> Signal:
    given = {
        "h0": 9e-25, "cosi": 0.3, "psi": 0.7, "phi0": 1.9, "freq": 100.0123, "alpha": 1.2, "delta": 0.4, "f1dot": -1.1e-9,
        "reference": REFERENCE,
    }  # fmt: skip
    return Signal(**(given | more))


@pytest.mark.parametrize(
    ("more", "band"),
    [({}, (99.95, 100.05)), ({"f2dot": 2e-13, "f3dot": -4e-18}, (99.95, 100.05)), ({"freq": 900.003, "f1dot": -1e-8, "f2dot": 1e-15, "cosi": -1.0}, (899.98, 900.09)),
     ({"orbit": Orbit(1.4, 68000.0, 1238100000 * SECOND, 0.2, 1.0)}, (100.005, 100.03)), ({}, (100.2, 100.25))],
    ids=["plain", "derivatives", "high", "orbit", "beside the band"],
)  # fmt: skip
def test_signals_against_dense_samples(more, band):
    s, starts = signal(**more), (1238171418, 1238171418 + 86400)
    (found,) = make_data({"V1": list(starts)}, band, signals=[s], ephemeris=model())
    k = found.first_bin + np.arange(found.bins)
    for start, spectrum in zip(starts, found.data, strict=True):
        np.testing.assert_allclose(spectrum, dense(s, k, sampled(start)), rtol=0, atol=2e-6 * 450 * s.h0)


RATE = 16  # Hz


@cache
def sampled(start: int) -> Any:
    """The Earth in the middle of each sample of half an hour."""
    t = (np.arange(1800 * RATE) + 0.5) / RATE
    return earth_state(model(), start * SECOND + np.round(t * 1e9).astype(np.int64))


def dense(s, k, earth):
    """The bins of a signal by a sum over samples."""
    arrival = barycentre(earth, detector("V1"), s.alpha, s.delta)
    arrival = arrival if s.orbit is None else emission(arrival, s.orbit)
    since = arrival.since(s.reference)[0]
    phase = np.mod(s.freq * since + s.f1dot * since**2 / 2 + s.f2dot * since**3 / 6 + s.f3dot * since**4 / 24, 1.0)
    a, b = (x[0] for x in antenna_patterns(earth, detector("V1"), s.alpha, s.delta))
    plus = (a * np.cos(2 * s.psi) + b * np.sin(2 * s.psi)) * s.h0 * (1 + s.cosi**2) / 2
    cross = (b * np.cos(2 * s.psi) - a * np.sin(2 * s.psi)) * s.h0 * s.cosi
    # The positive frequency alone, for which 16 Hz are dense: bins repeat after them. Samples are half of one late.
    positive = np.exp(1j * s.phi0) * (plus - 1j * cross) / 2 * np.exp(2j * np.pi * phase)
    late = np.exp(-1j * np.pi * np.mod(k / len(positive), 2.0))
    return np.fft.fft(positive)[k % len(positive)] * late / RATE


@needs_truth
@needs_tables
def test_the_signal_of_the_truth():
    sfts, ephemeris = load_sfts(TRUTH / "sft_pure" / "*.sft"), Ephemeris.load("DE405")
    made = make_data(
        {d.detector: d.start // SECOND for d in sfts}, (99.8, 100.2), signals=[signal()], ephemeris=ephemeris
    )
    for mine, theirs in zip(made, sfts, strict=True):
        assert (mine.first_bin, mine.bins) == (theirs.first_bin, theirs.bins)
        largest = abs(theirs.data).max()
        np.testing.assert_allclose(mine.data, theirs.data, rtol=0, atol=4e-3 * largest)
    t = table("twoF_pure.csv")
    near = t["kind"] != "random"
    templates = Templates(*(t[k][near] for k in ("freq", "alpha", "delta", "f1dot", "f2dot")), reference=REFERENCE)
    values = [
        f_statistic(prepare(s, (99.9, 100.1), sqrt_s=SQRT_S), templates, ephemeris).two_f[0] for s in (made, sfts)
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=0.01, atol=0.2)


def test_an_injected_signal_is_found_at_its_place():
    """The template of the signal has the largest 2F among its neighbours in every parameter, and about the expected
    value.
    """
    ephemeris, s = model(), signal(h0=2.5e-24)
    sfts = make_data(STARTS, (99.9, 100.1), sqrt_s=SQRT_S, signals=[s], ephemeris=ephemeris, seed=11)
    data = prepare(sfts, (99.98, 100.04), sqrt_s=SQRT_S)
    steps = np.arange(-6, 7)
    at = {"freq": s.freq, "alpha": s.alpha, "delta": s.delta, "f1dot": s.f1dot}
    for name, step in (("freq", 1 / 43200), ("f1dot", 5e-10), ("alpha", 0.4), ("delta", 0.15)):
        moved = at | {name: at[name] + step * steps}
        found = f_statistic(data, Templates(**moved, reference=REFERENCE), ephemeris, dterms=24).two_f[0]
        assert found.argmax() == 6, name
    silent = make_data(STARTS, (99.9, 100.1), signals=[s], ephemeris=ephemeris)
    one = Templates(**at, reference=REFERENCE)
    expected = f_statistic(prepare(silent, (99.98, 100.04), sqrt_s=SQRT_S), one, ephemeris, dterms=24).two_f[0, 0]
    loudest = f_statistic(data, one, ephemeris, dterms=24).two_f[0, 0]
    assert expected > 200
    assert abs(loudest - 4 - expected) < 4 * np.sqrt(8 + 4 * expected)  # non-central chi-squared


def test_2f_in_noise_is_chi_squared():
    """With the full kernel and the true noise floor: four degrees of freedom (Kolmogorov and Smirnov)."""
    stats = pytest.importorskip("scipy.stats")
    sfts = make_data(STARTS, (99.7, 100.3), sqrt_s=SQRT_S, seed=5)
    data = prepare(sfts, sqrt_s=SQRT_S)
    freq = 99.9 + np.arange(1500) * 5 / 43200  # five resolutions apart: independent
    found = f_statistic(data, Templates(freq, 1.2, 0.4, reference=REFERENCE), model(), dterms=None)
    for values in (found.two_f[0], found.two_f_detector[0, 0], found.two_f_detector[0, 1]):
        assert stats.kstest(values, "chi2", args=(4,)).pvalue > 0.01
    assert stats.kstest(found.two_f[0], "chi2", args=(4.5,)).pvalue < 1e-6  # the test can fail
    estimated = f_statistic(prepare(sfts), Templates(freq, 1.2, 0.4, reference=REFERENCE), model(), dterms=None)
    assert abs(estimated.two_f.mean() - 4) < 0.25


def test_noise_has_the_power_that_was_asked_for():
    levels = np.linspace(1e-23, 3e-23, 24)
    sfts = make_data({"H1": STARTS["H1"]}, (99.0, 101.0), sqrt_s={"H1": levels}, seed=1)
    power = (abs(sfts["H1"].data.astype(complex)) ** 2).mean(axis=1)
    np.testing.assert_allclose(power, 1800 * levels**2 / 2, rtol=5 / np.sqrt(3600))


def test_noise_is_of_its_seed():
    def one(**more):
        given = {"starts": STARTS, "band": (99.9, 100.0), "sqrt_s": SQRT_S, "seed": 1} | more
        return make_data(given.pop("starts"), given.pop("band"), **given)

    first, again, other = one(), one(), one(seed=2)
    assert first["L1"].data.tobytes() == again["L1"].data.tobytes()
    assert first["L1"].data.tobytes() != other["L1"].data.tobytes()
    part = one(starts={"L1": STARTS["L1"][3:5]}, sqrt_s={"L1": 1.7e-23})
    assert part["L1"].data.tobytes() == first["L1"].data[3:5].tobytes()
    assert not np.array_equal(first["H1"].data[0] * 1.7, first["L1"].data[0])


def test_written_as_files(tmp_path):
    sfts = make_data(STARTS, (99.9, 100.1), sqrt_s=SQRT_S, signals=[signal()], ephemeris=model(), seed=4)
    write_sfts(tmp_path, sfts, "made")
    again = load_sfts(tmp_path / "*.sft", (99.97, 100.03), margin=search_margin() - 8)
    assert again["H1"].data.tobytes() == sfts.band(again["H1"].first_bin, again["H1"].bins)["H1"].data.tobytes()
    assert again["H1"].comments[0].startswith(b"made by lanewise\0")
    assert [w.name for w in again["H1"].windows] == ["rectangular"] * 24


def test_data_that_cannot_be_made():
    ephemeris = model()
    for error, given in {
        "signals need an ephemeris": {"signals": [signal()]},
        "sqrt_s has no value for L1": {"sqrt_s": {"H1": 1e-23}},
        r"sqrt_s of H1 has shape \(2,\); wanted one finite number of zero or more, or 24": {
            "sqrt_s": {"H1": [1e-23, 1e-23], "L1": 1e-23}
        },
        r"the signal at .* Hz is far outside of the band": {"signals": [signal(freq=9000.0)], "ephemeris": ephemeris},
    }.items():
        with pytest.raises(InputError, match=error):
            make_data(STARTS, (99.9, 100.1), **given)
    with pytest.raises(
        InputError, match="the SFTs of H1 at GPS 1000000000 and 1000001000 overlap; wanted starts in order"
    ):
        make_data({"H1": [1000000000, 1000001000]}, (99.9, 100.1))
    with pytest.raises(InputError, match=r"the band is 100.1 to 99.9 Hz; wanted 0 or more, low < high"):
        make_data(STARTS, (100.1, 99.9))
    with pytest.raises(InputError, match=r"cosi is 1.2; wanted -1 to 1"):
        signal(cosi=1.2)
