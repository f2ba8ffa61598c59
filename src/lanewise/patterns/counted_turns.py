"""How often loops run whose ends data tell: some of the elements of a call are interpreted, and the
rounds of their loops counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lanewise.analysis.regions import analyse
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.interpret import TURNS
from lanewise.ir.interpreter import ArrayMemory, Interpreter
from lanewise.ir.names import WHILE
from lanewise.ir.traverse import statements
from lanewise.language.target import WARP, target_of
from lanewise.language.types import scalar_of
from lanewise.launch.arguments import Arguments, bind_value_array
from lanewise.launch.support import value_type
from lanewise.launch.task_list import BoundArray
from lanewise.patterns.skeleton import KernelFunction
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.runtime.memory import to_host
from lanewise.support.errors import VerificationError

GROUPS = 16  # of neighbours, at equal distances
MOST_ROUNDS = 100_000  # of all loops together: some tenths of a second
MOST_BYTES = 1 << 24  # of arrays that elements share, which come to the host whole


class _Enough(Exception):
    """So many rounds were counted."""


def counted_turns(function: KernelFunction, arguments: Arguments) -> dict[str, float]:
    """How often loops run on average for the elements of a call, by their variables. The elements
    stay as they are.

    Threads of a warp wait for the one that runs longest, so on a GPU the mean is that of warps.
    Nothing where all lengths are known without, where elements sum up to words, and where no
    element ends within so many rounds.
    """
    if not function.skeleton.pattern.one_record or arguments.summed or arguments.tests is not None:
        return {}
    reference, environment = function.reference(arguments), function.environment(arguments)
    shared = sum(array.nbytes for array, _ in arguments.added.values())
    if shared > MOST_BYTES or not any(isinstance(s, ir.For | ir.While) for s in _inner(reference)):
        return {}
    guessed = analyse(reference, environment).unknown.guessed
    if not guessed:
        return {}
    turns = _Turns()
    with contextlib.suppress(_Enough, VerificationError):  # what fails is said by the call
        _run(function, arguments, reference, {**environment, TURNS: turns})
    together = WARP if target_of(arguments.device).has_blocks else 1
    return {n: mean for n, mean in turns.means(together) if n in guessed}


def _inner(kernel: ir.Kernel) -> Iterator[ir.Statement]:
    """The statements of a kernel and of the functions that it applies."""
    yield from statements(kernel.body)
    for f in functions(kernel.body):
        yield from statements(f.body)


class _Turns:
    """Rounds of loops by their variables, of one arrival at a loop after the other."""

    def __init__(self) -> None:
        self._rounds: dict[str, list[int]] = {}
        self._all = 0

    def __call__(self, name: str, rounds: Iterator[Any]) -> Iterator[Any]:
        """The rounds of one loop, which are counted once it has ended."""
        count = 0
        try:
            for value in rounds:
                count += 1
                self._all += 1
                if self._all > MOST_ROUNDS:
                    raise _Enough
                yield value
        finally:
            if self._all <= MOST_ROUNDS:
                # a loop without a variable comes to its condition once more
                self._rounds.setdefault(name, []).append(count - (name == WHILE))

    def means(self, together: int) -> Iterator[tuple[str, float]]:
        """How often each loop runs. together: so many neighbours run until the last one ends,
        which shows where each comes to the loop once.
        """
        for name, rounds in self._rounds.items():
            whole = rounds[: len(rounds) // together * together]
            yield (
                name,
                float(np.mean(np.reshape(whole, (-1, together)).max(axis=1) if whole else rounds)),
            )


def _run(
    function: KernelFunction,
    arguments: Arguments,
    reference: ir.Kernel,
    environment: Mapping[str, Any],
) -> None:
    """Interpret the kernel for some of the elements, on copies of all that it reads and writes."""
    count = function.count(arguments)
    step = max(WARP, count // GROUPS // WARP * WARP)
    firsts = range(0, count, step)[:GROUPS]
    places = np.concatenate([np.arange(n, min(n + WARP, count)) for n in firsts] or [np.arange(0)])
    kinds = function.signature.parameters
    bound = {n: _some_records(r, places) for n, r in arguments.records.items()}
    for n, array in arguments.arrays.items():
        some = [to_host(array[first : first + WARP]) for first in firsts] or [to_host(array)]
        bound[n] = bind_value_array(np.concatenate(some), value_type(kinds[n]))
    for n, (array, kind) in arguments.added.items():
        bound[n] = bind_value_array(np.array(to_host(array)), kind)
    for result in function.skeleton.results(function.lowered, len(places)):
        made = np.zeros(result.shape, scalar_of(result.kind).dtype)
        bound[result.name] = bind_value_array(made, result.kind)
    counts = {p.name: len(places) for p in reference.counts}
    known = {**environment, **counts}
    typed = {
        p.name: p.type.dtype.type(known[p.name]) for p in (*reference.uniforms, *reference.counts)
    }
    memory = {n: ArrayMemory(b.data, b.arrangement, b.count) for n, b in bound.items()}
    Interpreter(reference, {**typed, TURNS: environment[TURNS]}, memory).run()


def _some_records(array: RecordArray, places: Any) -> BoundArray:
    """Copies of some records, on the host."""
    some = places_of(array[places].to("cpu"))
    return BoundArray(some.data, some.arrangement, some.count)
