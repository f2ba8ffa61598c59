"""How much a kernel may become when everything is written out.

Compilers take seconds for some thousand operations, and for ten times as many much more than ten
times as long. So what is written out in copies has a bound: functions that call one another, and
the copies that a plan asks for. What a user writes without copies has none.
"""

from __future__ import annotations

from lanewise.analysis.length import length, own_length
from lanewise.ir import nodes as ir
from lanewise.planning.limits import COPYING, MOST_LENGTH, copies_of
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan
from lanewise.support.errors import CompileError, PlanError

# Of a default plan, before loops are split for edges and tiles, which makes some times as much.
DEFAULT_LENGTH = 6_000
_NESTED = 4  # times what is written, up to which functions may be copied without a look at them


def check_calls(kernel: ir.Kernel) -> None:
    """Raise `CompileError` for functions that call one another so often that the code of all calls
    is too long.
    """
    found = length(kernel)
    if found > MOST_LENGTH and found > _NESTED * own_length(kernel):
        raise CompileError(
            f"the calls of {kernel.name} come to too much code, as every call is written out",
            kernel.location,
            found=f"{found:,} operations in all calls together",
            wanted=f"at most {MOST_LENGTH:,}",
            hint="a function that calls another one twice doubles its code: keep the result of a "
            "call in a variable, or call in a loop",
        )


def check_copies(kernel: ir.Kernel, plan: CompletePlan) -> None:
    """Raise `PlanError` for a plan that makes too much code of a kernel."""
    asked = {n: getattr(plan, n) for n in COPYING if getattr(plan, n) != getattr(NEUTRAL, n)}
    if asked and (found := length(kernel)) > MOST_LENGTH:
        shape = ", ".join(f"{n}={v}" for n, v in asked.items())
        raise PlanError(
            f"Plan({shape}) writes out {found:,} operations of {kernel.name}; wanted at most "
            f"{MOST_LENGTH:,}: fewer of {' and '.join(asked)}"
        )


def with_fewer_copies(plan: CompletePlan, requested: Plan, length: int) -> CompletePlan:
    """A default plan of a kernel of this length that writes it out less often, as long as it comes
    to too much; what is requested stays.
    """
    while length * copies_of(plan) > DEFAULT_LENGTH:
        most = max(
            (n for n in COPYING if getattr(requested, n) is None),
            key=lambda n: getattr(plan, n),
            default="",
        )
        if not most or getattr(plan, most) < 2:
            break
        plan = Plan(**{most: getattr(plan, most) // 2}).filled(plan)
    return plan
