"""Calls like an earlier one: what was checked, chosen and bound for it holds, and only addresses and numbers are new.

A call is like another one when its records, layouts, devices, sizes and types are the same. Whatever is not recognised here takes the
way of a first call, which also says what is wrong with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from lanewise.frontend.function import Signature
from lanewise.language import types as t
from lanewise.language.target import is_gpu
from lanewise.launch.again import Again
from lanewise.launch.arguments import (
    Arguments,
    device_without_records,
    flatten_uniforms,
    make_outputs,
    shape_of_result,
)
from lanewise.launch.result_memory import check_beside_records, check_in_place
from lanewise.launch.shaped_arrays import check_results_apart
from lanewise.launch.slots import NOTHING, ArraySlot, Given, SameRecords, SameSlot, Slot, ValueSlot, slots_of
from lanewise.launch.support import Uses
from lanewise.launch.tuned_plans import store_enabled
from lanewise.records.arrays import RecordArray, are_same, places_of, side_of
from lanewise.records.same_elements import are_parts
from lanewise.runtime.memory import array_module, on, overlap
from lanewise.runtime.prepared import ArrayPlace, Prepared, Template

MOST = 8  # kinds of calls that a kernel remembers


@dataclass(frozen=True, slots=True)
class Result:
    """An array that a call makes: its name in the kernel, its type, how many elements it has, and their axes if there are several."""

    name: str
    kind: t.ValueType
    count: int
    axes: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        shape, _ = shape_of_result(self.kind, self.count, self.axes)
        return shape


@dataclass(frozen=True, slots=True)
class Repeats:
    """What calls like one have to be like besides.

    device_of: where one would run now. apart: arrays that share no memory, pair by pair. holds: whether what was proved of a call is so
    for other values. whole: arrays that any thread reads any element of: no result may lie in their memory.
    """

    device_of: Callable[[], str]
    apart: tuple[tuple[str, str], ...]
    holds: Callable[[Mapping[str, Any]], bool] | None = None
    whole: tuple[str, ...] = ()


Around = Callable[[dict[str, Any], Callable[[], None]], None]
"""Runs a launch with what else a call does. The arrays by name may be changed: the launch takes those that are there then."""


class Launchable(Protocol):
    """Launches that wait for arrays and values: `runtime.prepared.Template` is one."""

    def launch(
        self, views: Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]], values: Mapping[str, Any], /
    ) -> None: ...


class Repeatable:
    """A call that can be made again."""

    __slots__ = (
        "_again", "_apart", "_around", "_bound", "_changed", "_device", "_from", "_holds", "_identical", "_kernel", "_module", "_named",
        "_others", "_own_only", "_results", "_several", "_slots", "_template", "_uses", "_values", "_views", "_whole", "made",
    )  # fmt: skip

    def __init__(
        self, kernel: str, named: tuple[str, ...], slots: tuple[Slot, ...], device: str, template: Launchable, results: Sequence[Result],
        *, device_of: Callable[[], str] | None = None, identical: tuple[str, str, bool] | None = None,
        holds: Callable[[Mapping[str, Any]], bool] | None = None, apart: tuple[tuple[str, str], ...] = (),
        uses: Mapping[str, Uses] = NOTHING, own_only: bool = False, around: Around | None = None, bound: bool = False,
        whole: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """named: the keyword arguments, in their order; the others are positional.

        device_of: where a call like this runs, if no record says it. identical: the two parameters whose arrays are one, or are two.
        holds: whether what was proved for the values of a call holds for these, too. apart: pairs of arrays that share no memory.
        uses: of records. own_only: whether an element reads no fields but its own. around: what a run does besides its launches.
        bound: whether the template has the records already. whole: arrays in whose memory no result may lie.
        """
        self._whole = whole
        self._around, self._bound = around, bound
        self._uses, self._own_only = uses, own_only
        self._changed = tuple((n, u.writes) for n, u in uses.items() if u.writes)
        self._kernel, self._named, self._slots, self._device, self._template = kernel, named, slots, device, template
        self._apart, self._values = apart, tuple(s.name for s in slots if type(s) is ArraySlot and s.name not in whole)
        # Arrays of records that may be others than before; the very same ones share what they shared when a first call took them.
        self._several = sum(type(s) not in (ArraySlot, SameSlot, ValueSlot, SameRecords) for s in slots) > 1
        self._results, self._from, self._identical, self._holds = results, device_of, identical, holds
        self._module, self._views = array_module(device), _views_on(device)
        self._again: Again | None = None
        self._others = 0  # calls since one was that before it
        self.made = tuple((r.name, r.shape, shape_of_result(r.kind, r.count)[1]) for r in results)

    @property
    def axes(self) -> tuple[int, ...]:
        """Of the elements of its results."""
        return self._results[0].axes

    def match(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Given | None:
        """The arguments of a call like this one; None for another one."""
        if named:
            if tuple(named) != self._named:
                return None
            arguments = (*arguments, *named.values())
        elif self._named:
            return None
        if len(arguments) != len(self._slots) or (self._from is not None and self._from() != self._device):
            return None
        if self._again is not None and (again := self._again.take(arguments)) is not None:
            self._others = 0
            return None if self._apart and self._overlap(again.complete()) else again
        matched = Given({}, {})
        for slot, value in zip(self._slots, arguments, strict=True):
            if not slot.take(value, matched):
                return None
        if self._identical is not None:
            first, second, same = self._identical
            if are_same(matched.arrays[first], matched.arrays[second]) is not same:
                return None
        if self._several and _share(matched.arrays):
            return None
        if self._apart and self._overlap(matched.arrays):
            return None
        if self._holds is not None and not self._holds(matched.values):
            return None
        self._others += 1
        if not self._others & (self._others - 1):  # ever more seldom: others may come one after the other
            self._again = Again.of(self._slots, arguments, matched)
            if self._again is not None and isinstance(self._template, Template):
                self._again.fill(self._template, partial(self._views, matched.arrays), matched)
        return matched

    def _overlap(self, arrays: Mapping[str, Any]) -> bool:
        """Whether arrays share memory that have to be apart."""
        return any(overlap(*(_memory(arrays[n]) for n in pair)) for pair in self._apart)

    def run(self, matched: Given, out: Any) -> tuple[Any, ...]:
        """The results, new or those of `out`."""
        with on(self._device):
            return self._run(matched, out)

    def _run(self, matched: Given, out: Any) -> tuple[Any, ...]:
        arrays, template = matched.arrays, matched.template
        if out is not None or self._around is not None or (template is None and not self._bound):
            matched.complete()
        results: list[Any] = []
        if out is None:
            empty = self._module.empty
            for name, shape, dtype in self.made:
                arrays[name] = made = empty(shape, dtype)
                results.append(made)
        else:
            count, axes = (self._results[0].count, self._results[0].axes) if self._results else (0, ())
            results = make_outputs(self._kernel, [r.kind for r in self._results], count, self._device, out, axes)
            check_in_place(self._kernel, results, arrays, self._values)
            check_beside_records(self._kernel, results, arrays, self._uses, own_only=self._own_only)
            check_results_apart(self._kernel, results, {n: arrays[n] for n in self._whole}, self._whole)
            arrays |= {name: array for (name, _, _), array in zip(self.made, results, strict=True)}
        for name, fields in self._changed:
            array = arrays.get(name)  # of the very same call those alone that have two sides
            if array is not None and (side := side_of(array)).sides is not None:
                side.write(fields)
        views, template = partial(self._views, arrays), template or self._template
        if self._around is None:
            template.launch(views, matched.values)
        else:
            self._around(arrays, partial(template.launch, views, matched.values))
        return tuple(results)


def _memory(array: Any) -> Any:
    return places_of(array).data if type(array) is RecordArray else array


def views_of(arrays: Mapping[str, Any], device: str) -> Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]]:
    """What a template asks for: the arguments of launches for the places of these arrays."""
    return partial(_views_on(device), arrays)


def _views_on(device: str) -> Callable[[Mapping[str, Any], str, tuple[ArrayPlace, ...]], list[Any]]:
    return _on_gpu if is_gpu(device) else _on_host


def _on_gpu(arrays: Mapping[str, Any], name: str, places: tuple[ArrayPlace, ...]) -> list[Any]:
    array = arrays[name]
    base = (places_of(array).data if type(array) is RecordArray else array).data.ptr
    return [base + place.offset for place in places]


def _on_host(arrays: Mapping[str, Any], name: str, places: tuple[ArrayPlace, ...]) -> list[Any]:
    array = arrays[name]
    if type(array) is not RecordArray:
        return [array if array.ndim == 1 else array.reshape(-1)]  # of one type, in one buffer
    return array._parts_at(places)  # pyright: ignore[reportPrivateUsage]


def both(
    one: Callable[[Mapping[str, Any]], bool] | None, other: Callable[[Mapping[str, Any]], bool] | None
) -> Callable[[Mapping[str, Any]], bool] | None:
    """What holds where both of these do."""
    if one is None or other is None:
        return one or other
    return lambda values: one(values) and other(values)


def _share(arrays: Mapping[str, Any]) -> bool:
    """Whether some of the records are different parts of one array: then a first call says what is right."""
    records = [a for a in arrays.values() if type(a) is RecordArray]
    if len(records) == 2 and records[0] is records[1]:
        return False
    return any(are_parts(a, b) for a, b in itertools.combinations(records, 2))


class Repeated:
    """The calls of one kernel that can be made again, the last one first."""

    __slots__ = ("_entries", "_tuned")

    def __init__(self) -> None:
        self._entries: tuple[Repeatable, ...] = ()
        self._tuned = True

    def find(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Repeatable, Given] | None:
        """A call like this one, and its arguments."""
        if self._tuned is not (tuned := store_enabled()):
            self._entries, self._tuned = (), tuned
        for entry in self._entries:
            if (matched := entry.match(arguments, named)) is not None:
                return entry, matched
        return None

    def remember(
        self, signature: Signature, positional: tuple[Any, ...], named: Mapping[str, Any], arguments: Arguments, launch: Any,
        results: Sequence[Result], *, identical: tuple[str, str, bool] | None = None,
        holds: Callable[[Mapping[str, Any]], bool] | None = None, own: Mapping[str, Slot] = NOTHING,
        besides: Repeats | None = None, uses: Mapping[str, Uses] = NOTHING, own_only: bool = False, around: Around | None = None,
    ) -> None:  # fmt: skip
        """Keep a call for those like it, where they can be recognised and bound by addresses and numbers alone.

        own: slots of arguments that a pattern makes arrays of, which they bring along under the names in `arguments.added`.
        uses: of records.
        """
        slots = slots_of(signature, positional, named, arguments, own=own, uses=uses)
        if slots is None or not isinstance(launch, Prepared):
            return
        added = arguments.added if own else signature.arrays
        arrays = frozenset((*arguments.records, *arguments.arrays, *added, *(r.name for r in results)))
        template = launch.template(arrays, frozenset(flatten_uniforms(signature, arguments.uniforms)))
        if template is None:
            return
        there = arguments.device if arguments.arrays and is_gpu(arguments.device) else None
        device_of = partial(device_without_records, there)
        entry = Repeatable(
            signature.source.name, tuple(named), slots, arguments.device, template, results,
            device_of=None if arguments.records else device_of if besides is None else besides.device_of,
            identical=identical, holds=both(holds, None if besides is None else besides.holds),
            apart=() if besides is None else besides.apart,
            uses=uses, own_only=own_only, around=around, whole=() if besides is None else besides.whole,
        )  # fmt: skip
        if entry.match(positional, named) is not None:  # else it would never be found, and push out another one
            self._entries = (entry, *self._entries[: MOST - 1])

    def forget(self) -> None:
        self._entries = ()
