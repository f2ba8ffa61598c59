"""The F-statistic by resampling, against LALPulsar's ResampGeneric and against demodulation."""

from __future__ import annotations

# ruff: noqa: PT017  (what is refused and what is computed are both right, each in its own way)
import time

import numpy as np
import pytest

from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.prepared import geometry, prepare, search_margin
from lanewise.sims.waves.resampling import Band, choose_method, f_statistic_band, interpolated
from lanewise.sims.waves.sft import load_sfts
from lanewise.sims.waves.synthesis import Signal, make_data
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris, Orbit
from lanewise.support.errors import InputError
from tests.waves.truth import TRUTH, needs_tables, needs_truth, table

REFERENCE = 1238166018 * SECOND
STEP = 1.1574074074074073e-05  # Hz, of the truth


@needs_truth
@needs_tables
@pytest.mark.parametrize(
    ("case", "which"),
    [("noise", slice(0, 200, 10)), ("signal", slice(5, 200, 10)), ("pure", slice(3, 200, 20))]
    + [pytest.param(c, slice(None), marks=pytest.mark.slow) for c in ("noise", "signal", "pure")],
)
def test_templates_of_the_truth(case, which):
    t = table(f"twoF_{case}.csv")
    sqrt_s = {"H1": 1e-23, "L1": 1.7e-23} if case == "pure" else None
    data = prepare(load_sfts(TRUTH / f"sft_{case}" / "*.sft"), (99.9, 100.1), sqrt_s=sqrt_s)
    ephemeris = Ephemeris.load("DE405")
    rows = zip(*(t[k][which].tolist() for k in ("freq", "alpha", "delta", "f1dot", "f2dot")), strict=True)
    found = [
        f_statistic_band(data, Band(f, STEP, 1, a, d, REFERENCE, f1, f2), ephemeris).two_f[0, 0]
        for f, a, d, f1, f2 in rows
    ]
    np.testing.assert_allclose(found, t["twoF_ResampGeneric"][which], rtol=0, atol=1.4e-3)


def test_both_ends_of_the_data_are_as_far_from_the_frequencies_that_are_taken():
    pytest.importorskip("erfa")
    ephemeris, starts = Ephemeris.load("EPV00"), {"H1": 1238166018 + 1800 * np.arange(2)}
    sfts = make_data(starts, (99.6, 100.6), sqrt_s={"H1": 1e-23}, ephemeris=ephemeris)
    data = prepare(sfts, (100.0, 100.2), sqrt_s={"H1": 1e-23})

    def is_taken(bin_):
        try:
            f_statistic_band(data, Band(bin_ / 1800, STEP, 1, 1.0, 0.3, REFERENCE), ephemeris)
        except InputError as error:
            assert "cover a wider band" in str(error)
            return False
        return True

    def last(taken, refused):
        assert is_taken(taken)
        assert not is_taken(refused)
        while abs(taken - refused) > 1:
            middle = (taken + refused) // 2
            taken, refused = (middle, refused) if is_taken(middle) else (taken, middle)
        return taken

    lowest, highest = last(180_180, 180_000 - 120), last(180_180, 180_360 + 120)
    shift = 180_180 * (1 - 1 / geometry(data, ephemeris, 1.0, 0.3, None).arrival.rate.mean())
    assert lowest + shift == pytest.approx(180_000, abs=2.5)
    assert highest + shift == pytest.approx(180_360, abs=2.5)


def simulated(orbit=None, gaps=True):
    pytest.importorskip("erfa")
    ephemeris = Ephemeris.load("EPV00")
    start = 1238166018 + 1800 * np.arange(40)
    starts = {"H1": np.delete(start, [4, 5, 17]) if gaps else start, "L1": np.delete(start + 613.25, [9, 30])}
    signal = Signal(
        h0=8e-25, cosi=0.4, psi=0.3, phi0=1.0, freq=60.02, alpha=1.1, delta=-0.4, f1dot=-3e-9, reference=REFERENCE,
        orbit=orbit,
    )  # fmt: skip
    sfts = make_data(
        starts, (59.9, 60.2), sqrt_s={"H1": 1e-23, "L1": 1.2e-23}, signals=[signal], ephemeris=ephemeris, seed=3
    )
    return sfts, signal, ephemeris


@pytest.mark.filterwarnings("ignore:SFTs of")  # the orbit is fast
@pytest.mark.parametrize("orbit", [None, Orbit(0.8, 50000.0, 1238160000 * SECOND, 0.1, 0.5)], ids=["alone", "orbit"])
def test_a_band_against_the_full_kernel(orbit):
    """SFTs that start anywhere, gaps, stacks: where demodulation leaves nothing out, the two differ by the
    interpolation alone.
    """
    sfts, signal, ephemeris = simulated(orbit)
    middle = REFERENCE + 18_000 * SECOND * 2
    stacks = [sfts.between(0, middle), sfts.between(middle, 1 << 62)]
    data = prepare(sfts, (60.0, 60.04), stacks=stacks, sqrt_s={"H1": 1e-23, "L1": 1.2e-23})
    band = Band(60.0195, 6e-6, 160, signal.alpha, signal.delta, REFERENCE, signal.f1dot, orbit=orbit)
    found = f_statistic_band(data, band, ephemeris)
    templates = Templates(band.frequencies, band.alpha, band.delta, band.f1dot, reference=REFERENCE, orbit=orbit)
    expected = f_statistic(data, templates, ephemeris, dterms=40)
    np.testing.assert_allclose(found.two_f, expected.two_f, rtol=0.03, atol=1.5)
    assert np.corrcoef(found.two_f.ravel(), expected.two_f.ravel())[0, 1] > 0.995
    for mine, theirs in ((found.fa, expected.fa), (found.fb, expected.fb)):  # phases, too
        assert abs(np.vdot(mine, theirs)) > 0.99 * np.linalg.norm(mine) * np.linalg.norm(theirs)
        assert abs(np.angle(np.vdot(mine, theirs))) < 0.02
    np.testing.assert_allclose(found.d, expected.d, rtol=1e-12)
    assert abs(band.frequencies[found.two_f.sum(axis=0).argmax()] - signal.freq) <= 2 * band.step


def test_a_band_is_its_frequencies():
    """One transform for all, or one each; also where the step is wider than 1 / span, so that bins are left out."""
    sfts, signal, ephemeris = simulated()
    data = prepare(sfts, (60.0, 60.04))
    for step in (5e-6, 4e-5):
        whole = Band(60.0191, step, 20, signal.alpha, signal.delta, REFERENCE, signal.f1dot)
        alone = [
            f_statistic_band(data, Band(f, step, 1, signal.alpha, signal.delta, REFERENCE, signal.f1dot), ephemeris)
            for f in whole.frequencies.tolist()[::7]
        ]
        found = f_statistic_band(data, whole, ephemeris)
        np.testing.assert_allclose(found.two_f[0, ::7], [x.two_f[0, 0] for x in alone], rtol=1e-7)
        np.testing.assert_allclose(found.fa[0, ::7], [x.fa[0, 0] for x in alone], rtol=1e-6)


def test_interpolation():
    t = np.arange(200.0)
    series = np.exp(2j * np.pi * 0.11 * t)
    at = np.array([20.25, 77.5, 100.0, 141.99])
    np.testing.assert_allclose(interpolated(series, at, 8), np.exp(2j * np.pi * 0.11 * at), atol=1e-2)
    assert interpolated(series, np.array([-0.1, 199.1, 1e9]), 8).tolist() == [0, 0, 0]


def test_the_choice_is_explained():
    sfts, signal, _ = simulated()
    data = prepare(sfts, (60.0, 60.04), dterms=8)
    few = choose_method(data, Band(60.02, 1e-6, 3, signal.alpha, signal.delta, REFERENCE))
    many = choose_method(data, Band(60.0, 1e-6, 40_000, signal.alpha, signal.delta, REFERENCE))
    assert (few.method, many.method) == ("demod", "resamp")
    assert few.reason == (
        "3 frequencies of 75 SFTs take about 4.8 ms of one core by demodulation (NumPy), and "
        "10 ms by resampling, with transforms of 65536 samples"
    )


def test_bands_that_are_not_there():
    sfts, signal, ephemeris = simulated()
    data = prepare(sfts, (60.0, 60.04))
    with pytest.raises(
        InputError, match=r"the band from 60.000000 to 60.190000 Hz needs .*, and the data have 59.995556 to"
    ):
        f_statistic_band(data, Band(60.0, 0.01, 20, signal.alpha, signal.delta, REFERENCE), ephemeris)
    with pytest.raises(InputError, match=r"count is 0; wanted 1 to 268435456 frequencies"):
        Band(60.0, 1e-5, 0, 0.0, 0.0, REFERENCE)
    assert search_margin() == 59


def seconds_of_the_core(work):
    """The least of some runs, of this thread: other processes do not count."""
    work()  # what is compiled or kept
    taken = []
    for _ in range(3):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return min(taken)


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 300, 3000, 30_000])
@pytest.mark.parametrize(("sfts", "cover"), [(10, 0.4), (49, 0.02), (49, 0.4)])
def test_the_choice_is_the_faster_one(count, sfts, cover):
    """NumPy on one core: what is chosen takes at most twice the time of the other."""
    pytest.importorskip("erfa")
    ephemeris = Ephemeris.load("EPV00")
    start = 1238166018 + 1800 * np.arange(sfts)
    data = prepare(
        make_data({"H1": start, "L1": start}, (59.5, 60.5), sqrt_s={"H1": 1e-23, "L1": 1e-23}),
        (60 - cover / 2, 60 + cover / 2),
    )
    band = Band(60.0, 0.3 * cover / count, count, 1.0, 0.5, REFERENCE, f1dot=-1e-9)
    templates = Templates(band.frequencies, 1.0, 0.5, -1e-9, reference=REFERENCE)
    demod = seconds_of_the_core(lambda: f_statistic(data, templates, ephemeris))
    resamp = seconds_of_the_core(lambda: f_statistic_band(data, band, ephemeris))
    chosen = choose_method(data, band)
    assert chosen == choose_method(data, band)
    mine, other = (demod, resamp) if chosen.method == "demod" else (resamp, demod)
    assert mine <= 2 * other, (chosen, demod, resamp)


ORBITS = [None, Orbit(0.8, 50000.0, 1238160000 * SECOND, 0.1, 0.5)]


@pytest.mark.filterwarnings("ignore:SFTs of")  # spins and the orbit are fast
@pytest.mark.parametrize("seed", [2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 40))])
def test_no_band_loses_what_the_data_do_not_cover(seed):
    """A loud signal near the ends of the covered band, which the Earth, an orbit or spins may take out of it."""
    pytest.importorskip("erfa")
    ephemeris, rng = Ephemeris.load("EPV00"), np.random.default_rng(seed)
    starts = {n: 1238166018 + 1800 * np.arange(12) for n in ("H1", "L1")}
    orbit = ORBITS[seed % 2]
    spin = float(rng.choice([0.0, -2e-6, 2e-6, 2e-7]))
    refused = 0
    for freq in (*rng.uniform(99.98, 100.04, 3), *rng.uniform(100.16, 100.22, 3)):
        given = {"alpha": rng.uniform(0, 6.28), "delta": rng.uniform(-1, 1), "f1dot": spin}
        signal = Signal(h0=1e-22, cosi=0.4, freq=freq, reference=REFERENCE, orbit=orbit, **given)
        sfts = make_data(starts, (99.6, 100.6), signals=[signal], ephemeris=ephemeris)
        data = prepare(sfts, (100.0, 100.2), sqrt_s=dict.fromkeys(starts, 1e-23))
        band = Band(float(freq), 1e-5, 1, reference=REFERENCE, orbit=orbit, **given)
        wanted = f_statistic(
            prepare(sfts, (99.7, 100.5), sqrt_s=dict.fromkeys(starts, 1e-23)),
            Templates(freq, reference=REFERENCE, orbit=orbit, **given), ephemeris, dterms=None,
        ).two_f[0, 0]  # fmt: skip
        try:
            found = f_statistic_band(data, band, ephemeris).two_f[0, 0]
        except InputError as error:
            assert "cover a wider band" in str(error)
            refused += 1
        else:
            # spins within an SFT are lost to a sum over SFTs alone
            assert found > 0.95 * wanted, (freq, given, found, wanted)
    assert seed >= 4 or 0 < refused < 6  # the quick ones have both
