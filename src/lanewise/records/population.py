"""Populations: records that are born and die, and can be told apart for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.fates import Fate
from lanewise.language.record import unknown_field
from lanewise.records.arrays import RecordArray, storage_of
from lanewise.records.field_values import brought
from lanewise.runtime.memory import array_module, on
from lanewise.support.attributes import frozen, settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief

MOST_IDS = 2**63 - 1
"""How far i64 counts."""


@frozen
@dataclass(frozen=True, slots=True)
class Turnover:
    """What one step made of a population: how many records stayed, died and were born."""

    kept: int
    died: int
    born: int


class Population:
    """An array of records whose members die and split as a kernel decides.

    Records that die are removed; the others keep their order, values and ids. For each record that
    splits, a copy with the next free id is appended, in the order of the parents. So a run gives
    the same records in the same order on every device and in every layout. From a GPU only the
    number of records is copied to the host.
    """

    __slots__ = ("_ids", "_next_id", "_records")

    @settings_by_name
    def __init__(self, records: RecordArray, *, ids: str, next_id: int | None = None) -> None:
        """Keep up `records`, in place.

        ids: the field of type i64 with its own number in each record. next_id: the number of
        the next one that is born; by default one more than the largest. A run that continues after
        a checkpoint hands over the old one.

        Raises `ArgumentError` for a field of another type, for ids that are used twice, and for a
        `next_id` that is taken.
        """
        self._records, self._ids = _checked(records, ids), ids
        free = _free(records, ids)
        number: Any = free if next_id is None else next_id
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < free:
            raise ArgumentError(
                f"Population(next_id={shown(next_id)}): wanted an integer from {free} on, "
                "which no record has"
            )
        if number > MOST_IDS:
            raise ArgumentError(
                f"Population(next_id={shown(next_id)}): ids are i64 and end at {MOST_IDS - 1:,}"
            )
        self._next_id = int(number)

    @property
    def records(self) -> RecordArray:
        """The array. You may write its fields except the ids.

        You may also add records with ids from `next_id` on, and remove records.

        Ids are checked in every step: duplicate ids raise an error.
        """
        return self._records

    @property
    def next_id(self) -> int:
        """The id of the next record that is born. It is never used again.

        Raises `ArgumentError` if two records have the same id because ids were written or records
        added.
        """
        self._look_at_ids()
        return self._next_id

    def _look_at_ids(self) -> None:
        """Ids are the user's to write, by assignments, views and kernels; who came may have numbers
        that are no longer free.
        """
        self._next_id = max(self._next_id, _free(self._records, self._ids))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._records, self._ids, self.next_id)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<population of {self._records!r}, next id {self.next_id:,}>"

    @brief
    def step(
        self,
        kernel: Callable[..., Any],
        *arguments: Any,
        newborn: Callable[[RecordArray], object] | None = None,
        **named: Any,
    ) -> Turnover:
        """Run a kernel over the records, and apply the fates that it returns: `kernel(records,
        *arguments)` is an array of `lw.Fate`.
        """
        _check_callable("a kernel", kernel)
        return self.apply(kernel(self._records, *arguments, **named), newborn=newborn)

    @settings_by_name
    def apply(
        self, fates: Any, *, newborn: Callable[[RecordArray], object] | None = None
    ) -> Turnover:
        """Apply fates: an array of integers of shape (n,), as a kernel with the result `lw.Fate`
        returns it.

        newborn: called with the array of new records before they are appended, if there are any, so
        that a kernel can change these copies of their parents. They already have their ids.

        Raises `ArgumentError` for another shape or type, for numbers that are not fates, and if two
        records have the same id; the array is then unchanged.
        """
        if newborn is not None:
            _check_callable("newborn=, a function of the array of those that are born", newborn)
        records = self._records
        self._look_at_ids()
        if fates is None:
            raise ArgumentError(
                "fates are integers, one for each record, found None; the kernel returns "
                "them: -> lw.Fate"
            )
        chosen = brought("fates", fates, records.device)
        if chosen.shape != (len(records),) or chosen.dtype.kind not in "iu":
            raise ArgumentError(
                f"fates are integers of shape ({len(records)},), one for each record, found "
                f"an array of {chosen.dtype} with shape "
                f"{tuple(chosen.shape)}"
            )
        with on(records.device):
            return self._turn_over(records, chosen, newborn)

    def _turn_over(
        self, records: RecordArray, chosen: Any, newborn: Callable[[RecordArray], object] | None
    ) -> Turnover:
        none = (chosen < int(Fate.DIE)) | (chosen > int(Fate.SPLIT))
        if len(records) and bool(none.any()):
            element = int(none.argmax())
            raise ArgumentError(
                f"the fate of record {element} is {int(chosen[element])}; wanted lw.Fate.DIE, KEEP "
                f"or SPLIT ({', '.join(str(int(f)) for f in Fate)})"
            )
        children = records[chosen == int(Fate.SPLIT)]
        if born := len(children):
            first = self._next_id
            if first + born > MOST_IDS:
                raise ArgumentError(
                    f"{born:,} records are born and the next id is {first:,}; i64 ends at "
                    f"{MOST_IDS:,}"
                )
            numbers = array_module(records.device).arange(first, first + born)
            setattr(children, self._ids, numbers)
            if newborn is not None:
                newborn(children)
                if len(children) != born:
                    raise ArgumentError(
                        f"newborn was given {born:,} records and left {len(children):,}; fates "
                        "decide how many there are"
                    )
                if not bool((getattr(children, self._ids) == numbers).all()):
                    raise ArgumentError(
                        f"newborn changed the field {self._ids!r} of records that are born, which "
                        "holds the ids that the population gave "
                        "them; assign the other fields alone"
                    )
        before = len(records)
        kept = records.compact(chosen != int(Fate.DIE))
        records.append(children)
        self._next_id += born
        return Turnover(kept, before - kept, born)


def _check_callable(what: str, value: Any) -> None:
    if not callable(value) or isinstance(value, type):
        raise ArgumentError(f"a population takes {what}, found {shown(value)}")


def _checked(records: Any, ids: Any) -> RecordArray:
    if not isinstance(records, RecordArray):
        raise ArgumentError(f"Population takes an array of records, found {type(records).__name__}")
    record = records.record
    if storage_of(records).whole is not None:
        raise ArgumentError(
            f"Population changes the length of an array of {record.name}, and a view has the "
            "records that it was cut with; .copy() is an "
            "independent array"
        )
    if not isinstance(ids, str):
        raise ArgumentError(f"Population(ids={shown(ids)}): wanted the name of a field")
    if record.field(ids) is None:
        raise ArgumentError(unknown_field(record, ids))
    kind = next(f.type for f in record if f.name == ids)
    if kind != t.I64:
        raise ArgumentError(
            f"the ids of {record.name} are in the field {ids!r} of type {kind}; wanted {ids}: "
            "lw.i64"
        )
    records.reserve(len(records))  # refuses a view, which has the length that it was cut with
    return records


def _free(records: RecordArray, ids: str) -> int:
    """The first number above all ids. Raises `ArgumentError` where two are the same."""
    if not len(records):
        return 0
    with on(records.device):
        return _above(records, getattr(records, ids), ids)


def _above(records: RecordArray, given: Any, ids: str) -> int:
    # as they are where nothing else writes ids: no need to sort
    if bool((given[1:] > given[:-1]).all()):
        return int(given[-1]) + 1
    numbers = array_module(records.device).sort(given)
    twice = numbers[1:] == numbers[:-1]
    if bool(twice.any()):
        raise ArgumentError(
            f"two records of {records.record.name} have the {ids} "
            f"{int(numbers[int(twice.argmax())])}; number them first: "
            f".{ids} = np.arange({len(records)})"
        )
    return int(numbers[-1]) + 1


def _again(records: RecordArray, ids: str, next_id: int) -> Population:
    """A population that was copied or pickled."""
    return Population(records, ids=ids, next_id=next_id)
