"""The tables of a call, as they lie in memory, and what a kernel takes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import index_name, length_of
from lanewise.ir.values import value_array
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.target import CPU, PYTHON
from lanewise.language.types import I32
from lanewise.launch.arguments import Arguments, classify_arguments
from lanewise.launch.shaped_arrays import NARROW, check_shaped
from lanewise.runtime.memory import device_of
from lanewise.support.errors import ArgumentError

Tables = Mapping[str, ArrayType]
NOTHING: Tables = {}


def with_tables(signature: Signature, values: Mapping[str, Any], *, with_arrays: bool) -> Arguments:
    """The arguments of a call, those that are tables among them; with_arrays: values may be arrays
    of any shape. Raises `ArgumentError`.
    """
    result = classify_arguments(
        signature, values, arrays_allowed=with_arrays, any_shape=with_arrays
    )
    bring_tables(signature.source.name, signature.tables, values, result)
    return result


WITH_ARRAYS, WITHOUT_ARRAYS = (
    partial(with_tables, with_arrays=allowed) for allowed in (True, False)
)


def bring_tables(
    kernel: str, tables: Tables, values: Mapping[str, Any], arguments: Arguments
) -> None:
    """Check the tables among the values of a call, and add them to its arguments."""
    for name, kind in tables.items():
        array = values[name]
        check_table(f"{kernel}: {name!r}", array, kind, arguments.device)
        add_shaped(name, array, kind, arguments)


def add_shaped(name: str, array: Any, kind: ArrayType, arguments: Arguments) -> None:
    """Add an array that has indices to the arguments of a call."""
    arguments.shaped[name] = array
    arguments.added[name] = (array.reshape(-1), kind.element)
    arguments.lengths |= {length_of(name, d): int(n) for d, n in enumerate(array.shape)}


def check_table(place: str, array: Any, kind: ArrayType, device: str) -> None:
    """Raise `ArgumentError` for what is no table of this type on this device."""
    check_shaped(place, array, kind, False)
    check_place(place, array, device)
    if array.size > NARROW:
        raise ArgumentError(
            f"{place} has {array.size:,} elements; a table has at most {NARROW:,}, which 32 bits "
            "count"
        )


def check_place(place: str, array: Any, device: str) -> None:
    """Raise `ArgumentError` for an array that does not lie where the call runs."""
    there, here = device_of(array), CPU.name if device == PYTHON.name else device
    if there != here:
        where, wanted = ("the host" if x == CPU.name else repr(x) for x in (there, here))
        raise ArgumentError(
            f"{place} lies on {where}, and the call runs on {wanted}; nothing is copied: bring it "
            "there once, before the calls"
        )


def table_arrays(tables: Tables, *, apart: bool = False) -> list[ir.ArrayArgument]:
    """The arrays of tables, as the arguments of a kernel. apart: calls refuse tables that share
    memory with what the kernel writes.
    """
    arrays = [value_array(n, kind.element, written=False) for n, kind in tables.items()]
    return [replace(a, apart=apart) for a in arrays]


def table_lengths(tables: Tables) -> dict[str, t.ValueType]:
    """The lengths of the dimensions of tables: uniform values of a kernel."""
    return {length_of(n, d): I32 for n, kind in tables.items() for d in range(kind.rank)}


def numbers(lowered: Lowered, indices: Mapping[str, ir.Expression]) -> dict[str, ir.Expression]:
    """What a function takes as the indices of its elements. indices: by parameter, in the type that
    the kernel counts in.
    """
    return {index_name(n): build.index_of(indices[n], I32) for n in lowered.numbered}


def check_countable(kernel: str, counts: Mapping[str, int]) -> None:
    """Refuse a call whose elements have indices beyond 32 bits. counts: of the elements, by
    parameter.
    """
    for name, count in counts.items():
        if count > 2**31:
            raise ArgumentError(
                f"{kernel}: {name!r} has {count:,} elements, and lw.index_of counts them with 32 "
                "bits"
            )
