"""Rows of a search on the host: taken again for data that nobody can change, and made anew for other data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lanewise.sims import waves
from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.device import spectra
from lanewise.sims.waves.device.spectra import Spectra
from lanewise.sims.waves.device.statistic import _size  # pyright: ignore[reportPrivateUsage]
from lanewise.sims.waves.prepared import prepare
from tests.waves.test_f_statistic import REFERENCE, made, model

BAND = waves.Templates(179970 / 1800 + np.arange(90) * 1e-5, 1.0, 0.3, -1e-10, reference=REFERENCE)


def test_prepared_data_cannot_be_written_to() -> None:
    data = prepare(made())
    for array in (data.data, data.offset, data.first_bin):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_rows_are_made_once_for_data_that_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    data, ephemeris = prepare(made()), model()
    first = f_statistic(data, BAND, ephemeris, device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(spectra, "polynomials", None)  # nobody calls it
        again = f_statistic(data, BAND, ephemeris, device="cpu")
    assert first.two_f.tobytes() == again.two_f.tobytes()
    with_more = f_statistic(data, BAND, ephemeris, device="cpu", dterms=4)
    wanted = f_statistic(data, BAND, ephemeris, dterms=4)
    np.testing.assert_allclose(with_more.two_f, wanted.two_f, rtol=0, atol=1e-3)
    on_python = Spectra(data, "python", 4)._rows  # pyright: ignore[reportPrivateUsage]
    assert on_python.device == "python"


def test_rows_of_joined_stacks_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages of a follow-up look into the same data again and again."""
    sfts, ephemeris = made(), model()
    data = waves.refinement.regrouped(prepare(sfts, stacks=[sfts]), 1)
    first = f_statistic(data, BAND, ephemeris, device="cpu")
    monkeypatch.setattr(spectra, "polynomials", None)  # nobody calls it
    again = f_statistic(data, BAND, ephemeris, device="cpu")
    assert first.two_f.tobytes() == again.two_f.tobytes()


def test_rows_of_data_that_may_change_are_made_anew() -> None:
    data, ephemeris = prepare(made()), model()
    own = replace(data, data=data.data.copy())
    before = f_statistic(own, BAND, ephemeris, device="cpu")
    own.data[...] *= 2
    after = f_statistic(own, BAND, ephemeris, device="cpu")
    np.testing.assert_allclose(after.two_f, 4 * before.two_f, rtol=1e-5)


def test_rows_go_with_their_data(monkeypatch: pytest.MonkeyPatch) -> None:
    data = prepare(made())
    Spectra(data, "cpu", 8)
    kept = spectra._KEPT  # pyright: ignore[reportPrivateUsage]
    assert data in kept
    count = len(kept)
    del data
    assert len(kept) == count - 1
    monkeypatch.setattr(spectra, "KEPT", 10)
    large = prepare(made())
    Spectra(large, "cpu", 8)
    assert large not in kept


def test_sizes_of_groups_are_few_and_near() -> None:
    assert [_size(n) for n in (1, 5, 63, 64, 65, 1000, 20_000)] == [1, 5, 63, 64, 72, 1024, 20_480]
    for n in range(64, 5000):
        assert n <= _size(n) <= 1.125 * n
    assert len({_size(n) for n in range(64, 1 << 16)}) <= 8 * 11
