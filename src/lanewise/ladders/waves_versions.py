"""The versions of the ladder `waves`: the same kernel, called for more and more at a time.

A version prepares a direction, which it does once for all of its spin-downs, and then computes the
amplitudes of a spin-down. A clock gets what it does by its kind: "memory" (allocating
and packing), "transfer" (copies to and from the device), "kernel" (calls and waiting).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

import lanewise as lw
from lanewise.ladders.waves_data import DTERMS, Data
from lanewise.ladders.waves_double import dirichlet_kernel64
from lanewise.ladders.waves_thesis import BAND, CALLS, CPU, DOUBLE, PACKED, STACKED
from lanewise.sims.common.devices import get_device, target_of, to_host
from lanewise.sims.waves.kernels import Sft, Template, dirichlet_kernel

KINDS = ("transfer", "memory", "kernel")


@dataclass
class SecondsByKind:
    """Seconds by kind. The device is waited for at the end of each, so that nothing is counted for
    what comes later.
    """

    device: str
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    @contextmanager
    def of(self, kind: str) -> Generator[None]:
        start = time.perf_counter()
        yield
        get_device(self.device).synchronize()
        self.seconds[kind] += time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class Version:
    """prepare: (data, clock) of a direction; run: (data, what was prepared, spin-down, clock) to
    amplitudes.

    Amplitudes are (frequencies, stacks, detectors, 4): real and imaginary part of Fa, then of Fb.

    calls: of the kernel for one spin-down. serial: on one thread of the CPU. sample: (data, what
    was prepared, device) to the arguments of one of its calls.
    """

    name: str
    prepare: Callable[[Data, SecondsByKind], Any]
    run: Callable[[Data, Any, int, SecondsByKind], Any]
    calls: Callable[[Data], int]
    over: str | None = None
    serial: bool = False
    sample: Callable[[Data, Any, str], tuple[Any, ...]] | None = None
    kernel: Callable[[int], Any] = dirichlet_kernel


def _sfts(data: Data, some: slice, counts: Any, device: str) -> lw.RaggedArray:
    """The SFTs of a part of the groups, packed on the host: data vectors and offset vectors in one
    allocation.
    """
    records = cast("Any", Sft).array(
        delay=data.delay[some],
        bins_per_hertz=data.rate[some],
        a=data.a[some],
        b=data.b[some],
        first_bin=data.first_bin[some],
        device=device,
    )
    return lw.ragged(records, counts=counts, device=device)


def _bins(data: Data, some: slice, device: str) -> lw.RaggedArray:
    bins = data.bins[some]
    return lw.ragged(bins.reshape(-1), counts=np.full(len(bins), bins.shape[1]), device=device)


def _templates(data: Data, some: slice, spin: int, device: str) -> lw.RecordArray:
    f = data.frequencies[some]
    return cast("Any", Template).array(
        frequency=f, f1dot=np.full(len(f), data.f1dots[spin]), f2dot=np.zeros(len(f)), device=device
    )


def _call(
    templates: lw.RecordArray,
    sfts: lw.RaggedArray,
    bins: lw.RaggedArray,
    clock: SecondsByKind,
    kernel: Callable[[int], Any] = dirichlet_kernel,
) -> Any:
    """The kernel, and its amplitudes on the host."""
    with clock.of("kernel"):
        amplitudes = kernel(DTERMS)(templates, sfts, bins)
    with clock.of("transfer"):
        return to_host(amplitudes)


def _packed(
    data: Data, some: slice, counts: Any, clock: SecondsByKind
) -> tuple[lw.RaggedArray, lw.RaggedArray]:
    """SFTs and bins on the device: packed on the host, then copied in two pieces."""
    with clock.of("memory"):
        sfts, bins = _sfts(data, some, counts, "cpu"), _bins(data, some, "cpu")
    if target_of(clock.device).host_memory:
        return sfts, bins
    with clock.of("transfer"):
        return sfts.to(clock.device), bins.to(clock.device)


def _group(data: Data, number: int) -> slice:
    return slice(number * data.size.sfts, (number + 1) * data.size.sfts)


def _nothing(data: Data, clock: SecondsByKind) -> None:
    """Every call brings its own data."""


def _empty(data: Data) -> Any:
    return np.empty((data.size.frequencies, data.groups, 4), np.float32)


def _shaped(data: Data, amplitudes: Any) -> Any:
    return amplitudes.reshape(data.size.frequencies, data.size.stacks, data.size.detectors, 4)


def _one_by_one(data: Data, _: None, spin: int, clock: SecondsByKind) -> Any:
    """Version 1: for each stack, frequency and detector memory is allocated, filled, and given
    back.
    """
    amplitudes, counts = _empty(data), np.array([[data.size.sfts]])
    for group in range(data.groups):
        for f in range(data.size.frequencies):
            sfts, bins = _packed(data, _group(data, group), counts, clock)
            with clock.of("memory"):
                templates = _templates(data, slice(f, f + 1), spin, clock.device)
            amplitudes[f, group] = _call(templates, sfts, bins, clock)[0, 0, 0]
    return _shaped(data, amplitudes)


Groups = list[tuple[lw.RaggedArray, lw.RaggedArray]]


def _pack_groups(data: Data, clock: SecondsByKind) -> Groups:
    """The data of a direction on the device, where they stay: by stack and detector."""
    counts = np.array([[data.size.sfts]])
    return [_packed(data, _group(data, g), counts, clock) for g in range(data.groups)]


def _frequency_by_frequency(data: Data, groups: Groups, spin: int, clock: SecondsByKind) -> Any:
    """Version 2: data are on the device; still a call for each stack, frequency and detector."""
    amplitudes = _empty(data)
    with clock.of("memory"):
        each = [
            _templates(data, slice(f, f + 1), spin, clock.device)
            for f in range(data.size.frequencies)
        ]
    for group, (sfts, bins) in enumerate(groups):
        for f, templates in enumerate(each):
            amplitudes[f, group] = _call(templates, sfts, bins, clock)[0, 0, 0]
    return _shaped(data, amplitudes)


def _pack_stacks(data: Data, clock: SecondsByKind) -> Groups:
    n = data.size.sfts * data.size.detectors
    counts = np.full((1, data.size.detectors), data.size.sfts)
    return [
        _packed(data, slice(s * n, (s + 1) * n), counts, clock) for s in range(data.size.stacks)
    ]


def _band_by_band(data: Data, stacks: Groups, spin: int, clock: SecondsByKind) -> Any:
    """Version 3: a call for each stack, with all frequencies (blocks) and detectors (thread y) in
    it.
    """
    amplitudes = np.empty(
        (data.size.frequencies, data.size.stacks, data.size.detectors, 4), np.float32
    )
    with clock.of("memory"):
        templates = _templates(data, slice(None), spin, clock.device)
    for stack, (sfts, bins) in enumerate(stacks):
        amplitudes[:, stack] = _call(templates, sfts, bins, clock)[:, 0]
    return amplitudes


def _pack_all(data: Data, clock: SecondsByKind) -> Groups:
    counts = np.full((data.size.stacks, data.size.detectors), data.size.sfts)
    return [_packed(data, slice(None), counts, clock)]


def _all_stacks(data: Data, packed: Groups, spin: int, clock: SecondsByKind) -> Any:
    """The thesis's proposal: stacks in the second dimension of the grid, one call a spin-down."""
    with clock.of("memory"):
        templates = _templates(data, slice(None), spin, clock.device)
    return _call(templates, *packed[0], clock)


def _pack_all_double(data: Data, clock: SecondsByKind) -> Groups:
    """As `_pack_all`, with bins in float64."""
    ((sfts, _),) = _pack_all(data, clock)
    with clock.of("memory"):
        wide = data.bins.astype(np.complex128)
        counts = np.full(len(wide), wide.shape[1])
        bins = lw.ragged(wide.reshape(-1), counts=counts, device="cpu")
    with clock.of("transfer"):
        return [(sfts, bins if target_of(clock.device).host_memory else bins.to(clock.device))]


def _all_stacks_double(data: Data, packed: Groups, spin: int, clock: SecondsByKind) -> Any:
    with clock.of("memory"):
        templates = _templates(data, slice(None), spin, clock.device)
    return _call(templates, *packed[0], clock, dirichlet_kernel64)


def _first_frequency(data: Data, groups: Groups, device: str) -> tuple[Any, ...]:
    return (_templates(data, slice(1), 0, device), *groups[0])


def _all_frequencies(data: Data, groups: Groups, device: str) -> tuple[Any, ...]:
    return (_templates(data, slice(None), 0, device), *groups[0])


VERSIONS = (
    Version(CPU, _pack_all, _all_stacks, lambda d: 1, serial=True),
    Version(CALLS, _nothing, _one_by_one, lambda d: d.size.cells, CPU),
    Version(
        PACKED, _pack_groups, _frequency_by_frequency, lambda d: d.size.cells, CALLS,
        sample=_first_frequency,
    ),
    Version(
        BAND, _pack_stacks, _band_by_band, lambda d: d.size.stacks, PACKED, sample=_all_frequencies
    ),
    Version(STACKED, _pack_all, _all_stacks, lambda d: 1, BAND, sample=_all_frequencies),
    Version(
        DOUBLE, _pack_all_double, _all_stacks_double, lambda d: 1, STACKED,
        sample=_all_frequencies, kernel=dirichlet_kernel64,
    ),
)  # fmt: skip
"""In the order of the ladder. One that continues from here is one more entry.

What it prepares, runs and calls.
"""
