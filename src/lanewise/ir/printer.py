"""Print the IR as text that reads like the user's source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.names import original
from lanewise.ir.roles import ExpressionNode, IrNode
from lanewise.ir.traverse import blocks, children

_LEVELS = {
    "or": 1,
    "and": 2,
    "not": 3,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "//": 10,
    "%": 10,
}


def print_expression(e: ir.Expression, level: int = 0) -> str:
    """Text of an expression, with parentheses where `level` (the binding of the surroundings) needs
    them.
    """
    match e:
        case ir.Literal():
            return repr(e.value)
        case ir.Unary():
            space = " " if e.operator == "not" else ""
            return _wrap(
                f"{e.operator}{space}{print_expression(e.operand, 11)}", 3 if space else 11, level
            )
        case ir.Binary() | ir.Compare() | ir.Logical():
            own = _LEVELS[e.operator]
            # as in Python, where comparisons chain
            first = own + 1 if isinstance(e, ir.Compare) else own
            text = (
                f"{print_expression(e.left, first)} {e.operator} "
                f"{print_expression(e.right, own + 1)}"
            )
            return _wrap(text, own, level)
        case ir.Select():
            parts = (print_expression(x, 1) for x in (e.if_true, e.condition, e.if_false))
            return _wrap("{} if {} else {}".format(*parts), 0, level)
        case _:
            return _formed(e)


class _Printed:
    """What the fields of a node read, by their names."""

    __slots__ = ("_node",)

    def __init__(self, node: IrNode) -> None:
        self._node = node

    def __getitem__(self, name: str) -> str:
        return _read(getattr(self._node, name))


def _read(held: Any) -> str:
    """What a field reads."""
    if isinstance(held, tuple):
        return ", ".join(map(_read, cast("tuple[Any, ...]", held)))
    if isinstance(held, ExpressionNode):
        return print_expression(cast("ir.Expression", held))
    return str(held)


def _formed(node: ir.Expression | ir.Statement) -> str:
    """A node by its form, or by its name and its expressions."""
    if node.form:
        return node.form.format_map(_Printed(node))
    return f"{type(node).__name__.lower()}({', '.join(map(print_expression, children(node)))})"


def print_place(s: ir.ElementAccess) -> str:
    """Which element of an array a statement reads or writes."""
    return f"{s.array}[{', '.join(print_expression(i) for i in s.indices)}]"


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text


def print_block(block: ir.Block, indent: int = 1) -> str:
    return "\n".join(line for s in block for line in _lines(s, "  " * indent, indent))


def _lines(s: ir.Statement, pad: str, indent: int) -> list[str]:
    p = print_expression

    def nested(head: str, body: ir.Block) -> list[str]:
        return [pad + head, print_block(body, indent + 1)] if body else [pad + head, pad + "  pass"]

    match s:  # a row for each statement with its own form: a table
        case ir.Assign():
            return [f"{pad}{s.name}: {s.value.type} = {p(s.value)}"]
        case ir.If():
            lines = nested(f"if {p(s.condition)}:", s.then)
            return lines + nested("else:", s.otherwise) if s.otherwise else lines
        case ir.For():
            notes = [s.role] + ([f"unroll {s.unroll or 'fully'}"] if s.unroll != 1 else [])
            step = "" if s.step == ir.Literal(1, s.step.type) else f", {p(s.step)}"
            return nested(
                f"for {s.variable} in range({p(s.start)}, {p(s.stop)}{step}):  # "
                f"{', '.join(notes)}",
                s.body,
            )
        case ir.Barrier():
            return [f"{pad}barrier{' of the warp' if s.scope == 'warp' else ''}"]
        case ir.Shuffle():
            place = (
                "the first"
                if not s.distance
                else "the last"
                if s.distance == -s.group
                else f"{abs(s.distance)} {'behind' if s.distance > 0 else 'before'}"
            )
            return [f"{pad}{s.name} = {s.value.name} of {place} of {s.group}"]
        case ir.Least():
            values = ", ".join(x.name for x in (s.value, *s.others))
            return [f"{pad}{s.name} = least {values} of the warp"]
        case ir.Apply():
            results = f"{', '.join(s.results)} = " if s.results else ""
            return [f"{pad}{results}{s.function.name}({', '.join(p(a) for a in s.arguments)})"]
        case ir.LoadRecord():
            reads = ", ".join(
                variable if original(variable).endswith(leaf) else f"{variable} = .{leaf}"
                for leaf, variable in s.reads
            )
            return [f"{pad}load {s.array}[{p(s.index)}{_across(s)}]: {reads}"]
        case ir.StoreRecord():
            writes = ", ".join(f".{leaf} = {p(v)}" for leaf, v in s.writes)
            return [f"{pad}store {s.array}[{p(s.index)}{_across(s)}]: {writes}"]
        case ir.Load():
            return [f"{pad}load {s.buffer}[{p(s.index)}]: {', '.join(n or '_' for n in s.names)}"]
        case ir.LoadElement():
            early = " early" if s.early else ""
            return [
                f"{pad}load {s.array}[{', '.join(p(i) for i in s.indices)}]{early}: "
                f"{', '.join(s.names)}"
            ]
        case ir.CopyAsync():
            leaves = ", ".join(f".{leaf}" for leaf in s.leaves)
            return [
                f"{pad}copy async {s.array}[{p(s.index)}] <- {s.source}[{p(s.source_index)}]: "
                f"{leaves}"
            ]
        case ir.CopyElement():
            ends = [
                f"{n}[{', '.join(p(i) for i in x)}]"
                for n, x in ((s.array, s.indices), (s.source, s.source_indices))
            ]
            across = f", {s.across} elements" if s.across > 1 else ""
            return [f"{pad}copy async {' <- '.join(ends)}{across}{_there(s.there, p)}"]
        case ir.WaitAsync():
            return [f"{pad}wait async" + (f" but {s.pending}" if s.pending else "")]
        case ir.CopyLanes():
            lanes = [f"{first}:{first + s.lanes}" for first in (s.lane, s.source_lane)]
            ends = (
                f"{s.buffer}[{p(s.index)}].{lanes[0]}",
                f"{s.source}[{p(s.source_index)}].{lanes[1]}",
            )
            return [f"{pad}copy async {' <- '.join(ends)}{_there(s.there, p)}"]
        case _:
            head = (pad + _formed(s)).rstrip()
            return [head, *(line for b in blocks(s) for line in nested("", b)[1:])]


def _there(there: ir.Expression | None, p: Callable[[ir.Expression], str]) -> str:
    return "" if there is None else f" if {p(there)} else zeros"


def _across(s: ir.LoadRecord | ir.StoreRecord) -> str:
    return f", {s.across} records" if s.across > 1 else ""


def _parameters(parameters: tuple[ir.Parameter, ...]) -> str:
    return ", ".join(f"{'mutable ' if x.mutable else ''}{x.name}: {x.type}" for x in parameters)


def print_function(f: ir.Function) -> str:
    results = f" -> {_parameters(f.results)}" if f.results else ""
    return f"function {f.name}({_parameters(f.parameters)}){results}\n{print_block(f.body)}"


def print_kernel(kernel: ir.Kernel, *, with_functions: bool = True) -> str:
    """The kernel, its arguments and the functions that it applies."""
    lines = [f"kernel {kernel.name}  # {kernel.pattern.name}"]
    for a in kernel.arrays:
        space = (
            f" shared[{a.length}]"
            if a.space == "shared"
            else f" constant[{a.constant}]"
            if a.constant
            else ""
        )
        shape = f"[{', '.join(map(str, a.shape))}]" if a.shape else ""
        leaves = ", ".join(f"{x.name}: {x.type}" for x in a.leaves)
        lines.append(f"  array {a.name}{shape}{space}{' written' if a.written else ''}: {leaves}")
    for b in kernel.buffers:
        space = f" shared[{b.length}]" if b.space == "shared" else ""
        lines.append(
            f"  buffer {b.name}{space}{' written' if b.written else ''}: "
            f"{b.type}{f' x{b.lanes}' if b.lanes > 1 else ''}"
        )
    if kernel.uniforms or kernel.counts:
        lines.append(f"  uniform {_parameters(kernel.uniforms + kernel.counts)}")
    for x in kernel.series:
        ends = f"{print_expression(x.start)}, {print_expression(x.stop)}, {x.step}"
        lines.append(f"  launched for {x.first} in range({ends}): {x.rounds} rounds")
    if kernel.parts > 1:
        lines.append(f"  {kernel.parts} parts with their own sums")
    if g := kernel.grid:
        parts = f", {g.parts} parts" if g.parts > 1 else ""
        cap = f" of {g.registers} registers" if g.registers else ""
        lines.append(
            f"  grid {g.threads} threads{cap} for {g.lanes} of {print_expression(g.extent)}{parts}"
        )
    text = "\n".join(lines) + "\n" + print_block(kernel.body)
    if with_functions:
        text = "\n\n".join([*(print_function(f) for f in functions(kernel.body)), text])
    return text + "\n"
