"""A profile around a search sees its stages: by every method, on the host and on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims import waves
from tests.waves.test_invariance import START, ephemeris, made

SHARED = {"setup", "barycentring", "Hough", "candidates"}
SEARCHES = {
    ("demod", "numpy"): SHARED | {"statistic"},
    ("resamp", "numpy"): SHARED | {"statistic", "resampling"},
    ("demod", "cpu"): SHARED | {"statistic", "transfer", "wait"},
    ("resamp", "cpu"): SHARED | {"statistic", "resampling", "transfer", "wait"},
}


def check(profile: lw.Profile, wanted: set[str]) -> None:
    """These stages, which add up to the whole."""
    summary = profile.summary()
    stages = summary["stages"]
    assert wanted <= set(stages) <= wanted | {"all of it"}
    assert sum(s["share"] for s in stages.values()) == pytest.approx(1.0, abs=1e-9)
    assert sum(s["seconds"] for s in stages.values()) == pytest.approx(summary["seconds"])
    for name, one in stages.items():
        assert sum(p["seconds"] for p in one["parts"].values()) == pytest.approx(one["seconds"]), name
        assert one["seconds"] > 0, name


def profiled(work: Callable[[], Any], wanted: set[str]) -> tuple[lw.Profile, Any]:
    """A run of which little is claimed by no stage, and what it found. The machine may do something else for a while:
    one run of four is enough.
    """
    for _ in range(4):
        profile = lw.Profile()
        with profile.span("all of it"):
            found = work()
        check(profile, wanted)
        if profile.summary()["stages"]["all of it"]["share"] < 0.25:
            return profile, found
    raise AssertionError(profile.summary())


@pytest.mark.parametrize(("method", "device"), SEARCHES)
def test_a_search_has_stages(method: str, device: str) -> None:
    search = waves.Search(
        freq=1400.0, freq_band=2e-3, f1dot=0.0, f1dot_band=0.0, reference=START * 10**9, stack=9000.0, patch=(1e-3, 1e-3),
        threshold=2.6,
    )  # fmt: skip
    sfts, tables = made(), ephemeris()

    def work() -> Any:
        return waves.hierarchical_search(sfts, search, tables, [(2.0, 0.3)], most=5, device=device, method=method)

    _, found = profiled(work, SEARCHES[method, device])
    np.testing.assert_array_equal(found, work())


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_statistic_has_stages(device: str) -> None:
    data, tables = waves.prepare(made()), ephemeris()
    templates = waves.Templates(1400.0 + 1e-6 * np.arange(2000), 1.1, -0.4, reference=START * 10**9)
    wanted = {"barycentring", "statistic"} | ({"transfer"} if device == "cpu" else set())
    profile, _ = profiled(lambda: waves.f_statistic(data, templates, tables, device=device), wanted)
    if device == "cpu":  # nothing that is computed counts as a copy
        assert "polynomials of bins" in profile.summary()["stages"]["statistic"]["parts"]


def test_a_band_has_stages() -> None:
    data, tables = waves.prepare(made()), ephemeris()
    band = waves.Band(1400.0, 1e-6, 100, 1.1, -0.4, START * 10**9)
    profile, _ = profiled(
        lambda: waves.f_statistic_band(data, band, tables), {"barycentring", "resampling", "statistic"}
    )
    parts = profile.summary()["stages"]["resampling"]["parts"]
    assert set(parts) == {"at the detector", "at the barycentre", "Fourier transform"}
