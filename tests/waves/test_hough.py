"""Hough maps, lists of candidates and summed 2F: against LALPulsar's HierarchicalSearch and HierarchSearchGCT, and
against loops.
"""

from __future__ import annotations

import gzip
import math
from dataclasses import replace

import numpy as np
import pytest

from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.hierarchical import CANDIDATE, candidates, hierarchical_search, hough_maps, merged, middle_time
from lanewise.sims.waves.hierarchical_setup import DOPPLER, Search, set_up
from lanewise.sims.waves.hough import (
    Significance,
    StackMotion,
    drift_offsets,
    make_patch,
    number_counts,
    pixel_offsets,
    pixel_order,
)
from lanewise.sims.waves.prepared import prepare, split
from lanewise.sims.waves.sft import load_sfts
from lanewise.sims.waves.synthesis import Signal, make_data
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris
from lanewise.sims.waves.timing.arrival import sky_vectors
from lanewise.support.errors import InputError
from tests.waves.truth import TRUTH, needs_tables, needs_truth

HIER = TRUTH / "hier"
REFERENCE = 1238166018 * SECOND
SKY = ((2.0, 0.3), (2.05, 0.3), (1.2, -0.7))
RESOLUTION, STEP = 2.77777777777778e-05, 7.71604938271605e-10
WIDE = Search(
    freq=60.008, freq_band=0.004, f1dot=-8e-10, f1dot_band=1.2e-9, reference=REFERENCE, stack=36000.0, most_stacks=8,
    resolution=RESOLUTION, f1dot_step=STEP, residuals=3, patch=(0.04, 0.04),
)  # fmt: skip
SMALL = Search(
    freq=60.010016666667, freq_band=0.000166666667, f1dot=-2e-10, f1dot_band=0.0, reference=REFERENCE, stack=36000.0,
    most_stacks=8, resolution=RESOLUTION, residuals=3, patch=(0.03, 0.03),
)  # fmt: skip


def rows(text: str) -> np.ndarray:
    return np.array(
        [[float(x) for x in line.split()] for line in text.splitlines() if line.strip() and line[0] not in "%#"]
    )


def difference(angle):
    return np.mod(angle + np.pi, 2 * np.pi) - np.pi


def place(maps, row):
    """Where the row of a candidate (frequency, alpha, delta, f1dot) lies in the maps, or None."""
    f, r = abs(maps.frequencies - row[0]), abs(maps.f1dot - row[3])
    sky = np.hypot(difference(maps.patch.alpha - row[1]), maps.patch.delta - row[2])
    if f.min() > 1e-9 or r.min() > 1e-15 or sky.min() > 1e-8:
        return None
    return (r.argmin(), f.argmin(), *np.unravel_index(sky.argmin(), sky.shape))


@needs_truth
@needs_tables
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weighted"])
@pytest.mark.parametrize("threshold", [2.6, 6.0])
def test_every_pixel_of_the_maps(threshold, weighted):
    grids = set_up(load_sfts(HIER / "sft" / "*.sft"), replace(SMALL, threshold=threshold, weighted=weighted))
    maps = hough_maps(grids, Ephemeris.load("DE405"), 2.0, 0.3, float(grids.f1dot[0]))
    with gzip.open(HIER / "houghmaps" / f"allpix_thr{threshold}{'_w' if weighted else ''}.gz", "rt") as stream:
        truth = rows(stream.read())
    assert truth.shape[0] == maps.counts.size == 3 * 7 * 13 * 13
    seen = set()
    for row in truth:
        at = place(maps, row)
        seen.add(at)
        assert abs(maps.significance[at] - row[4]) < (1e-5 if weighted else 1e-12)
    assert len(seen) == maps.counts.size
    if not weighted:
        s = Significance.of(np.ones(8), threshold)
        np.testing.assert_array_equal(
            np.sort(maps.counts.ravel()), np.sort(np.round(truth[:, 4] * s.deviation + s.mean))
        )


@needs_truth
@needs_tables
def test_f_of_every_stack_and_frequency():
    grids = set_up(load_sfts(HIER / "sft" / "*.sft"), WIDE)
    ephemeris = Ephemeris.load("DE405")
    blocks = [rows("#" + b) for b in (HIER / "hough/HS_fstatVec1.dat").read_text().split("## ")[1:]]
    assert len(blocks) == len(SKY) * 2 * 8
    for i in range(0, len(blocks), 8):
        n = len(blocks[i])
        margin = (n - grids.frequencies) // 2
        freq = grids.first + grids.resolution * np.arange(-margin, grids.frequencies + margin)
        alpha, delta = SKY[i // 16]
        templates = Templates(freq, alpha, delta, grids.f1dot[i // 8 % 2], reference=grids.middle)
        found = f_statistic(grids.data, templates, ephemeris).two_f
        np.testing.assert_allclose(found, [b[:, 4] for b in blocks[i : i + 8]], rtol=0, atol=2e-3)


@needs_truth
@needs_tables
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weighted"])
def test_lists_of_candidates(weighted):
    """Which of the candidates of one significance get into a list is open: all of LALPulsar's are among them, and none
    is higher.
    """
    sfts, ephemeris = load_sfts(HIER / "sft" / "*.sft"), Ephemeris.load("DE405")
    truth = rows((HIER / "hough" / ("HSw" if weighted else "HS")).read_text())
    search = replace(WIDE, weighted=weighted)
    grids = set_up(sfts, search)
    everything = [
        hough_maps(grids, ephemeris, alpha, delta, f1dot) for alpha, delta in SKY for f1dot in grids.f1dot.tolist()
    ]
    found = 0
    for row in truth:
        places = [(m, p) for m in everything if (p := place(m, row)) is not None]
        found += any(abs(m.significance[p] - row[4]) < 1e-5 for m, p in places)
    assert found == len(truth) == 50
    top = hierarchical_search(sfts, search, ephemeris, SKY, most=50)
    np.testing.assert_allclose(np.sort(top["significance"]), np.sort(truth[:, 4]), rtol=0, atol=1e-5)
    least, ours = top["significance"][-1], set(zip(top["freq"], top["alpha"], top["delta"], top["f1dot"], strict=True))
    assert len(ours) == 50
    assert sum(int((m.significance > least + 1e-5).sum()) for m in everything) == 0


@needs_truth
@needs_tables
def test_summed_2f():
    """The mean 2F over stacks at the candidates of GCT, computed exactly there at the end of its search."""
    truth = rows((HIER / "GCT_recalc.out").read_text())
    sfts = load_sfts(HIER / "sft" / "*.sft")
    low, high = 60.008 - 8e-10 * 288000, 60.012 + 4e-10 * 288000
    wing = high * DOPPLER
    data = prepare(sfts, (low - wing, high + wing), stacks=split(sfts, 36000.0))
    templates = Templates(*truth[:, :4].T, reference=REFERENCE)
    found = f_statistic(data, templates, Ephemeris.load("DE405"))
    assert len(truth) == 100
    np.testing.assert_allclose(found.two_f.mean(axis=0), truth[:, 7], rtol=0, atol=5e-4)
    np.testing.assert_allclose(found.two_f_detector.mean(axis=0), truth[:, 8:10].T, rtol=0, atol=1e-3)


def some_motion(stacks=5, seed=1) -> StackMotion:
    rng = np.random.default_rng(seed)
    time = REFERENCE + np.arange(stacks, dtype=np.int64) * 36_000 * SECOND
    return StackMotion(rng.normal(size=(stacks, 3)) * 300, rng.normal(size=(stacks, 3)) * 6e-5, time)


def test_counts_against_loops():
    rng = np.random.default_rng(3)
    motion, patch = some_motion(), make_patch(1.0, -0.4, (0.03, 0.02), 1_000_000)
    offsets = pixel_offsets(patch, motion, REFERENCE, 100.0, -1e-9, 1e-4)
    drifts = drift_offsets(motion, REFERENCE, np.array([-1e-9, 0.0, 2e-9]), 1e-4)
    weights = rng.uniform(0.5, 1.5, 5)
    peaks = rng.random((5, 60)) < 0.3
    counts = number_counts(peaks, 25, 10, offsets, drifts, weights)
    centre = sky_vectors(*(np.array(c) for c in patch.centre))
    for r, f, i, j in rng.integers(0, [3, 10, *patch.shape], (200, 4)):
        n = sky_vectors(patch.alpha[i, j], patch.delta[i, j])
        total = 0.0
        for k in range(5):
            t = (motion.time[k] - REFERENCE) * 1e-9
            xi = (100.0 - 1e-9 * t) * motion.velocity[k] - 1e-9 * motion.position[k]
            shift = math.floor(float(xi @ (n - centre)) / 1e-4 + 0.5)
            drift = math.floor(t * [-1e-9, 0.0, 2e-9][r] / 1e-4 + 0.5)
            total += weights[k] * peaks[k, 25 + f + shift + drift]
        assert counts[r, f, i, j] == pytest.approx(total)
    with pytest.raises(InputError, match="the peaks have 2 bins below and 48 above the frequencies; wanted"):
        number_counts(peaks, 2, 10, offsets, drifts, weights)


def test_patches():
    patch = make_patch(2.0, 0.3, (0.03, 0.05), 2160360)
    assert patch.shape == (22, 13)
    # Distances of neighbours are those of pixels, and the patch is about its centre.
    n = sky_vectors(patch.alpha, patch.delta)
    steps = np.linalg.norm(np.diff(n, axis=0), axis=-1), np.linalg.norm(np.diff(n, axis=1), axis=-1)
    for s in steps:
        np.testing.assert_allclose(s, patch.pixel, rtol=1e-3)
    mean = n.mean(axis=(0, 1))
    np.testing.assert_allclose(mean / np.linalg.norm(mean), sky_vectors(np.array(2.0), np.array(0.3)), atol=1e-9)
    with pytest.raises(InputError, match="the patch is 0 x 4 radians; wanted above 0 and at most pi"):
        make_patch(2.0, 0.3, (0.0, 4.0), 2160360)


@pytest.mark.parametrize(("alpha", "delta"), [(2.0, 0.3), (0.0, 0.0), (1.0, 1.5), (5.0, -np.pi / 2)])
def test_pixels_are_ordered_by_alpha_and_then_by_delta(alpha, delta):
    """Those of the meridian of the centre have one alpha, or nearly."""
    patch = make_patch(alpha, delta, (0.05, 0.06), 1_000_000)
    rounded = replace(patch, alpha=patch.alpha.round(1), delta=patch.delta.round(3))
    both = (patch, rounded)
    for p, order in zip(both, pixel_order(both), strict=True):
        a, d = p.alpha.reshape(-1), p.delta.reshape(-1)
        np.testing.assert_array_equal(order, np.lexsort((d, a)))
    assert len(np.unique(rounded.alpha)) < rounded.alpha.size


def test_significance():
    """8 stacks at threshold 2.6, of the truth: 8 counts are 4.68 deviations."""
    s = Significance.of(np.ones(8), 2.6)
    assert (s.mean, s.deviation) == (pytest.approx(2.1391, abs=1e-4), pytest.approx(1.2518, abs=1e-4))
    assert s(np.array(8.0)) == pytest.approx(4.681817793929972, abs=1e-12)


def test_lists_do_not_depend_on_the_order():
    rng = np.random.default_rng(4)
    everything = np.empty(300, CANDIDATE)
    for name in CANDIDATE.names:
        everything[name] = rng.random(300).round(2)
    everything["significance"] = rng.integers(0, 6, 300)
    once = merged([everything], 40)
    parts = np.array_split(rng.permutation(everything), 7)
    again = parts[0][:0]
    for p in parts:
        again = merged([again, p], 40)
    np.testing.assert_array_equal(once, again)
    assert (np.diff(once["significance"]) <= 0).all()
    assert once["significance"].min() >= np.sort(everything["significance"])[-40]


@pytest.mark.parametrize("weighted", [False, True])
def test_an_injected_signal_is_found(weighted):
    pytest.importorskip("erfa")
    ephemeris = Ephemeris.load("EPV00")
    start = 1238166018 + 1800 * np.arange(100)
    signal = Signal(
        h0=8e-25, cosi=0.8, freq=60.0101, alpha=2.0, delta=0.3, f1dot=-2e-10, reference=REFERENCE + 90_000 * SECOND
    )
    sfts = make_data(
        {"H1": start, "L1": start}, (59.85, 60.17), sqrt_s={"H1": 1e-23, "L1": 1e-23}, signals=[signal],
        ephemeris=ephemeris, seed=8,
    )  # fmt: skip
    search = Search(
        freq=60.0095, freq_band=0.001, f1dot=-2e-10, f1dot_band=0.0, reference=signal.reference, stack=36000.0,
        residuals=3, patch=(0.02, 0.02), threshold=4.0, weighted=weighted,
    )  # fmt: skip
    grids = set_up(sfts, search)
    assert grids.data.stacks == 5
    assert middle_time(grids) == 1238166018 + 90_000
    maps = hough_maps(grids, ephemeris, 2.0, 0.3, -2e-10)
    best = candidates(maps, 20)
    assert best["count"][0] == pytest.approx(5.0)
    near = best[best["count"] > best["count"][0] - 1e-9]
    assert abs(near["freq"] - signal.freq).min() < 1.5 * grids.resolution
    assert abs(near["alpha"] - 2.0).min() < 0.01
    with pytest.raises(InputError, match="there are no directions to search"):
        hierarchical_search(sfts, search, ephemeris, [])
