"""Give each independent group of results a kernel of its own (loop splitting).

    for i: fetch body[i]: x, v; f(mutable x, mutable v); commit body[i]: x, v
->  for i: fetch body[i]: x, v; f(mutable x, v); commit body[i]: x          then
    for i: fetch body[i]: v;    f(mutable v);    commit body[i]: v
A kernel with fewer results needs fewer registers, and threads that need fewer fit a multiprocessor in greater number; what several
results need is fetched and computed once for each. Results are whole: a field of a record, or an array that the function returns.

Every kernel has to find the values that the function was written for, so the kernels stand in an order in which none overwrites what a
later one reads. Results that read each other's old values stay together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import identifier, is_own
from lanewise.ir.traverse import statements
from lanewise.passes import dead_code
from lanewise.passes.base import refuse
from lanewise.passes.outputs import keep_commits

Output = tuple[str, str]  # an array, and the field of it that is written; no field for an array that is one result


@dataclass(frozen=True, slots=True)
class _Part:
    """A group of outputs, and the kernel that computes them and nothing else."""

    outputs: tuple[Output, ...]
    kernel: ir.Kernel
    reads: frozenset[Output]


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    outputs = _outputs(kernel)
    if len(outputs) < 2:
        return "it computes one result only"
    parts = _parts(kernel, outputs)
    if len(parts) < 2:
        names = [_name(o) for o in outputs]
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        return f"{listed} are computed from each other's old values, and no order of the kernels keeps them for all"
    return None


def apply(kernel: ir.Kernel) -> tuple[ir.Kernel, ...]:
    """The kernels of the parts, in the order in which they have to run; raises `PlanError` when there is one part only."""
    if reason := legal(kernel):
        raise refuse("loop splitting", kernel, reason)
    return tuple(p.kernel for p in _ordered(_parts(kernel, _outputs(kernel))))


def _output(array: str, leaf: str) -> Output:
    """A record is divided into fields; the vectors of an array of values stay whole."""
    return (array, "") if is_own(array) else (array, leaf.partition(".")[0])


def _outputs(kernel: ir.Kernel) -> list[Output]:
    commits = (s for s in statements(kernel.body) if isinstance(s, ir.Commit))
    return list(dict.fromkeys(_output(s.array, leaf) for s in commits for leaf, _ in s.writes))


def _name(output: Output) -> str:
    array, field = output
    return field or identifier(array)


def _part(kernel: ir.Kernel, outputs: Iterable[Output]) -> _Part:
    mine = tuple(outputs)
    own = dead_code.apply(keep_commits(kernel, lambda array, leaf: _output(array, leaf) in mine))
    fetches = (s for s in statements(own.body) if isinstance(s, ir.Fetch))
    reads = frozenset(_output(s.array, leaf) for s in fetches for leaf, _ in s.reads)
    return _Part(mine, replace(own, name=f"{kernel.name}_{'_'.join(map(_name, mine))}"), reads)


def _parts(kernel: ir.Kernel, outputs: list[Output]) -> list[_Part]:
    """One part for each output, or for several that read each other's old values."""
    alone = [_part(kernel, [o]) for o in outputs]
    follows = [
        [n for n, later in enumerate(alone) if later is not p and not p.reads.isdisjoint(later.outputs)] for p in alone
    ]

    def reachable(start: int) -> set[int]:
        found: set[int] = set()
        waiting = [start]
        while waiting:
            for n in follows[waiting.pop()]:
                if n not in found:
                    found.add(n)
                    waiting.append(n)
        return found

    reach = [reachable(n) for n in range(len(alone))]
    groups = dict.fromkeys(
        tuple(m for m in range(len(alone)) if m == n or (m in reach[n] and n in reach[m])) for n in range(len(alone))
    )
    return [alone[g[0]] if len(g) == 1 else _part(kernel, [outputs[n] for n in g]) for g in groups]


def _ordered(parts: list[_Part]) -> list[_Part]:
    """Each part before all that overwrite what it reads."""
    left, order = list(parts), list[_Part]()
    while left:
        ready = next(p for p in left if all(q is p or q.reads.isdisjoint(p.outputs) for q in left))
        order.append(ready)
        left.remove(ready)
    return order
