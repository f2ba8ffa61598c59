"""What 2F does not depend on: the reference time of a template, the order of detectors, rounding, and the frequencies
that are requested beside it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import factorial

import numpy as np
import pytest

from lanewise.sims.waves.demodulation import atoms, f_statistic
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.hierarchical import Search, hierarchical_search
from lanewise.sims.waves.prepared import prepare
from lanewise.sims.waves.resampling import Band, f_statistic_band, interpolated
from lanewise.sims.waves.sft import SftSet
from lanewise.sims.waves.synthesis import Signal, make_data
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris, Orbit

START = 1369015218
SPINS = ("freq", "f1dot", "f2dot", "f3dot")
STARTS = {"H1": 1800 * np.arange(1, 12), "L1": 613.25 + 1800 * np.arange(9), "V1": 1800 * np.r_[0:3, 7:10] + 0.5}
METHODS = {
    "definition": 1e-6, "full kernel": 1e-6, "resampling": 1e-6, "interpolated": 2e-6, "dirichlet": 2e-6,
}  # fmt: skip
"""With how much of 2F, or of 1 where 2F is less, two reference times may differ: on devices sums are float32."""

REFERENCES = {
    "first sample": START, "start of another": START + 613.25, "one's own start": START + 1800, "within": START + 12_345.678,
    "a day on": START + 100_000, "three years before": START - 95_000_000, "a year on, between seconds": START + 30_000_000.123456789,
}  # fmt: skip


def ephemeris() -> Ephemeris:
    pytest.importorskip("erfa")
    return Ephemeris.load("EPV00")


def made(order=("H1", "L1", "V1"), freq=1400.0, loud=0.0, wide=0.25, starts=STARTS) -> SftSet:
    """SFTs of detectors that start when they like, with gaps; the signal is at the start."""
    signal = Signal(h0=loud, cosi=0.4, freq=freq, alpha=1.1, delta=-0.4, f1dot=-3e-9, reference=START * SECOND)
    sfts = make_data(
        {k: START + v for k, v in starts.items()}, (freq - wide, freq + wide), sqrt_s=dict.fromkeys(STARTS, 1e-23),
        signals=[signal] if loud else [], ephemeris=ephemeris(), seed=4,
    )  # fmt: skip
    return SftSet(tuple(sfts[name] for name in order))


def templates_of(count: int, freq: float, seed: int, third: bool) -> list[list[Fraction]]:
    """Spins at START, of one direction each, and the directions."""
    rng = np.random.default_rng(seed)
    columns = freq + rng.uniform(-0.004, 0.004, count), rng.uniform(-4e-9, 0, count), rng.uniform(-1, 1, count) * 1e-17
    rows = np.stack([*columns, rng.uniform(-1, 1, count) * 1e-25 * third], axis=1).tolist()
    return [[Fraction(x) for x in row] for row in rows]


def at(spins: list[Fraction], seconds: Fraction) -> list[float]:
    """The same signal at a time later by so many seconds; each spin rounded once."""
    return [
        float(sum(f * seconds ** (k - s) / factorial(k - s) for k, f in enumerate(spins) if k >= s)) for s in range(4)
    ]


def cycles(spins: list[Fraction], seconds: Fraction) -> float:
    """That pass until then, of the last one."""
    return float(sum(f * seconds ** (k + 1) / factorial(k + 1) for k, f in enumerate(spins)) % 1)


def statistics(method, data, reference, spins, directions, orbit=None):
    """The F-statistic of physical templates, given at a reference time (GPS ns): 2F (n), of detectors (d, n), and Fa,
    Fb (n).
    """
    since = Fraction(reference - START * SECOND, SECOND)
    moved = np.array([at(s, since) for s in spins]).T
    alpha, delta = directions
    if method == "resampling":
        every = [
            f_statistic_band(
                data, Band(f, 1e-6, 1, a, d, reference, f1, f2, f3, orbit=orbit), ephemeris()
            )
            for f, f1, f2, f3, a, d in zip(*moved.tolist(), alpha.tolist(), delta.tolist(), strict=True)
        ]  # fmt: skip
        parts = ([getattr(x, n) for x in every] for n in ("two_f", "two_f_detector", "fa", "fb"))
        return [np.concatenate(p, axis=-1)[0] for p in parts]
    freq, *spun = moved
    templates = Templates(freq, alpha, delta, *spun, reference=reference, orbit=orbit)
    given = {"definition": {}, "full kernel": {"dterms": None}}.get(method, {"device": "cpu", "kernel": method})
    found = f_statistic(data, templates, ephemeris(), **given)
    return [getattr(found, n)[0] for n in ("two_f", "two_f_detector", "fa", "fb")]


FEW = ("first sample", "one's own start", "three years before", "a year on, between seconds")
"""Of `REFERENCES`, where each costs a resampling: what differs in kind."""


def checked_at_all_times(
    method, count, freq, loud, orbit=None, dense=("H1", "L1", "V1"), names=tuple(REFERENCES), starts=STARTS
):
    reach = 0.18 if orbit is None else 0.34  # an orbit shifts by a part of 1e-4, as the Earth's does
    data = prepare(made(dense, freq, loud, reach + 0.07, starts), (freq - reach, freq + reach), dterms=8)
    third = method not in ("interpolated", "dirichlet")
    spins = templates_of(count, freq, 7, third)
    rng = np.random.default_rng(8)
    directions = rng.uniform(0, 6.28, count), np.arcsin(rng.uniform(-1, 1, count))
    first = None
    for name in names:
        reference = round(Fraction(str(REFERENCES[name])) * SECOND)
        found = statistics(method, data, reference, spins, directions, orbit)
        if first is None:
            first = found
            continue
        for mine, theirs in zip(found[:2], first[:2], strict=True):
            worst = float((abs(mine - theirs) / np.maximum(1, theirs)).max())
            assert worst <= METHODS[method], (name, worst)
        # Amplitudes have the phase of the reference time.
        passed = np.array([cycles(s, Fraction(reference - START * SECOND, SECOND)) for s in spins])
        for mine, theirs in zip(found[2:], first[2:], strict=True):
            size = np.maximum(1, abs(theirs))
            assert (abs(mine * np.exp(-2j * np.pi * passed) - theirs) / size).max() < 1e-4, name


@pytest.mark.slow_cases("resampling")
@pytest.mark.parametrize("method", METHODS)
def test_the_reference_time(method):
    checked_at_all_times(method, 5, 1400.0, 0.0, names=FEW if method == "resampling" else tuple(REFERENCES))


def drawn_starts(seed):
    """Of each detector: any second and part of one, and gaps of any length between some SFTs."""
    rng = np.random.default_rng(seed)
    rounding = 10.0 ** rng.integers(0, 10, 3)  # from whole seconds to nanoseconds
    gaps = [rng.uniform(0, 4000, 9) * (rng.random(9) < 0.4) for _ in rounding]
    first = rng.uniform(0, 6000, 3)
    places = [f + np.cumsum(1801 + gap) for f, gap in zip(first, gaps, strict=True)]
    return {d: np.round(p * r) / r for d, p, r in zip(STARTS, places, rounding, strict=True)}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 30))])
@pytest.mark.parametrize("method", METHODS)
def test_any_start_of_any_detector(method, seed):
    checked_at_all_times(method, 3, 1400.0, 0.0, names=FEW, starts=drawn_starts(seed))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:SFTs of")  # the orbit is fast
@pytest.mark.parametrize("freq", [60.0, 731.0, 1400.0])
@pytest.mark.parametrize("loud", [0.0, 2e-24])
@pytest.mark.parametrize("orbit", [None, Orbit(0.8, 50000.0, 1238160000 * SECOND, 0.1, 0.5)], ids=["alone", "orbit"])
@pytest.mark.parametrize("method", METHODS)
def test_the_reference_time_of_many(method, orbit, loud, freq):
    count = 15 if method == "resampling" else 60  # where each costs a resampling
    for dense in (("H1", "L1", "V1"), ("V1", "H1"), ("H1",)):
        checked_at_all_times(method, count, freq, loud, orbit, dense)


@pytest.mark.slow_cases("resampling")
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_detectors(method):
    spins, count = templates_of(8, 731.0, 3, third=False), 8
    rng = np.random.default_rng(2)
    directions = rng.uniform(0, 6.28, count), np.arcsin(rng.uniform(-1, 1, count))
    found = {}
    for order in (("H1", "L1", "V1"), ("V1", "L1", "H1"), ("L1", "V1", "H1")):
        data = prepare(made(order, 731.0), (730.82, 731.18))
        found[order] = statistics(method, data, START * SECOND, spins, directions)
    one, *others = found
    for other in others:
        np.testing.assert_allclose(found[other][0], found[one][0], rtol=METHODS[method], atol=METHODS[method])
        places = [other.index(d) for d in one]
        np.testing.assert_allclose(found[other][1][places], found[one][1], rtol=METHODS[method], atol=METHODS[method])


@pytest.mark.parametrize("method", METHODS)
def test_which_way_numbers_are_rounded(method):
    """Directions a few rounding errors apart: of half of them a detector's first sample lies before its data."""
    data = prepare(made(freq=731.0), (730.82, 731.18))
    spins, rng = templates_of(12, 731.0, 3, third=False), np.random.default_rng(5)
    alpha = rng.uniform(0, 6.28, 3)[:, None] + 1e-12 * np.arange(4)
    delta = np.repeat(np.arcsin(rng.uniform(-1, 1, 3)), 4)
    spins = [spins[n // 4] for n in range(12)]
    for values in statistics(method, data, START * SECOND, spins, (alpha.ravel(), delta))[:2]:
        near = values.reshape(*values.shape[:-1], 3, 4)
        first = near[..., :1]
        # Arrivals are known to a nanosecond: 5e-6 of a phase. One sample of 12 to 22 SFTs is 1e-3 of 2F and more.
        np.testing.assert_allclose(near, first + 0 * near, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("off", [0.0, 1e-9, -1e-9], ids=["exact", "behind", "ahead"])
@pytest.mark.parametrize("dterms", [1, 8, 32])
def test_every_sample_of_a_series_is_found_at_its_place(dterms, off):
    """The first and the last as well, where rounding puts a place beside it; nothing beyond them."""
    rng = np.random.default_rng(dterms)
    series = rng.normal(size=50) + 1j * rng.normal(size=50)
    found = interpolated(series, np.arange(-2, 52) + off, dterms)
    np.testing.assert_allclose(found[2:-2], series, rtol=0, atol=1e-7)
    assert not found[:2].any()
    assert not found[-2:].any()


def test_atoms_at_any_reference_time():
    data = prepare(made(), (1399.82, 1400.18))
    (spins,) = templates_of(1, 1400.0, 7, third=True)
    found = []
    for seconds in (0, -95_000_000):
        freq, *spun = at(spins, Fraction(seconds))
        one = Templates(freq, 1.0, 0.3, *spun, reference=(START + seconds) * SECOND)
        found.append((atoms(data, one, ephemeris(), 0), cycles(spins, Fraction(seconds))))
    (here, _), (far, passed) = found
    np.testing.assert_allclose(far.fa * np.exp(-2j * np.pi * passed), here.fa, atol=1e-5)
    np.testing.assert_allclose(far.fb * np.exp(-2j * np.pi * passed), here.fb, atol=1e-5)


@pytest.mark.parametrize("method", ["definition", "resampling", "interpolated"])
def test_parts_of_a_band(method):
    """A band and its frequencies, some at a time: demodulation to the bit, transforms to what they round."""
    data = prepare(made(freq=731.0, loud=1e-24), (730.82, 731.18))
    whole = Band(730.999, 2e-6, 96, 1.1, -0.4, START * SECOND, -3e-9)

    def of(first: int, count: int):
        f = whole.frequencies[first : first + count]
        if method == "resampling":
            band = Band(float(f[0]), whole.step, count, 1.1, -0.4, START * SECOND, -3e-9)
            return f_statistic_band(data, band, ephemeris()).two_f[0]
        templates = Templates(f, 1.1, -0.4, -3e-9, reference=START * SECOND)
        device = "numpy" if method == "definition" else "cpu"
        return f_statistic(data, templates, ephemeris(), device=device).two_f[0]

    every = of(0, 96)
    for cuts in ([0, 1, 96], [0, 17, 50, 96], [0, 95, 96]):
        parts = np.concatenate([of(a, b - a) for a, b in pairwise(cuts)])
        if method == "resampling":
            np.testing.assert_allclose(parts, every, rtol=1e-8, atol=1e-8)
        else:
            np.testing.assert_array_equal(parts, every)


def test_a_signal_is_the_same_from_any_reference_time():
    (spins,) = templates_of(1, 1400.0, 7, third=True)
    found = []
    for seconds in (0, 1000, -95_000_000):
        freq, *spun = at(spins, Fraction(seconds))
        phi0 = 0.3 + 2 * np.pi * cycles(spins, Fraction(seconds))
        one = Signal(
            h0=1e-24, cosi=0.4, phi0=phi0, freq=freq, alpha=1.1, delta=-0.4, f1dot=spun[0], f2dot=spun[1], f3dot=spun[2],
            reference=(START + seconds) * SECOND,
        )  # fmt: skip
        sfts = make_data({"H1": START + STARTS["H1"]}, (1399.75, 1400.25), signals=[one], ephemeris=ephemeris())
        found.append(sfts["H1"].data.astype(np.complex128) * 1e24)
    for other in found[1:]:
        # A frequency that is rounded years before has another phase here, one for all SFTs.
        phase = np.vdot(found[0], other) / abs(np.vdot(found[0], other))
        assert abs(phase - 1) < 1e-3
        assert abs(other / phase - found[0]).max() < 2e-6 * abs(found[0]).max()


@pytest.mark.parametrize(("method", "device"), [("demod", "cpu"), ("resamp", "numpy")])
def test_a_search_from_any_reference_time(method, device):
    """The same cells with the same counts; frequencies of a list, which are LALPulsar's, miss them by less
    than a cell.
    """
    signal = Signal(h0=4e-24, cosi=0.4, freq=60.01, alpha=1.2, delta=0.3, f1dot=-1e-9, reference=START * SECOND)
    starts = {"H1": START + 1800 * np.arange(20), "L1": START + 900 + 1800 * np.arange(20)}
    sfts = make_data(
        starts, (59.9, 60.12), sqrt_s=dict.fromkeys(starts, 1e-23), signals=[signal], ephemeris=ephemeris(), seed=3
    )
    lists = []
    for name in FEW:
        since = Fraction(str(REFERENCES[name])) - START
        search = Search(
            freq=float(Fraction(60.0095) + Fraction(-1e-9) * since), freq_band=0.001, f1dot=-1e-9, f1dot_band=0.0,
            reference=round(Fraction(str(REFERENCES[name])) * SECOND), stack=9000.0, residuals=1, patch=(0.02, 0.02), threshold=4.0,
        )  # fmt: skip
        found = hierarchical_search(sfts, search, ephemeris(), [(1.2, 0.3)], 5000, device=device, method=method)
        lists.append((np.sort(found, order=["freq", "alpha", "delta"]), search.steps[0]))
    (first, cell), *others = lists
    assert first["count"].max() == 5
    for found, _ in others:
        for name in ("alpha", "delta", "f1dot", "count"):
            np.testing.assert_array_equal(found[name], first[name], err_msg=name)
        np.testing.assert_allclose(found["twoF"], first["twoF"], rtol=2e-6)
        assert abs(found["freq"] - first["freq"]).max() < 1.01 * cell
