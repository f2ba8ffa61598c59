"""A tuning job: one kernel, on arrays of one size and layout, on one device; and sets of arrays for
measuring.

A set has fresh results, and copies of every record that the kernel changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir import nodes as ir
from lanewise.ir.names import is_own
from lanewise.ir.pattern import Work
from lanewise.language.target import Machine, is_compiled, target_of
from lanewise.language.types import ValueType
from lanewise.launch.arguments import bind_value_array, make_outputs, shape_of_result
from lanewise.launch.support import bind_record
from lanewise.launch.task_list import BoundArray
from lanewise.launch.tuned_plans import Key
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.arrays import RecordArray
from lanewise.runtime.memory import (
    Need,
    bring,
    copy_whole,
    module_of,
    require_together,
    to_host,
)
from lanewise.support.errors import ArgumentError, DeviceError
from lanewise.tuning.compare import moved

HostArray = np.ndarray[Any, Any]

REMEDY = "measure it with fewer elements, or let go of other memory there"


@dataclass(frozen=True, slots=True)
class Workload:
    """One set of arrays that plans run on, again and again; the arrays of the caller stay as they
    are.

    bound: arrays by IR name; environment: numbers by IR name; read: copies of everything that the
    kernel writes, on the host; reset: puts what the kernel changes back to where it was, and fills
    results with bytes that are no result; move: of a set of copies, moves every float that is read
    by a relative step, up or down at random, which a sample's number decides.
    """

    bound: Mapping[str, BoundArray]
    environment: Mapping[str, Any]
    read: Callable[[], list[HostArray]]
    reset: Callable[[], None]
    move: Callable[[int, float], None]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(b.data.nbytes) for b in self.bound.values())


@dataclass(frozen=True, slots=True)
class Job:
    """What is tuned.

    counts: elements by the names of the parameters; environment: counts and uniform arguments, by
    IR name; requested: the fields that the caller fixes; workload: makes one more set of arrays;
    copies: makes one that shares nothing with the caller's; adopt: called with the plan that was
    chosen, so that later calls in this process use it; advise: what could help besides a plan, or
    nothing; copied: bytes of the copies and results of a set.
    """

    name: str
    reference: ir.Kernel
    device: str
    machine: Machine
    work: Work
    counts: Mapping[str, int]
    environment: Mapping[str, Any]
    requested: Plan
    key: Key
    workload: Callable[[], Workload]
    copies: Callable[[], Workload]
    adopt: Callable[[CompletePlan], None]
    advise: Callable[[], str] = lambda: ""
    copied: Callable[[], int] = lambda: 0

    @property
    def kind(self) -> str:
        return target_of(self.device).name

    @property
    def default(self) -> CompletePlan:
        """The plan without tuning."""
        return complete_plan(self.requested, self.machine, self.work)

    def unfit(self, plan: CompletePlan) -> str | None:
        """Why the call, by its sizes, cannot have a plan, or None."""
        return self.work.pattern.unfit(self.machine, self.work, plan)


def check_tunable(name: str, device: str, counts: Mapping[str, int]) -> None:
    """Refuse what has nothing to measure."""
    if not is_compiled(device):
        raise DeviceError(
            f"{name}: the device 'python' interprets kernels and has no plans to compare; move the "
            "arrays to 'cpu' or 'cuda'"
        )
    for array, count in counts.items():
        if not count:
            raise ArgumentError(
                f"{name}: {array!r} has no elements; tuning measures calls with at least one"
            )


POISON = 0xFF  # NaN as a float, -1 as an integer: a result that was not written is found


@dataclass(frozen=True, slots=True)
class Contents:
    """The arrays of a call, of which a workload has copies and results.

    records, arrays: by parameter; results: name and type of each result, of length `count`. With
    `fresh` every array is copied, else only what the kernel writes.
    """

    reference: ir.Kernel
    records: Mapping[str, RecordArray]
    arrays: Mapping[str, tuple[Any, ValueType]]
    results: Sequence[tuple[str, ValueType]]
    count: int
    device: str
    fresh: bool

    @property
    def nbytes(self) -> int:
        """The bytes of what a workload copies, and of its results."""
        return sum(need.nbytes for need in self._needs())

    def workload(self, environment: Mapping[str, Any]) -> Workload:
        """Raises `DeviceError` where the copies and the results do not fit the free memory."""
        written = {a.name for a in self.reference.arrays if a.written}
        copied, held = self._copied()
        require_together(f"measuring {self.reference.name}", self._needs(), REMEDY)
        # In their own layout, strided ones too: `copy` would leave out what lies between, and
        # kernels are compiled for the layout.
        own = {n: r.with_layout(r.layout) if n in copied else r for n, r in self.records.items()}
        plain = {
            n: (module_of(a).copy(a) if n in held else a, k) for n, (a, k) in self.arrays.items()
        }
        outputs = make_outputs(
            self.reference.name, [kind for _, kind in self.results], self.count, self.device, None
        )
        bound: dict[str, BoundArray] = {n: bind_record(r) for n, r in own.items()}
        bound |= {n: bind_value_array(a, kind) for n, (a, kind) in plain.items()}
        bound |= {
            n: bind_value_array(a, kind) for (n, kind), a in zip(self.results, outputs, strict=True)
        }
        changed = [(own[n], self.records[n]) for n in own if n in written]
        filled = [(plain[n][0], self.arrays[n][0]) for n in plain if n in written]

        def reset() -> None:
            for copy, original in changed:
                copy[:] = original
            for copy, original in filled:
                copy[...] = original
            for output in outputs:
                output.reshape(-1).view(np.uint8)[...] = POISON

        def read() -> list[HostArray]:
            fields = [a for copy, _ in changed for a in copy.numpy().values()]
            return [
                *(np.array(to_host(o)) for o in (*outputs, *(copy for copy, _ in filled))),
                *fields,
            ]

        every = (
            [(own[n], self.records[n]) for n in own],
            [(plain[n][0], self.arrays[n][0]) for n in plain],
        )
        originals = [original for some in every for _, original in some]
        first = {id(original): n for n, original in reversed([*enumerate(originals)])}

        def move(sample: int, relative: float) -> None:
            assert self.fresh  # the caller's arrays stay as they are

            def other(original: Any, values: Any) -> Any:
                # an array that is given twice moves in the same way
                return moved(values, sample, first[id(original)], relative)

            for copy, original in every[0]:
                for name, values in original.numpy().items():
                    setattr(copy, name, bring(other(original, values), self.device))
            for copy, original in every[1]:
                copy_whole(copy, other(original, np.ascontiguousarray(to_host(original))))

        return Workload(bound, environment, read, reset, move)

    def _copied(self) -> tuple[dict[str, RecordArray], dict[str, Any]]:
        """Records and arrays that a workload has copies of."""
        written = {a.name for a in self.reference.arrays if a.written}
        copied = {n: r for n, r in self.records.items() if self.fresh or n in written}
        return copied, {n: a for n, (a, _) in self.arrays.items() if self.fresh}

    def _needs(self) -> Iterator[Need]:
        """The memory of the copies and the results."""
        records, arrays = self._copied()
        for name, record in records.items():
            nbytes = record.layout.arrange(record.record.leaves).nbytes(len(record))
            yield Need(self.device, nbytes, f"a copy of {name}")
        for name, array in arrays.items():
            what = "what it counts by itself" if is_own(name) else f"a copy of {name}"
            yield Need(self.device, int(array.nbytes), what)
        for name, kind in self.results:
            shape, dtype = shape_of_result(kind, self.count)
            what = "results" if is_own(name) else f"the result {name}"
            yield Need(self.device, math.prod(shape) * dtype.itemsize, what)
