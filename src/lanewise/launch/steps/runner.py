"""Runs parts of a loop on its device.

On a CPU they are functions; on a GPU graphs where these hold all launches of a step, and else
single launches.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby

from lanewise.launch.steps.rhythm import Key, Rhythm
from lanewise.launch.steps.rows import reserve_rows, rows_of_part
from lanewise.launch.steps.task import Clock, has_graphs
from lanewise.profiling.profile import Profile
from lanewise.runtime.programs import NamedLaunch, ProgramPart, ScheduleRunner
from lanewise.runtime.stepping import GraphRunner, make_graphs, make_program
from lanewise.support.whole_steps import LONG_GRAPH, StepsUnderWay


class Runner:
    """The parts of a loop, made when they are first needed, and the programs that repeat them."""

    def __init__(self, device: str, rhythm: Rhythm, clock: Clock, profile: Profile | None) -> None:
        self._rhythm, self._clock = rhythm, clock
        self._parts: dict[Hashable, ProgramPart] = {}
        self._single: ScheduleRunner = make_program(device, self._parts, profile, graphs=False)
        self._graphs: GraphRunner | None = None
        if has_graphs(device):
            self._graphs = make_graphs(device, self._parts, profile)
            reserve_rows(rhythm)

    def make(self, schedule: Sequence[tuple[Key, int]]) -> None:
        """Make the parts of a schedule, for which kernels of phases may be compiled."""
        for key, _ in schedule:
            if key not in self._parts:
                self._parts[key] = self._part(key)

    def prepare(self, schedule: Sequence[tuple[Key, int]]) -> None:
        """Make the parts of a schedule, and their graphs."""
        self.make(schedule)
        if self._graphs is not None:
            self._graphs.prepare([entry for entry in schedule if not self._alone(entry)])

    def run(
        self, schedule: Sequence[tuple[Key, int]], under_way: StepsUnderWay | None = None
    ) -> None:
        """Run it, and wait for the result. under_way: see `GraphRunner.run`."""
        self.make(schedule)
        if self._graphs is None:
            self._single.run(schedule)
            return
        for alone, some in groupby(schedule, self._alone):
            entries = list(some)
            if alone:
                self._single.run(entries)
            else:
                self._graphs.run([e for e in entries if self._parts[e[0]].calls], under_way)
                self._clock.done += sum(len(kinds) * times for (kinds, _), times in entries)

    def _alone(self, entry: tuple[Key, int]) -> bool:
        """Whether some step of a part is launched call by call on a GPU."""
        (kinds, _), _ = entry
        return self._rhythm.alone(kinds)

    def _part(self, key: Key) -> ProgramPart:
        kinds, states = key
        calls: list[NamedLaunch] = []
        for kind in kinds:
            calls += self._step(kind, states)
            states = self._rhythm.after((kind,), states)
        long = max(1, LONG_GRAPH * self._rhythm.turns // len(kinds))
        return ProgramPart(calls, len(kinds), long, rows_of_part(self._rhythm, kinds))

    def _step(self, kind: int, states: Sequence[tuple[bool, int]]) -> list[NamedLaunch]:
        """The launches of a step; where something wants to know the step, the last one counts
        it.
        """
        calls: list[NamedLaunch] = []
        stand = dict(zip(map(id, self._rhythm.stepped), states, strict=True))
        for task in self._rhythm.tasks_of(kind):
            calls += task.launches(stand)
            for state in task.stepped:
                _, step = stand[id(state)]
                stand[id(state)] = False, step + 1
        if self._rhythm.counted and (self._graphs is None or self._rhythm.alone((kind,))):
            last = calls.pop() if calls else NamedLaunch("host", "nothing", _nothing)
            calls.append(_counting(last, self._clock))
        return calls


def _nothing() -> None: ...


def _counting(launch: NamedLaunch, clock: Clock) -> NamedLaunch:
    """The same launch, which ends a step."""
    work, tick = launch.call, clock.tick

    def run() -> None:
        work()
        tick()

    return NamedLaunch(launch.stage, launch.name, run)
