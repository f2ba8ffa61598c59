"""Calls of one kind: recognised by their slots, sized, and launched."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Self

from lanewise.frontend.function import Signature
from lanewise.language.target import is_gpu
from lanewise.launch.again import Again
from lanewise.launch.arguments import Arguments, device_without_records, make_outputs
from lanewise.launch.result_memory import check_results, value_elsewhere
from lanewise.launch.sized import Repeats, Resize, Sized, require_for_call
from lanewise.launch.slots import (
    NOTHING,
    ArraySlot,
    Given,
    RecordSlot,
    SameRecords,
    SizeSlot,
    Slot,
    ValueSlot,
    slots_of,
)
from lanewise.launch.support import Uses
from lanewise.records.arrays import RecordArray, storage_of
from lanewise.records.binding import places_of, side_of
from lanewise.records.same_elements import are_parts, are_same
from lanewise.runtime.device import get_device
from lanewise.runtime.here import HERE
from lanewise.runtime.memory import array_module, overlap
from lanewise.runtime.prepared import Places, Views

MOST_SIZES = 256  # of each kind
MOST_MET = 256  # arrays of records of each kind, by which calls are recognised
ASKS_FROM = 1 << 26  # bytes of results, which take longer to write than asking whether they fit


class SeenCalls:
    """Calls on the same arrays. again: the very same call; others: calls that were not, less those
    that were.
    """

    __slots__ = ("again", "others")

    def __init__(self) -> None:
        self.again: Again | None = None
        self.others = 0


Arrays = tuple[int, ...] | None
"""The arrays of records among the arguments of a call; `LAST`: those of the call before."""

Met = dict[Arrays, SeenCalls]

LAST = None  # most calls of a loop are on the same arrays, which then nothing has to name


class Repeatable:
    """Calls that differ in sizes, memory and numbers alone."""

    __slots__ = (
        "_apart",
        "_at",
        "_changed",
        "_changing",
        "_device",
        "_from",
        "_identical",
        "_kernel",
        "_last",
        "_met",
        "_module",
        "_named",
        "_own_only",
        "_resize",
        "_several",
        "_sizes",
        "_slots",
        "_use",
        "_uses",
        "_values",
        "_views",
        "_whole",
    )

    def __init__(
        self,
        kernel: str,
        named: tuple[str, ...],
        slots: tuple[Slot, ...],
        device: str,
        resize: Resize,
        sizes: dict[Hashable, Sized],
        met: Met,
        *,
        device_of: Callable[[], str] | None,
        identical: tuple[str, str, bool] | None,
        besides: Repeats | None,
        uses: Mapping[str, Uses],
        own_only: bool,
    ) -> None:
        """named: the keyword arguments, in their order; the others are positional. device_of: where
        a call like this runs, if no record says it. For the rest see `of`.
        """
        self._whole = whole = () if besides is None else besides.whole
        self._apart = () if besides is None else besides.apart
        self._changed = tuple((n, u.writes) for n, u in uses.items() if u.writes)
        self._kernel, self._named, self._slots, self._device = kernel, named, slots, device
        self._resize, self._sizes, self._met = resize, sizes, met
        self._values: tuple[str, ...]
        self._values = tuple(s.name for s in slots if type(s) is ArraySlot and s.name not in whole)
        # values that may lie in what a call changes
        self._changing: tuple[str, ...] = self._values if self._changed else ()
        # Arrays of records that may be others than before; the very same ones share what they
        # shared when a first call took them.
        self._several = (
            sum(type(s) not in (ArraySlot, SizeSlot, ValueSlot, SameRecords) for s in slots) > 1
        )
        self._from, self._identical = device_of, identical
        self._uses, self._own_only = uses, own_only
        self._module, self._views = array_module(device), _views_on(device)
        self._use = get_device(device).use
        # where records are among the arguments, and calls by these
        self._at = tuple(n for n, s in enumerate(slots) if isinstance(s, RecordSlot | SameRecords))
        self._last: Sized | None = None

    @classmethod
    def of(
        cls,
        signature: Signature,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        arguments: Arguments,
        resize: Resize,
        *,
        sizes: dict[Hashable, Sized] | None = None,
        met: Met | None = None,
        record_slot: Callable[[str, RecordArray, int], Slot] = RecordSlot,
        own: Mapping[str, Slot] = NOTHING,
        identical: tuple[str, str, bool] | None = None,
        besides: Repeats | None = None,
        uses: Mapping[str, Uses] = NOTHING,
        own_only: bool = False,
    ) -> Self | None:
        """Calls like this one; None where they cannot be recognised.

        sizes: what is known already, by the sizes of slots; met: calls that are recognised. Who
        makes launches may forget both, when memory has moved that these point to. own: slots of
        arguments that a pattern makes arrays of, which they bring along under the names in
        `arguments.added`. identical: the two parameters whose arrays are one, or are two. uses: of
        records. own_only: whether an element reads no fields but its own.
        """
        slots = slots_of(signature, positional, named, arguments, record_slot, own, uses)
        if slots is None:
            return None
        device_of = None
        if not arguments.records:
            there = arguments.device if arguments.arrays and is_gpu(arguments.device) else None
            device_of = partial(device_without_records, there)
            device_of = device_of if besides is None else besides.device_of
        made = cls(
            signature.source.name,
            tuple(named),
            slots,
            arguments.device,
            resize,
            {} if sizes is None else sizes,
            {} if met is None else met,
            device_of=device_of,
            identical=identical,
            besides=besides,
            uses=uses,
            own_only=own_only,
        )
        # Its results are there already. Else it would never be found, and push out another one.
        found = made.match(positional, named, makes=False, asks=False)
        return None if found is None else made

    def match(
        self,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        *,
        makes: bool = True,
        asks: bool = True,
    ) -> Given | None:
        """The arguments of a call like this one; None for another one. makes: see `Resize`; asks:
        see `Given`.
        """
        positional = arguments
        if named:
            if tuple(named) != self._named:
                return None
            arguments = (*arguments, *named.values())
        elif self._named:
            return None
        if len(arguments) != len(self._slots) or (
            self._from is not None and self._from() != self._device
        ):
            return None
        # once, as other threads may put another one there
        key: Arrays = LAST
        met = self._met.get(key)
        kept = None if met is None else met.again
        again = None if kept is None else kept.take(arguments)
        if again is None:
            key, last = tuple([id(arguments[n]) for n in self._at]), met
            met = self._met.get(key)
            if met is not None and met is not last and (kept := met.again) is not None:
                again = kept.take(arguments)
        if met is not None and again is not None:
            if key is not LAST:
                self._met[LAST] = met
            if met.others > 1:
                met.others -= 1
            asks = bool(self._apart)
            for n in self._changing:  # values that own their memory lie in no record
                asks = asks or again.arrays[n].base is not None
            return None if asks and self._overlap(again.complete()) else again
        matched = Given({}, {}, asks=asks)
        for slot, value in zip(self._slots, arguments, strict=True):
            if not slot.take(value, matched):
                return None
        if self._identical is not None:
            first, second, same = self._identical
            if are_same(matched.arrays[first], matched.arrays[second]) is not same:
                return None
        if self._several and _share(matched.arrays):
            return None
        lent, asks = False, bool(self._apart)
        if self._changing:  # a function less counts here, so these are loops
            for n, _ in self._changed:
                lent = lent or matched.arrays[n]._storage.owner.fixed
            for n in self._changing:
                asks = asks or lent or matched.arrays[n].base is not None
        if asks and self._overlap(matched.arrays):
            return None
        sized = self._sized(positional, named, matched, makes)
        if sized is None or (sized.holds is not None and not sized.holds(matched.values)):
            return None
        matched.sized = sized
        if met is None:
            met = self._meet(key)
        met.others = others = met.others + 1
        # Ever more seldom, as others may come one after the other; not where sizes of arrays come
        # in turn, nor at the first call on records that may never come again.
        if (
            not others & (others - 1)
            and (self._last is None or (others > 1 if self._at else sized is self._last))
            and not lent
        ):
            self._keep(met, arguments, matched)
        self._last = sized
        return matched

    def _meet(self, key: Arrays) -> SeenCalls:
        if len(self._met) >= MOST_MET:
            self._met.clear()
        met = self._met[key] = SeenCalls()
        return met

    def _keep(self, met: SeenCalls, arguments: tuple[Any, ...], matched: Given) -> None:
        """Recognise the very same call from now on.

        Other threads see it when it launches what it recognises.
        """
        again = Again.of(self._slots, arguments, matched)
        if again is not None:
            again.fill(matched.sized, partial(self._views, matched.arrays), matched)
        met.again = again

    def _sized(
        self, positional: tuple[Any, ...], named: Mapping[str, Any], matched: Given, makes: bool
    ) -> Sized | None:
        """What follows from the sizes of a call; None for one that has to go another way."""
        sizes = tuple(matched.sizes)
        try:
            sized = self._sizes.get(sizes)
        except TypeError:  # what is no size
            return None
        if sized is None:
            sized = self._resize(positional, named, matched, makes)
            if sized is None:
                return None
            if len(self._sizes) >= MOST_SIZES:
                for oldest in [*self._sizes][:1]:  # other threads may let it go as well
                    self._sizes.pop(oldest, None)
            self._sizes[sizes] = sized
        return sized

    def _overlap(self, arrays: Mapping[str, Any]) -> bool:
        """Whether arrays share memory that have to be apart, or values that a call changes."""
        for one, other in self._apart:
            if overlap(_memory(arrays[one]), _memory(arrays[other])):
                return True
        if not self._changed or not self._values:
            return False
        changed: dict[str, Any] = {n: arrays[n] for n, _ in self._changed}
        values: dict[str, Any] = {n: arrays[n] for n in self._values}
        return value_elsewhere(changed, self._uses, values) is not None

    def run(self, matched: Given, out: Any) -> tuple[Any, ...]:
        """The results, new or those of `out`."""
        if (elsewhere := self._use()) is HERE:
            return self._run(matched, out)
        with elsewhere:
            return self._run(matched, out)

    def _run(self, matched: Given, out: Any) -> tuple[Any, ...]:
        arrays, sized = matched.arrays, matched.sized
        results: list[Any] = []
        if out is None:
            if sized.nbytes > ASKS_FROM:
                require_for_call(self._kernel, self._device, sized.results)
            empty = self._module.empty
            for name, shape, dtype in sized.made:
                arrays[name] = made = empty(shape, dtype)
                results.append(made)
        else:
            results = self._given(matched, out)
        for name, fields in self._changed:
            array = arrays.get(name)  # of the very same call those alone that have two sides
            if array is not None and (side := side_of(array)).followed:
                side.write(fields)
        sized.flat.launch(partial(self._views, arrays), matched.values)
        return tuple(results)

    def _given(self, matched: Given, out: Any) -> list[Any]:
        """The arrays of the caller for the results, checked."""
        arrays, made = matched.complete(), matched.sized.results
        count, axes = (made[0].count, made[0].axes) if made else (0, ())
        results = make_outputs(self._kernel, [r.kind for r in made], count, self._device, out, axes)
        check_results(
            self._kernel,
            results,
            arrays,
            self._uses,
            own_only=self._own_only,
            values={n: arrays[n] for n in self._values},
            shaped={n: arrays[n] for n in self._whole},
            touched=self._whole,
        )
        arrays |= {r.name: array for r, array in zip(made, results, strict=True)}
        return results


def _memory(array: Any) -> Any:
    return places_of(array).data if type(array) is RecordArray else array


def views_of(arrays: Mapping[str, Any], device: str) -> Views:
    """What launches ask for that wait for arrays: their arguments for the buffers of these."""
    return partial(_views_on(device), arrays)


def _views_on(device: str) -> Callable[[Mapping[str, Any], str, Places], list[Any]]:
    return _on_gpu if is_gpu(device) else _on_host


def _on_gpu(arrays: Mapping[str, Any], name: str, places: Places) -> list[Any]:
    array = arrays[name]
    base = (places_of(array).data if type(array) is RecordArray else array).data.ptr
    return [base + start for start in places.starts]


def _on_host(arrays: Mapping[str, Any], name: str, places: Places) -> list[Any]:
    array = arrays[name]
    if type(array) is not RecordArray:
        return [array if array.ndim == 1 else array.reshape(-1)]  # of one type, in one buffer
    return storage_of(array).parts_at(places)


def _share(arrays: Mapping[str, Any]) -> bool:
    """Whether some of the records are different parts of one array: then a first call says what is
    right.
    """
    records = [a for a in arrays.values() if type(a) is RecordArray]
    if len(records) == 2 and records[0] is records[1]:
        return False
    return any(are_parts(a, b) for a, b in itertools.combinations(records, 2))
