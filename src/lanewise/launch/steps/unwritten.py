"""Results of bound calls that nothing has filled yet, and loops that would read them.

`bind` makes memory for results and fills nothing: what a call leaves there replaces all of it. A
loop may hold a call that reads these results before the one that fills them has run, and would
take whatever the memory held. So `bind` marks the first bytes of each result, and the first run of
a loop asks whether they are still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.joined import Bound
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.tasks import Role
from lanewise.runtime.memory import device_of, module_of, on, overlap, to_host
from lanewise.support.errors import ArgumentError

# Four words which no computation leaves side by side: NaN as float16, float32 and float64.
_MARK: NDArray[np.uint8] = np.array([0x7FF8A5C3, 0x7FF95A3C, 0x7FFAC35A, 0x7FFB3CA5], "<u4").view(
    np.uint8
)
_LEAST = 4  # bytes that tell a mark from a number


def mark_unwritten(results: Iterable[Any]) -> None:
    """Mark memory that `bind` made."""
    for array in results:
        first = _first_bytes(array)
        if first is not None:
            module = module_of(array)
            with on(device_of(array)):
                first[...] = module.asarray(_MARK[: len(first)])


def refuse_unwritten(rhythm: Rhythm, step: int) -> None:
    """Raise `ArgumentError` where a task reads the results of one that comes later and has not run.

    step: the next one of the rhythm.
    """
    order = list(_in_order(rhythm, step))
    waiting = [(name, r) for name, bound in order for r in _results(bound) if _is_marked(r)]
    for name, bound in order if waiting else ():
        for data in _memory(bound, _read(bound)):
            for owner, result in waiting:
                if owner != name and overlap(data, result):
                    raise ArgumentError(
                        f"lw.steps: {name} reads the results of {owner}, which has not run yet: "
                        f"nothing is in them. Call {owner} once before the loop, put it before "
                        f"{name}, or fill its results"
                    )
        filled = {id(r) for r in _results(bound)}
        waiting = [(owner, r) for owner, r in waiting if id(r) not in filled]


def _in_order(rhythm: Rhythm, step: int) -> Iterator[tuple[str, Bound]]:
    stand = {id(s): (s.fresh, s.step) for s in rhythm.stepped}
    for n in range(step, step + rhythm.steps):
        for task in rhythm.tasks_of(rhythm.kinds[n % rhythm.steps]):
            for bound in task.bound(stand):
                yield task.name, bound


def _results(bound: Bound) -> list[Any]:
    buffers = bound.sequence.buffers
    return _memory(bound, [n for n, b in buffers.items() if b.role is Role.RESULT])


def _read(bound: Bound) -> set[str]:
    return {a.buffer for t in bound.sequence.tasks for a in t.accesses if a.reads}


def _memory(bound: Bound, names: Iterable[str]) -> list[Any]:
    found = (bound.memory.get(n) for n in names)
    return [data for data in found if data is not None and data.nbytes]


def _first_bytes(array: Any) -> Any:
    """As many as there is room for; None where a mark would say nothing."""
    if array.dtype.kind not in "iuf" or array.nbytes < _LEAST or not array.flags.c_contiguous:
        return None
    return array.reshape(-1).view("uint8")[: len(_MARK)]


def _is_marked(data: Any) -> bool:
    first = _first_bytes(data)
    return first is not None and bytes(to_host(first)) == bytes(_MARK[: len(first)])
