"""Follow-up of candidates: stacks taken together, the metric, its lattice; a signal is recovered, noise is not
promoted.
"""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.sims import waves
from lanewise.sims.waves.hierarchical import CANDIDATE
from lanewise.sims.waves.hierarchical_setup import Grids
from lanewise.sims.waves.refinement import follow_up, lattice, phase_metric, regrouped, some_stacks
from lanewise.sims.waves.refinement.follow_up import _Point, false_alarm, pixel_size  # pyright: ignore[reportPrivateUsage]
from lanewise.sims.waves.refinement.metric import tangents
from lanewise.support.errors import InputError

START = 1238166018
REFERENCE = waves.gps_time(START + 432_000)


def made(count: int, h0: float, seed: int, detectors: str = "H1,L1") -> waves.SftSet:
    pytest.importorskip("erfa")
    starts = [START + 1800 * i for i in range(count)]
    names = detectors.split(",")
    signal = waves.Signal(
        h0=h0, cosi=0.8, psi=0.2, phi0=1.0, freq=60.0101, alpha=2.003, delta=0.302, f1dot=-2.3e-10, reference=REFERENCE
    )
    return waves.make_data(
        dict.fromkeys(names, starts), (59.85, 60.17), sqrt_s=dict.fromkeys(names, 1e-23), signals=[signal] if h0 else [],
        ephemeris=waves.Ephemeris.load("EPV00"), seed=seed,
    )  # fmt: skip


def a_search(**changes: float) -> waves.Search:
    values = {"freq": 60.0095, "freq_band": 0.001, "f1dot": -2e-10, "f1dot_band": 0.0, "stack": 36000.0, "residuals": 3}
    return waves.Search(**{**values, **changes}, reference=REFERENCE, patch=(0.03, 0.03))


@pytest.fixture(scope="module")
def ephemeris() -> waves.Ephemeris:
    pytest.importorskip("erfa")
    return waves.Ephemeris.load("EPV00")


@pytest.mark.parametrize("stacks", [1, 2, 3])
def test_stacks_taken_together(stacks: int) -> None:
    """As if the SFTs had been prepared in such stacks."""
    sfts = made(60, 0.0, 3)
    grids = waves.set_up(sfts, a_search())
    search = grids.search
    parts = waves.split(sfts, search.stack)
    cover = waves.search_cover(search, parts[0].start, parts[-1].end, sfts.duration)
    merged = [parts] if stacks == 1 else [parts[:2], parts[2:]] if stacks == 2 else [[p] for p in parts]
    joined = [sfts.between(p[0].start, p[-1].end) for p in merged]
    expected, found = waves.prepare(sfts, cover, stacks=joined), regrouped(grids.data, stacks)
    for name in ("offset", "first_bin", "group", "middle", "data", "span"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name in ("weight", "sinv_tsft"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    with pytest.raises(InputError, match="4 stacks are requested; wanted 1 to 3, of which they are made"):
        regrouped(grids.data, 4)


def test_some_of_the_stacks(ephemeris: waves.Ephemeris) -> None:
    """2F of each is what it is among all, but for the time that its spins are moved to."""
    data = waves.set_up(made(60, 2e-24, 3), a_search()).data
    templates = waves.Templates(60.0101 + 1e-5 * np.arange(3), 2.003, 0.302, -2.3e-10, reference=REFERENCE)
    whole = waves.f_statistic(data, templates, ephemeris).two_f
    for first, end in ((0, 1), (1, 3), (0, 3)):
        some = some_stacks(data, first, end)
        assert (some.stacks, len(some)) == (end - first, data.group[2 * end] - data.group[2 * first])
        np.testing.assert_allclose(waves.f_statistic(some, templates, ephemeris).two_f, whole[first:end], rtol=1e-8)


@pytest.mark.parametrize("stacks", [1, 12])
def test_the_metric_says_what_is_lost(ephemeris: waves.Ephemeris, stacks: int) -> None:
    """Of a loud signal: 2F falls by the mismatch along each parameter and along their mixtures."""
    sfts = made(240, 3e-24, 0, "H1")
    data = regrouped(waves.set_up(sfts, a_search()).data, stacks)
    signal = (60.0101, -2.3e-10, 2.003, 0.302)
    g = phase_metric(data, ephemeris, signal[0], *signal[2:], REFERENCE)
    rng = np.random.default_rng(1)
    near = np.linalg.inv(
        np.linalg.cholesky(g + np.diag([0, 0, 300, 300]))
    )  # the sky is flat for some tenths of a radian
    offsets = np.concatenate([np.eye(4), rng.normal(size=(200, 4)) @ near])
    offsets *= np.sqrt(0.1 / np.einsum("ni,ij,nj->n", offsets, g, offsets))[:, None]  # all of mismatch 0.1
    offsets = offsets[np.hypot(offsets[:, 2], offsets[:, 3]) < 0.01]  # as in regions that are followed
    assert len(offsets) > 20
    here, east, north = tangents(*signal[2:])
    n = here + offsets[:, 2, None] * east + offsets[:, 3, None] * north
    n /= np.linalg.norm(n, axis=1)[:, None]
    places = np.concatenate([[[0.0, 0.0]], offsets[:, :2]]) + signal[:2]
    alpha = np.concatenate([[signal[2]], np.arctan2(n[:, 1], n[:, 0])])
    delta = np.concatenate([[signal[3]], np.arcsin(n[:, 2])])
    templates = waves.Templates(places[:, 0], alpha, delta, places[:, 1], reference=REFERENCE)
    two_f = waves.f_statistic(data, templates, ephemeris).two_f.mean(axis=0)
    lost = 1 - (two_f[1:] - 4) / (two_f[0] - 4)
    # The phase metric says too much for stacks of less than a day, whose amplitudes can follow a phase; the sky is
    # curved.
    assert (0.08 if stacks == 1 else 0.03) < np.median(lost) < 0.11
    assert (lost[:4] < 0.1).all()
    assert (lost < 0.25).all()


@pytest.mark.parametrize("alpha", [0.0, 0.001, 3.0, 6.282])
@pytest.mark.parametrize("delta", [0.0, 1.2, -np.pi / 2])
def test_offsets_of_a_point_lead_there_and_back(alpha: float, delta: float) -> None:
    """Right ascensions stay within a turn."""
    here, offsets = (
        _Point(100.0, -1e-9, alpha, delta),
        np.random.default_rng(1).normal(size=(50, 4)) * [1e-4, 1e-10, 0.01, 0.01],
    )
    moved = here.moved(offsets)
    assert ((moved[2] >= 0) & (moved[2] < 2 * np.pi)).all()
    back = [here.offset(_Point(*(float(x) for x in there))) for there in zip(*moved, strict=True)]
    np.testing.assert_allclose(back, offsets, rtol=1e-6, atol=1e-12)


def test_a_lattice_covers_its_region() -> None:
    """No point of the ellipsoid is farther from the lattice than the mismatch, and directions are shared."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    metric, region = root @ root.T + 0.1 * np.eye(4), np.diag([0.5, 2.0, 1.0, 0.7]) * 0.1
    common, points = lattice(metric, region, 0.2, 10**6)
    assert (np.einsum("ni,ij,nj->n", points, region, points) <= 1 + 1e-9).all()
    assert (points == 0).all(axis=1).any()
    for number in np.unique(common):
        np.testing.assert_allclose(np.ptp(points[common == number][:, 2:], axis=0), 0, atol=1e-9)
    inside = rng.normal(size=(300, 4))
    inside *= 0.7 * (rng.uniform(size=300) ** 0.25 / np.sqrt(np.einsum("ni,ij,nj->n", inside, region, inside)))[:, None]
    nearest = [np.einsum("ni,ij,nj->n", points - x, metric, points - x).min() for x in inside]
    assert max(nearest) <= 0.2
    assert max(nearest) > 0.1  # and it is no finer
    with pytest.raises(InputError, match=r"templates at a time; wanted at most 100: data without long gaps, or longer"):
        lattice(metric * 1e4, region, 0.2, 100)


def candidates_of(sfts: waves.SftSet, search: waves.Search, ephemeris: waves.Ephemeris) -> tuple[Grids, np.ndarray]:
    found = waves.hierarchical_search(sfts, search, ephemeris, [(2.0, 0.3)], 60, device="cpu")
    return waves.set_up(sfts, search), found


def test_a_signal_is_recovered(ephemeris: waves.Ephemeris) -> None:
    """Nearer than a cell of the search's grid in each parameter, with all of the coherent 2F, and of both detectors."""
    sfts = made(480, 1.2e-24, 5)
    grids, candidates = candidates_of(sfts, a_search(stack=7200.0, f1dot_step=2e-9, residuals=11), ephemeris)
    found = follow_up(grids, ephemeris, candidates, 1, device="cpu")
    assert found.dtype.names is not None
    assert found.dtype.names[-2:] == ("twoF_H1", "twoF_L1")
    best = found[0]
    true = 60.0101 - 2.3e-10 * (grids.middle - REFERENCE) * 1e-9
    assert abs(best["freq"] - true) < grids.resolution / 4
    assert abs(best["f1dot"] + 2.3e-10) < (grids.residuals[1] - grids.residuals[0]) / 4
    assert abs(best["alpha"] - 2.003) * np.cos(0.302) < pixel_size(grids)
    assert abs(best["delta"] - 0.302) < pixel_size(grids)
    whole = regrouped(grids.data, 1)
    one = waves.Templates(true, 2.003, 0.302, -2.3e-10, reference=grids.middle)
    at = waves.f_statistic(whole, one, ephemeris)
    assert best["twoF"] > at.two_f[0, 0] - 1
    assert best["promoted"] == 1
    assert best["false_alarm"] < 1e-12
    first = candidates[0]
    start = waves.Templates(first["freq"], first["alpha"], first["delta"], first["f1dot"], reference=grids.middle)
    assert waves.f_statistic(whole, start, ephemeris).two_f[0, 0] < 0.5 * best["twoF"]
    again = waves.Templates(best["freq"], best["alpha"], best["delta"], best["f1dot"], reference=grids.middle)
    there = waves.f_statistic(whole, again, ephemeris)
    np.testing.assert_allclose([best["twoF_H1"], best["twoF_L1"]], there.two_f_detector[0, :, 0], rtol=1e-4)
    np.testing.assert_allclose(
        best["mean_twoF"], waves.f_statistic(grids.data, again, ephemeris).two_f.mean(), rtol=1e-4
    )


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_not_promoted(ephemeris: waves.Ephemeris, seed: int) -> None:
    grids, candidates = candidates_of(made(100, 0.0, seed), a_search(), ephemeris)
    found = follow_up(grids, ephemeris, candidates, 3, device="cpu")
    assert 1 <= len(found) <= 3
    assert (found["promoted"] == 0).all()
    assert (found["false_alarm"] > 0.05).all()
    assert (found["mean_twoF"] > 4).all()  # they are the loudest of many templates all the same
    assert (np.diff(found["twoF"]) <= 0).all()


def test_a_signal_in_one_detector_alone_is_not_promoted(ephemeris: waves.Ephemeris) -> None:
    """As a line of an instrument: 2F of one detector is above that of all."""
    loud, quiet = made(100, 8e-25, 1, "H1"), made(100, 0.0, 2, "L1")
    sfts = waves.SftSet((*loud, *quiet))
    grids, candidates = candidates_of(sfts, a_search(), ephemeris)
    found = follow_up(grids, ephemeris, candidates, 1, device="cpu")[0]
    assert found["false_alarm"] < 0.01
    assert found["twoF_H1"] > found["twoF"] > found["twoF_L1"]
    assert found["promoted"] == 0


def test_one_place_is_one_result(ephemeris: waves.Ephemeris) -> None:
    """Candidates of one signal end where it is, or beside it."""
    grids, candidates = candidates_of(made(60, 8e-25, 8), a_search(), ephemeris)
    done: list[int] = []
    found = follow_up(grids, ephemeris, candidates, 4, device="cpu", report=done.append)
    assert len(done) == 4
    assert len(found) == 1
    one = follow_up(grids, ephemeris, candidates[:1], 4, device="numpy")
    assert one["rank"].tolist() == [0]
    with pytest.raises(InputError, match="wanted those of a search, one at least"):
        follow_up(grids, ephemeris, np.empty(0, CANDIDATE), 4)
    with pytest.raises(InputError, match="a follow-up of 0 candidates is requested; wanted at least 1"):
        follow_up(grids, ephemeris, candidates, 0)


def test_false_alarms_are_those_of_noise() -> None:
    """Of Gaussian numbers: 2F of stacks is the sum of squares in four dimensions each, that of all the part in four of
    all.
    """
    rng = np.random.default_rng(3)
    stacks = 6
    numbers = rng.normal(size=(20_000, stacks, 4))
    parts = (numbers**2).sum(axis=2)
    together = (numbers.sum(axis=1) ** 2 / stacks).sum(axis=1)
    for level in (0.3, 0.03):
        rare = [false_alarm(t, p, 1.0, 1e300) / 2 < level for t, p in zip(together, parts, strict=True)]
        assert abs(np.mean(rare) - level) < 4 * np.sqrt(level / 20_000)
        alone = [false_alarm(t, p, 1e300, 1.0) / 2 < level for t, p in zip(together, parts, strict=True)]
        assert abs(np.mean(alone) - level) < 4 * np.sqrt(level / 20_000)
    assert false_alarm(400.0, np.array([400.0]), 1.0, 1e6) < 1e-70
    assert false_alarm(5.0, np.array([5.0]), 1.0, 1e6) == 1.0
