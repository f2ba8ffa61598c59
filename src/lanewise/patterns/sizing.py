"""What follows from the sizes of calls of one kind: the same function, records, layouts and device.

Calls that differ in numbers of elements alone are sized without looking at their arguments again:
that takes some microseconds, as their plans are known by classes of sizes. All others are checked,
proved and planned as first calls are, once for each combination of sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lanewise.language import types as t
from lanewise.launch.arguments import Arguments, axes_of, flat, values_arrangement
from lanewise.launch.forms import Shape
from lanewise.launch.own_memory import OwnMemory
from lanewise.launch.repeatable import Met
from lanewise.launch.sized import Holds, Result, Sized, require_for_call, shapes_of
from lanewise.launch.slots import Given
from lanewise.launch.support import machine_of, value_type
from lanewise.launch.task_list import BoundArray, TaskList
from lanewise.launch.tuned_plans import size_class
from lanewise.layouts import Arrangement
from lanewise.patterns.results import result_arrays
from lanewise.patterns.skeleton import KernelFunction
from lanewise.records.binding import places_of
from lanewise.runtime.prepared import Flat
from lanewise.support.errors import ArgumentError

ResultsOf = Callable[[int, tuple[int, ...]], Sequence[Result]]
Classify = Callable[[tuple[Any, ...], Mapping[str, Any]], Arguments]
"""The arguments of a call, positional and named, checked."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a call runs.

    environment: its values and counts, by IR name. holds: see `launch.sized.Sized`.
    """

    tasks: TaskList
    environment: Mapping[str, Any]
    results: Sequence[Result]
    holds: Holds | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """Calls of which sizes say nothing but how many elements there are.

    records: parameters. values: types of the parameters that are arrays. arranged: how these and
    results lie in memory. counts: of a call, by IR name; raises `ArgumentError` where its arguments
    differ in length. numbers: these, and what follows from them. results: of so many elements with
    these axes. plan_class: of a number of elements, see `ir.pattern.Pattern`.
    """

    records: tuple[str, ...]
    values: Mapping[str, t.ValueType]
    arranged: Mapping[str, Arrangement]
    counts: Callable[[Arguments], Mapping[str, int]]
    numbers: Callable[[Mapping[str, int]], Mapping[str, int]]
    results: Callable[[int, tuple[int, ...]], Sequence[Result]]
    plan_class: Callable[[int], Hashable]

    def of(self, arrays: Mapping[str, Any]) -> tuple[Mapping[str, int], tuple[int, ...]] | None:
        """The counts and the axes of a call with these arrays; None where they do not go
        together.
        """
        axes: tuple[int, ...] = ()
        values: dict[str, Any] = {}
        for n, kind in self.values.items():
            array = values[n] = arrays[n]
            if not self.records:
                found = axes_of(array.shape, kind)
                if axes and found != axes:
                    return None
                axes = found
                if len(axes) > 1:
                    values[n] = flat(array, kind)
        try:
            return self.counts(Arguments({n: arrays[n] for n in self.records}, values)), axes
        except ArgumentError:  # which a first call explains
            return None

    def shapes(
        self, arrays: Mapping[str, Any], count: int, results: Sequence[Result]
    ) -> dict[str, Shape]:
        """How arguments and results lie in memory."""
        shapes = {n: (arrangement, count) for n, arrangement in self.arranged.items()}
        for n in self.records:
            places = places_of(arrays[n])
            shapes[n] = places.arrangement, places.count
        for r in results:
            shapes[r.name] = shapes[r.name][0], r.count
        return shapes


def plain_of(
    function: KernelFunction,
    arguments: Arguments,
    results: ResultsOf | None,
    numbers: Callable[[Mapping[str, int]], Mapping[str, int]],
) -> Plain | None:
    """How calls like this one are sized, if nothing but their numbers of elements follows from
    sizes.
    """
    signature, skeleton = function.signature, function.skeleton
    plan_class = skeleton.pattern.plan_class
    numbered = function.lowered.numbered or any(r.numbered for r in signature.reductions)
    if (
        plan_class is None
        or skeleton.total
        or signature.arrays
        or signature.rows
        or numbered
        or arguments.variant
    ):
        return None
    machine, work = machine_of(arguments.device), function.work(arguments)
    values = {n: value_type(signature.parameters[n]) for n in arguments.arrays}
    made = result_arrays(function.lowered)
    results = results or (lambda count, axes: [Result(n, kind, count, axes) for n, kind in made])
    arranged = {n: values_arrangement(kind) for n, kind in values.items()}
    arranged |= {r.name: values_arrangement(r.kind) for r in results(1, ())}
    return Plain(
        tuple(arguments.records),
        values,
        arranged,
        partial(skeleton.counts, function.name),
        numbers,
        results,
        partial(plan_class, machine, work),
    )


class Sizing:
    """Makes what follows from sizes, and has the memory that launches of all sizes share."""

    __slots__ = ("_bound", "_classify", "_known", "_own", "_plain", "_program", "met", "sizes")

    def __init__(
        self, classify: Classify, bound: Callable[[Arguments], Mapping[str, BoundArray]],
        program: Callable[[Arguments], Program | None], plain: Plain | None,
    ) -> None:  # fmt: skip
        """bound: the arrays of a call.

        program: None where calls like it have none in common. plain: if calls like it are.
        """
        self._classify, self._bound, self._program, self._plain = classify, bound, program, plain
        self.sizes: dict[Hashable, Sized] = {}
        self.met: Met = {}
        self._own: dict[int, tuple[TaskList, OwnMemory | None]] = {}
        # by classes of sizes of plain calls
        self._known: dict[Hashable, tuple[TaskList, Holds | None]] = {}

    def resize(
        self,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        matched: Given,
        makes: bool,
    ) -> Sized | None:
        """Of a call that is like those before, but for its sizes: its plan may be another one."""
        if (plain := self._plain) is None or (found := plain.of(matched.arrays)) is None:
            sized, _ = self._checked(positional, named, matched, makes)
            return sized
        counts, axes = found
        count = next(iter(counts.values()))
        # Tuned plans are known by classes of sizes as well.
        key = (plain.plan_class(max(1, count)), *[size_class(n) for n in counts.values()])
        known = self._known.get(key)
        if known is None:
            sized, program = self._checked(positional, named, matched, makes)
            if program is not None:
                self._known[key] = program.tasks, program.holds
            return sized
        tasks, holds = known
        results = plain.results(count, axes)
        shapes = plain.shapes(matched.arrays, count, results)
        launches = self._launches(tasks, plain.numbers(counts), shapes, results if makes else ())
        return Sized.of(launches, results, holds)

    def _launches(
        self,
        tasks: TaskList,
        numbers: Mapping[str, Any],
        shapes: Mapping[str, Shape],
        made: Sequence[Result],
    ) -> Flat:
        """Launches of these sizes, once all that they need fits. made: results of the call."""
        own = self._memory(tasks)
        if own is not None:
            require_for_call(tasks.name, tasks.device, made, tasks.needs(numbers, own))
        return tasks.sized(numbers, shapes, own)

    def _checked(
        self,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        matched: Given,
        makes: bool,
    ) -> tuple[Sized | None, Program | None]:
        """The same by way of a first call: everything is checked and decided anew."""
        arguments = self._classify(positional, named)
        program = self._program(arguments)
        if program is None:
            return None, None
        shapes = {
            n: (b.arrangement, b.count) for n, b in self._bound(arguments).items()
        } | shapes_of(program.results)
        known = {n: v for n, v in program.environment.items() if n not in matched.values}
        made = program.results if makes else ()
        launches = self._launches(program.tasks, known, shapes, made)
        return Sized.of(launches, program.results, program.holds), program

    def _moved(self) -> None:
        self.sizes.clear()
        self.met.clear()

    def _memory(self, tasks: TaskList) -> OwnMemory | None:
        """What calls have besides their arguments, of all sizes that run these tasks."""
        kept = self._own.get(id(tasks))
        if kept is None:  # launches whose memory has moved are made anew
            kept = self._own[id(tasks)] = tasks, tasks.own_memory(self._moved)
        return kept[1]
