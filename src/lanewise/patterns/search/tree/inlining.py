"""Functions written out where they are applied: SIMD lanes call none.

A function of assignments and one return keeps its variables; of any other one the values are
numbered first, and both sides of its branches are computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise.analysis.straight import straight
from lanewise.analysis.value_numbering import NotNumbered, ValueTable, number_function
from lanewise.analysis.written_values import function_of_values
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import rewrite


def straightened(f: ir.Function) -> ir.Function | None:
    """The function as assignments and one return; None where it has loops whose rounds are not
    known, or calls what has.
    """
    if _is_straight(f):
        return f
    table = ValueTable()
    try:
        results = number_function(
            table, straight(f), {p.name: table.leaf(p.name, p.type) for p in f.parameters}
        )
    except NotNumbered:
        return None
    written = function_of_values(
        f.name, table, f.parameters, list(zip(f.results, results, strict=True))
    )
    return written if _is_straight(written) else None


def _is_straight(f: ir.Function) -> bool:
    *first, last = f.body or (ir.Break(),)
    return isinstance(last, ir.Return) and all(isinstance(s, ir.Assign) for s in first)


def written_out(
    f: ir.Function, given: Mapping[str, ir.Expression], results: Sequence[str], prefix: str
) -> ir.Block:
    """A straight function instead of its call. given: by the names of its parameters, which stand
    for themselves else. prefix: of the names of its variables.
    """
    own_names = {s.name for s in f.body if isinstance(s, ir.Assign)}

    def name(of: str) -> str:
        return own(f"{prefix}.{of.removeprefix(MARK)}")

    def visit(e: ir.Expression) -> ir.Expression:
        if not isinstance(e, ir.Local):
            return e
        return ir.Local(name(e.name), e.type) if e.name in own_names else given.get(e.name, e)

    body: list[ir.Statement] = []
    for s in f.body:
        match s:
            case ir.Assign():
                body.append(ir.Assign(name(s.name), rewrite(s.value, visit), s.location))
            case ir.Return():
                values = zip(results, s.values, strict=True)
                body += [ir.Assign(n, rewrite(v, visit)) for n, v in values]
            case _:
                raise AssertionError(f"{f.name} is not straight")
    return tuple(body)


def applied(
    f: ir.Function,
    given: Mapping[str, ir.Expression],
    results: tuple[str, ...],
    prefix: str,
    *,
    in_lanes: bool,
) -> ir.Block:
    """A call of a function, which lanes write out. given, prefix: as in `written_out`."""
    if in_lanes and (plain := straightened(f)) is not None:
        return written_out(plain, given, results, prefix)
    arguments = tuple(given.get(p.name, ir.Local(p.name, p.type)) for p in f.parameters)
    return (ir.Apply(f, arguments, results),)
