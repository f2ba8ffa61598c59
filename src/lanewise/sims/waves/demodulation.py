"""The F-statistic of any templates, by its definition or by kernels on a device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lanewise.profiling import stage
from lanewise.sims.waves.definition import (
    Complexes,
    Floats,
    FStatistic,
    amplitudes,
    antenna_matrices,
    assembled,
    group_sums,
    parts,
)
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.lost import warn_of_loss
from lanewise.sims.waves.prepared import DTERMS, SearchData, geometry, terms_of
from lanewise.sims.waves.reference_time import at_the_middle
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """What each SFT adds for one template: a^2, b^2, a b, a y and b y, (n) each, in the order of
    `SearchData`.
    """

    a2: Floats
    b2: Floats
    ab: Floats
    fa: Complexes
    fb: Complexes


@checked(InputError)
def f_statistic(
    data: SearchData,
    templates: Templates,
    ephemeris: Ephemeris,
    *,
    dterms: int | Literal["prepared"] | None = "prepared",
    device: str = "numpy",
    kernel: Method = "interpolated",
) -> FStatistic:
    """2F of every template and stack.

        dterms: bins of the kernel on each side; "prepared" takes those of `prepare`, None all bins
          there are (the full kernel)
        device: "numpy" is the definition, in float64; "cpu", "cuda", "cuda:1", ... run kernels,
          whose sums over bins and SFTs are float32
        kernel: "interpolated" or "dirichlet", on a device: see `sims/waves/kernels.py`

    Spins are moved to the middle of the data first: 2F does not depend on the reference time that
    they are given for. Warns (SignalLossWarning) where SFTs are too long for the frequency or the
    orbit. Raises InputError for templates whose bins are not in `data`, and for a number of bins
    that the noise weights of `data` are not for.
    """
    terms = terms_of(data, dterms)
    warn_of_loss(
        float(templates.freq.max()),
        data.duration,
        templates.orbit,
        float(abs(templates.f1dot).max()),
    )
    return demodulated(data, templates, ephemeris, dterms=terms, device=device, kernel=kernel)


def demodulated(
    data: SearchData,
    templates: Templates,
    ephemeris: Ephemeris,
    *,
    dterms: int | None = DTERMS,
    device: str = "numpy",
    kernel: Method = "interpolated",
) -> FStatistic:
    """`f_statistic` of checked arguments, without a warning: for searches, which warn once."""
    there, turns = at_the_middle(data, templates)
    found = _f_statistic(data, there, ephemeris, dterms, device, kernel)
    return found if there is templates else replace(found, fa=found.fa * turns, fb=found.fb * turns)


def _f_statistic(
    data: SearchData,
    templates: Templates,
    ephemeris: Ephemeris,
    dterms: int | None,
    device: str,
    kernel: Method,
) -> FStatistic:
    if device != "numpy":
        from lanewise.sims.waves.device.statistic import device_f_statistic

        return device_f_statistic(
            data, templates, ephemeris, dterms=dterms, device=device, kernel=kernel
        )
    alpha, delta, which = templates.directions()
    with stage("barycentring", name="times and patterns"):
        seen = geometry(data, ephemeris, alpha, delta, templates.orbit)
    matrix = antenna_matrices(data, seen)[:, :, :, which]
    groups = len(data.group) - 1
    sums = np.zeros((2, groups, len(templates)), np.complex128)
    for some in parts(data, len(templates), dterms):
        with stage("statistic", name="amplitudes of SFTs"):
            y = amplitudes(data, seen, which[some], templates, some, dterms)
        with stage("statistic", name="sums over SFTs"):
            for i, pattern in enumerate((seen.a, seen.b)):
                sums[i][:, some] = group_sums(data, pattern[which[some]] * y).T
    sums = sums.reshape(2, data.stacks, -1, len(templates))
    with stage("statistic", name="2F of sums"):
        return assembled(sums, matrix)


@checked(InputError)
def atoms(
    data: SearchData,
    templates: Templates,
    ephemeris: Ephemeris,
    number: int,
    *,
    dterms: int | Literal["prepared"] | None = "prepared",
) -> Atoms:
    """The atoms of one of the templates, by its number.

    Raises InputError for a number without a template, and the errors of `f_statistic`.
    """
    terms = terms_of(data, dterms)
    if not 0 <= number < len(templates):
        raise InputError(
            f"the template number {number} is requested; wanted 0 to {len(templates) - 1}"
        )
    seen = geometry(
        data, ephemeris, templates.alpha[number], templates.delta[number], templates.orbit
    )
    there, turns = at_the_middle(data, templates)
    y = (
        amplitudes(data, seen, np.zeros(1, np.int64), there, np.array([number]), terms)[0]
        * turns[number]
    )
    a, b = seen.a[0], seen.b[0]
    return Atoms(a**2, b**2, a * b, a * y, b * y)
