"""Noise and spectra of any size: numbers, or a refusal that says which SFT it is about."""

from __future__ import annotations

# ruff: noqa: PT017  (what is refused and what is computed are both right, each in its own way)
import re
from dataclasses import replace

import numpy as np
import pytest

from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.prepared import prepare
from lanewise.sims.waves.resampling import Band, f_statistic_band
from lanewise.sims.waves.sft import SftSet
from lanewise.sims.waves.synthesis import make_data
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris
from lanewise.support.errors import InputError

START = 1238166018


@pytest.mark.parametrize("exponent", range(-300, 0, 29))
def test_any_noise_is_refused_or_gives_numbers(exponent):
    """2F falls with the square of the noise that is assumed; nowhere is it no number."""
    pytest.importorskip("erfa")
    ephemeris, reference = Ephemeris.load("EPV00"), START * SECOND
    starts = {n: START + 1800 * np.arange(4) for n in ("H1", "L1")}
    sfts = make_data(starts, (99.8, 100.4), sqrt_s=dict.fromkeys(starts, 1e-23), seed=1)

    def found(sqrt_s):
        data = prepare(sfts, (99.95, 100.25), sqrt_s=dict.fromkeys(starts, sqrt_s))
        one = Templates(100.0, 1.0, 0.3, reference=reference)
        yield f_statistic(data, one, ephemeris).two_f
        yield f_statistic(data, one, ephemeris, device="cpu").two_f
        yield f_statistic_band(data, Band(100.0, 1e-5, 1, 1.0, 0.3, reference), ephemeris).two_f

    try:
        scaled = [float(x[0, 0]) for x in found(10.0**exponent)]
    except InputError as error:
        assert exponent < -40
        assert re.match(
            r"H1: the (SFT at GPS \d+ divided by its noise, sqrt_s = 1e-\d+, is beyond the numbers of float32|noise of)",
            str(error),
        )
    else:
        wanted = [float(x[0, 0]) for x in found(1e-23)]
        np.testing.assert_allclose(np.array(scaled) * 10.0 ** (2 * exponent + 46), wanted, rtol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sqrt_s", [None, 1e-23])
def test_spectra_that_are_not_finite_are_refused(value, sqrt_s):
    starts = {"H1": START + 1800 * np.arange(3)}
    sfts = make_data(starts, (99.8, 100.4), sqrt_s={"H1": 1e-23}, seed=1)
    for at in (0, 200, 540):
        data = sfts["H1"].data.copy()
        data[1, at] = value
        spoilt = SftSet((replace(sfts["H1"], data=data),))
        with pytest.raises(InputError, match=rf"H1: the (SFT|noise of the SFT) at GPS {START + 1800} "):
            prepare(spoilt, None, sqrt_s=None if sqrt_s is None else {"H1": sqrt_s})
