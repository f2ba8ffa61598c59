"""The tasks of a call over a search, and the plans of its kernel."""

from __future__ import annotations

from functools import cache, lru_cache

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of
from lanewise.ir.pattern import Pattern, Work
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.support import index_type, machine_of
from lanewise.launch.task_list import Renamed, TaskList
from lanewise.launch.tasks import Buffer, Role
from lanewise.layouts import SoAoAS
from lanewise.passes.index_tests import OUTSIDE
from lanewise.patterns.call_tasks import RESULT, examination, outside_buffer
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.search.base import ORDER, POSITIONS, TARGET_POSITIONS
from lanewise.patterns.search.build import SEARCH, SearchArguments, build_search, together
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.patterns.search.specialised import Specialised
from lanewise.patterns.search.tree.arguments import TARGET_ORDER, TARGET_SORTED, TreeArguments
from lanewise.patterns.search.tree.structure import TreeStructure
from lanewise.patterns.tables.ranges import TableTests, smallest
from lanewise.planning.plan import CompletePlan, Plan


def tasks_of_search(name: str, s: Specialised, kernel: Executable, programs: Programs) -> TaskList:
    """All that a call of a kernel of this name runs: what fills the structure, puts the sources in
    its order, tests indices, and walks.

    It keeps no array of a call.
    """
    device, tests = s.classified.device, s.classified.tests
    target, source = s.classified.records
    parts = s.structure.parts({POSITIONS: source, TARGET_POSITIONS: target}, device)
    buffers, walked = dict[str, Buffer](), dict[str, str]()
    for n, leaves in s.copied.items():
        order, copy = (ORDER, SORTED) if n == source else (TARGET_ORDER, TARGET_SORTED)
        gather = _gather(s, n, programs)
        parts.append(Renamed(gather, {ORDER: order, SORTED: copy}, {COUNT: count_of(n)}))
        walked[n] = copy
        if s.reference.identical:
            walked[target] = copy
        buffers[copy] = Buffer(
            copy,
            Role.TEMPORARY,
            SoAoAS().arrange(leaves),
            ir.Local(count_of(n), t.I64),
            what=f"the sorted copy of {n!r}",
        )
    if isinstance(s.structure, TreeStructure):
        far = s.far
        assert far is not None
        assert isinstance(s.arguments, TreeArguments)
        moments = far.moments(programs, s.arguments, s.structure, device, walked)
        parts += moments
        buffers |= far.buffers(s.arguments, index_type(device))
    if tests is not None:
        parts += [
            Renamed(_tests(s, programs), {RESULT: OUTSIDE, **walked}),
            examination(tests, device),
        ]
        buffers |= outside_buffer(ir.Local(count_of(next(iter(s.classified.records))), t.I64))
    parts.append(Renamed(kernel, walked) if walked else kernel)
    return TaskList(name, device, tuple(parts), buffers)


def _tests(s: Specialised, programs: Programs) -> Executable:
    """The kernel that tests indices, which walks through the same structure."""
    tests, device = s.classified.tests, s.classified.device
    assert isinstance(tests, TableTests)
    assert isinstance(s.arguments, SearchArguments)  # functions over trees read no tables
    arguments = s.arguments
    function, index = tests.lowered, index_type(device)
    return programs.get(
        (arguments, tests.tested),
        lambda: smallest(build_search(function, arguments, index)),
        complete_plan(None, programs.machine(device), Work(SEARCH, 1)),
        device,
    )


def _gather(s: Specialised, name: str, programs: Programs) -> Executable:
    """What fills the sorted copy of a parameter."""
    source = s.classified.records[name]
    device, record, layout = s.classified.device, source.record, source.layout
    copied = s.copied[name]
    return programs.get(
        (name, record, layout, copied),
        lambda: build_gather(name, record.leaves, layout, copied, SoAoAS(), index_type(device)),
        complete_plan(None, programs.machine(device), Work(ELEMENTWISE, 1)),
        device,
    )


@lru_cache
def complete_search_plan(
    requested: Plan | None, device: str, pattern: Pattern = SEARCH, *, identical: bool = True
) -> CompletePlan:
    """What the user requests, and defaults for a kernel over a walk, whatever its number of targets
    is. identical: whether they are the sources.
    """
    machine = machine_of(device)
    if requested is None:
        return _default_plan(machine, pattern, identical)
    return complete_plan(requested, machine, _work(pattern, identical))


def _work(pattern: Pattern, identical: bool) -> Work:
    return Work(pattern, 1, alike=together(identical=identical))


@cache  # of a pattern on a machine it is always the same, and every query asks for it
def _default_plan(machine: Machine, pattern: Pattern, identical: bool) -> CompletePlan:
    return complete_plan(None, machine, _work(pattern, identical))
