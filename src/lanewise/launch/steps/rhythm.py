"""The rhythm of a loop: the tasks of each step, when all comes again, what parts runs are made of.

On a GPU a part is captured as a graph once, so that parts shall be few and long: a whole period
where it is short; of a long one stretches of equal steps, and rows of different ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm
from typing import Any

from lanewise.launch.steps.task import Ahead, Flag, StepState, Task, Timed
from lanewise.support.whole_steps import LONG_GRAPH

Key = tuple[tuple[int, ...], tuple[tuple[bool, int], ...]]
"""Of a part: the kinds of its steps, and how what is stepped stands before it."""
MOST_KEPT = 64  # schedules: few lengths of runs come again and again


@dataclass(frozen=True)
class Rhythm:
    """The lists of a loop, one for each step of a cycle.

    cut: whether steps that no graph can hold make separate parts.
    """

    lists: tuple[tuple[Timed, ...], ...]
    cut: bool = False

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, each once."""
        return tuple(dict.fromkeys(t.task for timed in self.lists for t in timed))

    @cached_property
    def stepped(self) -> tuple[StepState, ...]:
        """Whatever is stepped, each once."""
        return tuple({id(s): s for task in self.tasks for s in task.stepped}.values())

    @cached_property
    def counted(self) -> bool:
        """Whether something wants to know which step it is."""
        return any(task.counted for task in self.tasks)

    @cached_property
    def looks_ahead(self) -> bool:
        """Whether values are computed for steps before they run."""
        return any(task.ahead is not None for task in self.tasks)

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """What is read when a piece of steps is over."""
        return tuple(task.flag for task in self.tasks if task.flag is not None)

    @cached_property
    def steps(self) -> int:
        """After how many steps the same tasks come again."""
        return lcm(len(self.lists), *(t.every for timed in self.lists for t in timed))

    @cached_property
    def period(self) -> int:
        """After how many steps the same launches come again."""
        return self.steps * self._turns(self.kinds)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """Of each of these steps its kind: steps of one kind have the same tasks."""
        numbers: dict[tuple[int, ...], int] = {}
        place = {id(task): n for n, task in enumerate(self.tasks)}
        return tuple(
            numbers.setdefault(tuple(place[id(t)] for t in self._due(n)), len(numbers))
            for n in range(self.steps)
        )

    @cached_property
    def _tasks_of(self) -> dict[int, tuple[Task, ...]]:
        return {kind: self._due(n) for n, kind in enumerate(self.kinds)}

    def tasks_of(self, kind: int) -> tuple[Task, ...]:
        """The tasks of a kind of steps, in order."""
        return self._tasks_of[kind]

    def ahead_in(self, step: int) -> tuple[Ahead, ...]:
        """What computes values for a step, in the order in which they are taken."""
        return self._ahead[step % self.steps]

    @cached_property
    def _ahead(self) -> tuple[tuple[Ahead, ...], ...]:
        of = {
            k: tuple(t.ahead for t in ts if t.ahead is not None) for k, ts in self._tasks_of.items()
        }
        return tuple(of[kind] for kind in self.kinds)

    def alone(self, kinds: Iterable[int]) -> bool:
        """Whether no graph can hold some step of these kinds."""
        return any(task.alone for kind in kinds for task in self._tasks_of[kind])

    @cached_property
    def _mixed(self) -> bool:
        """Whether graphs hold some steps and others not."""
        return self.cut and len({self.alone((kind,)) for kind in self._tasks_of}) > 1

    def _due(self, step: int) -> tuple[Task, ...]:
        due = self.lists[step % len(self.lists)]
        return tuple(t.task for t in due if step % t.every == t.at)

    @cached_property
    def turns(self) -> int:
        """After how many steps each thing that is stepped stands as before."""
        return lcm(*(s.cycle for s in self.stepped))

    def _turns(self, kinds: Iterable[int]) -> int:
        """How often steps of these kinds follow each other until all stands as before."""
        kinds = tuple(kinds)
        counts = [(s.cycle, sum(self._advance(s, kind) for kind in kinds)) for s in self.stepped]
        return lcm(*(cycle // gcd(cycle, count) for cycle, count in counts))

    def _advance(self, state: StepState, kind: int) -> int:
        return sum(s is state for task in self._tasks_of[kind] for s in task.stepped)

    def count(self, state: StepState, step: int, end: int) -> int:
        """How many steps something takes between two steps of the loop."""
        whole, rest = divmod(end - step, self.steps)
        if not rest:
            return whole * self._advances[id(state)]
        left = sum(self._advance(state, self.kinds[(step + n) % self.steps]) for n in range(rest))
        return left + whole * self._advances[id(state)]

    def runs(self, task: Task, step: int, end: int) -> int:
        """How often a task runs between two steps of the loop."""
        whole, rest = divmod(end - step, self.steps)
        each = [self._tasks_of[kind].count(task) for kind in self.kinds]
        return whole * sum(each) + sum(each[(step + n) % self.steps] for n in range(rest))

    @cached_property
    def _advances(self) -> dict[int, int]:
        """How many steps each thing takes until the same tasks come again."""
        return {id(s): sum(self._advance(s, kind) for kind in self.kinds) for s in self.stepped}

    def after(self, kinds: Sequence[int], states: Sequence[tuple[bool, int]]) -> tuple[Any, ...]:
        """How all stands after such steps: whether it is as it was set, and its step."""
        made: list[tuple[bool, int]] = []
        for state, (fresh, step) in zip(self.stepped, states, strict=True):
            count = sum(self._advance(state, kind) for kind in kinds)
            made.append((fresh and not count, step + count))
        return tuple(made)

    def states(self) -> tuple[tuple[bool, int], ...]:
        """How all stands that is stepped."""
        return tuple((s.fresh, s.step) for s in self.stepped)

    # ------------------------------------------------------------ parts of a run

    def schedule(self, step: int, end: int) -> list[tuple[Key, int]]:
        """The steps from one to another: keys of parts in order, each with how often it is
        repeated.
        """
        if self.steps == 1 and not self.stepped:
            return [((self.kinds, ()), end - step)] if end > step else []
        stand = tuple([(s.fresh, s.step % s.cycle) for s in self.stepped])
        key = (step % self.steps, end - step, stand)
        if (kept := self._kept.get(key)) is None:
            if len(self._kept) == MOST_KEPT:
                self._kept.clear()
            kept = self._kept[key] = self._parts(step, end, self.states())
        return kept

    @cached_property
    def _kept(self) -> dict[Hashable, list[tuple[Key, int]]]:
        """Schedules by where they begin, and how long they are."""
        return {}

    def _parts(
        self, step: int, end: int, states: tuple[tuple[bool, int], ...]
    ) -> list[tuple[Key, int]]:
        made: list[tuple[Key, int]] = []
        while step < end:
            kinds, times = self._next(step, end - step, fresh=any(fresh for fresh, _ in states))
            stand = tuple((f, n % s.cycle) for s, (f, n) in zip(self.stepped, states, strict=True))
            made.append(((kinds, stand), times))
            states = self.after(kinds * times if states else (), states)
            step += len(kinds) * times
        return made

    def _next(self, step: int, left: int, *, fresh: bool) -> tuple[tuple[int, ...], int]:
        """What is repeated next, as kinds of steps, and how often; `left` steps at most."""
        place = step % self.steps
        here = self.kinds[place]
        if fresh:
            return (here,), 1
        whole = self.period <= LONG_GRAPH and not self._mixed
        if whole and place == 0 and left >= self.period:
            return self.kinds * (self.period // self.steps), left // self.period
        if run := min(left, self._runs[place]):
            unit = self._turns((here,))
            return ((here,) * unit, run // unit) if run >= unit else ((here,), 1)
        row = self._rows.get(place, 1)
        return (self.kinds[place : place + row], 1) if row <= left else ((here,), 1)

    @cached_property
    def _runs(self) -> list[int]:
        """From each place on, how many steps of one kind follow each other, where these are
        many.
        """
        kinds, runs = self.kinds, [0] * self.steps
        begin = 0
        while begin < len(kinds):
            end = begin
            while end < len(kinds) and kinds[end] == kinds[begin]:
                end += 1
            if end - begin >= LONG_GRAPH:
                runs[begin:end] = range(end - begin, 0, -1)
            begin = end
        return runs

    @cached_property
    def _rows(self) -> dict[int, int]:
        """Where rows of different steps begin, and how long they are."""
        rows: dict[int, int] = {}
        place = 0
        while place < self.steps:
            if self._runs[place]:
                place += self._runs[place]
                continue
            end, alone = place, self._cuts(place)
            while end < self.steps and not self._runs[end] and end - place < LONG_GRAPH:
                if self._cuts(end) != alone:
                    break
                end += 1
            rows[place] = end - place
            place = end
        return rows

    def _cuts(self, place: int) -> bool:
        return self._mixed and self.alone((self.kinds[place],))
