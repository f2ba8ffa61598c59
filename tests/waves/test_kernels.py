"""The amplitudes of the F-statistic: against LALPulsar's numbers for real files, and against the sum in float64 for random ones."""

from __future__ import annotations

import csv
import struct
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.memory import to_host
from lanewise.sims.waves.kernels import (
    Sft,
    Template,
    demodulate,
    dirichlet_kernel,
    interpolated_kernel,
    polynomials,
    two_f,
)
from tests.patterns.segmentwise import interpreted

DATA = Path(__file__).parents[1] / "data" / "demodulation"
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
METHODS = ["dirichlet", "interpolated"]
DURATION, WINDOW, COVER = 1800.0, 101, (99.9, 100.1)  # of an SFT (s), of the running median (bins), of the band (Hz)


# ---------------------------------------------------------------- LALPulsar's numbers


@cache
def spectra() -> dict[tuple[str, int], tuple[int, Any]]:
    """First bin and bins of every SFT (version 3), by detector and start."""
    found: dict[tuple[str, int], tuple[int, Any]] = {}
    for path in sorted(DATA.glob("*.sft")):
        content, place = path.read_bytes(), 0
        while place < len(content):
            _, start, _, _, first, count, _, detector, _, comment = struct.unpack_from("<diidiiQ2sHi", content, place)
            place += 48 + comment
            found[detector.decode(), start] = first, np.frombuffer(content, "<c8", count, place)
            place += 8 * count
    return found


def normalised(first: int, x: Any, dterms: int) -> tuple[int, Any, float]:
    """The band that LALPulsar loads, divided by the root of its running median, and the noise weight of the SFT."""
    beyond = (dterms + WINDOW // 2 + 1) / DURATION
    low = int(np.floor((COVER[0] - beyond) * DURATION + 1e-6))
    high = int(np.ceil((COVER[1] + beyond) * DURATION - 1e-6)) - 1
    x = x[low - first : high + 1 - first].astype(complex)
    bias = sum((-1) ** (k + 1) / k for k in range(1, WINDOW + 1))
    power = np.median(np.lib.stride_tricks.sliding_window_view(abs(x) ** 2, WINDOW), axis=1) / bias
    whole = np.concatenate([np.full(WINDOW // 2, power[0]), power, np.full(WINDOW // 2, power[-1])])
    return low, (x / np.sqrt(whole)).astype("c8"), 1.0 / power.mean()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dterms", [8, 16])
def test_as_lalpulsar(method: Any, dterms: int, device: str) -> None:
    with (DATA / "per_sft.csv").open() as a, (DATA / "twoF_signal.csv").open() as b:
        places, templates = list(csv.DictReader(a)), list(csv.DictReader(b))
    compared = 0
    for template in templates:
        at = (float(template["alpha"]), float(template["delta"]))
        rows = [p for p in places if np.allclose((float(p["alpha"]), float(p["delta"])), at, rtol=0, atol=1e-9)]
        if not rows:
            continue
        compared += 1
        data = [normalised(*spectra()[p["IFO"], int(p["gps_start"])], dterms) for p in rows]
        weights = np.array([w for _, _, w in data])
        weights = np.sqrt(weights / weights.mean())
        columns = {
            n: np.array([float(p[n]) for p in rows])
            for n in ("DeltaT_SSB_minus_ref", "Tdot", "a_unweighted", "b_unweighted")
        }
        a, b = ((columns[f"{n}_unweighted"] * weights).astype("f4") for n in "ab")
        if dterms == 8:
            np.testing.assert_allclose(a, [float(p["a_weighted"]) for p in rows], rtol=2e-3)
        detectors = [p["IFO"] for p in rows]
        sfts = lw.ragged(
            Sft.array(
                delay=columns["DeltaT_SSB_minus_ref"], bins_per_hertz=DURATION * columns["Tdot"], a=a, b=b,
                first_bin=np.array([low for low, _, _ in data], "i4"), device=device,
            ),
            counts=np.array([[detectors.count("H1"), detectors.count("L1")]]), device=device,
        )  # fmt: skip
        bins = lw.ragged([x for _, x, _ in data], device=device)
        fields = {
            n: np.array([float(template[column])])
            for n, column in (("frequency", "freq"), ("f1dot", "f1dot"), ("f2dot", "f2dot"))
        }
        found = to_host(demodulate(Template.array(**fields, device=device), sfts, bins, dterms=dterms, method=method))
        assert found.shape == (1, 1, 2, 4)
        total = found.astype(np.float64).sum(axis=2)[0, 0]
        sums = [(x.astype(np.float64) * y).sum() for x, y in ((a, a), (b, b), (a, b))]
        assert abs(two_f(total, *sums) - float(template[f"twoF_DemodGeneric_D{dterms}"])) <= 2e-3
        if dterms == 8:
            for n, name in enumerate(("Fa", "Fb")):
                wanted = np.hypot(float(template[f"{name}_re"]), float(template[f"{name}_im"]))
                assert abs(np.hypot(*total[2 * n : 2 * n + 2]) - wanted) <= 1e-3
            own = [
                (a[: detectors.count("H1")], b[: detectors.count("H1")]),
                (a[detectors.count("H1") :], b[detectors.count("H1") :]),
            ]
            for n, (x, y) in enumerate(own):
                x, y = x.astype(np.float64), y.astype(np.float64)
                one = two_f(found[0, 0, n].astype(np.float64), (x * x).sum(), (y * y).sum(), (x * y).sum())
                assert abs(one - float(template[f"twoF_{('H1', 'L1')[n]}"])) <= 2e-3
    assert compared == 5


# ---------------------------------------------------------------- random stacks, in float64


class Search:
    """Random SFTs of random stacks and detectors, and templates of a narrow band, for tests."""

    def __init__(self, counts: Any, templates: int, seed: int, bins: int = 60) -> None:
        rng = np.random.default_rng(seed)
        n, self.counts = int(np.sum(counts)), np.asarray(counts)
        self.delay = rng.uniform(-1e6, 1e6, n)
        self.rate = 1800.0 * (1 + 1e-4 * rng.normal(size=n))
        self.a, self.b = rng.normal(size=(2, n)).astype("f4")
        self.frequency = 100.0 + rng.uniform(0, 0.005, templates)
        self.f1dot, self.f2dot = rng.normal(size=templates) * 1e-9, rng.normal(size=templates) * 1e-16
        # The band lies around what the SFT's rate and the spin-down make of 100 Hz, at other bins for each SFT.
        self.first = (np.floor(self.rate * 100.0) - bins // 2 + rng.integers(0, 5, n)).astype("i4")
        self.x = (rng.normal(size=(n, bins)) + 1j * rng.normal(size=(n, bins))).astype("c8")

    def arguments(self, device: str = "cpu") -> tuple[Any, Any, Any]:
        sfts = Sft.array(
            delay=self.delay, bins_per_hertz=self.rate, a=self.a, b=self.b, first_bin=self.first, device=device
        )
        templates = Template.array(frequency=self.frequency, f1dot=self.f1dot, f2dot=self.f2dot, device=device)
        lengths = np.full(len(self.delay), self.x.shape[1])
        return (
            templates,
            lw.ragged(sfts, counts=self.counts, device=device),
            lw.ragged(self.x.reshape(-1), counts=lengths, device=device),
        )

    def kappa(self) -> Any:
        place = self.rate * (
            self.frequency[:, None] + self.delay * (self.f1dot[:, None] + self.delay * self.f2dot[:, None] / 2)
        )
        return place - np.floor(place)

    def reference(self, dterms: int) -> Any:
        """The published sum, term by term: shape (templates, *counts, 4)."""
        f, f1, f2 = (x[:, None] for x in (self.frequency, self.f1dot, self.f2dot))
        phase = self.delay * (f + self.delay * (f1 / 2 + self.delay * f2 / 6))
        place = self.rate * (f + self.delay * (f1 + self.delay * f2 / 2))
        k = np.floor(place).astype(int)
        kappa = place - k
        terms = np.arange(1 - dterms, dterms + 1)
        index = (k - self.first)[..., None] + terms
        inside = (index >= 0).all(-1) & (index < self.x.shape[1]).all(-1)
        x = self.x[np.arange(len(self.delay))[:, None], np.clip(index, 0, self.x.shape[1] - 1)].astype(complex)
        with np.errstate(invalid="ignore", divide="ignore"):
            p = (np.sin(2 * np.pi * kappa) + 1j * (np.cos(2 * np.pi * kappa) - 1))[..., None] / (
                kappa[..., None] - terms
            )
            total = (p * x).sum(-1) / (2 * np.pi)
        nearest = np.where(kappa < 0.5, x[..., dterms - 1], x[..., dterms])
        total = np.where((kappa <= 2e-4) | (kappa >= 1 - 2e-4), nearest, total)
        turns = place / 2 - phase
        y = np.where(inside, np.exp(2j * np.pi * (turns - np.floor(turns))) * total, np.nan)
        ends = np.concatenate([[0], np.cumsum(self.counts.reshape(-1))])
        fa, fb = (np.stack([(c * y)[:, s:e].sum(1) for s, e in pairwise(ends)], axis=1) for c in (self.a, self.b))
        return np.stack([fa.real, fa.imag, fb.real, fb.imag], axis=-1).reshape(
            len(self.frequency), *self.counts.shape, 4
        )


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", ["python", *DEVICES])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dterms", [1, 3, 8, 16])
def test_the_sum_of_random_stacks(method: Any, dterms: int, device: str) -> None:
    search = Search([[3, 0], [4, 1]], 6 if device == "python" else 200, seed=dterms)
    if device == "python" and method == "interpolated":
        found = interpolated_kernel()(
            *search.arguments(device)[:2], polynomials(*search.arguments("python")[1:], dterms)
        )
    else:
        found = demodulate(*search.arguments(device), dterms=dterms, method=method)
    wanted = search.reference(dterms)
    assert not np.isnan(wanted).any()
    np.testing.assert_allclose(to_host(found), wanted, atol=5e-5 if method == "dirichlet" else 2e-3, rtol=1e-5)
    kappa = search.kappa()
    away = ((kappa > 2e-4) & (kappa < 1 - 2e-4)).all(axis=1)
    np.testing.assert_allclose(to_host(found)[away], wanted[away], atol=5e-5, rtol=1e-5)


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 5), min_size=1, max_size=4), templates=st.integers(1, 30), seed=st.integers(0, 10**6),
    dterms=st.integers(1, 20), method=st.sampled_from(METHODS),
)  # fmt: skip
def test_any_stacks(counts: list[int], templates: int, seed: int, dterms: int, method: Any) -> None:
    if not sum(counts):
        counts = [*counts, 1]
    search = Search(counts, templates, seed, bins=40)  # some windows do not fit
    found, wanted = demodulate(*search.arguments(), dterms=dterms, method=method), search.reference(dterms)
    np.testing.assert_allclose(found, wanted, atol=2e-3, rtol=1e-5)  # the same templates are not numbers


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(
    "plan", [Plan(), Plan(targets=2), Plan(slices=8, targets=2), Plan(slices=32), Plan(fast_math=True)], ids=Plan.short
)
@pytest.mark.parametrize("method", METHODS)
def test_threads_of_a_gpu(method: str, plan: Plan) -> None:
    search = Search([[3, 0], [4, 1]], 33, seed=3)
    templates, sfts, bins = search.arguments()
    kernel, table = (
        (dirichlet_kernel(8), bins) if method == "dirichlet" else (interpolated_kernel(), polynomials(sfts, bins, 8))
    )
    (found,) = interpreted(kernel, (templates, sfts, table), {}, plan)
    np.testing.assert_allclose(found.reshape(33, 2, 2, 4), search.reference(8), atol=2e-3, rtol=1e-5)


@pytest.mark.parametrize("near", [0.0, 1e-7, 1e-4, 1.9e-4, 2.1e-4, 0.5, 1 - 2.1e-4, 1 - 1e-4, 1 - 1e-7])
@pytest.mark.parametrize("method", METHODS)
def test_frequencies_at_and_beside_bins(method: Any, near: float) -> None:
    """The interpolated kernel goes on smoothly where LALPulsar takes the nearest bin: the phase differs by 6e-4 at most."""
    search = Search([1], 1, seed=5)
    search.delay[:], search.f1dot[:], search.f2dot[:], search.rate[:] = 1000.0, 0.0, 0.0, 1800.0
    search.first[:] = 180_000 - 30
    search.frequency[:] = (180_000 + near) / 1800.0
    found, wanted = demodulate(*search.arguments(), method=method), search.reference(8)
    size = np.hypot(*wanted[0, 0, :2])
    rounded = 6e-8 / max(2e-4, min(near, 1 - near))  # kappa is a float32, and so is its distance from the next bin
    tolerance = 2e-5 + 2 * rounded if method == "dirichlet" else 2e-3
    np.testing.assert_allclose(found, wanted, atol=tolerance * np.hypot(size, np.hypot(*wanted[0, 0, 2:])))


def test_what_the_data_do_not_cover_is_not_a_number() -> None:
    search = Search([[2, 2]], 3, seed=1)
    search.frequency[1] += 1.0
    for method in METHODS:
        found = demodulate(*search.arguments(), method=method)
        assert np.isnan(found[1]).all()
        assert not np.isnan(found[[0, 2]]).any()


def test_the_same_bits_every_time() -> None:
    search = Search([[5, 6]], 50, seed=2)
    for method in METHODS:
        first = demodulate(*search.arguments(), method=method)
        for _ in range(3):
            np.testing.assert_array_equal(demodulate(*search.arguments(), method=method), first)
        for plan in (Plan(targets=16), Plan(targets=64, vector_bits=0)):
            np.testing.assert_array_equal(demodulate(*search.arguments(), method=method, plan=plan), first)


@pytest.mark.parametrize("method", METHODS)
def test_compiles_for_a_gpu_without_spills(method: str) -> None:
    from lanewise.launch.support import compile_kernel
    from tests.patterns.segmentwise import reference_kernel

    templates, sfts, bins = Search([[2, 2]], 3, seed=1).arguments()
    kernel, table = (
        (dirichlet_kernel(8), bins) if method == "dirichlet" else (interpolated_kernel(), polynomials(sfts, bins, 8))
    )
    reference = reference_kernel(kernel, (templates, sfts, table), {})
    for targets in (1, 2, 4):
        made = compile_kernel(reference, Plan(block=128, targets=targets).filled(NEUTRAL), "cuda", arch="sm_90")
        taken = made.cubins[0].resources
        assert (taken.spill_stores, taken.stack_bytes) == (0, 0)
        assert taken.registers <= 128


def test_mistakes_are_explained() -> None:
    arguments = Search([2], 3, seed=1).arguments()
    for named, text in (
        ({"dterms": 0}, "dterms is a number of bins from 1 to 128, found 0"),
        ({"dterms": True}, "dterms is a number of bins from 1 to 128, found True"),
        ({"method": "resampling"}, "method is 'interpolated' or 'dirichlet', found 'resampling'"),
    ):
        with pytest.raises(lw.ArgumentError, match=text):
            demodulate(*arguments, **named)
    with pytest.raises(lw.ArgumentError, match="there are 2 SFTs, and 1 rows of bins; each has one"):
        polynomials(arguments[1], lw.ragged(np.zeros(40, "c8"), counts=[40]), 8)
    with pytest.raises(lw.ArgumentError, match="degree is odd and at most 15"):
        polynomials(*arguments[1:], 8, degree=6)
