"""Bound calls as tasks: the one place where a loop reads what `bind` made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lanewise.launch.by_step import SteppedLaunch
from lanewise.launch.compiled import Call
from lanewise.launch.joined import Bound, OfPart
from lanewise.launch.steps.rows import InRows, rows_of
from lanewise.launch.steps.task import Clock, States, Task, bound_each_step, has_graphs
from lanewise.loops.by_steps import InSteps
from lanewise.loops.flat import flat
from lanewise.loops.functions import ON_A_MESH
from lanewise.loops.orders import (
    OwnOrder,
    devices_of,
    keeping_order,
    order_task,
    searched_launches,
)
from lanewise.loops.searches import (
    FOLLOWS,
    DeviceLooks,
    NamingStep,
    Searching,
    Structures,
    in_graph,
    named,
    why_alone,
)
from lanewise.patterns.mesh_launch import MeshLaunch
from lanewise.patterns.search.searched_launch import SearchedLaunch
from lanewise.runtime.prepared import Prepared, at_a_stretch
from lanewise.runtime.programs import Checked, NamedLaunch, Work

BESIDES = (
    "the call does more than to launch its kernel (tests of indices, sums by buckets), and the "
    "host takes part"
)
BY_STEP = (
    "its values are lw.by_step(...), which a graph reads from memory where the plan leaves that "
    "open "
    '(uniforms="global"), and where the call is a launch of its kernel and nothing else'
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How bound calls are read. apart: the launches of a search each for itself, for a profile.
    orders: those that calls keep, and what makes them, by their structures: a call may stand in a
    loop more than once.
    """

    structures: Structures
    clock: Clock
    apart: bool
    orders: dict[int, tuple[OwnOrder, Task]] = field(
        default_factory=dict[int, tuple[OwnOrder, Task]], compare=False
    )

    def task(self, call: Call) -> Task:
        """The task of a bound call."""
        parts = searched_launches(call)
        if not parts or not parts[0].orders:
            return self._task(call)
        of = id(parts[0].structure)
        if of not in self.orders:
            own = OwnOrder.of(parts, devices_of(call))
            self.orders[of] = own, order_task(call, own, self._on_mesh)
        own, ordering = self.orders[of]
        made = self._task(keeping_order(call, own))
        return replace(made, before=ordering, kept=parts[0].structure.every)

    def _task(self, call: Call) -> Task:
        plain, launch = _plain(call)
        name, kind, device = plain.name, plain.kind, call.compiled.executable.device
        if isinstance(launch, MeshLaunch):
            return self._on_mesh(plain, launch)
        if isinstance(call.launch, SteppedLaunch):
            return self._in_rows(plain, call, call.launch) or self._by_step(plain, call.launch)
        if isinstance(launch, SearchedLaunch):
            return self._searched(plain, launch)
        if not isinstance(launch, Prepared) or launch.waits:
            return _fixed(plain, [NamedLaunch(kind, name, launch)], counted=True, alone=BESIDES)
        if has_graphs(device):
            return _fixed(plain, [NamedLaunch(kind, name, launch)])
        return _fixed(plain, [NamedLaunch(kind, name, work) for work in flat(launch)])

    def _on_mesh(self, task: Task, launch: MeshLaunch) -> Task:
        """A call over the parts of a mesh: one launch, in which several GPUs work at the same time;
        for a profile each part for itself.
        """
        looks = any(isinstance(call.launch, SearchedLaunch) for call in launch.rounds[0].calls)
        work = NamingStep(launch, self.clock) if looks else launch
        launches = [NamedLaunch(task.kind, task.name, work)]
        if self.apart:
            launches = [NamedLaunch(task.kind, what, work) for what, work in launch.works()]
        alone = ON_A_MESH if has_graphs(launch.mesh.devices[0]) else ""
        rounds = [(r.brought, [_plain(call)[0] for call in r.calls]) for r in launch.rounds]
        checks = dict.fromkeys(c for _, parts in rounds for part in parts for c in part.checks)

        def bound(states: States) -> Sequence[Bound]:
            found: list[Bound] = []
            for brought, parts in rounds:
                each = [part.bound(states) for part in parts]
                if not all(each):
                    return ()
                found += [] if brought is None else [brought.bound]
                found += [
                    replace(b, call=OfPart(n, b.call)) for n, some in enumerate(each) for b in some
                ]
            return found

        made = _fixed(task, launches, counted=looks, alone=alone)
        checks = tuple(dict.fromkeys((*task.checks, *checks)))
        return replace(made, checks=checks, bound=bound, divided=launch.divided())

    def _searched(self, task: Task, launch: SearchedLaunch) -> Task:
        assert task.device is not None
        alone = why_alone(launch, self.structures)
        if alone or not has_graphs(task.device):
            launches = named(launch, task.name, self.structures, self.clock, apart=self.apart)
            made = _fixed(task, launches, counted=True, alone=alone)
            return replace(made, costs=alone == FOLLOWS)
        if not launch.looks:
            return _fixed(task, in_graph(launch, task.name))
        looks = DeviceLooks(task.name, task.device, launch.looks)
        return replace(_fixed(task, in_graph(launch, task.name, looks)), flag=looks)

    def _in_rows(self, task: Task, call: Call, stepped: SteppedLaunch) -> Task | None:
        """A call by step that graphs can hold; None for any other one."""
        launch, device = stepped.launch, call.compiled.executable.device
        searched = launch if isinstance(launch, SearchedLaunch) else None
        if not has_graphs(device) or (
            searched is not None and why_alone(searched, self.structures)
        ):
            return None
        kernel = launch if searched is None else searched.kernel
        packed = rows_of(call, kernel)
        if packed is None or not isinstance(kernel, Prepared):
            return None
        coming = InRows(stepped, packed, device, kernel)
        if searched is None:
            return replace(_fixed(task, [NamedLaunch(task.kind, task.name, coming)]), ahead=coming)
        looks = DeviceLooks(task.name, device, searched.looks)
        launches = in_graph(searched, task.name, looks, coming)
        return replace(_fixed(task, launches), ahead=coming, flag=looks)

    def _by_step(self, task: Task, stepped: SteppedLaunch) -> Task:
        launch = stepped.launch
        searching = None
        if isinstance(launch, SearchedLaunch):
            searching = Searching(launch, self.structures, self.clock)
        coming = InSteps(stepped, self._work, searching)
        launches = [NamedLaunch(task.kind, task.name, coming)]
        made = _fixed(task, launches, counted=searching is not None, alone=BY_STEP)
        return replace(made, ahead=coming)

    def _work(self, call: Call) -> Work:
        """What runs a call."""
        launch, device = call.launch, call.compiled.executable.device
        if isinstance(launch, SearchedLaunch):
            return Searching(launch, self.structures, self.clock)
        if isinstance(launch, Prepared) and not has_graphs(device):
            return at_a_stretch(flat(launch))
        return launch


def _plain(call: Call) -> tuple[Task, Work]:
    """What is known of a call whatever launches it, and its launch without values by step."""
    launch: Work = call.launch
    if isinstance(launch, SteppedLaunch):
        launch = launch.launch
    compiled = call.compiled
    kind = compiled.executable.program.reference.pattern.name
    checks = (*call.asked, *_checks(launch))
    plain = Task(compiled.name, kind, _none, compiled.executable.device, checks=checks)
    launches = launch.launches if isinstance(launch, SearchedLaunch) else launch
    if isinstance(launches, Prepared):
        plain = replace(plain, bound=bound_each_step(compiled.tasks, launches, call=call))
    return plain, launch


def _checks(launch: object) -> tuple[Work, ...]:
    return (launch.check,) if isinstance(launch, Checked) else ()


def _none(states: States) -> Sequence[NamedLaunch]:
    del states
    return ()


def _fixed(
    task: Task, launches: Sequence[NamedLaunch], *, counted: bool = False, alone: str = ""
) -> Task:
    """The task with launches that are the same in every step."""

    def launches_of(states: States) -> Sequence[NamedLaunch]:
        del states
        return launches

    return replace(task, launches=launches_of, counted=counted, alone=alone)
