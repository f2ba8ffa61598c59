"""Results of bound calls that nothing has filled yet, and loops that would read them.

`bind` makes memory for results and fills nothing: what a call leaves there replaces all of it. A
loop may hold a call that reads these results before the one that fills them has run, and would
take whatever the memory held. So `bind` marks the first bytes of each result, and the first run of
a loop asks whether they are still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.joined import Bound
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import Task
from lanewise.launch.tasks import Access
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import device_of, module_of, on, overlap, to_host
from lanewise.support.errors import ArgumentError

# Four words which no computation leaves side by side: NaN as float16, float32 and float64.
_MARK: NDArray[np.uint8] = np.array([0x7FF8A5C3, 0x7FF95A3C, 0x7FFAC35A, 0x7FFB3CA5], "<u4").view(
    np.uint8
)
_LEAST = 4  # bytes that tell a mark from a number


def mark_unwritten(results: Iterable[Any]) -> None:
    """Mark memory that `bind` made. While a graph is captured nothing is marked: it would be in
    the graph.
    """
    for array in results:
        first, device = _first_bytes(array), device_of(array)
        if first is not None and not get_device(device).is_capturing():
            module = module_of(array)
            with on(device):
                first[...] = module.asarray(_MARK[: len(first)])


def refuse_unwritten(rhythm: Rhythm, step: int) -> None:
    """Raise `ArgumentError` where a task reads results that nothing has filled, and nothing before
    it fills.

    step: the next one of the rhythm. What a function of Python does is unknown: nothing
    behind one is refused.
    """
    filled: list[Any] = []
    order = _until_unknown(rhythm, step)
    for task, bound in order:
        for data in _memory(bound, {a.buffer for a in _accesses(bound) if a.reads}):
            if _is_marked(data) and not any(overlap(data, f) for f in filled):
                raise _unwritten(task, data, order)
        filled += _memory(bound, {a.buffer for a in _accesses(bound) if a.writes})


def _unwritten(task: Task, data: Any, order: Sequence[tuple[Task, Bound]]) -> ArgumentError:
    """Of results that nothing has filled. Who fills them is named where the loop has it."""
    owners = (
        other.name
        for other, bound in order
        for r in _memory(bound, {a.buffer for a in _accesses(bound) if a.writes})
        if other is not task and overlap(data, r)
    )
    owner = next(owners, None)
    if owner is None:
        return ArgumentError(
            f"lw.steps: {task.name} reads the results of a bound call that has not run: nothing is "
            "in them. Call it once before the loop, put it in front, or fill its results"
        )
    return ArgumentError(
        f"lw.steps: {task.name} reads the results of {owner}, which has not run yet: nothing is in "
        f"them. Call {owner} once before the loop, put it before {task.name}, or fill its results"
    )


def _until_unknown(rhythm: Rhythm, step: int) -> list[tuple[Task, Bound]]:
    """The tasks of a cycle in order, each with what it does, up to the first that does not say."""
    stand = {id(s): (s.fresh, s.step) for s in rhythm.stepped}
    known: dict[int, Sequence[Bound]] = {}
    found: list[tuple[Task, Bound]] = []
    for n in range(step, step + rhythm.steps):
        for task in rhythm.tasks_of(rhythm.kinds[n % rhythm.steps]):
            if id(task) in known:  # a second time it reads what it has filled, or others have
                continue
            known[id(task)] = task.bound(stand)
            if not known[id(task)]:
                return found
            found += [(task, bound) for bound in known[id(task)]]
    return found


def _accesses(bound: Bound) -> Iterator[Access]:
    return (access for task in bound.sequence.tasks for access in task.accesses)


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
