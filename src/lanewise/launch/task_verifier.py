"""Whether a sequence is sound: buffers are there, filled before they are read, and of known
sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.series import launches, whole
from lanewise.ir.traverse import reads
from lanewise.launch.tasks import Host, Launch, Role, Sequence, Task
from lanewise.support.errors import VerificationError

TRIED = (0, 1, 7)  # elements of every array


def verify(sequence: Sequence) -> Sequence:
    """The sequence itself; raises `VerificationError` for one that is not sound."""
    for task in sequence.tasks:
        _check_buffers(sequence, task)
    _check_order(sequence)
    _check_uses(sequence)
    for count in TRIED:
        _check_sizes(sequence, count)
    return sequence


def _check_buffers(sequence: Sequence, task: Task) -> None:
    """A task touches buffers of the sequence, which lie as its kernel has them."""
    arrays: dict[str, ir.ArrayArgument] = {}
    if isinstance(task, Launch):
        arrays = {task.names.get(a.name, a.name): a for a in task.kernel.arrays}
    for access in task.accesses:
        buffer = sequence.buffers.get(access.buffer)
        if buffer is None:
            raise _unsound(
                sequence, task, f"touches {access.buffer!r}, which is no buffer of the call"
            )
        if not access.reads and not access.writes:
            raise _unsound(sequence, task, f"neither reads nor writes {access.buffer!r}")
        array = arrays.get(access.buffer)
        lies = buffer.arrangement
        if array is not None and lies is not None and array.arrangement.unpinned != lies.unpinned:
            raise _unsound(sequence, task, f"takes {access.buffer!r} to lie otherwise than it does")
        if access.writes and buffer.role is Role.ARGUMENT and access.buffer not in sequence.changed:
            raise _unsound(
                sequence, task, f"writes {access.buffer!r}, which a call does not change"
            )


def _check_order(sequence: Sequence) -> None:
    """What is read was written before, and nothing is given away before every gate is passed."""
    written = {n for n, b in sequence.buffers.items() if b.role in (Role.ARGUMENT, Role.KEPT)}
    changed: Task | None = None
    for task in sequence.tasks:
        if isinstance(task, Host) and task.gate and changed is not None:
            raise _unsound(
                sequence, task, f"may refuse a call after {changed.name} has changed its arguments"
            )
        # Threads that take turns, which clean memory counts, read what those before them have
        # written.
        in_turns = any(sequence.buffers[a.buffer].clean for a in task.accesses)
        for access in task.accesses:
            if access.reads and access.buffer not in written and not (access.writes and in_turns):
                raise _unsound(
                    sequence, task, f"reads {access.buffer!r}, which nothing has written before"
                )
        written |= {a.buffer for a in task.accesses if a.writes}
        if any(
            a.writes and sequence.buffers[a.buffer].role is Role.ARGUMENT for a in task.accesses
        ):
            changed = task


def _check_uses(sequence: Sequence) -> None:
    """Results are written, and temporaries are read after that."""
    last_read: dict[str, int] = {}
    last_write: dict[str, int] = {}
    for n, task in enumerate(sequence.tasks):
        last_read |= {a.buffer: n for a in task.accesses if a.reads}
        last_write |= {a.buffer: n for a in task.accesses if a.writes}
    for name, buffer in sequence.buffers.items():
        if buffer.role is Role.RESULT and name not in last_write:
            raise VerificationError(f"{sequence.name}: nothing writes the result {name!r}")
        if buffer.role is Role.TEMPORARY and last_write.get(name, -1) > last_read.get(name, -1):
            raise _unsound(
                sequence,
                sequence.tasks[last_write[name]],
                f"writes {name!r}, which nothing reads after it",
            )
        if buffer.clean and (name not in last_read or name not in last_write):
            raise VerificationError(f"{sequence.name}: nothing brings {name!r} back to zero")


def _check_sizes(sequence: Sequence, count: int) -> None:
    """Extents and lengths follow from counts and values, and are never negative."""
    environment = _environment(sequence, count)
    for number, counts in launches([task.kernel for task in sequence.launches], environment):
        task = sequence.launches[number]
        if missing := [n for n in reads(task.extent) if n not in counts]:
            raise _unsound(
                sequence,
                task,
                f"runs over a number of elements that depends on {', '.join(missing)}",
            )
        if (extent := whole(task.extent, counts)) < 0:
            raise _unsound(sequence, task, f"runs over {extent} elements where arrays have {count}")
    for buffer in sequence.beside:
        assert buffer.count is not None
        if missing := [n for n in reads(buffer.count) if n not in environment]:
            raise VerificationError(
                f"{sequence.name}: the length of {buffer.name!r} depends on {', '.join(missing)}, "
                "which no kernel knows"
            )
        if (length := whole(buffer.count, environment)) < 0:
            raise VerificationError(
                f"{sequence.name}: {buffer.name!r} has {length} elements where arrays have {count}"
            )


def _environment(sequence: Sequence, count: int) -> Mapping[str, object]:
    """So many of everything; what series count is added by the turns themselves."""
    kernels = [task.kernel for task in sequence.launches]
    turns = {name for k in kernels for s in k.series for name in (s.first, s.rounds)}
    parameters: list[ir.Parameter] = [p for k in kernels for p in k.counts + k.uniforms]
    numbers: dict[str, Any] = {
        p.name: np.int64(count) if p.type.is_integer else p.type.dtype.type(count)
        for p in parameters
    } | {n: np.int64(count) for n in sequence.counts}
    return {n: v for n, v in numbers.items() if n not in turns}


def _unsound(sequence: Sequence, task: Task, why: str) -> VerificationError:
    return VerificationError(f"{sequence.name}: {task.name} {why}")
