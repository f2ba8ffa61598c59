"""The launches of kernels, in their order: one each, but for kernels with series, which take turns.

    ahead: (i by 512), ahead within: (i by 512, i by 64), solve: (i by 512, i by 64)
->  for each 512 rounds of i: ahead; for each 64 of these: ahead within, solve
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate

Environment = Mapping[str, Any]


def whole(e: ir.Expression, environment: Environment) -> int:
    """A number of elements or blocks, computed without overflow."""
    return int(
        evaluate(e, {n: np.int64(v) if isinstance(v, int) else v for n, v in environment.items()})
    )


def launches(
    kernels: Sequence[ir.Kernel], environment: Environment
) -> Iterator[tuple[int, Environment]]:
    """The number of the kernel of each launch, with the counts of the call and those of the
    launch.
    """
    yield from _launches(list(enumerate(kernels)), environment, 0)


def _launches(
    kernels: list[tuple[int, ir.Kernel]], environment: Environment, depth: int
) -> Iterator[tuple[int, Environment]]:
    for series, group in groupby(
        kernels, key=lambda k: k[1].series[depth] if len(k[1].series) > depth else None
    ):
        members = list(group)
        if series is None:
            yield from ((number, environment) for number, _ in members)
            continue
        turns = _turns(series, environment)
        for n in range(len(turns)):
            yield from _launches(members, {**environment, **_counts(series, turns, n)}, depth + 1)


def typical(kernel: ir.Kernel, environment: Environment) -> tuple[Environment, int]:
    """The counts of the launch in the middle, and how many launches there are: about what all of
    them take together.
    """
    total = 1
    for series in kernel.series:
        turns = _turns(series, environment)
        total *= len(turns)
        environment = {**environment, **_counts(series, turns, len(turns) // 2)}
    return environment, total


def _turns(series: ir.Series, environment: Environment) -> range:
    return range(whole(series.start, environment), whole(series.stop, environment), series.step)


def _counts(series: ir.Series, turns: range, number: int) -> dict[str, int]:
    """Those of one launch; without any rounds where there is none."""
    if number >= len(turns):
        return {series.first: turns.start, series.rounds: 0}
    first = turns[number]
    return {series.first: first, series.rounds: min(abs(series.step), abs(turns.stop - first))}
