"""What a call runs besides its kernel: tests of indices before it, buckets in its place, and the
rounding of exact sums behind it.
"""

from __future__ import annotations

from typing import Any

from lanewise.frontend.function import Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.language.types import I64
from lanewise.launch.arguments import Arguments, Tests, values_arrangement
from lanewise.launch.executable import Executable
from lanewise.launch.task_list import Part, Renamed, TaskList, Written
from lanewise.launch.task_verifier import verify
from lanewise.launch.tasks import Buffer, Host, Primitive, Role, reading, renamed, writing
from lanewise.passes.index_tests import NONE, OUTSIDE
from lanewise.patterns.skeleton import checks_everywhere
from lanewise.patterns.words import rounding, words_buffer, words_of

RESULT = own("result")


def task_list(
    name: str,
    signature: Signature,
    arguments: Arguments,
    kernel: Executable,
    counts: tuple[str, ...],
    tests: Executable | None,
    *,
    runs: bool = True,
) -> TaskList:
    """The tasks of a call. counts: names of its numbers of elements, first of those that have
    results. tests: the kernel that makes the tests of indices, where it is a separate one. Buckets
    run instead of the kernel where `arguments` say so. runs: without it the tasks are described,
    and nothing is loaded on their device.
    """
    if arguments.tests is None and arguments.buckets is None and not arguments.summed:
        return kernel.tasks
    device = arguments.device
    words = {n: words_of(n) for n in arguments.summed}
    kinds = {n: kind for n, (_, kind) in arguments.summed.items()}
    ranks = {n: kind.rank for n, kind in signature.arrays.items()}
    buffers = {words[n]: words_buffer(n, kind, ranks[n], device) for n, kind in kinds.items()}
    parts: list[Part] = []
    if tests is not None:
        parts.append(Renamed(tests, {RESULT: OUTSIDE, **words}))
    if arguments.tests is not None and not arguments.tests.within:
        parts.append(examination(arguments.tests, device))
    if arguments.buckets is not None:
        own = renamed(kernel.sequence, words)
        taken = {n: b for n, b in own.buffers.items() if n in arguments.buckets.takes}
        parts.append(Written(arguments.buckets, device, taken, own.changed))
    else:
        parts.append(Renamed(kernel, words) if words else kernel)
    if arguments.tests is not None:
        buffers |= outside_buffer(ir.Local(counts[0], I64))
        if arguments.tests.within:
            parts.append(examination(arguments.tests, device))
    parts += rounding(kinds, device, loaded=runs)
    known = frozenset({*counts, *arguments.lengths, *arguments.totals})
    return TaskList(name, device, tuple(parts), buffers, known)


def site_tests(kernel: Executable, tests: Tests, device: str) -> TaskList:
    """The tests of the indices of sites. kernel: writes the first failure of each site where there
    is one; sites without a function keep what they had.
    """
    clear = Primitive("no failures", _clear, writing(OUTSIDE), (OUTSIDE,))
    parts = Written(clear, device), Renamed(kernel, {RESULT: OUTSIDE}), examination(tests, device)
    buffers, known = outside_buffer(ir.Local(COUNT, I64)), frozenset((COUNT,))
    return TaskList(kernel.sequence.name, device, parts, buffers, known)


def _clear(outside: Any) -> None:
    outside[...] = NONE


def examination(tests: Tests, device: str) -> Written:
    """What says which index was outside, where one was."""
    gate = not tests.within
    task = Host("test of indices", tests.examine, reading(OUTSIDE), (OUTSIDE,), gate)
    return Written(task, device)


def outside_buffer(elements: ir.Expression) -> dict[str, Buffer]:
    """The number of the first failure of each element."""
    numbers = values_arrangement(I64)
    what = "the tests of indices"
    return {OUTSIDE: Buffer(OUTSIDE, Role.TEMPORARY, numbers, elements, what=what)}


def checked(tasks: TaskList, arguments: Arguments) -> TaskList:
    """The tasks of a call; where its indices are tested (`checks=True`, `LANEWISE_CHECKS=1`), they
    are sound. Reading all statements of their kernels takes up to a third of a first call whose
    machine code is there already, so that others trust the tests of lanewise.

    Raises `VerificationError` for tasks that are not sound, which is a fault of lanewise.
    """
    if arguments.tests is not None or checks_everywhere():
        verify(tasks.sequence)
    return tasks
