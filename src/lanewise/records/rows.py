"""A place of an array of records, which a record reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field
from lanewise.records.field_values import brought, check_type, rounded
from lanewise.records.placement import RecordPlacement
from lanewise.records.storage import Storage
from lanewise.records.two_sides import bit_of
from lanewise.runtime.memory import on, to_host
from lanewise.support.articles import an
from lanewise.support.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class ArrayRow:
    """See `RowOf`. seen: where the records were when the row was taken."""

    storage: Storage
    index: int
    seen: RecordPlacement

    def _places(self, field: Field) -> RecordPlacement:
        places, record = self.storage.places, self.storage.record
        if places is not self.seen and not self.storage.same_records(self.seen):
            raise ArgumentError(
                f"this row of {record.name} was taken when its array had {self.seen.count:,} "
                "records, and the array was changed in length since; take it again: "
                f"[{self.index}]"
            )
        self.storage.side.read(bit_of(record, field.name))
        return places

    def read(self, field: Field) -> Any:
        places = self._places(field)
        view = places.strided(field)
        if view is not None:
            return to_host(view[self.index])
        found = (places.at(leaf, self.index) for leaf in t.leaves(field.name, field.type))
        parts = [to_host(blocks[place]) for blocks, place in found]
        return np.array(parts) if isinstance(field.type, t.Vector) else parts[0]

    def write(self, field: Field, value: Any) -> None:
        components = self._rounded(field, value, t.shape_of(field.type))
        for component in range(components.size):
            self._put(field, component, components.reshape(-1)[component])

    def write_component(self, field: Field, component: int, value: Any) -> None:
        self._put(field, component, self._rounded(field, value, ())[()])

    def _rounded(self, field: Field, value: Any, shape: tuple[int, ...]) -> Any:
        """The value on the host, in the type of the field; a component stands for all."""
        name = f"{self.storage.record.name}.{field.name}"
        values = brought(name, value, "cpu")
        if values.shape not in (shape, ()):
            raise ArgumentError(
                f"{name} is {an(field.type)}: wanted shape {shape} for a row, found {values.shape}"
            )
        check_type(name, values, field.type)
        return np.broadcast_to(rounded(name, values, t.scalar_of(field.type).dtype), shape)

    def _put(self, field: Field, component: int, value: Any) -> None:
        leaf = t.leaves(field.name, field.type)[component]
        blocks, place = self._places(field).at(leaf, self.index)
        with on(self.storage.device):
            blocks[place] = value
        self.storage.side.write(bit_of(self.storage.record, field.name))
