"""Give each side of a branch its own kernel (Carrillo, Siegel and Li, 2009).

    for i: load cell[i]; f(cell): a = ...; if a > 0: <then> else: <otherwise>; store cell[i]
->  for i: load what a > 0 needs; if a > 0: load the rest of cell[i]; f(cell): a = ...; <then>;
store cell[i]          and
    for i: load what a > 0 needs; if not a > 0: load the rest; f(cell): a = ...; <otherwise>; store
    cell[i]
A kernel takes the registers of its hungriest path, and with them the threads that fit a
multiprocessor; apart, the lighter side has as many threads as it needs alone. Every element belongs
to exactly one kernel, so both have to find the same condition: nothing that it reads may be changed
before the second kernel looks, and it may compute nothing that two compilations round in two ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.ir import nodes as ir
from lanewise.ir.functions import arrays_touched, functions
from lanewise.ir.names import is_own, own
from lanewise.ir.traverse import expressions, statements, written_in
from lanewise.language.types import BOOL
from lanewise.passes import dead_code
from lanewise.passes.base import refuse
from lanewise.passes.outputs import inexact, sliced

HOLDS = own("holds")


@dataclass(frozen=True, slots=True)
class _Branch:
    """The parts of an elementwise kernel around the one branch of its function."""

    loop: ir.Parallel
    call: ir.Apply
    before: ir.Block
    branch: ir.If
    after: ir.Block


def legal(kernel: ir.Kernel, *, fast_math: bool = False) -> str | None:
    """Why the pass does not apply, or None."""
    if kernel.pattern.over_pairs:
        return "the branch is taken per pair: every target would go through its sources twice"
    if not kernel.pattern.one_record:
        return "its elements are reduced: both kernels would have to add to one result"
    split = _find(kernel)
    if isinstance(split, str):
        return split
    condition = _condition(kernel, split)
    blocks = (condition.body, *(f.body for f in functions(condition.body)))
    computed = [e for b in blocks for s in statements(b) for e in expressions(s)]
    if reason := inexact(computed, fast_math=fast_math):
        return f"its condition {reason}, which two kernels may round in two ways"
    sides = [_changed(split, side) for side in (True, False)]
    if not split.call.results and not all(sides):
        return "one side of its branch does nothing, which needs no kernel"
    changed = [side & {p.name for p in condition.parameters} for side in sides]
    if all(changed):
        of_leaf = {x.name: x.field for a in kernel.arrays for x in a.leaves}
        leaves = {name.partition(".")[2] or name for name in changed[0] | changed[1]}
        fields = sorted({of_leaf.get(leaf, leaf) for leaf in leaves})
        return (
            f"both sides change {' and '.join(fields)}, which the condition reads: the second "
            "kernel would find other values"
        )
    return None


def apply(kernel: ir.Kernel, *, fast_math: bool = False) -> tuple[ir.Kernel, ir.Kernel]:
    """The kernels of the two sides, in the order in which they have to run; raises `PlanError` for
    functions without such a branch.
    """
    if reason := legal(kernel, fast_math=fast_math):
        raise refuse("branch splitting", kernel, reason)
    split = _find(kernel)
    assert isinstance(split, _Branch)
    condition = _condition(kernel, split)
    read = {p.name for p in condition.parameters}
    first = not _changed(split, True) & read  # the side that leaves alone what the condition reads
    return _side(kernel, split, condition, first), _side(kernel, split, condition, not first)


def _find(kernel: ir.Kernel) -> _Branch | str:
    """The branch, or why there is none to split."""
    (loop,) = kernel.body
    if not isinstance(loop, ir.Parallel):
        return "its elements are already mapped to threads"
    (call,) = (s for s in loop.body if isinstance(s, ir.Apply))
    body = call.function.body
    places = [n for n, s in enumerate(body) if isinstance(s, ir.If)]
    if not places:
        return "its function has no branch outside of loops"
    if len(places) > 1:
        return (
            f"its function has {len(places)} branches one after the other, which would make "
            f"{2 ** len(places)} kernels"
        )
    branch = body[places[0]]
    assert isinstance(branch, ir.If)
    if any(isinstance(s, ir.Return) for s in statements(body[: places[0]])):
        return "its function may return before its branch, which belongs to neither side"
    return _Branch(loop, call, body[: places[0]], branch, body[places[0] + 1 :])


def _path(split: _Branch, side: bool) -> ir.Function:
    """The function as an element of this side runs through it."""
    body = (*split.before, *(split.branch.then if side else split.branch.otherwise), *split.after)
    return dead_code.clean_function(replace(split.call.function, body=body))


def _changed(split: _Branch, side: bool) -> set[str]:
    """The parameters that a side gives back changed."""
    f = _path(split, side)
    written = written_in(f.body)
    return {p.name for p in f.parameters if p.mutable} & written


def _condition(kernel: ir.Kernel, split: _Branch) -> ir.Function:
    """A separate function that computes the condition and nothing else."""
    f, result = split.call.function, ir.Return((split.branch.condition,), split.branch.location)
    name = f"{f.name}_condition"
    while any(other.name == name for other in functions(kernel.body)):
        name += "_"
    body = sliced((*split.before, result), set(), lambda s: isinstance(s, ir.Return))
    parameters = tuple(replace(p, mutable=False) for p in f.parameters)
    return dead_code.clean_function(
        ir.Function(name, parameters, (ir.Parameter("holds", BOOL),), body, f.location)
    )


def _side(kernel: ir.Kernel, split: _Branch, condition: ir.Function, side: bool) -> ir.Kernel:
    """The kernel of the elements for which the condition is `side`."""
    path, changed = _path(split, side), _changed(split, side)
    parameters = tuple(replace(p, mutable=p.name in changed) for p in path.parameters)
    function = dead_code.clean_function(replace(path, parameters=parameters))
    arguments = {
        p.name: a for p, a in zip(split.call.function.parameters, split.call.arguments, strict=True)
    }
    early = {p.name for p in condition.parameters}
    late = {p.name for p in function.parameters} - early
    holds = ir.Local(HOLDS, BOOL)
    call = replace(
        split.call,
        function=function,
        arguments=tuple(arguments[p.name] for p in function.parameters),
    )
    stores = tuple(
        s for x in split.loop.body if isinstance(x, ir.StoreRecord) for s in _store(x, changed)
    )
    inner = (*_loads(split.loop.body, late), call, *stores)
    body: ir.Block = (
        *_loads(split.loop.body, early),
        ir.Apply(condition, tuple(arguments[p.name] for p in condition.parameters), (HOLDS,)),
        ir.If(holds if side else ir.Unary("not", holds, BOOL), inner),
    )
    used = arrays_touched(body)
    written = {s.array for s in statements(body) if isinstance(s, ir.StoreRecord)}
    arrays = tuple(replace(a, written=a.name in written) for a in kernel.arrays if a.name in used)
    names = early | late
    uniforms = tuple(u for u in kernel.uniforms if u.name in names)
    name = f"{kernel.name}_{'if' if side else 'else'}"
    return replace(
        kernel, name=name, arrays=arrays, uniforms=uniforms, body=(replace(split.loop, body=body),)
    )


def _loads(block: ir.Block, names: set[str]) -> ir.Block:
    """The loads of an element, as far as they bring these variables."""
    loads = (
        (s, tuple(r for r in s.reads if r[1] in names))
        for s in block
        if isinstance(s, ir.LoadRecord)
    )
    return tuple(replace(s, reads=reads) for s, reads in loads if reads)


def _store(s: ir.StoreRecord, changed: set[str]) -> ir.Block:
    """What a side writes back: of a record the leaves that it changes, of results everything."""
    kept = (
        s.writes
        if is_own(s.array)
        else tuple((x, v) for x, v in s.writes if isinstance(v, ir.Local) and v.name in changed)
    )
    return (replace(s, writes=kept),) if kept else ()
