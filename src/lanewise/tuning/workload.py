"""Sets of arrays for measuring: fresh results, and copies of every record that the kernel changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lanewise.arrays import RecordArray
from lanewise.ir import nodes as ir
from lanewise.launch.arguments import bind_value_array, make_outputs
from lanewise.launch.executable import BoundArray
from lanewise.launch.support import bind_record
from lanewise.runtime.memory import to_host
from lanewise.tuning.job import HostArray, Workload
from lanewise.types import ValueType

POISON = 0xFF  # NaN as a float, -1 as a whole number: a result that nobody wrote is found


def make_workload(
    reference: ir.Kernel,
    records: Mapping[str, RecordArray],
    arrays: Mapping[str, tuple[Any, ValueType]],
    results: Iterable[tuple[str, ValueType]],
    count: int,
    environment: Mapping[str, Any],
    device: str,
    *,
    fresh: bool,
) -> Workload:
    """A workload of a call. With `fresh` every array is a copy of its own, else only what the kernel writes.

    records, arrays: by parameter; results: name and type of each result, of length `count`.
    """
    written = {a.name for a in reference.arrays if a.written}
    own = {n: r.copy() if fresh or n in written else r for n, r in records.items()}
    plain = {n: (a.copy() if fresh else a, kind) for n, (a, kind) in arrays.items()}
    named = list(results)
    outputs = make_outputs(reference.name, [kind for _, kind in named], count, device, None)
    bound: dict[str, BoundArray] = {n: bind_record(r) for n, r in own.items()}
    bound |= {n: bind_value_array(a, kind) for n, (a, kind) in plain.items()}
    bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named, outputs, strict=True)}
    changed = [(own[n], records[n]) for n in own if n in written]

    filled = [(plain[n][0], arrays[n][0]) for n in plain if n in written]

    def reset() -> None:
        for copy, original in changed:
            copy.data[...] = original.data
        for copy, original in filled:
            copy[...] = original
        for output in outputs:
            output.reshape(-1).view(np.uint8)[...] = POISON

    def read() -> list[HostArray]:
        fields = [a for copy, _ in changed for a in copy.numpy().values()]
        return [*(np.array(to_host(o)) for o in (*outputs, *(copy for copy, _ in filled))), *fields]

    return Workload(bound, environment, read, reset)
