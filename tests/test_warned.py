"""Warnings are shown at the line of the user's program, and those that commands put into words of their own take no other ones along."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise import io
from lanewise.io.gadget_writing import write_gadget
from lanewise.sims import lbm
from lanewise.sims.waves.lost import SignalLossWarning, said, warn_of_loss
from lanewise.support.warned import warn_user


def particles(**more: Any) -> io.Particles:
    return io.Particles.of(position=np.eye(3), velocity=np.zeros((3, 3)), mass=np.ones(3), **more)


def gadget(path: Path) -> None:
    import h5py

    write_gadget(path, particles())
    with h5py.File(path, "r+") as file:
        file["Header"].attrs["BoxSize"] = 3.0


def flow() -> Any:
    return lbm.Simulation(shape=(8, 8), viscosity=0.1)


def read_gadget(path: Path) -> None:
    io.read_particles(path)


def write_csv(path: Path) -> None:
    io.write_particles(path.with_suffix(".csv"), particles(time=1.0))


def write_tipsy(path: Path) -> None:
    io.write_particles(path.with_suffix(".tipsy"), particles(ids=[5, 6, 7]))


def stiff(path: Path) -> None:
    lbm.Simulation(shape=(8, 8), viscosity=1e-4)


def stiffer(path: Path) -> None:
    flow().viscosity = 1e-4


def fast(path: Path) -> None:
    lbm.Units(length_m=1.0, velocity_m_s=1.0, viscosity_m2_s=1.0, density_kg_m3=1.0, sites=10, lattice_velocity=0.16)


def lossy(path: Path) -> None:
    warn_of_loss(1000.0, 7200.0)


def plain(path: Path) -> None:
    warn_user("so it is", UserWarning)


@pytest.mark.parametrize("call", [read_gadget, write_csv, write_tipsy, stiff, stiffer, fast, lossy, plain])
def test_at_the_line_of_the_user(call: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "a.hdf5"
    gadget(path)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        call(path)
    _, first = inspect.getsourcelines(call)
    last = first + len(inspect.getsource(call).splitlines())
    assert warned
    assert {w.filename for w in warned} == {__file__}
    assert all(first < w.lineno < last for w in warned)


@pytest.mark.parametrize("fails", [False, True])
def test_losses_alone_are_said(fails: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with said():
            for category, text in ((SignalLossWarning, "of 2F"), (lw.FileWarning, "of another kind")) * 2:
                warnings.warn(text, category, 2)
            if fails:
                raise ArithmeticError

    with pytest.warns(lw.FileWarning) as others, suppress(ArithmeticError):
        work()
    assert {w.category for w in others} == {lw.FileWarning}
    assert capsys.readouterr().err == "warning: of 2F\n"
