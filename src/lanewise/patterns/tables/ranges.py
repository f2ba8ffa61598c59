"""Indices into tables that are proved to be inside, or refused because they surely are not; the
others are tested with `checks=True`.

The tests are a separate kernel, which runs before the call's: where one fails nothing has been
changed yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from lanewise.analysis.bounds import Reached, decisive, reached, sites
from lanewise.frontend.flat_tables import with_flat_tables
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import index_name, length_of
from lanewise.ir.traverse import flat_map
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.target import target_of
from lanewise.launch.arguments import Arguments, device_without_records
from lanewise.launch.outside import surely_outside, was_outside
from lanewise.launch.sized import Repeats
from lanewise.launch.support import index_type
from lanewise.passes.index_tests import NONE, Guards, failure, guards_of, testing
from lanewise.patterns.call_tasks import RESULT
from lanewise.patterns.results import sum_name
from lanewise.patterns.skeleton import CHECKS, KernelFunction
from lanewise.patterns.tables.arguments import check_countable
from lanewise.runtime.memory import to_host
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

VALUES = 64  # of uniforms, for which what was proved is remembered
Counts = Mapping[str, int]


def refuse_checks(kernel: str, options: Mapping[str, Any], tables: Iterable[str]) -> bool:
    """Whether a call asks for tests; raises `ArgumentError` for what is neither True nor False, and
    where there is nothing to test.
    """
    checks = options.get(CHECKS, False)
    if not isinstance(checks, bool):
        raise ArgumentError(f"{kernel}: checks= is True or False, found {shown(checks)}")
    if checks and not any(True for _ in tables):
        raise ArgumentError(
            f"{kernel}: checks=True tests the indices into tables, and {kernel} has none"
        )
    return checks


def prove(function: KernelFunction, arguments: Arguments) -> None:
    """Refuse a call some index of which surely is outside of its table; with `checks=True`, see to
    tests of what is not proved.
    """
    if function.lowered.numbered:
        check_countable(function.name, element_counts(function, arguments))
    checks = refuse_checks(function.name, arguments.options, function.signature.arrays)
    if not function.signature.arrays:
        return
    places = _reached(function, arguments, element_counts(function, arguments))
    refuse(function.name, places, arguments.lengths)
    if checks and (tested := guards_of(places)):
        arguments.tests = TableTests(
            function.name,
            function.lowered,
            tested,
            function.signature.arrays,
            arguments.lengths,
            of_pairs=not function.skeleton.pattern.one_record,
            axes=arguments.axes,
        )


def refuse(kernel: str, places: tuple[Reached, ...], lengths: Counts) -> None:
    """Raise `ArgumentError` where an index surely is outside."""
    for r in places:
        if r.sure and (r.below or r.beyond):
            shape = shape_of(r.statement, lengths)
            read = isinstance(r.statement, ir.LoadElement)
            hint = (
                "a longer table, or a condition around the read"
                if read
                else "a longer array, or a condition around the scatter"
            )
            raise surely_outside(kernel, r, shape, "these arguments", hint)


def shape_of(s: ir.ElementAccess, lengths: Counts) -> tuple[int, ...]:
    """The shape of the array that a statement reads or scatters to."""
    return tuple(lengths[length_of(s.array, d)] for d in range(len(s.indices)))


def element_counts(function: KernelFunction, arguments: Arguments) -> dict[str, int]:
    """How many elements each parameter of a call has that is an array, or whose index is
    requested.
    """
    counts = {n: len(a) for n, a in (*arguments.records.items(), *arguments.arrays.items())}
    return {**dict.fromkeys(function.lowered.numbered, max(counts.values(), default=0)), **counts}


def places_reached(
    lowered: Lowered, tables: Mapping[str, ArrayType], counts: Counts, numbers: Counts
) -> tuple[Reached, ...]:
    """Where the indices into tables go. counts: of elements, by parameter. numbers: lengths and
    whole uniform values.
    """
    if lowered.indexed is None:
        return ()
    shapes = {
        n: tuple(numbers[length_of(n, d)] for d in range(kind.rank)) for n, kind in tables.items()
    }
    extents = {index_name(n): counts[n] for n in lowered.numbered}
    return reached(lowered.indexed.body, extents, numbers, shapes) if all(counts.values()) else ()


def proved_with_values(lowered: Lowered, signature: Signature) -> bool:
    """Whether what is proved of a call depends on its uniform values."""
    whole = _whole_numbers(signature, signature.parameters)
    return lowered.indexed is not None and bool(decisive(lowered.indexed.body, whole, ()))


def _whole_numbers(signature: Signature, names: Iterable[str]) -> list[str]:
    """The values for all that are integers."""
    kinds = signature.parameters
    return [n for n in names if isinstance(kind := kinds.get(n), t.Scalar) and kind.is_integer]


def _reached(function: KernelFunction, arguments: Arguments, counts: Counts) -> tuple[Reached, ...]:
    """Where the indices of a call go.

    It takes some tenths of a millisecond, so that the last answers are remembered.
    """
    uniforms = {
        n: int(v)
        for n, v in arguments.uniforms.items()
        if n in _whole_numbers(function.signature, arguments.uniforms)
    }
    if "reached" not in function.kept:

        @lru_cache(maxsize=VALUES)
        def places(
            counts: tuple[tuple[str, int], ...], numbers: tuple[tuple[str, int], ...]
        ) -> tuple[Reached, ...]:
            return places_reached(
                function.lowered, function.signature.arrays, dict(counts), dict(numbers)
            )

        function.kept["reached"] = places
    return function.kept["reached"](
        tuple(counts.items()), (*arguments.lengths.items(), *uniforms.items())
    )


def repeats(function: KernelFunction, arguments: Arguments) -> Repeats:
    """What calls like this one have to be like: no table in memory that is written, no value that
    leads out of a table.
    """
    there = (
        None
        if not arguments.arrays or target_of(arguments.device).host_memory
        else arguments.device
    )
    device_of = partial(device_without_records, there)
    names: tuple[str, ...] = ()
    if function.lowered.indexed is not None:
        names = decisive(
            function.lowered.indexed.body, _whole_numbers(function.signature, arguments.uniforms),
            _reached(function, arguments, element_counts(function, arguments)),
        )  # fmt: skip
    written = [n for n in arguments.records if function.skeleton.in_place][:1]
    apart = tuple((w, n) for w in written for n in function.signature.arrays)
    return Repeats(device_of, apart, _holding(function, arguments, names) if names else None)


def _holding(
    function: KernelFunction, arguments: Arguments, names: tuple[str, ...]
) -> Callable[[Mapping[str, Any]], bool]:
    """Whether no index surely is outside for other values."""
    counts = element_counts(function, arguments)
    uniforms = dict(arguments.uniforms)
    lengths = dict(arguments.lengths)

    def holds(values: Mapping[str, Any]) -> bool:
        other = Arguments(
            uniforms={**uniforms, **{n: int(values[n]) for n in names}}, lengths=lengths
        )
        return not any(r.sure and (r.below or r.beyond) for r in _reached(function, other, counts))

    return holds


# ------------------------------------------------------------ tests


@dataclass(frozen=True, slots=True)
class TableTests:
    """The tests of a call: which indices nothing proves, and how a failure is reported.

    tables: with the arrays that are scattered to; wide: those whose lengths have 64 bits. row: of
    the shape that sites are counted in.
    of_pairs: each element is the target of many pairs. axes: of the elements, if there are several.
    """

    kernel: str
    function: Lowered
    tested: Guards
    tables: Mapping[str, ArrayType]
    lengths: Counts
    row: tuple[int, ...] = ()
    of_pairs: bool = False
    wide: frozenset[str] = frozenset()
    axes: tuple[int, ...] = ()

    @property
    def within(self) -> bool:
        return False

    @property
    def lowered(self) -> Lowered:
        """The function that gives the number of an element's first failure."""
        indexed = self.function.indexed
        assert indexed is not None
        kinds = {n: kind.element for n, kind in self.tables.items()}
        function = testing(indexed, self.tested, kinds, self.wide)
        return replace(
            self.function,
            function=with_flat_tables(function, self.tables),
            results=(t.I64,),
            indexed=function,
        )

    def examine(self, outside: Any) -> None:
        """Raise `VerificationError` for the first element that was outside.

        Waits for the kernel.
        """
        outside = to_host(outside)
        if not outside.size or int(outside.min()) == NONE:
            return
        first = int((outside != NONE).argmax())
        f = failure(int(outside[first]))
        assert self.function.indexed is not None
        s = sites(self.function.indexed.body)[f.site]
        raise was_outside(self.kernel, s, f, self._place(first), shape_of(s, self.lengths))

    def _place(self, number: int) -> str:
        """Where the failure is, as the caller counts."""
        if self.of_pairs:
            return f"a pair of the target {number}"
        if self.row:
            return f"the site {_index(number, self.row)}"
        return f"the element {_index(number, self.axes) if len(self.axes) > 1 else number}"


def _index(number: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(number, axes))


def smallest(kernel: ir.Kernel) -> ir.Kernel:
    """A kernel that adds the numbers of failures, as one that keeps the smallest of each
    element.
    """
    total = sum_name(RESULT)

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.Assign(name=n, value=ir.Literal()) if n in (total, RESULT):
                # RESULT: of walls, which have none
                return (replace(s, value=ir.Literal(NONE, t.I64)),)
            case ir.Assign(name=n, value=ir.Binary(left=left, right=right)) if n == total:
                return (replace(s, value=ir.Call("min", (left, right), t.I64)),)
            case _:
                return (s,)

    return replace(kernel, body=flat_map(kernel.body, visit))


def kernel_of_tests(function: KernelFunction, arguments: Arguments) -> ir.Kernel:
    """The kernel that makes the tests of a call, before its own one runs."""
    tests = arguments.tests
    assert isinstance(tests, TableTests)
    index = index_type(arguments.device)
    return smallest(function.skeleton.build(tests.lowered, function.signature, arguments, index))
