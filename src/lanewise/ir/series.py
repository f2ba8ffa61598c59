"""The launches of kernels, in their order: one each, but for kernels with series, which take turns.

    update: (i by 512), inner update: (i by 512, i by 64), solve: (i by 512, i by 64)
->  for each 512 rounds of i: update; for each 64 of these: inner update, solve
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from lanewise.ir import nodes as ir

Environment = Mapping[str, Any]
Whole = Callable[[ir.Expression, Environment], int]


def launches(kernels: Sequence[ir.Kernel], environment: Environment, whole: Whole) -> Iterator[tuple[int, Environment]]:
    """The number of the kernel of each launch, with the counts of the call and those of the launch. `whole` evaluates numbers."""
    yield from _launches(list(enumerate(kernels)), environment, whole, 0)


def _launches(
    kernels: list[tuple[int, ir.Kernel]], environment: Environment, whole: Whole, depth: int
) -> Iterator[tuple[int, Environment]]:
    for series, group in groupby(kernels, key=lambda k: k[1].series[depth] if len(k[1].series) > depth else None):
        members = list(group)
        if series is None:
            yield from ((number, environment) for number, _ in members)
            continue
        for counts in turns(series, environment, whole):
            yield from _launches(members, {**environment, **counts}, whole, depth + 1)


def turns(series: ir.Series, environment: Environment, whole: Whole) -> Iterator[dict[str, int]]:
    """The counts of each launch of a series."""
    start, stop = whole(series.start, environment), whole(series.stop, environment)
    for first in range(start, stop, series.step):
        yield {series.first: first, series.rounds: min(abs(series.step), abs(stop - first))}
