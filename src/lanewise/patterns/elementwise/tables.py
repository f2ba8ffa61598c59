"""The arrays of an elementwise call: as they lie in memory, checked, with tests of indices where `checks=True` asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.analysis.bounds import sites
from lanewise.checks import shown
from lanewise.errors import ArgumentError, VerificationError, located
from lanewise.frontend.function import Lowered, Signature, lower_function
from lanewise.frontend.scattered import scattered_arrays, summed_arrays
from lanewise.ir import nodes as ir
from lanewise.ir.names import length_of
from lanewise.launch.arguments import Arguments, classify_arguments, device_without_records
from lanewise.launch.executable import Launch
from lanewise.launch.repeated import Repeats
from lanewise.patterns.calls import Calls
from lanewise.patterns.elementwise.plain_sums import prefer_buckets
from lanewise.patterns.elementwise.scattering import Tables, element_body
from lanewise.patterns.threadwise import guards
from lanewise.patterns.threadwise.arguments import NARROW, add_words, check_array, place_of
from lanewise.patterns.threadwise.guards import NONE, OUTSIDE, Guards
from lanewise.record import Record
from lanewise.runtime.memory import array_module, overlap
from lanewise.target import CPU, PYTHON

CHECKS = "checks"  # the keyword of a call


def call_arguments(signature: Signature, values: Mapping[str, Any]) -> Arguments:
    """What a call brings, checked; raises `ArgumentError`."""
    result = classify_arguments(signature, values, arrays_allowed=True)
    if not signature.arrays:
        return result
    kernel, written = signature.source.name, _written(signature)
    arrays = {n: values[n] for n in signature.arrays}
    for name, array in arrays.items():
        check_array(f"{kernel}: {name!r}", array, signature.arrays[name], name in written)
        if place_of(array) != (CPU.name if result.device == PYTHON.name else result.device):
            raise ArgumentError(
                f"{kernel}: {name!r} lies on {place_of(array)!r}, and the elements on {result.device!r}; bring them together"
            )
        result.totals |= {length_of(name, d): n for d, n in enumerate(array.shape)}
        result.added[name] = (array.reshape(-1), signature.arrays[name].element)
    _check_apart(kernel, arrays, written, result)
    add_words(signature, arrays, result)
    wide = any(n > NARROW for a in arrays.values() for n in a.shape)
    result.variant = (wide, all(a.size <= NARROW for a in arrays.values()), ())
    return result


def _written(signature: Signature) -> tuple[str, ...]:
    names = scattered_arrays(signature.source)
    return tuple(n for n in signature.arrays if n in names)


def _check_apart(kernel: str, arrays: Mapping[str, Any], written: tuple[str, ...], result: Arguments) -> None:
    """Elements scatter while others read, in any order: what is scattered to has memory of its own."""
    others = {**arrays, **result.arrays} | {n: r.data for n, r in result.records.items()}
    for name in written:
        for other in others:
            if other != name and overlap(arrays[name], others[other]):
                raise ArgumentError(
                    f"{kernel}: {name!r} is written, and shares memory with {other!r}; give it memory of its own"
                )


def repeats(calls: Calls, arguments: Arguments) -> Repeats | None:
    """Where calls like this one run, and which of their arrays share no memory."""
    signature, device = calls.signature, arguments.device
    if not signature.arrays:
        return None
    on_gpu = device not in (CPU.name, PYTHON.name)
    written, names = _written(signature), [*signature.arrays, *arguments.arrays]
    apart = tuple((a, b) for a in written for b in names if a != b and (b not in written or a < b))
    return Repeats(lambda: device if on_gpu else device_without_records(False), apart)


def wide_lengths(signature: Signature) -> Lowered:
    """The typed function with lengths of 64 bits."""
    records = (n for n, kind in signature.parameters.items() if isinstance(kind, Record))
    return lower_function(signature, mutable=next(records, None), index=t.I64)


def tables_of(signature: Signature, arguments: Arguments) -> Tables:
    """The arrays of a call, for its kernel."""
    sums = summed_arrays(signature.source, signature.arrays)
    wide, narrow, tested = arguments.variant
    arrays = {n: (t.I64 if n in sums else kind.element, kind.rank) for n, kind in signature.arrays.items()}
    guards: Any = tested
    return Tables(arrays, t.I64 if wide else t.I32, bool(narrow), guards)


# ------------------------------------------------------------ tests of indices


def prove(calls: Calls, arguments: Arguments) -> None:
    """With `checks=True`, see to tests of all indices."""
    checks = arguments.options.get(CHECKS, False)
    if not isinstance(checks, bool):
        raise ArgumentError(f"{calls.name}: checks= is True or False, found {shown(checks)}")
    if not calls.signature.arrays:
        return
    if not checks:
        prefer_buckets(calls.lowered, arguments)
        return
    tested: Guards = tuple(
        (n, d, side)
        for n, s in enumerate(sites(element_body(calls.lowered.function)))
        for d in range(len(s.indices))
        for side in ("below", "beyond")
    )
    wide, narrow, _ = arguments.variant
    arguments.variant = (wide, narrow, tested)
    count = next(len(a) for a in (*arguments.records.values(), *arguments.arrays.values()))
    outside = array_module(arguments.device).empty(count, np.int64)
    arguments.added[OUTSIDE] = (outside, t.I64)
    sums, arguments.around = arguments.around, partial(_tested, calls, arguments, outside)
    if sums is not None:
        arguments.surround(sums)


def _tested(calls: Calls, arguments: Arguments, outside: Any, launch: Launch) -> Launch:
    """A launch of a kernel with tests: it tells where it was outside."""

    def run() -> None:
        launch()
        _examine(calls, arguments, outside)

    return run


def _examine(calls: Calls, arguments: Arguments, outside: Any) -> None:
    """Raise `VerificationError` for the first element that was outside of an array. Waits for the kernel."""
    if not outside.size or int(outside.min()) == NONE:
        return
    element = int((outside != NONE).argmax())
    f = guards.failure(int(outside[element]))
    s = sites(element_body(calls.lowered.function))[f.site]
    told = {guards.MOST: f"{f.index} or more", -guards.MOST - 1: f"{f.index} or less"}.get(f.index, str(f.index))
    what = f"index {f.dimension} is {told}" if len(s.indices) > 1 else f"the index is {told}"
    rank = calls.signature.arrays[s.array].rank
    shape = tuple(int(arguments.totals[length_of(s.array, d)]) for d in range(rank))
    verb = "read" if isinstance(s, ir.LoadElement) else "scattered to"
    length = shape[f.dimension]
    raise VerificationError(
        located(
            f"{calls.name}: {s.array!r} is {verb} outside of its elements", s.location,
            found=f"{what} in element {element}, and {s.array!r} has the shape {shape}",
            wanted=f"0 to {length - 1}" if length else "no access: there are no elements",
        )
    )  # fmt: skip
