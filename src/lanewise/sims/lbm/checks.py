"""What a flow simulation refuses before anything is allocated, and what it warns of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

import lanewise as lw
from lanewise.sims.common.checks import check_known
from lanewise.sims.lbm.obstacles.boxes import check_shape, site_text, sites_text
from lanewise.support.errors import DeviceError, InputError, LanewiseWarning
from lanewise.support.warned import warn_user

SOUND_SPEED = 1 / math.sqrt(3)
"""Of the lattices D2Q9, D3Q19 and D3Q27, in sites per step: c_s^2 = 1/3."""

MOST_MACH = 0.3
"""The equilibrium is an expansion in the Mach number.

Beyond this its errors are no longer small.
"""

COMPRESSIBLE_MACH = 0.2
"""Density varies by about Mach squared: 4 % here, in a flow that is meant to be incompressible."""

STIFF_TAU = 0.505
"""Below this populations hardly relax.

Bodies in a stream and driven cavities blow up with most collision operators.
"""

LAZY_TAU = 1.0
"""Above this BGK misplaces half-way walls: see `wall_error`."""

CHANNEL = 20
"""The width in sites of the channel by which the warning of a large tau measures the error."""

STORAGE_BYTES = {"f16": 2, "f32": 4, "f64": 8}
BUFFERS = {"in-place": 1, "pull": 2, "push": 2}
WORD_BYTES = 4


class FlowWarning(LanewiseWarning):
    """The flow can be computed, but its settings promise little accuracy or stability."""


def check_tau(tau: float) -> None:
    """Refuse a relaxation time at or below 1/2, or so close to it that float32 has no rate below 2
    for it.
    """
    if not math.isfinite(tau) or tau <= 0.5:
        raise InputError(
            f"the relaxation time tau is {tau:g}; wanted more than 0.5, since the viscosity is "
            "(tau - 1/2) / 3: "
            "a lower Reynolds number, more sites or a higher lattice velocity raise it"
        )
    if np.float32(1 / tau) >= 2:
        raise InputError(
            f"the relaxation time tau is 0.5 + {tau - 0.5:.2g}, which float32 cannot tell from "
            "0.5; a lower Reynolds number, more sites or a higher lattice velocity raise it"
        )


def warn_tau(tau: float, collision: str = "bgk") -> None:
    """Warn (FlowWarning) of a tau near 1/2, and of one at which BGK misplaces walls; other
    operators are made for those.
    """
    warn_stiffness(tau, collision)
    if collision == "bgk" and tau > LAZY_TAU:
        warn_user(
            f"the relaxation time tau is {tau:.6g}; with BGK half-way walls are misplaced above "
            f"{LAZY_TAU:g}: a channel "
            f"of {CHANNEL} sites is {100 * wall_error(tau, CHANNEL):.2g} % too fast; use TRT, "
            "fewer sites or a lower "
            "lattice velocity",
            FlowWarning,
        )


def warn_stiffness(tau: float, collision: str) -> None:
    """Warn (FlowWarning) of a tau just above 1/2, whatever the collision operator."""
    if tau >= STIFF_TAU:
        return
    if collision == "kbc":
        expected = (
            "KBC often stays stable there, and what it then shows of vortices of a few sites is "
            "not resolved"
        )
        remedy = "more sites or a lower Reynolds number"
    else:
        expected = f"with {collision.upper()} expect instability below {STIFF_TAU:g}"
        remedy = (
            "another collision operator (kbc is the most stable one), more sites or a lower "
            "Reynolds number"
        )
    warn_user(f"the relaxation time tau is {tau:.6g}; {expected}: use {remedy}", FlowWarning)


def wall_error(tau: float, width: float) -> float:
    """By how much BGK's flow in a channel of `width` sites is too fast at its centre, as a
    fraction.

    Poiseuille flow between half-way walls slips by (16 (tau - 1/2)^2 - 3) / (3 width^2) of its
    highest velocity: the magic parameter of BGK is (tau - 1/2)^2, and walls lie half-way for 3/16
    (Ginzburg & d'Humières 2003).
    """
    return (16 * (tau - 0.5) ** 2 - 3) / (3 * width**2)


def check_mach(velocity: ArrayLike, name: str = "velocity") -> None:
    """Refuse lattice velocities above Mach 0.3, a speed of 0.1732, and what is not finite.

    `velocity` is one vector, (D,), or a field with a last axis of components, (ny, nx, 2) or (nz,
    ny, nx, 3), in sites per step. The InputError names the fastest site.
    """
    field = np.asarray(velocity, np.float64)
    speed = np.sqrt((np.atleast_1d(field) ** 2).sum(axis=-1))
    if not np.isfinite(speed).all():
        raise InputError(
            f"the {name}{_place(~np.isfinite(speed))} is not finite; wanted numbers of "
            "sites per step"
        )
    if (fastest := float(speed.max(initial=0.0))) * math.sqrt(3) > MOST_MACH:
        raise InputError(
            f"the {name}{_place(speed == fastest)} is {fastest:.4g} sites per step, Mach "
            f"{fastest * math.sqrt(3):.2g}; "
            f"wanted at most {MOST_MACH * SOUND_SPEED:.4f}, Mach {MOST_MACH:g}: choose a lower "
            "lattice velocity "
            "(the same flow then takes more steps)"
        )


def warn_mach(speed: float) -> None:
    """Warn (FlowWarning) of a lattice velocity, in sites per step, at which the flow is
    compressible or not to be trusted.
    """
    mach = speed * math.sqrt(3)
    if mach > MOST_MACH:
        text = (
            f"a simulation refuses more than Mach {MOST_MACH:g}, a lattice velocity of "
            f"{MOST_MACH * SOUND_SPEED:.4f}"
        )
    elif mach > COMPRESSIBLE_MACH:
        text = (
            f"the density varies by about {100 * mach**2:.0f} %; at a lattice velocity of 0.05 "
            "that is 1 %"
        )
    else:
        return
    warn_user(f"the lattice velocity is {speed:g}, Mach {mach:.2g}: {text}", FlowWarning)


def memory_bytes(
    shape: Sequence[int], lattice: lw.Lattice, storage: str, streaming: str, extra: int = 0
) -> int:
    """Bytes that a simulation keeps: populations in one or two buffers, a flags a site, and `extra`
    bytes per site.

    `storage` is "f16", "f32" or "f64"; `streaming` "in-place" (one buffer), "pull" or "push" (two).
    """
    check_known("storage", storage, STORAGE_BYTES)
    check_known("streaming", streaming, BUFFERS)
    site = BUFFERS[streaming] * lattice.size * STORAGE_BYTES[storage] + WORD_BYTES + extra
    return math.prod(check_shape(shape)) * site


def check_memory(
    shape: Sequence[int],
    lattice: lw.Lattice,
    storage: str,
    streaming: str,
    available_bytes: int,
    extra: int = 0,
) -> None:
    """Refuse, before anything is allocated, a box that does not fit into `available_bytes`.

    The DeviceError says what would fit: less storage, in-place streaming, and the largest box of
    the same proportions.
    """
    needed = memory_bytes(shape, lattice, storage, streaming, extra)
    if needed <= available_bytes:
        return
    raise DeviceError(
        f"{sites_text(check_shape(shape))} of {lattice.name} stored as {storage} with {streaming} "
        "streaming need "
        f"{gigabytes(needed)}, and {gigabytes(available_bytes)} are available; "
        f"{_ways_out(tuple(shape), lattice, storage, streaming, available_bytes, extra)}"
    )


def _ways_out(
    shape: tuple[int, ...],
    lattice: lw.Lattice,
    storage: str,
    streaming: str,
    available: int,
    extra: int,
) -> str:
    """What fits: the leaner choices at this size, then the largest box like this one."""
    leaner = [
        (f"{s} storage with in-place streaming", memory_bytes(shape, lattice, s, "in-place", extra))
        for s, size in STORAGE_BYTES.items()
        if size <= STORAGE_BYTES[storage] and (s, "in-place") != (storage, streaming)
    ]
    fitting = [
        f"{what} ({gigabytes(nbytes)})" for what, nbytes in reversed(leaner) if nbytes <= available
    ]
    share = (available / memory_bytes(shape, lattice, storage, streaming, extra)) ** (
        1 / len(shape)
    )
    smaller = tuple(int(n * share) for n in shape)
    if min(smaller) >= 1:
        fitting.append(f"{'a box of ' if fitting else 'at most '}{sites_text(smaller)}")
    return "use " + " or ".join(fitting) if fitting else "use another device"


def gigabytes(nbytes: int) -> str:
    """A number of bytes with three digits."""
    return f"{nbytes / 1e9:,.3g} GB" if nbytes < 999.5e9 else f"{nbytes / 1e9:,.0f} GB"


def _place(chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    """` at site (y, x) = (3, 7)` of a field; nothing for a single vector."""
    if chosen.ndim == 0:
        return ""
    return f" at site {site_text(np.unravel_index(int(np.argmax(chosen)), chosen.shape))}"
