"""Indices of a call that are proved to be inside, or refused because they surely are not; the
others are tested with `checks=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from lanewise.analysis.bounds import Reached, decisive, reached, sites
from lanewise.frontend.function import lower_function
from lanewise.frontend.scattered import scattered_arrays
from lanewise.ir import nodes as ir
from lanewise.ir.names import extent_of, length_of
from lanewise.language import types as t
from lanewise.launch.arguments import Arguments
from lanewise.launch.outside import surely_outside, was_outside
from lanewise.launch.sized import Repeats
from lanewise.passes.index_tests import NONE, Guards, failure, guards_of
from lanewise.patterns.plain_sums import prefer_buckets_of_threads
from lanewise.patterns.skeleton import CHECKS, KernelFunction
from lanewise.patterns.tables.races import refuse_races
from lanewise.patterns.threadwise import meetings
from lanewise.patterns.threadwise.arguments import repeats as plain_repeats
from lanewise.patterns.threadwise.build import build_kernel, one_thread
from lanewise.patterns.threadwise.meetings import Meeting
from lanewise.runtime.memory import to_host
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

VALUES = 64  # of uniforms, for which what was proved is remembered


def prove(function: KernelFunction, arguments: Arguments) -> None:
    """Refuse a call some index of which surely is outside of its array, or whose threads surely
    meet at an element that one writes.

    With `checks=True`, see to tests of indices that are not proved to be inside.
    """
    checks = arguments.options.get(CHECKS, False)
    if not isinstance(checks, bool):
        raise ArgumentError(f"{function.name}: checks= is True or False, found {shown(checks)}")
    places = _reached(function, arguments, function.environment(arguments))
    for r in places:
        if r.sure and (r.below or r.beyond):
            raise _outside(function, arguments, r)
    if met := _met(function, arguments, function.environment(arguments)):
        raise meetings.refusal(
            function.name, function.signature.indices, met, _grid(function, arguments)
        )
    if not checks:
        indices, scattered = function.signature.indices, scattered_arrays(function.signature.source)
        if len(indices) == 1 and scattered:
            prefer_buckets_of_threads(function.lowered, indices[0], arguments)
        return
    wide, narrow, *rest = arguments.variant
    multiples = rest[0] if rest else (1,) * len(function.signature.arrays)
    tested, summed = guards_of(places), bool(function.signature.results)
    arguments.variant = (wide, narrow, multiples, () if summed else tested)
    if tested:
        arguments.tests = ThreadTests(function, arguments, tested, not summed)


@dataclass(frozen=True, eq=False)
class ThreadTests:
    """The tests of a call.

    A kernel of threads makes them as it runs; a sum, whose loops stay as they are, writes nothing,
    so that a kernel before it can make them.
    """

    function: KernelFunction
    arguments: Arguments
    tested: Guards
    within: bool

    def examine(self, outside: Any) -> None:
        """Raise `VerificationError` for the first thread that was outside of an array.

        Waits for the kernel.
        """
        outside, function = to_host(outside), self.function
        if not outside.size or int(outside.min()) == NONE:
            return
        first = int((outside != NONE).argmax())
        extents = _extents(function, self.arguments.totals)
        place = tuple(int(i) for i in np.unravel_index(first, extents))
        f = failure(int(outside[first]))
        s = sites(_thread(function, self.arguments))[f.site]
        names = function.signature.indices
        thread = ", ".join(f"{n} = {i}" for n, i in zip(names, place, strict=True))
        shape = _shape(function, self.arguments, s.array)
        raise was_outside(function.name, s, f, f"the thread {thread}", shape)


def kernel_of_tests(function: KernelFunction, arguments: Arguments) -> ir.Kernel:
    """The kernel that makes the tests of a sum before it runs."""
    tests = arguments.tests
    assert isinstance(tests, ThreadTests)
    return build_kernel(
        function.lowered, function.signature, arguments, guards=tests.tested, summed=False
    )


def repeats(function: KernelFunction, arguments: Arguments) -> Repeats:
    """What calls like this one have to be like, the values included that indices are made of."""
    plain = plain_repeats(function.signature, arguments)
    environment = function.environment(arguments)
    whole, places = (
        _whole_numbers(function, environment),
        _reached(function, arguments, environment),
    )
    names = decisive(_thread(function, arguments), whole, places)
    return replace(
        plain, holds=_holding(function, arguments, environment, names) if names else None
    )


def _holding(
    function: KernelFunction,
    arguments: Arguments,
    environment: Mapping[str, Any],
    names: tuple[str, ...],
) -> Callable[[Mapping[str, Any]], bool]:
    """Whether for other values no index surely is outside either, and no threads surely meet.

    It keeps no array of a call.
    """
    alike = Arguments(variant=arguments.variant, device=arguments.device)

    @lru_cache(maxsize=VALUES)
    def holds(*values: int) -> bool:
        numbers = {**environment, **dict(zip(names, values, strict=True))}
        if any(r.sure and (r.below or r.beyond) for r in _reached(function, alike, numbers)):
            return False
        return _met(function, alike, numbers) is None

    return lambda values: holds(*(int(values[n]) for n in names))


def _thread(function: KernelFunction, arguments: Arguments) -> ir.Block:
    """The statements of one thread, before anything is added to them."""
    wide = bool(arguments.variant[0])
    key = ("thread", wide)
    if key not in function.kept:
        lowered = lower_function(function.signature, index=t.I64) if wide else function.lowered
        function.kept[key] = one_thread(lowered.function)
    return function.kept[key]


def _reached(
    function: KernelFunction, arguments: Arguments, environment: Mapping[str, Any]
) -> tuple[Reached, ...]:
    """Where indices go with these numbers.

    It takes some tenths of a millisecond, so that the last answers are remembered.
    """
    ranks = {n: kind.rank for n, kind in function.signature.arrays.items()}
    lengths = [length_of(n, d) for n, rank in ranks.items() for d in range(rank)]
    names = (*lengths, *_whole_numbers(function, environment))
    key = ("reached", bool(arguments.variant[0]))
    if key not in function.kept:
        thread, indices = _thread(function, arguments), function.signature.indices

        @lru_cache(maxsize=VALUES)
        def places(extents: tuple[int, ...], values: tuple[int, ...]) -> tuple[Reached, ...]:
            numbers = dict(zip(names, values, strict=True))
            shapes = {
                n: tuple(numbers[length_of(n, d)] for d in range(rank)) for n, rank in ranks.items()
            }
            return reached(thread, dict(zip(indices, extents, strict=True)), numbers, shapes)

        function.kept[key] = places
    return function.kept[key](
        _extents(function, environment), tuple(int(environment[n]) for n in names)
    )


def _met(
    function: KernelFunction, arguments: Arguments, environment: Mapping[str, Any]
) -> Meeting | None:
    """Two threads that surely meet with these numbers."""
    thread, indices = _thread(function, arguments), function.signature.indices
    key = ("meet", bool(arguments.variant[0]))
    if key not in function.kept:
        refuse_races(indices, thread)  # whatever the grid is: that says more
        function.kept[key] = meetings.may_meet(thread, indices)
    if not function.kept[key]:
        return None
    shapes = {
        n: tuple(int(environment[length_of(n, d)]) for d in range(k.rank))
        for n, k in function.signature.arrays.items()
    }
    lengths = {
        length_of(n, d): length for n, shape in shapes.items() for d, length in enumerate(shape)
    }
    numbers = lengths | {n: int(environment[n]) for n in _whole_numbers(function, environment)}
    return meetings.meeting(
        thread, dict(zip(indices, _extents(function, environment), strict=True)), numbers, shapes
    )


def _extents(function: KernelFunction, environment: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(environment[extent_of(i)]) for i in function.signature.indices)


def _whole_numbers(function: KernelFunction, environment: Mapping[str, Any]) -> list[str]:
    """The values for all that are integers."""
    kinds = function.signature.parameters
    return [
        n for n in environment if isinstance(kind := kinds.get(n), t.Scalar) and kind.is_integer
    ]


# ------------------------------------------------------------ errors


def _outside(function: KernelFunction, arguments: Arguments, r: Reached) -> ArgumentError:
    """Of a call that cannot be right."""
    grid = _grid(function, arguments)
    hint = "arrays and a grid that fit each other, or a condition around the access"
    return surely_outside(
        function.name, r, _shape(function, arguments, r.statement.array), grid, hint
    )


def _grid(function: KernelFunction, arguments: Arguments) -> str:
    return f"grid={_tuple(_extents(function, arguments.totals))}"


def _shape(function: KernelFunction, arguments: Arguments, array: str) -> tuple[int, ...]:
    rank = function.signature.arrays[array].rank
    return tuple(int(arguments.totals[length_of(array, d)]) for d in range(rank))


def _tuple(grid: tuple[int, ...]) -> str:
    return str(grid[0]) if len(grid) == 1 else str(grid)
