"""What the gradient of a pairwise kernel refuses."""

from __future__ import annotations

from lanewise.frontend.function import Signature
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.launch.arguments import describe
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search import Periodic, Search
from lanewise.records.arrays import RecordArray
from lanewise.support.errors import ArgumentError


def pair_of_records(signature: Signature) -> tuple[str, str]:
    """The parameters that are the target and the source."""
    target, source = (n for n, k in signature.parameters.items() if isinstance(k, Record))
    return target, source


def check_target(kernel: Pairwise, target: RecordArray) -> None:
    """Refuse an array of another record, of which a copy would be made."""
    name, _ = pair_of_records(kernel.signature)
    if target.record != kernel.signature.parameters[name]:
        raise ArgumentError(
            f"{kernel.__name__}: {name!r} must be an array of "
            f"{kernel.signature.parameters[name].name}, found {describe(target)}"
        )  # type: ignore[union-attr]


def check_exchange(kernel: Pairwise, search: Search) -> None:
    """Refuse to sum over the targets of a source where a search knows only the sources of a
    target.
    """
    name = kernel.__name__
    target, source = pair_of_records(kernel.signature)
    if search.k is not None:
        raise ArgumentError(
            f"{name}.gradient: a search for {search.in_words()} gives each target its own "
            "sources, and a source does not know "
            f"whose it is; take the gradient with respect to fields of {target}, or search with "
            "lw.Neighbors(radius=...)"
        )
    if (sight := search.sees) is not None:
        raise ArgumentError(
            f"{name}.gradient: a search for sources {sight.in_words()} gives each target its own "
            "sources, and a source does not know who sees it; take the gradient with respect to "
            f"fields of {target}, or search without sight"
        )
    if isinstance(search.world, Periodic) and (
        leaf := _absolute(kernel, (target, source), search.position)
    ):
        raise ArgumentError(
            f"{name}.gradient: in a periodic world a source is seen at its image nearest to the "
            f"target, and {name} uses {leaf} by itself; "
            f"a gradient with respect to {source} needs a function of {source}.{search.position} - "
            f"{target}.{search.position}"
        )


def _absolute(kernel: Pairwise, records: tuple[str, str], position: str) -> str:
    """A coordinate that is used otherwise than in the difference of the two positions, or
    nothing.
    """
    leaves = {
        f"{r}.{position}.{c}": f"{o}.{position}.{c}"
        for r, o in (records, records[::-1])
        for c in t.COMPONENTS
    }
    paired: dict[str, int] = {}
    for s in statements(kernel.lowered.function.body):
        for e in (x for top in expressions(s) for x in subexpressions(top)):
            match e:
                case ir.Binary(operator="-", left=ir.Local(name=a), right=ir.Local(name=b)) if (
                    leaves.get(a) == b
                ):
                    paired |= {a: paired.get(a, 0) - 1, b: paired.get(b, 0) - 1}
                case ir.Local(name=a) if a in leaves:
                    paired[a] = paired.get(a, 0) + 1
                case _:
                    pass
    return next((n for n, count in paired.items() if count), "")
