"""Direct sums of arrays that do not fit a device: sources and targets go there in slices, and the
sums of slices are added.

Slices are made of groups of a fixed number of elements. Each target has one sum for each group of
sources, and these are added in the order of the groups. How many groups lie on the device at a time
follows from the memory that there may be; no bit of a result does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.ir.reductions import ALL, ANY, COUNT_TRUE, SUM, Reduction
from lanewise.language import types as t
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.planning.plan import Plan
from lanewise.records.arrays import RecordArray, storage_of
from lanewise.records.same_elements import are_same, shared_elements
from lanewise.records.split_rows import split_rows
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import available_memory, to_host
from lanewise.support.attributes import frozen, settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, DeviceError, brief
from lanewise.support.numerals import counted

GROUP = 65_536  # elements: pairs of two groups take a GPU milliseconds, more than a launch
SHARE = 0.9  # of the memory that is free, where no limit is given
PLAN = Plan(reciprocity="off")  # keeps no sums besides the results
ADDED: Mapping[Reduction, Any] = {
    SUM: np.add,
    COUNT_TRUE: np.add,
    ANY: np.logical_or,
    ALL: np.logical_and,
}


@frozen
@dataclass(frozen=True, slots=True)
class Slices:
    """How a sum is divided. group: elements; resident: groups of sources on the device at a time;
    nbytes: what lies there at most, of records and results; sent: what goes there in all.
    """

    name: str
    device: str
    targets: int
    sources: int
    group: int
    resident: int
    nbytes: int
    sent: int

    @property
    def groups(self) -> int:
        """Of sources."""
        return -(-self.sources // self.group)

    @property
    def passes(self) -> int:
        """How often all targets go to the device."""
        return -(-self.groups // self.resident) if self.groups else 0

    def describe(self) -> str:
        """In a few lines: slices, memory, transfers, and what becomes of the bits."""
        if self.groups <= 1:
            bits = "one group of sources: each sum is that of a call in one piece"
        else:
            bits = (
                "group sums are added in a fixed order, so the bits do not depend on memory=; a "
                "single call keeps one running sum and rounds differently"
            )
        groups = counted(self.groups, "group", "groups")
        passes = counted(self.passes, "pass", "passes")
        return (
            f"{self.name}: {self.targets:,} targets and {self.sources:,} sources on {self.device}, "
            f"in slices\n"
            f"slices: {groups} of {self.group:,} sources, {self.resident:,} at a time, "
            f"{passes} over the targets\n"
            f"memory: {self.nbytes:,} bytes at most; {self.sent:,} bytes go to the device\n"
            f"bits: {bits}"
        )


@frozen
@dataclass(frozen=True, slots=True)
class InSlices:
    """A pairwise kernel whose arrays lie on the host and go to a device in slices; see
    `in_slices`.
    """

    kernel: Pairwise
    memory: int | None
    device: str
    group: int

    @brief
    def slices(self, targets: RecordArray, sources: RecordArray) -> Slices:
        """How a call is divided. Raises `DeviceError` if one group of targets and one of sources do
        not fit.
        """
        self._check(targets, sources)
        each, row = self.group, _result_bytes(self.kernel)
        least = [_bytes(a, min(each, len(a))) for a in (targets, sources)]
        # two results: one being added to the other
        first = least[0] + 2 * row * min(each, len(targets))
        limit = self.memory
        if limit is None:
            limit = int(SHARE * available_memory(self.device))
        if first + least[1] > limit:
            raise DeviceError(
                f"{self.kernel.__name__} in slices of {each:,} elements needs "
                f"{first + least[1]:,} bytes on {self.device!r}, and may have {limit:,}; allow "
                "more, or a smaller group"
            )
        groups = -(-len(sources) // each)
        resident = max(1, min(groups, (limit - first) // max(1, least[1])))
        passes = -(-groups // resident)
        over = _in_groups(targets, each) * passes
        if are_same(targets, sources):  # those of a pass are there as sources
            over -= _in_groups(sources, each)
        sent = over + _in_groups(sources, each)
        return Slices(
            self.kernel.__name__, self.device, len(targets), len(sources), each, resident,
            first + resident * least[1], sent,
        )  # fmt: skip

    @brief
    def explain(self, targets: RecordArray, sources: RecordArray) -> str:
        """How a call is divided, in a few lines."""
        return self.slices(targets, sources).describe()

    @brief
    def __call__(
        self,
        targets: RecordArray,
        sources: RecordArray,
        *arguments: Any,
        out: Any = None,
        plan: Any = None,
        **named: Any,
    ) -> Any:
        """The sums for all targets, on the host: an array, or a tuple of them.

        Arguments are those of the kernel, but for `out` and `plan`. Raises `ArgumentError` for
        these and for functions whose results cannot be put together, `DeviceError` for too little
        memory.
        """
        self._check_options(out, plan)
        division = self.slices(targets, sources)
        totals = _empty_results(self.kernel, len(targets))
        for first in range(0, division.groups, division.resident):
            numbers = range(first, min(first + division.resident, division.groups))
            self._add(targets, sources, numbers, totals, arguments, named)
        return totals[0] if len(totals) == 1 else tuple(totals)

    def _add(
        self,
        targets: RecordArray,
        sources: RecordArray,
        numbers: range,
        totals: Sequence[Any],
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> None:
        """Add the sums over these groups of sources, which leave the device at the end."""
        merge = [ADDED[r] for _, r in self.kernel.lowered.reduced]
        there = {n: self._brought(sources, n) for n in numbers}
        same = there if are_same(targets, sources) else {}
        for number in range(-(-len(targets) // self.group)):
            target = same[number] if number in same else self._brought(targets, number)
            rows = slice(number * self.group, (number + 1) * self.group)
            sums = [x[rows] for x in totals] if numbers.start else None
            for source in there.values():
                part = self.kernel(target, source, *arguments, plan=PLAN, **named)
                more = [to_host(x) for x in (part if isinstance(part, tuple) else (part,))]
                sums = more if sums is None else _merged(merge, sums, more)
            for total, value in zip(totals, sums or [], strict=True):
                total[rows] = value
            del target

    def _brought(self, array: RecordArray, number: int) -> RecordArray:
        """A group of elements on the device, a copy."""
        part = array[number * self.group : (number + 1) * self.group]
        return part.copy() if part.device == self.device else part.to(self.device)

    def _check_options(self, out: Any, plan: Any) -> None:
        """Refuse what calls in one piece take, and groups of elements cannot."""
        name = self.kernel.__name__
        if plan is not None:
            raise ArgumentError(
                f"{name} in slices: found plan={shown(plan)}; slices have the plan "
                f"lw.Plan({PLAN}), which needs no memory besides the results: leave plan out"
            )
        if out is not None:
            raise ArgumentError(
                f"{name} in slices: found out={shown(out)}; results are put together in new arrays "
                "of the host: leave out= out, and copy what is returned"
            )

    def _check(self, targets: RecordArray, sources: RecordArray) -> None:
        name, lowered = self.kernel.__name__, self.kernel.lowered
        for array in (targets, sources):
            if not isinstance(array, RecordArray):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ArgumentError(
                    f"{name}: found {shown(array)}; wanted an array of records, as "
                    "Body.array(...) makes it"
                )
            if (rows := split_rows(storage_of(array))) is not None:
                raise ArgumentError(
                    f"{name} in slices: an array of {array.record.name} lies on a mesh "
                    f"({rows.mesh}), and slices are of arrays in one memory, where .to(device) "
                    "brings them"
                )
        if lowered.numbered:
            raise ArgumentError(
                f"{name}: its function asks for the index of {', '.join(lowered.numbered)}, which "
                "counts from the beginning of a slice; keep a number in a field of the record"
            )
        for kind, reduction in lowered.reduced:
            if reduction not in ADDED:
                raise ArgumentError(
                    f"{name}: a result of type {kind} is found over all sources at once "
                    f"({type(reduction).__name__}), and slices are put together for sums, counts, "
                    "lw.Any and lw.All"
                )
        if shared_elements(targets, sources) is not None:
            raise ArgumentError(
                f"{name}: targets and sources are different parts of one array, and lw.same would "
                "not know copies of them; give the same array twice, or independent arrays"
            )


@settings_by_name
def in_slices(
    kernel: Pairwise, *, memory: int | None = None, device: str | None = None, group: int = GROUP
) -> InSlices:
    """The same sums for arrays that do not fit the memory of a device.

    kernel: over all pairs. memory: bytes on the device for records and results (None: 0.9 of the
    free memory). device: where sums are computed; None: the current one. group: the least number of
    elements that are sent at a time. Results depend on it by rounding, but not on `memory`. Records
    may be on the host, also in a memory-mapped file: `Body.array(memmap, copy=False)`.
    """
    if not isinstance(kernel, Pairwise) or kernel.searched is not None:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"in_slices({shown(kernel)}): wanted a pairwise kernel over all pairs; a search has to "
            "see all sources at once"
        )
    for name, value in (("memory", memory), ("group", group)):
        whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if value is not None and not whole:
            raise ArgumentError(f"in_slices({name}={shown(value)}): wanted a positive integer")
    return InSlices(kernel, memory, resolve(device), group)


def _bytes(array: RecordArray, count: int) -> int:
    return array.layout.arrange(array.record.leaves).nbytes(count)


def _in_groups(array: RecordArray, group: int) -> int:
    """Bytes of all groups of an array."""
    whole, rest = divmod(len(array), group)
    return whole * _bytes(array, group) + _bytes(array, rest)


def _result_bytes(kernel: Pairwise) -> int:
    """Of one target."""
    kinds = [r.gives(kind) for kind, r in kernel.lowered.reduced]
    return sum(t.scalar_of(k).size * len(t.leaves("x", k)) for k in kinds)


def _empty_results(kernel: Pairwise, count: int) -> list[Any]:
    """Of every target what it has without a source."""
    made: list[Any] = []
    for kind, reduction in kernel.lowered.reduced:
        given = reduction.gives(kind)
        width = len(t.leaves("x", given))
        shape = (count, width) if width > 1 else (count,)
        (state,) = reduction.parts(t.scalar_of(kind))
        made.append(np.full(shape, state.identity.value, t.scalar_of(given).dtype))
    return made


def _merged(merge: Sequence[Any], sums: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    return [f(a, b).astype(a.dtype) for f, a, b in zip(merge, sums, more, strict=True)]
