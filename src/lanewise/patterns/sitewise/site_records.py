"""The records that sites are kept in: populations, or the fields of a stencil."""

from __future__ import annotations

from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Field, Record, RecordValue
from lanewise.language.types import Scalar
from lanewise.layouts import Layout, SoA
from lanewise.records.arrays import RecordArray


def field_record(names: tuple[str, ...], storage: Scalar) -> Record:
    """The record of a stencil's site: a leaf for each field."""
    return Record("Fields", tuple(Field(n, storage) for n in names))


def population_record(lattice: Lattice, storage: Scalar) -> Record:
    """The record of a site: a leaf `q0`, `q1`, ... for each direction."""
    return Record("Populations", tuple(Field(f"q{q}", storage) for q in range(lattice.size)))


def zero_records(record: Record, count: int, layout: Layout, device: str) -> RecordArray:
    """So many records of zeros."""
    python_class = type(record.name, (RecordValue,), {"__record__": record})
    return RecordArray.zeros(record, count, layout=layout, device=device, python_class=python_class)


def arrival_array(lattice: Lattice, count: int, real: Scalar, device: str) -> RecordArray:
    """Room for the populations that arrive at all sites, in the type that sites compute in."""
    return zero_records(population_record(lattice, real), count, SoA(), device)
