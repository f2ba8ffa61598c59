"""Plans that take much less time by the model than the one that accesses suggest.

A rule of thumb is nearly right for what it was made for, and may be far off elsewhere. The model
knows any kernel, and is wrong by half as much again at times: it decides where it sees more than
that. It prices for a typical GPU, and for sizes rounded to a power of two: every GPU and every
call of such a size gets one plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanewise.ir.pattern import Choice
from lanewise.launch.tuned_plans import size_class
from lanewise.models.devices import table_model
from lanewise.models.predict import predict
from lanewise.patterns.tables.names import POINTS
from lanewise.patterns.threadwise.candidates import Candidates
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

# Predictions are 0.67 to 1.5 times the measured time for 92 of 100 naive kernels (design/0064).
SURE = 1.5
# Operations and statements of all programs that are priced for a choice, accesses as 40 of them.
# Each takes some 10 us, but no clock decides: a call gets the same plan everywhere.
MOST = 30_000
DEAR = 2  # times `MOST` that are expected of a plan, which is not built to see what it takes then
WORTH = 5e-6  # seconds that are saved at least: of launches the model knows less
LARGEST = 1 << 30  # points of a call: rounded sizes of more may have a product beyond 32 bits
EXACT = 64  # sizes up to which they are not rounded
OTHERS = (
    Plan(block=256),
    Plan(block=256, targets=4),
    Plan(block=256, slices=32, unroll=4),
)


def chooser(candidates: Candidates) -> Choice:
    """What gives the cheapest of some other plans for a plan and the counts of a call, where it is
    surely cheaper; else that plan itself.
    """
    priced: dict[tuple[CompletePlan, tuple[Any, ...]], float] = {}

    def seconds(plan: CompletePlan, sizes: dict[str, Any]) -> float:
        key = plan, tuple(sizes.values())
        if key not in priced:
            priced[key] = _seconds(candidates, plan, sizes)
        return priced[key]

    def affordable(plans: list[CompletePlan], left: int) -> list[CompletePlan]:
        """Those that are priced with so much work, the little ones before the others."""
        taken: set[CompletePlan] = set()
        for p in sorted(plans, key=candidates.expected):
            if candidates.expected(p) > left:
                continue
            if candidates.work(p) > left:
                candidates.drop(p)
                continue
            left -= max(candidates.expected(p), candidates.work(p))
            taken.add(p)
        return [p for p in plans if p in taken]

    def choose(
        plan: CompletePlan, environment: Mapping[str, Any], others: tuple[Plan, ...]
    ) -> CompletePlan:
        if environment.get(POINTS, 0) > LARGEST or candidates.expected(plan) > DEAR * MOST:
            return plan
        left = MOST - candidates.work(plan)
        if left < 0:
            candidates.drop(plan)
            return plan
        sizes = {name: _rounded(n) for name, n in environment.items()}
        found = seconds(plan, sizes)
        if found <= WORTH:
            return plan
        some = affordable([o.filled(NEUTRAL) for o in others], left)
        if not some:
            return plan
        best = min(some, key=lambda p: seconds(p, sizes))
        least = seconds(best, sizes)
        return best if found > max(SURE * least, least + WORTH) else plan

    return choose


def _seconds(candidates: Candidates, plan: CompletePlan, sizes: Mapping[str, Any]) -> float:
    """By the model of a typical GPU; infinite for a plan that the kernel cannot have."""
    program = candidates.program(plan)
    if program is None:
        return np.inf
    return predict(program, sizes, table_model(), in_graph=True).seconds


def _rounded(n: Any) -> Any:
    """A size as the power of two next to it; other numbers decide nothing."""
    if not isinstance(n, int | np.integer):
        return 1.0
    return n if abs(n) <= EXACT else int(np.sign(n)) << size_class(abs(int(n)))
