"""Ephemerides, the Earth's rotation, arrivals at the barycentre, antenna patterns and orbits, against LALPulsar and
SOFA.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from lanewise.sims.waves.detectors import DETECTORS, detector
from lanewise.sims.waves.gps import LEAPS, SECOND, gps_time, leap_seconds
from lanewise.sims.waves.timing import (
    Arrival,
    Ephemeris,
    Orbit,
    antenna_patterns,
    barycentre,
    detector_motion,
    earth_state,
    emission,
)
from lanewise.sims.waves.timing.ephemeris import read_table
from lanewise.support.errors import InputError
from lanewise.support.installation import install
from tests.waves.truth import DATA, excerpt, needs_tables, needs_truth, table

LAL = json.loads((DATA / "barycentre.json").read_text(encoding="utf-8"))
REFERENCE = 1238166018 * SECOND
YEARS = np.arange(700_000_000, 1_800_000_000, 7_654_321, dtype=np.int64) * SECOND

LOCATION = {  # metres, and the response's diagonal, of LAL's list
    "H1": ((-2161414.92636, -3834695.17889, 4600350.22664), (-0.3926140964, 0.3195240796, 0.0730900317)),
    "L1": ((-74276.0447238, -5496283.71971, 3224257.01744), (0.4112808704, -0.1090056896, -0.3022751510)),
    "V1": ((4546374.099, 842989.697626, 4378576.96241), (0.2438740432, -0.4478258491, 0.2039518058)),
    "K1": ((-3777336.024, 3484898.411, 3765313.697), (-0.1859896481, 0.3495182991, -0.1635286361)),
    "G1": ((3856309.94926, 666598.956317, 5019641.41725), (-0.0968249813, 0.2229681164, -0.1261431426)),
}


@pytest.mark.parametrize("name", DETECTORS)
def test_detectors_stand_where_lal_has_them(name):
    d = detector(name)
    location, diagonal = LOCATION[name]
    np.testing.assert_allclose(d.location, location, atol=2e-3)
    np.testing.assert_allclose(np.diag(d.response), diagonal, atol=1e-7)
    np.testing.assert_allclose(d.response, d.response.T, atol=0)
    assert abs(np.trace(d.response)) < 1e-12


def test_unknown_detectors():
    with pytest.raises(InputError, match="there is no detector 'X9' here; wanted one of H1, L1, V1, K1, G1"):
        detector("X9")


def test_leap_seconds():
    assert leap_seconds(np.array([0, 1167264016, 1167264017, 2_200_000_000]) * SECOND).tolist() == [0, 17, 18, 18]
    erfa = pytest.importorskip("erfa")
    rows = [r for r in erfa.leap_seconds.get() if r["tai_utc"] > 19]
    days = [erfa.cal2jd(int(r["year"]), int(r["month"]), 1)[1] - 44244 for r in rows]
    gps = [round(d * 86400 + r["tai_utc"] - 20) for d, r in zip(days, rows, strict=True)]
    assert tuple(gps) == LEAPS


def test_gps_times():
    assert gps_time(1238166018) == 1238166018 * SECOND
    assert gps_time(0.5) == SECOND // 2


@pytest.mark.parametrize("row", LAL["arrivals"], ids=lambda r: f"{r['detector']}-{r['seconds']}")
def test_arrivals_of_all_detectors_and_years(row):
    ephemeris = excerpt(row["earth"], row["sun"])
    earth = earth_state(ephemeris, np.array([row["seconds"] * SECOND + row["nanoseconds"]]))
    site = detector(row["detector"])
    found = barycentre(earth, site, row["alpha"], row["delta"])
    expected = row["te_seconds"] * SECOND + row["te_nanoseconds"]
    assert abs(int(found.time[0, 0]) - expected) <= 2  # nanoseconds
    assert abs(found.rate[0, 0] - row["rate"]) < 1e-14
    a, b = antenna_patterns(earth, site, row["alpha"], row["delta"])
    assert abs(a[0, 0] - row["a"]) < 1e-7
    assert abs(b[0, 0] - row["b"]) < 1e-7


@needs_tables
def test_the_excerpts_are_of_the_tables():
    whole = Ephemeris.load("DE405")
    for row in LAL["arrivals"]:
        time = np.array([row["seconds"] * SECOND])
        part = excerpt(row["earth"], row["sun"])
        for a, b in ((part.earth, whole.earth), (part.sun, whole.sun)):
            np.testing.assert_array_equal(a.at(time), b.at(time))


@needs_truth
@needs_tables
def test_every_row_of_the_truth():
    t = table("per_sft.csv")
    ephemeris = Ephemeris.load("DE405")
    rows = 0
    for name in ("H1", "L1"):
        for sky in np.unique(t["sky_id"]):
            m = (t["IFO"] == name) & (t["sky_id"] == sky)
            earth = earth_state(ephemeris, np.round(t["gps_mid"][m]).astype(np.int64) * SECOND)
            d, alpha, delta = detector(name), t["alpha"][m][0], t["delta"][m][0]
            found = barycentre(earth, d, alpha, delta)
            np.testing.assert_allclose(found.since(REFERENCE)[0], t["DeltaT_SSB_minus_ref"][m], rtol=0, atol=1.3e-7)
            # LALPulsar rounds the arrival to a float64 of GPS seconds before it subtracts: with that, nothing is left.
            rounded = found.time[0] // SECOND + found.time[0] % SECOND * 1e-9 - REFERENCE // SECOND
            np.testing.assert_allclose(rounded, t["DeltaT_SSB_minus_ref"][m], rtol=0, atol=2e-9)
            np.testing.assert_allclose(found.rate[0], t["Tdot"][m], rtol=0, atol=1e-14)
            simple = barycentre(earth, d, alpha, delta, newtonian=True)
            np.testing.assert_allclose(simple.since(REFERENCE)[0], t["DeltaT_newtonian"][m], rtol=0, atol=1.3e-7)
            a, b = antenna_patterns(earth, d, alpha, delta)
            np.testing.assert_allclose(a[0], t["a_unweighted"][m], rtol=0, atol=1e-5)
            np.testing.assert_allclose(b[0], t["b_unweighted"][m], rtol=0, atol=1e-5)
            x, v = detector_motion(earth, d)
            np.testing.assert_allclose(x, np.stack([t[k][m] for k in ("rx_s", "ry_s", "rz_s")], 1), rtol=0, atol=1e-11)
            np.testing.assert_allclose(v, np.stack([t[k][m] for k in ("vx_c", "vy_c", "vz_c")], 1), rtol=0, atol=1e-15)
            np.testing.assert_allclose(earth.mean_sidereal, t["gmstRad"][m], rtol=0, atol=1e-11)
            np.testing.assert_allclose(earth.apparent_sidereal, t["gastRad"][m], rtol=0, atol=1e-11)
            np.testing.assert_allclose(earth.einstein, t["einstein"][m], rtol=0, atol=1e-15)
            rows += int(m.sum())
    assert rows == len(t["sky_id"])


def test_the_rate_is_the_derivative():
    pytest.importorskip("erfa")
    ephemeris = Ephemeris.load("EPV00")
    alpha, delta = np.array([0.3, 2.0, 5.5]), np.array([-1.2, 0.1, 1.5])
    before, now, after = (
        barycentre(earth_state(ephemeris, YEARS + s * SECOND), detector("V1"), alpha, delta) for s in (-600, 0, 600)
    )
    slope = (after.time - before.time) / (1200 * SECOND)
    # Five of the forty terms of TDB - TT are in it, and 600 s are long for the Earth's rotation.
    np.testing.assert_allclose(now.rate, slope, rtol=0, atol=2e-9)


def test_through_the_sun():
    """Both branches meet at the limb, and a ray through the centre has a delay."""
    pytest.importorskip("erfa")
    earth = earth_state(Ephemeris.load("EPV00"), YEARS[:1])
    n = -earth.from_sun[0] / np.linalg.norm(earth.from_sun[0])
    alpha, delta = np.arctan2(n[1], n[0]), np.arcsin(n[2])
    limb = np.arcsin(2.322 / np.linalg.norm(earth.from_sun[0]))
    inside, outside, centre = (
        barycentre(earth, detector("H1"), alpha, delta + x) for x in (limb - 1e-9, limb + 1e-9, 0.0)
    )
    assert abs(int(inside.time[0, 0] - outside.time[0, 0])) < 5
    assert np.isfinite(centre.rate).all()


def test_the_coarser_ephemeris():
    """EPV00 is within 41 microseconds of the tables, as its docstring says; it must be named to be used."""
    pytest.importorskip("erfa")
    if importlib.util.find_spec("solar_system_ephemerides") is None:
        pytest.skip("needs the tables")
    model, tables = Ephemeris.load("EPV00"), Ephemeris.load("DE405")
    for body in ("earth", "sun"):
        (x, v), (y, w) = (getattr(e, body).at(YEARS) for e in (model, tables))
        assert 1e-7 < np.linalg.norm(x - y, axis=1).max() < 4.1e-5
        assert abs(v - w).max() < 4e-11


def test_ephemerides_that_are_not_there(monkeypatch):
    with pytest.raises(InputError, match=r"there is no ephemeris 'DE999'; wanted one of DE200, DE405, .*EPV00"):
        Ephemeris.load("DE999")
    monkeypatch.setattr("lanewise.sims.waves.timing.ephemeris.find_spec", lambda _: None)
    with pytest.raises(InputError, match=re.escape(f"{install('waves')}. EPV00 is there without them, within 41")):
        Ephemeris.load("DE405")
    with pytest.raises(InputError, match=re.escape(f"EPV00 needs the package pyerfa: {install('waves')}")):
        Ephemeris.load("EPV00")


def small_table(path: Path, rows: int = 5, text: str = "# made by a test\n") -> Path:
    lines = [f"1000000000 100 {rows}"]
    lines += [f"{1_000_000_000 + 100 * i}.0 {i} 2 3 0.01 0 0 1e-4 0 0" for i in range(rows)]
    path.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_tables_from_files(tmp_path):
    t = read_table(small_table(tmp_path / "earth.dat"))
    x, v = t.at(np.array([1_000_000_149, 1_000_000_151]) * SECOND + SECOND // 2)
    np.testing.assert_allclose(x[:, 0], [1 + 49.5e-2 + 1e-4 * 49.5**2 / 2, 2 - 48.5e-2 + 1e-4 * 48.5**2 / 2])
    np.testing.assert_allclose(v[:, 0], [0.01 + 49.5e-4, 0.01 - 48.5e-4])
    with pytest.raises(InputError) as error:
        t.at(np.array([1_000_000_460 * SECOND]))
    assert str(error.value) == (
        f"{tmp_path / 'earth.dat'} covers GPS 1000000000 to 1000000400; the data need 1000000460 to 1000000460"
    )
    for text, wanted in (
        ("words\n", "not a table of an ephemeris"),
        ("1 2 3\n", "not a table of an ephemeris: wanted 3 rows"),
    ):
        (tmp_path / "bad.dat").write_text(text + "1 2 3 4 5 6 7 8 9 10\n", encoding="utf-8")
        with pytest.raises(InputError, match=wanted):
            read_table(tmp_path / "bad.dat")
    with pytest.raises(InputError, match=r"nothing.dat: the table cannot be read"):
        Ephemeris.from_files(tmp_path / "nothing.dat", tmp_path / "nothing.dat")


@needs_tables
def test_years_that_the_tables_lack():
    with pytest.raises(InputError, match=r"covers GPS 630720013 to \d+; the data need 600000000"):
        earth_state(Ephemeris.load("DE405"), np.array([600_000_000 * SECOND]))


def test_the_model_has_years_too():
    pytest.importorskip("erfa")
    with pytest.raises(InputError, match="EPV00 is a fit for the years 1900 to 2100"):
        earth_state(Ephemeris.load("EPV00"), np.array([5_000_000_000 * SECOND]))


@pytest.mark.parametrize("o", LAL["orbits"], ids=lambda o: f"e={o['eccentricity']}")
def test_orbits(o):
    orbit = Orbit(o["size"], o["period"], o["periapsis"] * SECOND, o["eccentricity"], o["argument"])
    reference = o["reference"] * SECOND
    time = reference + np.round(np.array(o["before"]) * 1e9).astype(np.int64)[None]
    found = emission(Arrival(time, np.zeros(time.shape), np.array(o["rate"])[None]), orbit)
    np.testing.assert_allclose(found.since(reference)[0], o["after"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.rate[0], o["rate_after"], rtol=0, atol=1e-10)
    # t_SSB = t_em + R(t_em): the orbit's own equations, forward.
    e, w = orbit.eccentricity, 2 * np.pi / orbit.period
    mean = w * (found.since(orbit.periapsis)[0])
    anomaly = mean.copy()
    for _ in range(200):
        anomaly = mean + e * np.sin(anomaly)
    away = orbit.size * (
        np.sin(orbit.argument) * (np.cos(anomaly) - e) + np.cos(orbit.argument) * np.sin(anomaly) * np.sqrt(1 - e**2)
    )
    np.testing.assert_allclose(found.since(reference)[0] + away, (time[0] - reference) * 1e-9, rtol=0, atol=1e-8)


def test_orbits_that_are_none():
    with pytest.raises(InputError, match="as fast as light"):
        Orbit(1000.0, 3600.0, 0)
    with pytest.raises(InputError, match="eccentricity is 1; wanted 0 to below 1"):
        Orbit(1.0, 3600.0, 0, 1.0)


def test_positions_that_are_none():
    pytest.importorskip("erfa")
    earth = earth_state(Ephemeris.load("EPV00"), YEARS[:1])
    with pytest.raises(InputError, match=r"sky position 1 is alpha = 1.0, delta = 1.7; wanted finite radians"):
        barycentre(earth, detector("H1"), 1.0, [0.1, 1.7])
