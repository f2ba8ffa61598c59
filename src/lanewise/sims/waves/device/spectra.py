"""The SFTs of a search on a device: their bins once, and what a direction changes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.profiling import stage
from lanewise.sims.common.devices import (
    array_module,
    device_of,
    module_of,
    on,
    require_memory,
    target_of,
)
from lanewise.sims.waves.device.look import SftState, look, states
from lanewise.sims.waves.kernels import (
    DEGREE,
    Method,
    Sft,
    Template,
    dirichlet_kernel,
    interpolated_kernel,
    polynomials,
)
from lanewise.sims.waves.prepared import Geometry, SearchData
from lanewise.sims.waves.timing import EarthState
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral

Floats = NDArray[np.float64]
View = lw.RaggedArray  # of `Sft`
VIEW_BYTES = 28 + 8  # of an SFT, and of where its bins begin
CELLS = 1 << 22  # amplitudes of a part of the work: 64 MiB
DEVICE_BINS = 1 << 31  # as many as int32 numbers, in which devices have them
FARTHEST = 1 << 28  # bins from those of an SFT: kernels take a few times as much in int32
KEPT = 1 << 28  # bytes of rows on the host that are kept for the next search of the same data

# rows on the host, of data that nothing can change
_KEPT: WeakKeyDictionary[SearchData, dict[tuple[str, int, Method], lw.RaggedArray]] = (
    WeakKeyDictionary()
)


def table_bytes(data: SearchData, kernel: Method) -> int:
    """Memory of the bins on a device, in bytes, while they are brought there: it grows with the
    loaded band, and with nothing else.
    """
    bins = data.data.nbytes
    return (
        bins
        + (2 * (DEGREE + 1) * bins if kernel == "interpolated" else bins)
        + VIEW_BYTES * len(data)
    )


def are_far(data: SearchData, spins: Sequence[float], since: float, rate: float) -> bool:
    """Whether templates may lie so far from the bins that int32, in which devices number them, does
    not tell which ones are missing.

    spins: the largest frequency and the largest derivatives, without signs; since: the largest time
    from the reference, seconds; rate: the largest of arrivals, seconds per second.
    """
    highest = sum(spin * since**k / math.factorial(k) for k, spin in enumerate(spins))
    # also what is no number is far
    return not rate * highest * data.duration + float(data.first_bin.max()) < FARTHEST


class Spectra:
    """Normalised bins on a device, as the rows of a kernel of `sims/waves/kernels.py`.

    A `View` holds what a direction changes of the SFTs; there are as many as directions in flight
    at a time.
    """

    def __init__(
        self,
        data: SearchData,
        device: str,
        dterms: int,
        *,
        kernel: Method = "interpolated",
        by_detector: bool = True,
    ) -> None:
        """by_detector: amplitudes of each detector; without it those of a stack.

        Raises DeviceError where memory does not suffice.
        """
        if not 1 <= dterms <= 128:
            raise InputError(f"dterms is {dterms}; wanted 1 to 128 bins on a device")
        last = int((data.first_bin + np.diff(data.offset)).max())
        if last > DEVICE_BINS:
            raise InputError(
                f"SFTs of {numeral(data.duration)} s have the bin {last - 1:,} at "
                f"{numeral((last - 1) / data.duration)} Hz; wanted less than {DEVICE_BINS:,} bins "
                f"on {device!r}: device='numpy' computes more"
            )
        require_memory(device, table_bytes(data, kernel), f"{data!r} by the {kernel} kernel")
        self.data, self.device, self.dterms = data, device, dterms
        counts = np.diff(data.group).reshape(data.stacks, -1)
        counts = counts if by_detector else counts.sum(axis=1)
        self._counts = counts
        self._rows = _rows(data, self.view(), dterms, kernel)
        self._kernel = (
            interpolated_kernel() if kernel == "interpolated" else dirichlet_kernel(dterms)
        )

    def view(self) -> View:
        """Room for a direction."""
        zeros, first = np.zeros(len(self.data)), self.data.first_bin.astype(np.int32)
        blank = records(
            Sft,
            delay=zeros,
            bins_per_hertz=zeros,
            a=zeros,
            b=zeros,
            first_bin=first,
            device=self.device,
        )
        return lw.ragged(blank, counts=self._counts, device=self.device)

    def look(self, view: View, seen: Geometry, direction: int, reference: int) -> None:
        """Look into one of the directions: arrival times since the reference (GPS ns), rates and
        antenna patterns.
        """
        sfts = view.data
        sfts.delay = np.ascontiguousarray(seen.arrival.since(reference)[direction])
        sfts.bins_per_hertz = seen.arrival.rate[direction] * self.data.duration
        sfts.a, sfts.b = (x[direction].astype(np.float32) for x in (seen.a, seen.b))

    def know(self, earths: Mapping[str, EarthState], reference: int) -> None:
        """Bring what `looking` needs, once: the reference time in GPS nanoseconds."""
        self._states = records(SftState, **states(self.data, earths, reference), device=self.device)

    def looking(self, view: View, directions: Any, number: int) -> Any:
        """A call that looks into one of these directions, as they are then: nothing is uploaded.
        directions: (directions, TURNED) on the device, of `turned`.
        """
        return look.bind(view.data, self._states, directions, np.int32(number), self.data.duration)

    def templates(
        self,
        count: int,
        frequency: Floats | None = None,
        f1dot: Floats | None = None,
        f2dot: Floats | None = None,
    ) -> Any:
        """Room for templates, or templates; what is not given is zero."""
        zeros = np.zeros(count)
        frequency, f1dot, f2dot = (zeros if x is None else x for x in (frequency, f1dot, f2dot))
        return records(Template, frequency=frequency, f1dot=f1dot, f2dot=f2dot, device=self.device)

    def amplitudes(self, templates: Any, view: View) -> Any:
        """The amplitudes of these templates in the direction of this view, float32 (templates,
        *groups, 4).
        """
        return self._kernel(templates, view, self._rows)

    def bind(self, templates: Any, view: View, out: Any = None, plan: lw.Plan | None = None) -> Any:
        """A call that computes the amplitudes of these templates, as they are then, in the
        direction of this view.
        """
        return self._kernel.bind(templates, view, self._rows, out=out, plan=plan)

    def array(self, values: NDArray[Any]) -> Any:
        """A copy on the device."""
        return array_module(self.device).array(values)


def _rows(data: SearchData, sfts: lw.RaggedArray, dterms: int, kernel: Method) -> lw.RaggedArray:
    """The rows of a kernel.

    On the host those of the last call for the same data are taken again, where they are not many
    bytes.
    """
    fixed = not any(x.flags.writeable for x in (data.data, data.offset, data.first_bin))
    keeps = target_of(sfts.device).host_memory and fixed and table_bytes(data, kernel) <= KEPT
    key = (sfts.device, dterms, kernel)
    if keeps and (kept := _KEPT.get(data, {}).get(key)) is not None:
        return kept
    bins = lw.ragged(data.data, counts=np.diff(data.offset), device=sfts.device)
    rows = bins
    if kernel == "interpolated":
        with stage("statistic", name="polynomials of bins"):  # no copy, though copies enclose it
            rows = polynomials(sfts, bins, dterms)
    if keeps:
        _KEPT[data] = {key: rows}
    return rows


def records(kind: Any, **fields: Any) -> Any:
    """An array of a record; type checkers do not know what `lw.record` adds to a class."""
    return kind.array(**fields)


def upload(target: Any, values: NDArray[Any]) -> None:
    """Values into an array on any device."""
    with on(device_of(target)):
        target[...] = module_of(target).asarray(values)
