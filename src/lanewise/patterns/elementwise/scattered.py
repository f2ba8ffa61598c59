"""The arrays that an elementwise call scatters to; those that it reads are tables as elsewhere
(`patterns.tables`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanewise.frontend.function import Lowered, Signature, lower_function
from lanewise.ir.names import length_of, owner
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.launch.arguments import Arguments
from lanewise.launch.shaped_arrays import NARROW, check_shaped, writable_checks
from lanewise.launch.sized import Repeats
from lanewise.patterns.elementwise.scattering import ScatteredArrays
from lanewise.patterns.plain_sums import prefer_buckets
from lanewise.patterns.skeleton import KernelFunction
from lanewise.patterns.tables import ranges
from lanewise.patterns.tables.arguments import WITH_ARRAYS, add_shaped, check_place
from lanewise.patterns.tables.ranges import TableTests
from lanewise.patterns.words import add_words, exactly_summed
from lanewise.runtime.memory import overlap
from lanewise.support.errors import ArgumentError


def call_arguments(signature: Signature, values: Mapping[str, Any]) -> Arguments:
    """What a call brings, checked; raises `ArgumentError`."""
    result = WITH_ARRAYS(signature, values)
    if not signature.scattered:
        return result
    for name in scattered_in_order(signature):
        place, kind = f"{signature.source.name}: {name!r}", signature.arrays[name]
        check_shaped(place, values[name], kind, True)
        check_place(place, values[name], result.device)
        add_shaped(name, values[name], kind, result)
        result.asked += writable_checks(place, values[name])
    add_words(signature, {n: values[n] for n in signature.scattered}, result)
    wide = any(n > NARROW for n in result.lengths.values())
    result.variant = (wide, all(values[n].size <= NARROW for n in signature.arrays))
    return result


def scattered_in_order(signature: Signature) -> list[str]:
    """The arrays that are scattered to, in the order of the parameters."""
    return [n for n in signature.arrays if n in signature.scattered]


def scattered_lengths(signature: Signature, arguments: Arguments) -> dict[str, t.ValueType]:
    """The lengths of these arrays, with the type that they have in a kernel of this call."""
    kind = t.I64 if is_wide(arguments) else t.I32
    names = scattered_in_order(signature)
    return {length_of(n, d): kind for n in names for d in range(signature.arrays[n].rank)}


def is_wide(arguments: Arguments) -> bool:
    """Whether the lengths of arrays that are scattered to need 64 bits."""
    return bool(arguments.variant) and bool(arguments.variant[0])


def wide_lengths(signature: Signature) -> Lowered:
    """The typed function with such lengths."""
    kinds = signature.parameters
    records = (n for n, kind in kinds.items() if isinstance(kind, Record))
    return lower_function(
        signature,
        mutable=next(records, None),
        index=t.I64,
        elements=frozenset(elements_of(signature)),
    )


def elements_of(signature: Signature) -> list[str]:
    """The records; of a function without any its values, of which each call has one array or
    more.
    """
    kinds = signature.parameters
    return [n for n, k in kinds.items() if isinstance(k, Record)] or [*kinds]


def scattered_arrays_of(signature: Signature, arguments: Arguments) -> ScatteredArrays:
    """The arrays of a call that scatters, for its kernel."""
    sums = exactly_summed(signature, arguments)
    wide, narrow = arguments.variant
    arrays = {
        n: (t.I64 if n in sums else kind.element, kind.rank) for n, kind in signature.arrays.items()
    }
    return ScatteredArrays(arrays, signature.scattered, t.I64 if wide else t.I32, bool(narrow))


# ------------------------------------------------------------ what is proved of a call


def prove(function: KernelFunction, arguments: Arguments) -> None:
    """Refuse memory that is written and touched otherwise, and indices that surely are outside; see
    to tests of the others.
    """
    _check_apart(function, arguments)
    ranges.prove(function, arguments)
    if not function.signature.scattered:
        return
    if isinstance(arguments.tests, TableTests) and is_wide(arguments):
        wide = wide_lengths(function.signature)
        arguments.tests = replace(arguments.tests, function=wide, wide=function.signature.scattered)
    prefer_buckets(function.lowered, arguments)


def _check_apart(function: KernelFunction, arguments: Arguments) -> None:
    """Elements are written while others are read, in any order: what is written shares no
    memory.
    """
    for name, other in _pairs(function.signature, arguments):
        if overlap(arguments.shaped[name], _memory(arguments, other)):
            raise ArgumentError(
                f"{function.name}: {name!r} is written, and shares memory with {other!r}; give it "
                "its own memory"
            )
    changed = {owner(p.name) for p in function.lowered.function.parameters if p.mutable}
    for name in changed & arguments.records.keys():
        for table in function.signature.tables:
            if overlap(arguments.records[name].data, arguments.shaped[table]):
                raise ArgumentError(
                    f"{function.name}: {name!r} is written, and shares memory with the table "
                    f"{table!r}; give it its own memory"
                )


def _memory(arguments: Arguments, name: str) -> Any:
    if name in arguments.records:
        return arguments.records[name].data
    return arguments.arrays[name] if name in arguments.arrays else arguments.shaped[name]


def _pairs(signature: Signature, arguments: Arguments) -> tuple[tuple[str, str], ...]:
    """Each array that is scattered to with each other one."""
    others = [*arguments.shaped, *arguments.arrays, *arguments.records]
    scattered = scattered_in_order(signature)
    return tuple(
        (a, b)
        for a in scattered
        for b in others
        if a != b and (b not in signature.scattered or a < b)
    )


def repeats(function: KernelFunction, arguments: Arguments) -> Repeats:
    """What calls like this one have to be like."""
    plain = ranges.repeats(function, arguments)
    return replace(plain, apart=(*plain.apart, *_pairs(function.signature, arguments)))
