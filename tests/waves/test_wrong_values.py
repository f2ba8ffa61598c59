"""Every public class and function of the search, with each argument replaced by what does not belong there: own errors,
or a result.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.sims import waves
from lanewise.sims.waves.timing.ephemeris import EphemerisTable
from lanewise.support.errors import LanewiseError
from tests.fuzz.arguments import POOL

START = 1238166018
TIME = START * 10**9
MADE = {
    **dict.fromkeys(["Arrival", "Atoms", "EarthState", "FStatistic", "Geometry", "Maps", "SearchData"], "what functions give"),
    **dict.fromkeys(["DetectorSfts", "SftSet", "LeftOut"], "what is read from files or made by make_data"),
    **dict.fromkeys(["Choice", "Ephemeris", "Detector"], "what functions give"),
    **dict.fromkeys(["DETECTORS", "KernelMethod", "SignalLossWarning"], "no function"),
}  # fmt: skip
"""No call of a user's, with the reason."""


@functools.cache
def ephemeris() -> waves.Ephemeris:
    """An Earth that stands still next to the time of the data; needs no package."""
    row = np.array([[499.0, 1.0, 2.0, 1e-5, 1e-4, 1e-5, 0.0, 0.0, 0.0]])
    return waves.Ephemeris(
        "still", EphemerisTable("still", START, 1e6, row), EphemerisTable("still", START, 1e6, row / 100)
    )


@functools.cache
def sfts() -> waves.SftSet:
    starts = START + 1800 * np.arange(4)
    return waves.make_data({"H1": starts, "L1": starts}, (59.9, 60.1), sqrt_s={"H1": 1e-23, "L1": 1e-23})


@functools.cache
def data() -> waves.SearchData:
    return waves.prepare(sfts(), (59.99, 60.01))


@functools.cache
def search() -> waves.Search:
    return waves.Search(
        freq=60.0,
        freq_band=0.0,
        f1dot=0.0,
        f1dot_band=0.0,
        reference=TIME,
        stack=3600.0,
        patch=(0.01, 0.01),
        residuals=1,
    )


@functools.cache
def grids() -> Any:
    return waves.set_up(sfts(), search())


@functools.cache
def found() -> Any:
    return waves.hierarchical_search(sfts(), search(), ephemeris(), [(1.0, 0.3)], 3)


def templates() -> waves.Templates:
    return waves.Templates(60.0, 1.0, 0.3, reference=TIME)


def band() -> waves.Band:
    return waves.Band(60.0, 1e-4, 3, 1.0, 0.3, TIME)


def earth() -> Any:
    return waves.earth_state(ephemeris(), np.array([TIME]))


def arrival() -> Any:
    return waves.barycentre(earth(), waves.detector("H1"), 1.0, 0.3)


CALLS: dict[str, Any] = {
    "Band": lambda: ([60.0, 1e-4, 3, 1.0, 0.3, TIME], {"f1dot": 0.0, "f2dot": 0.0, "f3dot": 0.0, "orbit": None}),
    "Cap": lambda: ([1.0, 0.3, 0.1], {}),
    "MapSearch": lambda: ([grids(), ephemeris()], {"device": "numpy", "method": "demod", "kernel": "interpolated", "buffers": 2, "part": None}),
    "Orbit": lambda: ([1.0, 1e5, TIME], {"eccentricity": 0.1, "argument": 0.0}),
    "Rectangle": lambda: ([0.0, 1.0, -0.1, 0.1], {}),
    "Search": lambda: ([], {
        "freq": 60.0, "freq_band": 0.0, "f1dot": 0.0, "f1dot_band": 0.0, "reference": TIME, "stack": 3600.0, "most_stacks": 1, "resolution": 1e-4,
        "f1dot_step": 1e-9, "residuals": 1, "threshold": 2.6, "patch": (0.01, 0.01), "weighted": True, "dterms": 8, "window": 101,
    }),
    "SftName": lambda: (["H1", 4, 1800, START, 7200], {"label": "a", "band": None}),
    "Signal": lambda: ([], {
        "h0": 1e-24, "cosi": 0.3, "freq": 60.0, "alpha": 1.0, "delta": 0.3, "reference": TIME, "psi": 0.0, "phi0": 0.0, "f1dot": 0.0, "f2dot": 0.0,
        "f3dot": 0.0, "orbit": None,
    }),
    "Templates": lambda: ([60.0, 1.0, 0.3, 0.0, 0.0, 0.0], {"reference": TIME, "orbit": None}),
    "Window": lambda: (["tukey", 0.5], {}),
    "antenna_patterns": lambda: ([earth(), waves.detector("H1"), 1.0, 0.3], {}),
    "atoms": lambda: ([data(), templates(), ephemeris(), 0], {"dterms": 8}),
    "barycentre": lambda: ([earth(), waves.detector("H1"), 1.0, 0.3], {"newtonian": False}),
    "choose_method": lambda: ([data(), band()], {"dterms": 8, "device": "numpy"}),
    "detector": lambda: (["H1"], {}),
    "earth_state": lambda: ([ephemeris(), np.array([TIME])], {}),
    "emission": lambda: ([arrival(), waves.Orbit(1.0, 1e5, TIME)], {}),
    "f_statistic": lambda: ([data(), templates(), ephemeris()], {"dterms": 8, "device": "numpy", "kernel": "interpolated"}),
    "f_statistic_band": lambda: ([data(), band(), ephemeris()], {"dterms": 8}),
    "follow_up": lambda: ([grids(), ephemeris(), found(), 1], {"directions": 1, "device": "numpy"}),
    "geometry": lambda: ([data(), ephemeris(), 1.0, 0.3], {"orbit": None, "earths": None}),
    "gps_time": lambda: ([START], {}),
    "hierarchical_search": lambda: ([sfts(), search(), ephemeris(), [(1.0, 0.3)], 3], {
        "device": "numpy", "method": "demod", "kernel": "interpolated", "buffers": 2,
    }),
    "hough_maps": lambda: ([grids(), ephemeris(), 1.0, 0.3, 0.0], {"device": "numpy", "method": "demod", "kernel": "interpolated", "part": None}),
    "isotropic_sky": lambda: ([0.5, waves.Cap(1.0, 0.3, 0.5)], {}),
    "leap_seconds": lambda: ([np.array([TIME])], {}),
    "load_sfts": lambda: (["no/such/file.sft"], {
        "band": (59.9, 60.0), "margin": 0, "skip_bad": False, "verify": True, "detectors": ["H1"], "span": (0.0, 1e9),
    }),
    "make_data": lambda: ([{"H1": [START]}, (59.9, 60.0)], {
        "duration": 1800.0, "sqrt_s": {"H1": 1e-23}, "signals": [], "ephemeris": None, "seed": 0, "comment": "c",
    }),
    "parse_name": lambda: (["H-1_H1_1800SFT-1238166018-1800.sft"], {}),
    "prepare": lambda: ([sfts(), (59.99, 60.01)], {"stacks": None, "dterms": 8, "window": 101, "sqrt_s": {"H1": 1e-23, "L1": 1e-23}}),
    "search_cover": lambda: ([search(), TIME, TIME + 10**12, 1800.0], {}),
    "search_maps": lambda: ([grids(), ephemeris(), [(1.0, 0.3, 0.0)], 3], {
        "device": "numpy", "method": "demod", "kernel": "interpolated", "buffers": 2, "part": None,
    }),
    "search_margin": lambda: ([8, 101], {}),
    "set_up": lambda: ([sfts(), search()], {}),
    "split": lambda: ([sfts(), 3600.0, 2], {}),
    "uniform_sky": lambda: ([0.5, 0.5, waves.Cap(1.0, 0.3, 0.5)], {}),
    "write_file": lambda: (["a.sft", sfts()["H1"]], {"overwrite": True}),
    "write_sfts": lambda: ([Path("d"), sfts()], {"label": "a", "overwrite": True}),
}  # fmt: skip


def test_nothing_public_is_missing():
    assert sorted({*CALLS, *MADE}) == sorted(waves.__all__)


def outcome(name: str, place: Any, value: Any, folder: Path) -> None:
    """Call with one argument replaced; what it raises but lanewise's own errors escapes."""
    arguments, named = CALLS[name]()
    (arguments if isinstance(place, int) else named)[place] = value
    with warnings.catch_warnings(), contextlib.chdir(folder):
        warnings.simplefilter("ignore", waves.SignalLossWarning)
        try:
            result = getattr(waves, name)(*arguments, **named)
            if name == "search_maps":
                list(result)
        except LanewiseError as error:
            if not str(error).strip():
                raise AssertionError("an error without words") from error


HEAVY = (
    "follow_up",
    "hierarchical_search",
    "search_maps",
    "hough_maps",
    "f_statistic",
    "f_statistic_band",
    "MapSearch",
    "atoms",
)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_values(name, tmp_path):
    sweep(name, tmp_path, 5 if name not in HEAVY else 17)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_all_wrong_values(name, tmp_path):
    sweep(name, tmp_path, 1)


def sweep(name: str, folder: Path, step: int) -> None:
    arguments, named = CALLS[name]()
    raw: list[str] = []
    for number, place in enumerate((*range(len(arguments)), *named)):
        for k in range(number % step, len(POOL), step):
            try:
                outcome(name, place, POOL[k](), folder)
            except Exception as error:
                raw.append(f"{name}({place}=POOL[{k}]): {type(error).__name__}: {error}")
    assert not raw, "\n".join(raw)
