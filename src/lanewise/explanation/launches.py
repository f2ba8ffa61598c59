"""The launches of a call, each with what it runs over, what it touches, and its share of the
time.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lanewise.compiler.pipeline import Program
from lanewise.explanation.report import LaunchRow
from lanewise.ir import nodes as ir
from lanewise.ir.series import launches, typical, whole
from lanewise.launch.executable import Executable
from lanewise.launch.task_list import Renamed, TaskList
from lanewise.launch.tasks import Launch, program_sequence
from lanewise.models.devices import DeviceModel
from lanewise.models.predict import predict
from lanewise.models.roofline import length_of
from lanewise.runtime.device import get_device
from lanewise.runtime.prepared import Prepared
from lanewise.support.numerals import counted

ROUNDS = 7  # of which the median counts


def rows_of_program(
    program: Program, environment: Mapping[str, Any], each: Sequence[float] | None
) -> tuple[LaunchRow, ...]:
    """Of the kernels of a program. each: their predicted seconds."""
    found = program_sequence(program).launches
    times = [None] * len(found) if each is None else each
    return tuple(
        _row(launch, environment, seconds) for launch, seconds in zip(found, times, strict=True)
    )


def rows_of_tasks(
    tasks: TaskList,
    kernel: Executable | None,
    rows: tuple[LaunchRow, ...],
    environment: Mapping[str, Any],
    model: DeviceModel | None,
) -> tuple[LaunchRow, ...]:
    """Of everything that a call launches, in its order. rows: those of its kernel."""
    found: list[LaunchRow] = []
    for part in tasks.parts:
        inner, known = (
            (part.part, part.known(environment))
            if isinstance(part, Renamed)
            else (part, environment)
        )
        if inner is kernel:
            found += rows
        elif isinstance(inner, Executable) and (inner.kernels or inner.cubins):
            found += rows_predicted(inner.program, known, model)
        else:
            found += [LaunchRow(task.name) for task in part.sequence.tasks]
    return tuple(found)


def rows_predicted(
    program: Program, environment: Mapping[str, Any], model: DeviceModel | None
) -> tuple[LaunchRow, ...]:
    """Of a program besides, with the time that a model says of it."""
    if model is None:
        return rows_of_program(program, environment, None)
    found = predict(program, environment, model, in_graph=model.target.has_blocks)
    return rows_of_program(program, environment, None if found.unknown.guessed else found.each)


def _row(launch: Launch, environment: Mapping[str, Any], seconds: float | None) -> LaunchRow:
    over, times = grid_of(launch, environment)
    return LaunchRow(launch.name, times, over, _bytes(launch, environment), seconds)


def grid_of(launch: Launch, environment: Mapping[str, Any]) -> tuple[str, int]:
    """What a kernel runs over, in words, and how often it is launched."""
    kernel = launch.kernel
    counts, times = typical(kernel, environment) if kernel.series else (environment, 1)
    extent, grid = whole(launch.extent, counts), kernel.grid
    if grid is None:
        return counted(extent, "turn", "turns"), times
    blocks = -(-extent // grid.lanes) * grid.parts
    return f"{counted(blocks, 'block', 'blocks')} of {grid.threads:,} threads", times


def _bytes(launch: Launch, environment: Mapping[str, Any]) -> int | None:
    """Of the arrays that a kernel touches, each once; None where the length of one is not known."""
    kernel = launch.kernel
    scratch = {s.array: s.length for s in kernel.scratch}
    total = 0
    for access in launch.accesses:
        array: ir.ArrayArgument | None = next(
            (a for a in kernel.arrays if a.name == access.buffer), None
        )
        if array is None:  # constant memory
            continue
        length = (
            whole(scratch[array.name], environment)
            if array.name in scratch
            else length_of(kernel, array, environment)
        )
        if length is None:
            return None
        total += array.arrangement.nbytes(int(length))
    return total


def measured(
    rows: tuple[LaunchRow, ...],
    program: Program,
    prepared: Prepared,
    environment: Mapping[str, Any],
    device: str,
) -> tuple[LaunchRow, ...]:
    """The same with the seconds of each kernel, launch by launch, on memory that nothing else
    uses.
    """
    clock = get_device(device).seconds
    works = [partial(p.run, p.arguments) for p in prepared.pieces]
    prepared()  # once before: what is compiled late is compiled now
    rounds = [[clock(work) for work in works] for _ in range(ROUNDS)]
    each = [statistics.median(times) for times in zip(*rounds, strict=True)]
    taken = [0.0] * len(rows)
    for (n, _), seconds in zip(launches(program.kernels, environment), each, strict=True):
        taken[n] += seconds
    return tuple(replace(row, measured=seconds) for row, seconds in zip(rows, taken, strict=True))
