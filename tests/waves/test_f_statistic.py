"""Noise, prepared data and the F-statistic by demodulation, against LALPulsar and against loops."""

from __future__ import annotations

import cmath
import json
import math

import numpy as np
import pytest

from lanewise.sims.waves.definition import two_f
from lanewise.sims.waves.demodulation import atoms, f_statistic
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.noise import median_bias, noise_floor, normalised, running_median
from lanewise.sims.waves.prepared import geometry, prepare, search_margin, sfts_of, split
from lanewise.sims.waves.refinement.stacks import regrouped, some_stacks
from lanewise.sims.waves.resampling import Band, choose_method, f_statistic_band
from lanewise.sims.waves.sft import DetectorSfts, SftSet, load_sfts
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris, Orbit
from lanewise.support.errors import InputError
from tests.waves.truth import DATA, TRUTH, excerpt, needs_tables, needs_truth, table

REFERENCE = 1238166018 * SECOND
SQRT_S = {"H1": 1e-23, "L1": 1.7e-23}


def model() -> Ephemeris:
    pytest.importorskip("erfa")
    return Ephemeris.load("EPV00")


def made(counts=(5, 4), bins=140, seed=2, first=179900, gap=2000) -> SftSet:
    rng = np.random.default_rng(seed)

    def one(name, count, shift):
        x = rng.normal(size=(2, count, bins)).astype(np.float32)
        start = (1238166018 + shift + gap * np.arange(count, dtype=np.int64)) * SECOND
        zeros = np.zeros(count)
        return DetectorSfts(
            name,
            start,
            1800.0,
            first,
            x[0] + 1j * x[1],
            zeros.astype(np.uint8) + 3,
            zeros.astype(np.uint16),
            (b"",) * count,
        )

    return SftSet((one("H1", counts[0], 0), one("L1", counts[1], 700)))


def some_templates(n=7, seed=5, **more) -> Templates:
    rng = np.random.default_rng(seed)
    freq = 179970 / 1800 + rng.uniform(-1, 1, n) * 15 / 1800
    delta = np.arcsin(rng.uniform(-1, 1, n))
    return Templates(
        freq, rng.uniform(0, 6, n), delta, rng.uniform(-1e-9, 1e-9, n), 1e-17, reference=REFERENCE - 10**13, **more
    )


@pytest.mark.parametrize(
    ("window", "value"),  # of LAL's running median over ones
    [(3, 0.8333333333333334), (4, 0.8333333333333334), (50, 0.7032471605759182), (51, 0.7028550037131731),
     (101, 0.6980731694092052), (102, 0.6980731694092052), (1001, 0.6936464315588213), (2003, 0.6933967438086895)],
)  # fmt: skip
def test_the_bias_of_the_median(window, value):
    assert median_bias(window) == pytest.approx(value, abs=1e-14)


def test_the_running_median(monkeypatch):
    rng = np.random.default_rng(1)
    power = rng.exponential(size=(3, 60))
    for window in (3, 4, 11, 60):
        expected = np.empty_like(power)
        half, valid = window // 2, 60 - window + 1
        for i in range(3):
            for j in range(valid):
                expected[i, half + j] = np.median(power[i, j : j + window]) / median_bias(window)
            expected[i, :half] = expected[i, half]
            expected[i, half + valid :] = expected[i, half + valid - 1]
        for part in (1 << 22, 40):
            monkeypatch.setattr("lanewise.sims.waves.noise.PART", part)
            np.testing.assert_array_equal(running_median(power, window), expected)
    with pytest.raises(InputError, match="the running median needs 61 bins, and the SFTs have 60: load a wider band"):
        running_median(power, 61)
    with pytest.raises(InputError, match="the window of the running median is 2 bins; wanted at least 3"):
        running_median(power, 2)


@needs_truth
def test_noise_and_weights_of_the_truth():
    t = table("psd_normalised_fullband.csv")
    sfts = load_sfts(TRUTH / "sft_signal" / "*.sft")
    data = prepare(sfts)
    np.testing.assert_allclose(data.sinv_tsft[0], t["Sinv_Tsft"][0], rtol=1e-9)
    for row in range(len(t["IFO"])):
        d = sfts[str(t["IFO"][row])]
        i, k = int(t["sft_index"][row]), int(t["bin_index_in_sft"][row])
        floor = noise_floor(d.data[i : i + 1], d.duration)
        np.testing.assert_allclose(floor[0, k], t["Sn_runmedian_PSD"][row], rtol=1e-6)
        x = normalised(d.data[i : i + 1], floor)[0, k]
        np.testing.assert_allclose([x.real, x.imag], [t["X_norm_re"][row], t["X_norm_im"][row]], rtol=1e-6, atol=1e-8)
        number = sfts_of(data)[d.detector][i]
        np.testing.assert_allclose(data.weight[number], t["noise_weight_normalised"][row], rtol=1e-8)


def test_templates_of_two_small_files():
    """What LALPulsar finds in the SFTs that lie beside the tests; needs nothing else."""
    lal = json.loads((DATA / "f_statistic.json").read_text(encoding="utf-8"))
    ephemeris = excerpt(lal["earth"][0], lal["sun"][0])
    columns = np.array(lal["templates"]).T
    templates = Templates(*columns, reference=lal["reference"] * SECOND)
    sfts = load_sfts(DATA / "*.sft", (99.9, 100.1), margin=search_margin(16))
    for dterms in (8, 16):
        data = prepare(sfts, (99.9, 100.1), dterms=dterms)
        found = f_statistic(data, templates, ephemeris, dterms=dterms)
        expected = lal[f"demod{dterms}"]
        for mine, name, most in (
            (found.two_f[0], "twoF", 1.3e-3), (found.two_f_detector[0, 0], "H1", 1.3e-3), (found.two_f_detector[0, 1], "L1", 1.3e-3),
            (abs(found.fa[0]), "Fa", 1e-3), (abs(found.fb[0]), "Fb", 1e-3), (found.a[0], "A", 1e-4), (found.b[0], "B", 1e-4),
            (found.c[0], "C", 1e-4), (found.d[0], "D", 1e-4),
        ):  # fmt: skip
            np.testing.assert_allclose(mine, [x[name] for x in expected], rtol=0, atol=most)
    data = prepare(sfts, (99.9, 100.1))
    found = [
        f_statistic_band(data, Band(f, lal["step"], 1, a, d, templates.reference, f1, f2), ephemeris).two_f[0, 0]
        for f, a, d, f1, f2 in lal["templates"]
    ]
    np.testing.assert_allclose(found, [x["twoF"] for x in lal["resamp8"]], rtol=0, atol=1.4e-3)


@needs_truth
@needs_tables
@pytest.mark.parametrize("dterms", [8, 16, 32])
@pytest.mark.parametrize("case", ["noise", "signal", "pure"])
def test_every_template_of_the_truth(case, dterms):
    """Bounds are a little above the largest difference of these templates; other noise has larger ones."""
    t = table(f"twoF_{case}.csv")
    templates = Templates(t["freq"], t["alpha"], t["delta"], t["f1dot"], t["f2dot"], reference=REFERENCE)
    sfts = load_sfts(TRUTH / f"sft_{case}" / "*.sft", (99.9, 100.1), margin=search_margin(dterms))
    data = prepare(sfts, (99.9, 100.1), dterms=dterms, sqrt_s=SQRT_S if case == "pure" else None)
    found = f_statistic(data, templates, Ephemeris.load("DE405"), dterms=dterms)
    assert len(templates) == 200
    np.testing.assert_allclose(found.two_f[0], t[f"twoF_DemodGeneric_D{dterms}"], rtol=0, atol=1.3e-3)
    if dterms == 8:  # the other columns are of it
        np.testing.assert_allclose(abs(found.fa[0]), abs(t["Fa_re"] + 1j * t["Fa_im"]), rtol=0, atol=1e-3)
        np.testing.assert_allclose(abs(found.fb[0]), abs(t["Fb_re"] + 1j * t["Fb_im"]), rtol=0, atol=1e-3)
        product = (t["Fa_re"] + 1j * t["Fa_im"]) * (t["Fb_re"] - 1j * t["Fb_im"])
        np.testing.assert_allclose(found.fa[0] * found.fb[0].conj(), product, rtol=2e-4, atol=5e-3)
        for mine, theirs in ((found.a, "A"), (found.b, "B"), (found.d, "D")):
            np.testing.assert_allclose(mine[0], t[theirs], rtol=1e-4)
        np.testing.assert_allclose(found.c[0], t["C"], rtol=0, atol=1e-4)
        np.testing.assert_allclose(data.sinv_tsft[0], t["Sinv_Tsft"], rtol=1e-8)
        for i, name in enumerate(("twoF_H1", "twoF_L1")):
            np.testing.assert_allclose(found.two_f_detector[0, i], t[name], rtol=0, atol=1.3e-3)


@needs_truth
@needs_tables
def test_atoms_of_the_truth():
    t, all_of_them = table("atoms_signal.csv"), table("twoF_signal.csv")
    templates = Templates(*(all_of_them[k] for k in ("freq", "alpha", "delta", "f1dot", "f2dot")), reference=REFERENCE)
    data = prepare(load_sfts(TRUTH / "sft_signal" / "*.sft"), (99.9, 100.1))
    for number in np.unique(t["template_id"]).astype(int):
        m = t["template_id"] == number
        found = atoms(data, templates, Ephemeris.load("DE405"), number)
        for mine, theirs in ((found.a2, "a2"), (found.b2, "b2"), (found.ab, "ab")):
            np.testing.assert_allclose(mine, t[theirs][m], rtol=0, atol=1e-4)
        fa, fb = (t[f"F{x}_re"][m] + 1j * t[f"F{x}_im"][m] for x in "ab")
        np.testing.assert_allclose(abs(found.fa), abs(fa), rtol=0, atol=5e-4)
        # One phase for all: the reference time is another one.
        turn = np.vdot(found.fb, fb) / abs(np.vdot(found.fb, fb))
        np.testing.assert_allclose(found.fb * turn, fb, rtol=0, atol=2e-3)
        np.testing.assert_allclose(found.fa * turn, fa, rtol=0, atol=2e-3)


@needs_truth
@needs_tables
def test_what_the_band_does():
    """2F of one template depends on the band that noise is taken from; `cover` fixes it, whatever is loaded."""
    t = table("twoF_signal.csv")
    i = int(np.flatnonzero(t["kind"] == "injection")[0])
    one = Templates(t["freq"][i], t["alpha"][i], t["delta"][i], t["f1dot"][i], reference=REFERENCE)
    wide = load_sfts(TRUTH / "sft_signal" / "*.sft")
    exact = load_sfts(TRUTH / "sft_signal" / "*.sft", (99.9, 100.1), margin=search_margin())
    values = [
        float(f_statistic(prepare(s, c), one, Ephemeris.load("DE405")).two_f[0, 0])
        for s, c in ((wide, (99.9, 100.1)), (exact, (99.9, 100.1)), (wide, None))
    ]
    assert values[0] == values[1]
    assert abs(values[0] - values[2]) > 0.01


def by_loops(data, templates, ephemeris, dterms, stack):
    """2F as the formulas stand, in Python's numbers."""
    result = []
    d = len(data.detectors)
    for t in range(len(templates)):
        seen = geometry(data, ephemeris, templates.alpha[t], templates.delta[t], templates.orbit)
        since = seen.arrival.since(templates.reference)[0]
        sums = np.zeros(5, complex)
        for i in range(data.group[stack * d], data.group[stack * d + d]):
            spins = [templates.freq[t], templates.f1dot[t], templates.f2dot[t], templates.f3dot[t]]
            phi = sum(f * since[i] ** (s + 1) / math.factorial(s + 1) for s, f in enumerate(spins))
            rate = sum(f * since[i] ** s / math.factorial(s) for s, f in enumerate(spins))
            real = data.duration * seen.arrival.rate[0, i] * rate
            star, kappa = math.floor(real), real % 1.0
            bins = range(star - dterms + 1, star + dterms + 1)
            x = data.data[data.offset[i] : data.offset[i + 1]]
            p = math.sin(2 * math.pi * kappa) + 1j * (math.cos(2 * math.pi * kappa) - 1)
            total = sum(p / (real - k) * complex(x[k - data.first_bin[i]]) for k in bins) / (2 * math.pi)
            y = cmath.exp(2j * math.pi * ((real / 2 - phi) % 1.0)) * total
            a, b = seen.a[0, i], seen.b[0, i]
            sums += [a * y, b * y, a * a, b * b, a * b]
        fa, fb, a, b, c = sums
        value = 2 / (a * b - c * c) * (b * abs(fa) ** 2 + a * abs(fb) ** 2 - 2 * c * (fa * fb.conjugate()).real)
        result.append(value.real)
    return np.array(result)


@pytest.mark.filterwarnings("ignore:SFTs of")  # the orbit is fast
@pytest.mark.parametrize("orbit", [None, Orbit(1.5, 70000.0, 1238100000 * SECOND, 0.1, 0.4)], ids=["alone", "orbit"])
@pytest.mark.parametrize("dterms", [1, 8, 16])
def test_against_loops(dterms, orbit, monkeypatch):
    ephemeris, templates = model(), some_templates(orbit=orbit)
    sfts = made(counts=(6, 5))
    stacks = [sfts.between(0, REFERENCE + 5000 * SECOND), sfts.between(REFERENCE + 5000 * SECOND, 1 << 62)]
    data = prepare(sfts, stacks=stacks, dterms=dterms)
    found = f_statistic(data, templates, ephemeris, dterms=dterms)
    for stack in range(2):
        np.testing.assert_allclose(found.two_f[stack], by_loops(data, templates, ephemeris, dterms, stack), rtol=1e-6)
    monkeypatch.setattr("lanewise.sims.waves.definition.PART", 1)
    again = f_statistic(data, templates, ephemeris, dterms=dterms)
    np.testing.assert_allclose(again.two_f, found.two_f, rtol=1e-12)


def test_stacks_are_searches_of_their_own():
    ephemeris, templates, sfts = model(), some_templates(), made(counts=(8, 8))
    stacks = split(sfts, 6000.0)
    assert sum(map(len, stacks)) == len(sfts)
    assert all(s.end - s.start <= 6000 * SECOND for s in stacks)
    assert [len(s) for s in split(sfts, 6000.0, 2)] == [len(s) for s in stacks[:2]]
    data = prepare(sfts, stacks=stacks)
    found = f_statistic(data, templates, ephemeris)
    for i, part in enumerate(stacks):
        alone = f_statistic(prepare(part), templates, ephemeris)
        np.testing.assert_allclose(found.two_f[i], alone.two_f[0], rtol=1e-9)
        which = [sfts.names.index(n) for n in part.names]  # the last stack has one detector
        np.testing.assert_allclose(found.two_f_detector[i, which], alone.two_f_detector[0], rtol=1e-9)


def test_a_stack_without_one_of_the_detectors():
    ephemeris, templates, sfts = model(), some_templates(), made(counts=(8, 4))
    late = REFERENCE + 10_000 * SECOND
    data = prepare(sfts, stacks=[sfts.between(0, late), sfts.between(late, 1 << 62)])
    assert np.diff(data.group).tolist() == [5, 4, 3, 0]
    found = f_statistic(data, templates, ephemeris)
    np.testing.assert_allclose(found.two_f_detector[1, 0], found.two_f[1], rtol=1e-9)
    assert (found.two_f_detector[1, 1] == 4).all()


def test_the_kernel_has_a_limit_at_a_bin():
    """Just beyond and just within the rule for kappa near an integer, values are close."""
    ephemeris, sfts = model(), made(counts=(1, 0))
    sfts = SftSet(sfts.detectors[:1])
    data = prepare(sfts)
    seen = geometry(data, ephemeris, 1.0, 0.3)
    freq = 179970 / (data.duration * seen.arrival.rate[0, 0])
    reference = int(seen.arrival.time[0, 0])
    shifts = np.array([-2.1e-4, -1.9e-4, 0.0, 1.9e-4, 2.1e-4]) / data.duration
    found = [atoms(data, Templates(freq + s, 1.0, 0.3, reference=reference), ephemeris, 0).fb[0] for s in shifts]
    np.testing.assert_allclose(found, found[2], rtol=0, atol=5e-3 * abs(found[2]) + 1e-3)
    x = data.data[179970 - 179900]
    np.testing.assert_allclose(abs(found[2]), abs(x * seen.b[0, 0]), rtol=1e-6)


def test_one_sft_says_nothing_about_two_polarisations():
    sfts = SftSet(made(counts=(1, 0)).detectors[:1])
    found = f_statistic(prepare(sfts), some_templates(), model())
    assert (found.two_f == 4).all()
    assert two_f(*np.array([[1 + 1j], [2j]]), *np.array([[1.0], [1.0], [0.9998]]))[0] != 4
    assert two_f(*np.array([[1 + 1j], [2j]]), *np.array([[1.0], [1.0], [0.99981]]))[0] == 4


def test_the_full_kernel_is_that_of_all_bins():
    ephemeris, templates, sfts = model(), some_templates(), made()
    data = prepare(sfts)
    full = f_statistic(data, templates, ephemeris, dterms=None)
    # Every bin by hand, for one atom.
    seen = geometry(data, ephemeris, templates.alpha[:1], templates.delta[:1])
    one = atoms(data, templates, ephemeris, 0, dterms=None)
    since = seen.arrival.since(templates.reference)[0, 0]
    real = (
        1800
        * seen.arrival.rate[0, 0]
        * (templates.freq[0] + templates.f1dot[0] * since + templates.f2dot[0] * since**2 / 2)
    )
    kernel = (np.exp(-2j * np.pi * real) - 1) * 1j / (real - data.first_bin[0] - np.arange(140)) / (2 * np.pi)
    np.testing.assert_allclose(abs(one.fa[0]), abs(seen.a[0, 0] * (kernel @ data.data[:140])), rtol=1e-6)
    assert abs(full.two_f - f_statistic(data, templates, ephemeris).two_f).max() > 1e-3


STATISTICS = {
    "f_statistic": lambda data, **given: f_statistic(data, Templates(99.9861, 1.0, 0.3, reference=REFERENCE), model(), **given).two_f,
    "atoms": lambda data, **given: atoms(data, Templates(99.9861, 1.0, 0.3, reference=REFERENCE), model(), 0, **given).fa,
    "f_statistic_band": lambda data, **given: f_statistic_band(data, Band(99.9861, 1e-6, 3, 1.0, 0.3, REFERENCE), model(), **given).two_f,
    "choose_method": lambda data, **given: choose_method(data, Band(99.9861, 1e-6, 3, 1.0, 0.3, REFERENCE), **given).reason,
}  # fmt: skip
"""What takes dterms after `prepare` did."""


@pytest.mark.parametrize("name", STATISTICS)
def test_bins_on_each_side_are_those_that_the_data_are_prepared_for(name):
    statistic, sfts, band = STATISTICS[name], made(), (99.972, 99.99)
    data = prepare(sfts, band, dterms=4, window=51)
    np.testing.assert_array_equal(statistic(data), statistic(data, dterms=4))
    whole = prepare(sfts, dterms=4, window=51)  # weights of all bins hold for any number of terms
    np.testing.assert_array_equal(statistic(whole), statistic(whole, dterms=4))
    assert np.any(statistic(whole) != statistic(whole, dterms=8))
    known = prepare(sfts, band, dterms=4, window=51, sqrt_s={"H1": 1e-23, "L1": 1e-23})
    assert len(statistic(known, dterms=8))  # constant weights are those of any band
    wanted = (
        "dterms is 8, and the data are prepared for 4, which determines the band of their noise weights; "
        "wanted the same: leave dterms out here, or prepare the data with dterms=8"
    )
    for some in (data, regrouped(data, 1), some_stacks(data, 0, 1)):
        with pytest.raises(InputError) as error:
            statistic(some, dterms=8)
        assert str(error.value) == wanted


def test_bins_that_are_not_there():
    templates = Templates([179970 / 1800, 179905 / 1800], 1.0, 0.3, reference=REFERENCE)
    with pytest.raises(InputError) as error:
        f_statistic(prepare(made()), templates, model())
    assert str(error.value).startswith("template 1 (99.9472222222 Hz) needs 99.9")
    assert str(error.value).endswith("there are 99.944444 to 100.021667 Hz: cover a wider band")
    with pytest.raises(InputError, match=r"H1: the bins 179900 to 180039 are loaded; wanted .*: load a wider band"):
        prepare(made(), (99.9, 100.1))


def test_what_cannot_be_prepared():
    with pytest.raises(InputError, match="sqrt_s has no value for L1; wanted one for every detector"):
        prepare(made(), sqrt_s={"H1": 1e-23})
    silent = made()
    silent.detectors[0].data[3, 20:90] = 0
    with pytest.raises(InputError, match="H1: the noise of the SFT at GPS 1238172018 is zero or not finite"):
        prepare(silent)
    with pytest.raises(InputError, match="a stack lasts 900 s, and an SFT 1800 s; wanted at least as much"):
        split(made(), 900.0)


def test_templates_that_are_none():
    with pytest.raises(InputError, match=r"templates have different lengths: freq \(2,\), alpha \(3,\)"):
        Templates([1.0, 2.0], [1.0, 2.0, 3.0], 0.0, reference=0)
    with pytest.raises(InputError, match="f1dot of template 1 is nan; wanted -1 to 1 Hz/s"):
        Templates(1.0, 0.0, 0.0, [0.0, math.nan], reference=0)
    assert Templates(1.0, 0.0, 0.0, reference=0).spins.tolist() == [[1.0]]
    assert Templates([1.0, 2.0], 0.0, 0.0, f2dot=[0.0, 0.5], reference=0).spins.tolist() == [[1, 0, 0], [2, 0, 0.5]]
