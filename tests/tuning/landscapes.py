"""Spaces and measurers made up for the tests of the search: times are a function of the plan."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from lanewise.launch.trial import Failure
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.tuning.race import FirstRun
from lanewise.tuning.space import Examined, Family

AXES: dict[str, tuple[Any, ...]] = {
    "targets": (1, 2, 4, 8, 16),
    "block": (32, 64, 128, 256, 512, 1024),
    "slices": (1, 2, 4, 8),
    "unroll": (1, 2, 4, 8, 16),
    "prefetch": ("none", "registers", "async"),
    "fma": (False, True),
}
BASE = Plan(block=256).filled(NEUTRAL)


def family(axes: Mapping[str, tuple[Any, ...]] = AXES, base: Plan = BASE, name: str = "made up") -> Family:
    return Family(name, base, dict(axes))


@dataclass
class MadeUpSpace:
    """`illegal` gives a reason or nothing; `predicted` what a model would say."""

    families: tuple[Family, ...]
    illegal: Callable[[Plan], str] = lambda plan: ""
    predicted: Callable[[Plan], float | None] = lambda plan: None

    @property
    def default(self) -> Plan:
        return self.families[0].base

    def examine(self, plan: Plan) -> Examined:
        return Examined(self.illegal(plan), self.predicted(plan))

    def legal_plans(self) -> list[Plan]:
        plans = (f.plan(p) for f in self.families for p in f.points())
        return [p for p in plans if not self.illegal(p)]


@dataclass
class MadeUpMeasurer:
    """Times by a function; `fails` gives what becomes of a plan that cannot be timed.

    Compiling takes `compiling` seconds, timing as long as what is timed, on a clock that only this measurer moves.
    `drift`: how much slower the machine gets with every measurement; `noise`: the share by which a time may be
    longer, another one each time; `around`: seconds of copies for each run that checks a plan; without them such
    runs take no time.
    """

    seconds: Callable[[Plan], float]
    fails: Callable[[Plan], Failure | None] = lambda plan: None
    unstable: Callable[[Plan], bool] = lambda plan: False
    compiling: float = 0.0
    drift: float = 0.0
    noise: float = 0.0
    around: float | None = None
    compilers: int = 4
    clock: float = 0.0
    calls: int = 0
    prepared: list[Plan] = field(default_factory=list)
    released: set[Plan] = field(default_factory=set)

    def prepare(self, plans: Sequence[Plan], until: float = inf) -> dict[Plan, Failure | None]:
        self.clock += self.compiling * len(plans)
        found: dict[Plan, Failure | None] = {}
        for plan in plans:
            if self.clock > until:
                break
            self.prepared.append(plan)
            found[plan] = self.fails(plan)
            self.clock += self.first(plan).whole
        return found

    def first(self, plan: Plan) -> FirstRun:
        if self.around is None:
            return FirstRun(self.seconds(plan))
        return FirstRun(self.seconds(plan), self.seconds(plan) + self.around)

    def measure(self, plans: Sequence[Plan], rounds: int, until: float = inf) -> dict[Plan, list[float]]:
        assert not self.released & set(plans), "a released plan is measured"
        self.calls += 1
        slower = (1 + self.drift) ** self.calls
        times: dict[Plan, list[float]] = {p: [] for p in plans}
        for _ in range(rounds):
            for plan in plans:
                if self.clock > until and any(times.values()):
                    return times
                times[plan].append(self.seconds(plan) * slower * self._noisy())
                self.clock += times[plan][-1]
        return times

    def _noisy(self) -> float:
        return 1 + self.noise * zlib.crc32(repr(self.clock).encode()) / 2**32

    def confirm(self, plan: Plan) -> Failure | None:
        self.clock += self.first(plan).whole
        return Failure("wrong", "two runs from the same state gave different bits") if self.unstable(plan) else None

    def release(self, plan: Plan) -> None:
        self.released.add(plan)

    def elapsed(self) -> float:
        return self.clock
