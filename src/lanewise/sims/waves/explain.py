"""The kernel of the F-statistic, to be explained, and as it is called, to be tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.layouts import default_layout, layout_by_name
from lanewise.sims.common.devices import check_compiled, resolve
from lanewise.sims.common.shown import ShownCall, TunedCall
from lanewise.sims.waves.kernels import (
    Sft,
    Template,
    dirichlet_kernel,
    interpolated_kernel,
    polynomials,
)
from lanewise.sims.waves.prepared import DTERMS
from lanewise.support.attributes import near
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted, numeral

SIZES = {"sfts": 90, "detectors": 1, "stacks": 1, "dterms": 0}
"""What can be set, with what it is by default; dterms 0: that of searches, read from a table."""
DURATION, LOWEST = 1800.0, 100.0  # s of an SFT; Hz of the lowest template
SPARE = 4  # bins that a template may be off by its spin-down
MOST = {"sfts": 10_000, "detectors": 8, "stacks": 1_000, "dterms": 128}


def explained(
    device: str,
    templates: int,
    precision: str,
    layout: str | None,
    values: Mapping[str, float],
) -> tuple[str, tuple[ShownCall, ...]]:
    """The kernel that sums the amplitudes of so many templates at one place of the sky over SFTs;
    on "cuda" no GPU is needed.

    `values`: sfts (of a stack and detector), detectors, stacks; with dterms (bins on each side) it
    is the kernel that adds the terms of Dirichlet's, without the one that reads polynomials. Raises
    `InputError`.
    """
    sizes = _checked(precision, values)
    kernel, given = _call(templates, sizes, layout, "cpu", device)
    shape = " x ".join(str(sizes[n]) for n in ("stacks", "detectors", "sfts"))
    terms = sizes["dterms"]
    how = (
        f"{2 * terms} terms of Dirichlet's kernel each"
        if terms
        else "their bins interpolated by polynomials"
    )
    heading = (
        f"the F-statistic of {counted(templates, 'template', 'templates')} at one place: "
        f"{shape} SFTs (stacks x detectors x SFTs), {how}"
    )
    # Templates are sorted by frequency, so that neighbours read the same bin or the next one.
    step = 1 / sizes["sfts"]
    return heading, (ShownCall(kernel, given, gather_step=step),)


def tuned_call(
    device: str, templates: int, precision: str, layout: str | None, values: Mapping[str, float]
) -> TunedCall:
    """The same kernel on a device, of random SFTs and frequencies as close as searches have them.

    Raises `InputError`, `DeviceError`.
    """
    check_compiled("waves", device)  # before SFTs are made
    sizes, where = _checked(precision, values), resolve(device)
    kernel, given = _call(templates, sizes, layout, where, where)
    return TunedCall(kernel, given)


def _call(
    templates: int, sizes: Mapping[str, int], layout: str | None, device: str, like: str
) -> tuple[lw.Segmentwise, tuple[Any, ...]]:
    """The kernel and its arguments on a device, in the layout that arrays have by default on one
    `like` this.
    """
    dterms, rows = sizes["dterms"] or DTERMS, sizes["stacks"] * sizes["detectors"] * sizes["sfts"]
    template: Any = Template
    sft: Any = Sft
    chosen = layout_by_name(layout) if layout else default_layout(template.__record__, like)
    places: dict[str, Any] = {"layout": chosen, "device": device}
    rng = np.random.default_rng(0)
    step = 1 / (DURATION * sizes["sfts"])  # Hz: as far apart as the SFTs of a stack resolve
    which = template.array(
        frequency=LOWEST + step * np.arange(templates), f1dot=-1e-10, f2dot=0.0, **places
    )
    shape = (sizes["stacks"], sizes["detectors"], sizes["sfts"])
    delay = DURATION * (np.arange(rows) - rows / 2) / sizes["detectors"]
    a, b = rng.uniform(-1, 1, (2, rows)).astype(np.float32)
    first = int(LOWEST * DURATION) - dterms - 2 * SPARE
    flat = sft.array(delay=delay, bins_per_hertz=DURATION, a=a, b=b, first_bin=first, **places)
    width = math.ceil(templates * step * DURATION) + 2 * dterms + 4 * SPARE
    noise = rng.standard_normal((2, rows * width)).astype(np.float32)
    bins: Any = lw.ragged(
        noise[0] + np.complex64(1j) * noise[1], counts=np.full(rows, width), device=device
    )
    sfts: Any = lw.ragged(flat, counts=np.full(shape[:2], shape[2]), device=device)
    if sizes["dterms"]:
        return dirichlet_kernel(dterms), (which, sfts, bins)
    return interpolated_kernel(), (which, sfts, polynomials(sfts, bins, dterms))


def _checked(precision: str, values: Mapping[str, float]) -> dict[str, int]:
    if precision != "f32":
        raise InputError(
            f"--precision {precision}: waves has phases in f64 and sums in f32 on every device; "
            "leave it out"
        )
    return _sizes(values)


def _sizes(values: Mapping[str, float]) -> dict[str, int]:
    sizes = dict(SIZES)
    for name, value in values.items():
        if name not in SIZES:
            raise InputError(
                f"waves has no value {name!r} to set{near(name, SIZES) or ';'} it has "
                f"{', '.join(SIZES)}"
            )
        if not (value == int(value) and 1 <= value <= MOST[name]):
            raise InputError(
                f"--set {name}={numeral(value)}: wanted an integer from 1 to {MOST[name]:,}"
            )
        sizes[name] = int(value)
    return sizes
