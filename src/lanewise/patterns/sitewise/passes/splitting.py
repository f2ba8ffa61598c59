"""Give each class of sites its own kernel: the bulk, fluid sites at walls and faces, and every
other kind.

    parallel for n: load mark; <load neighbours>; if special: <correct by the flags>; apply by kind;
    put
->  parallel for span: for n in first..last: <load neighbours>; apply; put
(bulk, spans of neighbours)
    parallel for i: n = list[i]; <load neighbours>; <correct by the flags>; apply; put
    (special sites of a kind)
The paper's branch splitting (Carrillo, Siegel and Li, 2009) on this pattern: a kernel takes the
registers of its hungriest branch, and here the bulk is rid of the branch altogether. On a CPU its
inner loop has unit stride.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.ir import nodes as ir
from lanewise.ir.functions import arrays_touched
from lanewise.ir.names import own
from lanewise.ir.traverse import (
    expressions,
    flat_map,
    reads,
    rewrite,
    rewrite_statement,
    statements,
    writes,
)
from lanewise.ir.values import value_array
from lanewise.language.types import BOOL, I32, U32, Scalar, Vector
from lanewise.passes import constant_folding, dead_code
from lanewise.passes.base import refuse
from lanewise.patterns.sitewise.kinds import MOST

SPECIAL, KIND, MARKS, SOLIDS = own("special"), own("kind"), own("marks"), own("solids")
WALL, ALL, FLAG_WORD, FLAGS = own("wall"), own("all"), own("flag_word"), own("flags")
SITE = own("i")


@dataclass(frozen=True, slots=True)
class Part:
    """A class of sites: the bulk (`kind` is None), the special sites of a kind, or all special
    sites but walls (`ANY`).
    """

    kind: int | None = None

    @property
    def array(self) -> str:
        """The array of spans or sites."""
        return own("spans" if self.kind is None else f"sites.{self.label}")

    @property
    def count(self) -> str:
        return own(f"{self.array[1:]}.count")

    @property
    def label(self) -> str:
        return (
            "bulk" if self.kind is None else "special" if self.kind == ANY else f"kind{self.kind}"
        )


ANY = -1
BULK = Part()
# All that `apply` may make. Kind 0 always has a function, so a kernel may ask for its sites where
# the mask has none.
PARTS = (BULK, Part(ANY), *(Part(k) for k in range(MOST)))
DENSE = "so many of its sites are special that each reads its flags"
ALIKE = "all its sites do the same in this phase"  # one class of sites: nothing to keep apart


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if kernel.pattern.divide is None:
        return "it has no sites of several classes"
    if kernel.grid is not None:
        return "its elements are already mapped to threads"
    if not any(isinstance(s, ir.Assign) and s.name == SPECIAL for s in statements(kernel.body)):
        return ALIKE
    if any(
        isinstance(s, ir.Assign) and s.name == FLAG_WORD and s.value == ir.Local(ALL, U32)
        for s in statements(kernel.body)
    ):
        return DENSE
    return None


def apply(kernel: ir.Kernel, *, spans: bool) -> tuple[ir.Kernel, ...]:
    """The kernels of the bulk and of the special sites of each kind, which may run in any order.

    The bulk is a list of `spans` on a CPU; on a GPU the threads of special sites do nothing in its
    kernel.
    """
    if reason := legal(kernel):
        raise refuse("branch splitting", kernel, reason)
    special = tuple(_part(kernel, Part(k)) for k in _kinds(kernel))
    return (_part(kernel, BULK) if spans else _masked(kernel), *special)


def _kinds(kernel: ir.Kernel) -> tuple[int, ...]:
    """The kinds whose functions the kernel chooses from; `ANY` where all sites have one
    function.
    """
    chosen: list[int] = []
    for s in statements(kernel.body):
        if isinstance(s, ir.If) and any(isinstance(x, ir.Apply) for x in s.then):
            match s.condition:
                case ir.Compare(
                    operator="==", left=ir.Local(name=name), right=ir.Literal(value=value)
                ) if name == KIND:
                    chosen.append(int(value))
                case _:
                    pass
    return tuple(sorted(set(chosen))) or (ANY,)


def _masked(kernel: ir.Kernel) -> ir.Kernel:
    """The bulk among all sites: each looks at its mark, and special ones do nothing."""
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    end = (
        next(n for n, s in enumerate(loop.body) if isinstance(s, ir.Assign) and s.name == SPECIAL)
        + 1
    )
    inner = _simplified(loop.body[end:], _constants(BULK))
    bulk = ir.If(ir.Unary("not", ir.Local(SPECIAL, BOOL), BOOL), inner)
    body = (replace(loop, body=(*loop.body[:end], bulk)),)
    used, names = _used(body)
    return replace(
        kernel,
        name=f"{kernel.name}_bulk",
        arrays=tuple(a for a in kernel.arrays if a.name in used),
        uniforms=tuple(u for u in kernel.uniforms if u.name in names),
        body=body,
    )


def _used(body: ir.Block) -> tuple[set[str], set[str]]:
    """The arrays that a kernel accesses, and the names that it reads."""
    return arrays_touched(body), {
        n for s in statements(body) for e in expressions(s) for n in reads(e)
    }


def _part(kernel: ir.Kernel, part: Part) -> ir.Kernel:
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    index = loop.extent.type
    constants = _constants(part)
    body = _without_unread_flags(_simplified(loop.body, constants))
    count = ir.Parameter(part.count, index)
    outer = (
        _spans(loop, part, body, index) if part.kind is None else _sites(loop, part, body, index)
    )
    array = value_array(part.array, Vector(index, 2) if part.kind is None else index, written=False)
    used, names = _used((outer,))
    arrays = (*(a for a in kernel.arrays if a.name in used), array)
    return dead_code.clean_loops(
        replace(
            kernel,
            name=f"{kernel.name}_{part.label}",
            arrays=arrays,
            uniforms=tuple(u for u in kernel.uniforms if u.name in names),
            counts=(count, *kernel.counts),
            body=(outer,),
        )
    )


def _constants(part: Part) -> dict[str, ir.Expression]:
    """What the sites of a part need not ask."""
    special = ir.Literal(part.kind is not None, BOOL)
    return {
        SPECIAL: special,
        WALL: ir.Literal(False, BOOL),
        KIND: ir.Literal(max(part.kind or 0, 0), I32),
    }


def _spans(loop: ir.Parallel, part: Part, body: ir.Block, index: Scalar) -> ir.Parallel:
    span, first, last = (ir.Local(own(n), index) for n in ("span", "first", "last"))
    load = ir.LoadRecord(part.array, span, (("x", first.name), ("y", last.name)))
    inner = ir.For(loop.variable, first, last, ir.Literal(1, index), body)
    return ir.Parallel(span.name, ir.Local(part.count, index), (load, inner))


def _sites(loop: ir.Parallel, part: Part, body: ir.Block, index: Scalar) -> ir.Parallel:
    place = ir.Local(SITE, index)
    load = ir.LoadRecord(part.array, place, (("value", loop.variable),))
    return ir.Parallel(place.name, ir.Local(part.count, index), (load, *body))


def _simplified(block: ir.Block, constants: dict[str, ir.Expression]) -> ir.Block:
    """What is left of a site's work when its class is known."""
    special = constants[SPECIAL] == ir.Literal(True, BOOL)

    def value(e: ir.Expression) -> ir.Expression:
        return constants.get(e.name, e) if isinstance(e, ir.Local) else constant_folding.fold(e)

    def visit(s: ir.Statement) -> ir.Block:
        if isinstance(s, ir.Assign) and s.name in constants:
            return ()
        if isinstance(s, ir.LoadRecord) and (
            s.array in (MARKS, SOLIDS) or s.reads == (("value", ALL),)
        ):
            return ()
        if isinstance(s, ir.LoadRecord) and not special:
            s = replace(s, index=_unclamped(s.index))
        s = rewrite_statement(s, lambda e: rewrite(e, value), lambda b: b)
        if isinstance(s, ir.If) and isinstance(s.condition, ir.Literal):
            return s.then if s.condition.value else s.otherwise
        return (s,)

    return _without_overwritten(flat_map(block, visit))


def _without_unread_flags(block: ir.Block) -> ir.Block:
    """A phase without links needs the kind alone, which is known."""
    _, names = _used(block)
    return flat_map(
        block,
        lambda s: (
            ()
            if isinstance(s, ir.LoadRecord)
            and s.array == FLAGS
            and not {v for _, v in s.reads} & names
            else (s,)
        ),
    )


def _unclamped(index: ir.Expression) -> ir.Expression:
    """The neighbour of a bulk site is always one of the array's."""
    match index:
        case ir.Call(intrinsic="min" | "max", arguments=(place, _)):
            return _unclamped(place)
        case _:
            return index


def _without_overwritten(block: ir.Block) -> ir.Block:
    """Without first values that the branch that is left replaces before anybody reads them."""
    kept: list[ir.Statement] = []
    for n, s in enumerate(block):
        if not (
            isinstance(s, ir.Assign)
            and isinstance(s.value, ir.Literal)
            and _is_replaced(s.name, block[n + 1 :])
        ):
            kept.append(s)
    return tuple(kept)


def _is_replaced(name: str, following: ir.Block) -> bool:
    for s in following:
        inside = list(statements((s,)))
        if any(name in reads(e) for x in inside for e in expressions(x)):
            return False
        if isinstance(s, ir.Assign) and s.name == name:
            return True
        if any(name in writes(x) for x in inside):
            return False
    return False
