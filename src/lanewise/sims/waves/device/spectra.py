"""The SFTs of a search on a device: their bins once, and what a direction changes of them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.errors import InputError
from lanewise.ragged import RaggedArray
from lanewise.runtime import cuda
from lanewise.runtime.memory import array_module, require_memory
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
from lanewise.target import is_gpu

Floats = NDArray[np.float64]
CELLS = 1 << 22  # amplitudes of a part of the work: 64 MiB
KEPT = 1 << 28  # bytes of rows on the host that are kept for the next search of the same data

_KEPT: WeakKeyDictionary[SearchData, dict[tuple[str, int, Method], RaggedArray]] = (
    WeakKeyDictionary()
)  # rows on the host, of data that nobody can change


def table_bytes(data: SearchData, kernel: Method) -> int:
    """Memory of the bins on a device, in bytes, while they are brought there: it grows with the loaded band, and with nothing else."""
    bins = data.data.nbytes
    return bins + (2 * (DEGREE + 1) * bins if kernel == "interpolated" else bins) + 2 * 40 * len(data)


class Spectra:
    """Normalised bins on a device, as the rows of a kernel of `sims/waves/kernels.py`.

    There are as many sets of `Sft` records as directions in flight at a time (`views`).
    """

    def __init__(
        self,
        data: SearchData,
        device: str,
        dterms: int,
        *,
        kernel: Method = "interpolated",
        by_detector: bool = True,
        views: int = 1,
    ) -> None:
        """by_detector: amplitudes of each detector; without it those of a stack. Raises DeviceError where memory does not suffice."""
        if not 1 <= dterms <= 128:
            raise InputError(f"dterms is {dterms}; wanted 1 to 128 bins on a device")
        require_memory(device, table_bytes(data, kernel), f"{data!r} by the {kernel} kernel")
        self.data, self.device, self.dterms = data, device, dterms
        counts = np.diff(data.group).reshape(data.stacks, -1)
        counts = counts if by_detector else counts.sum(axis=1)
        first = data.first_bin.astype(np.int32)
        zeros = np.zeros(len(data))

        def view() -> RaggedArray:
            blank = records(Sft, delay=zeros, bins_per_hertz=zeros, a=zeros, b=zeros, first_bin=first, device=device)
            return lw.ragged(blank, counts=counts, device=device)

        self._views = [view() for _ in range(views)]
        self._rows = _rows(data, self._views[0], dterms, kernel)
        self._kernel = interpolated_kernel() if kernel == "interpolated" else dirichlet_kernel(dterms)

    def look(self, seen: Geometry, direction: int, reference: int, view: int = 0) -> None:
        """Look into one of the directions: arrival times since the reference (GPS ns), rates and antenna patterns."""
        sfts = self._views[view].data
        sfts.delay = np.ascontiguousarray(seen.arrival.since(reference)[direction])
        sfts.bins_per_hertz = seen.arrival.rate[direction] * self.data.duration
        sfts.a, sfts.b = (x[direction].astype(np.float32) for x in (seen.a, seen.b))

    def templates(
        self, count: int, frequency: Floats | None = None, f1dot: Floats | None = None, f2dot: Floats | None = None
    ) -> Any:
        """Room for templates, or templates; what is not given is zero."""
        zeros = np.zeros(count)
        frequency, f1dot, f2dot = (zeros if x is None else x for x in (frequency, f1dot, f2dot))
        return records(Template, frequency=frequency, f1dot=f1dot, f2dot=f2dot, device=self.device)

    def amplitudes(self, templates: Any, view: int = 0) -> Any:
        """The amplitudes of these templates in the direction of this view, float32 (templates, *groups, 4)."""
        return self._kernel(templates, self._views[view], self._rows)

    def bind(self, templates: Any, out: Any = None, view: int = 0) -> Any:
        """A call that computes the amplitudes of these templates, as they are then, in the direction of this view."""
        return self._kernel.bind(templates, self._views[view], self._rows, out=out)


def _rows(data: SearchData, sfts: RaggedArray, dterms: int, kernel: Method) -> RaggedArray:
    """The rows of a kernel. On the host those of the last call for the same data are taken again, where they are not many bytes."""
    fixed = not any(x.flags.writeable for x in (data.data, data.offset, data.first_bin))
    keeps = not is_gpu(sfts.device) and fixed and table_bytes(data, kernel) <= KEPT
    key = (sfts.device, dterms, kernel)
    if keeps and (kept := _KEPT.get(data, {}).get(key)) is not None:
        return kept
    bins = lw.ragged(data.data, counts=np.diff(data.offset), device=sfts.device)
    rows = polynomials(sfts, bins, dterms) if kernel == "interpolated" else bins
    if keeps:
        _KEPT[data] = {key: rows}
    return rows


def records(kind: Any, **fields: Any) -> Any:
    """An array of a record; type checkers do not know what `lw.record` adds to a class."""
    return kind.array(**fields)


def on_device(device: str) -> AbstractContextManager[Any]:
    """Where arrays are made and what is launched runs."""
    return cuda.use(device) if is_gpu(device) else nullcontext()


def upload(target: Any, values: NDArray[Any]) -> None:
    """Values into an array on any device."""
    if isinstance(target, np.ndarray):
        target[...] = values
    else:
        target[...] = array_module("cuda").asarray(values)
