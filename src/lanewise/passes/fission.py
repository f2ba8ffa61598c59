"""Give each independent group of results its own kernel (loop splitting).

    for i: load body[i]: x, v; f(mutable x, mutable v); store body[i]: x, v
->  for i: load body[i]: x, v; f(mutable x, v); store body[i]: x          then
    for i: load body[i]: v;    f(mutable v);    store body[i]: v
A kernel with fewer results needs fewer registers, and threads that need fewer fit a multiprocessor
in greater number; what several results need is loaded and computed once for each. Results are
whole: a field of a record, or an array that the function returns.

Every kernel has to find the values that the function was written for, so the kernels stand in an
order in which none overwrites what a later one reads. Results that read each other's old values
stay together, and so do results that depend on one test of rounded values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import identifier, is_own
from lanewise.ir.traverse import statements
from lanewise.passes import dead_code
from lanewise.passes.base import refuse
from lanewise.passes.outputs import decisions, keep_stores

# an array, and the field of it that is written; no field for an array that is one result
Output = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A group of outputs, and the kernel that computes them and nothing else."""

    outputs: tuple[Output, ...]
    kernel: ir.Kernel
    reads: frozenset[Output]
    decisions: frozenset[tuple[str, str]]


def legal(kernel: ir.Kernel, *, fast_math: bool = False) -> str | None:
    """Why the pass does not apply, or None."""
    parts = _parts(kernel, fast_math)
    return parts if isinstance(parts, str) else None


def apply(kernel: ir.Kernel, *, fast_math: bool = False) -> tuple[ir.Kernel, ...]:
    """The kernels of the parts, in the order in which they have to run; raises `PlanError` when
    there is one part only.
    """
    parts = _parts(kernel, fast_math)
    if isinstance(parts, str):
        raise refuse("loop splitting", kernel, parts)
    return tuple(p.kernel for p in _ordered(parts))


def _output(kernel: ir.Kernel, array: str, leaf: str) -> Output:
    """A record is divided into fields; the vectors of an array of values stay whole."""
    if is_own(array):
        return (array, "")
    return (array, next(x.field for x in kernel.array(array).leaves if x.name == leaf))


def _outputs(kernel: ir.Kernel) -> list[Output]:
    stores = (s for s in statements(kernel.body) if isinstance(s, ir.StoreRecord))
    return list(
        dict.fromkeys(_output(kernel, s.array, leaf) for s in stores for leaf, _ in s.writes)
    )


def _name(output: Output) -> str:
    array, field = output
    return field or identifier(array)


def _part(kernel: ir.Kernel, outputs: tuple[Output, ...], fast_math: bool) -> _Part:
    own = dead_code.apply(
        keep_stores(kernel, lambda array, leaf: _output(kernel, array, leaf) in outputs)
    )
    loads = (s for s in statements(own.body) if isinstance(s, ir.LoadRecord))
    reads = frozenset(_output(kernel, s.array, leaf) for s in loads for leaf, _ in s.reads)
    name = f"{kernel.name}_{'_'.join(identifier(_name(o)) for o in outputs)}"
    return _Part(
        outputs, replace(own, name=name), reads, frozenset(decisions(own.body, fast_math=fast_math))
    )


def _parts(kernel: ir.Kernel, fast_math: bool) -> list[_Part] | str:
    """One part for each output, or for several that have to stay together; the reason, when none is
    left to be apart.
    """
    outputs = _outputs(kernel)
    if len(outputs) < 2:
        return "it computes one result only"
    parts = [_part(kernel, (o,), fast_math) for o in outputs]
    while True:
        pairs = (
            (a, b, why)
            for n, a in enumerate(parts)
            for b in parts[n + 1 :]
            if (why := _bound(a, b, parts))
        )
        a, b, why = next(pairs, (None, None, ""))
        if a is None or b is None:
            return parts
        if len(parts) == 2:
            return f"{_listed(a.outputs)} and {_listed(b.outputs)} {why}"
        whole = _part(kernel, (*a.outputs, *b.outputs), fast_math)
        parts = [whole if p is a else p for p in parts if p is not b]


def _listed(outputs: tuple[Output, ...]) -> str:
    return ", ".join(map(_name, outputs))


def _bound(a: _Part, b: _Part, parts: list[_Part]) -> str | None:
    """Why two parts have to stay together, or None."""
    if shared := a.decisions & b.decisions:
        return f"depend on one decision, {min(shared)[1]}, that two kernels may round in two ways"
    if b in _overwriting(a, parts) and a in _overwriting(b, parts):
        return (
            "are computed from each other's old values, and no order of the kernels keeps them for "
            "both"
        )
    return None


def _overwriting(part: _Part, parts: list[_Part]) -> list[_Part]:
    """The parts that have to run after a part: they overwrite what it reads, or what one of them
    reads.
    """
    later: list[_Part] = []
    waiting = [part]
    while waiting:
        reads = waiting.pop().reads
        new = [
            p for p in parts if p not in later and p is not part and not reads.isdisjoint(p.outputs)
        ]
        later += new
        waiting += new
    return later


def _ordered(parts: list[_Part]) -> list[_Part]:
    """Each part before all that overwrite what it reads."""
    left, order = list(parts), list[_Part]()
    while left:
        ready = next(p for p in left if all(q is p or q.reads.isdisjoint(p.outputs) for q in left))
        order.append(ready)
        left.remove(ready)
    return order
