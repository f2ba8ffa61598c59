"""What kernels do with the records of one type: leaves that are read and written, in which role,
how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lanewise.advice.cost import ArrayUse, Role
from lanewise.frontend.function import Lowered, Signature
from lanewise.language.record import Record
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

Pattern = Literal["streamed", "broadcast", "gathered"]


@dataclass(frozen=True, slots=True)
class Use:
    """A kernel in a step of a simulation, for `choose_layout`.

    Attributes:
        kernel: made by `@lw.elementwise` or `@lw.pairwise`.
        pattern: how it reads records. An elementwise kernel has them "streamed" unless they are
            "gathered" through an index. The sources of a pairwise kernel are "broadcast" (all
            pairs) or "gathered" (a search structure finds them), by default as its search says;
            its targets are always streamed.
        weight: how often it runs in a step.
        neighbors: sources that one target gathers, on average.
    """

    kernel: Any
    pattern: Pattern | None = None
    weight: float = 1.0
    neighbors: float = 1.0

    def __post_init__(self) -> None:
        pattern: Any = self.pattern
        if pattern is not None and (
            not isinstance(pattern, str) or pattern not in get_args(Pattern)
        ):
            raise ArgumentError(
                f"Use(pattern={shown(pattern)}): wanted 'streamed', 'broadcast' or 'gathered', or "
                "None for the kernel's own"
            )
        for name, value in (("weight", self.weight), ("neighbors", self.neighbors)):
            number: Any = value
            if (
                isinstance(number, bool)
                or not isinstance(number, (int, float))
                or not 0 < number < float("inf")
            ):
                raise ArgumentError(f"Use({name}={shown(number)}): wanted a number above zero")


def accesses_of(record: Record, kernels: Sequence[Any]) -> list[ArrayUse]:
    """The accesses of all kernels to arrays of `record`; raises `ArgumentError` for what is no
    kernel or uses none.
    """
    if not kernels:
        raise ArgumentError(
            "choose_layout needs the kernels that use the records, found an empty list"
        )
    accesses: list[ArrayUse] = []
    for use in (k if isinstance(k, Use) else Use(k) for k in kernels):
        own = _accesses(record, use)
        if not own:
            raise ArgumentError(
                f"{use.kernel.__name__} reads and writes no field of {record.name}: it says "
                "nothing about its layout"
            )
        accesses += own
    return accesses


def _accesses(record: Record, use: Use) -> list[ArrayUse]:
    from lanewise.patterns.elementwise.kernel import Elementwise
    from lanewise.patterns.pairwise.kernel import Pairwise

    match use.kernel:
        case Elementwise():
            return _elementwise(record, use, use.kernel)
        case Pairwise():
            return _pairwise(record, use, use.kernel)
        case other:
            raise ArgumentError(
                "choose_layout takes kernels made by @lw.elementwise or @lw.pairwise, found "
                f"{shown(other)}"
            )


def used_leaves(
    name: str, lowered: Lowered, signature: Signature, record: Record, weight: float
) -> list[ArrayUse]:
    """The accesses of a kernel of any other pattern, which goes through its records in turn: by the
    leaves that its function reads and writes.
    """
    found: list[ArrayUse] = []
    for parameter, kind in signature.parameters.items():
        if kind != record:
            continue
        own = {
            p.name.partition(".")[2]: p.mutable
            for function in (lowered.function, lowered.indexed)
            for p in (() if function is None else function.parameters)
            if p.name.partition(".")[0] == parameter
        }
        written = tuple(leaf for leaf, changed in own.items() if changed)
        found.append(ArrayUse(f"{name}({parameter})", "streamed", tuple(own), written, weight))
    return [a for a in found if a.read]


def _elementwise(record: Record, use: Use, kernel: Any) -> list[ArrayUse]:
    from lanewise.language.types import I64
    from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise

    if use.pattern == "broadcast":
        raise ArgumentError(
            f"Use({kernel.__name__}, pattern='broadcast'): only the sources of a pairwise kernel "
            "are; an elementwise kernel has its records 'streamed' or 'gathered'"
        )
    kinds = kernel.signature.parameters
    records = {n: (k, _plain()) for n, k in kinds.items() if isinstance(k, Record)}
    uniforms = {n: k for n, k in kinds.items() if not isinstance(k, Record)}
    reference = build_elementwise(
        kernel.lowered, ElementwiseArguments(records, {}, uniforms, kernel.signature.arrays), I64
    )
    role: Role = use.pattern or "streamed"
    names = [n for n, (k, _) in records.items() if k == record]
    return _touched(use, reference, dict.fromkeys(names, role))


def _pairwise(record: Record, use: Use, kernel: Any) -> list[ArrayUse]:
    from lanewise.language.types import I64
    from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
    from lanewise.patterns.search import AllPairs

    if use.pattern == "streamed":
        raise ArgumentError(
            f"Use({kernel.__name__}, pattern='streamed'): the sources of a pairwise kernel are "
            "'broadcast' or 'gathered'"
        )
    kinds = kernel.signature.parameters
    (target, first), (source, second) = list(kinds.items())[:2]
    uniforms = {n: k for n, k in kinds.items() if n not in (target, source)}
    arguments = PairwiseArguments(
        (target, first, _plain()),
        (source, second, _plain()),
        uniforms,
        first == second,
        kernel.signature.arrays,
    )
    reference = build_pairwise(kernel.lowered, arguments, I64)
    role: Role = use.pattern or ("broadcast" if isinstance(kernel.search, AllPairs) else "gathered")
    roles: dict[str, Role] = {target: "streamed", source: role}
    return _touched(use, reference, {n: r for n, r in roles.items() if kinds[n] == record})


def _plain() -> Any:
    from lanewise.layouts.soa import SoA

    return SoA()


def _touched(use: Use, reference: Any, roles: dict[str, Role]) -> list[ArrayUse]:
    """The leaves of each array that the kernel loads and stores once what nothing needs is gone."""
    from lanewise.analysis.instructions import count_operations
    from lanewise.ir import nodes as ir
    from lanewise.ir.traverse import statements
    from lanewise.passes import constant_folding, dead_code

    kernel: ir.Kernel = dead_code.apply(constant_folding.apply(reference))
    accesses: list[ArrayUse] = []
    operations = sum(
        count_operations(s.function).total()
        for s in statements(kernel.body)
        if isinstance(s, ir.Apply)
    )
    for name, role in roles.items():
        read = {
            x: None
            for s in statements(kernel.body)
            if isinstance(s, ir.LoadRecord) and s.array == name
            for x, _ in s.reads
        }
        written = {
            x: None
            for s in statements(kernel.body)
            if isinstance(s, ir.StoreRecord) and s.array == name
            for x, _ in s.writes
        }
        # arithmetic counts once, with the sources of a pair
        own = not reference.pattern.over_pairs or role != "streamed"
        weight = use.weight * (
            use.neighbors if reference.pattern.over_pairs and role == "gathered" else 1.0
        )
        title = f"{use.kernel.__name__}({name})"
        accesses.append(
            ArrayUse(title, role, tuple(read), tuple(written), weight, operations if own else 0)
        )
    return [a for a in accesses if a.read or a.written]
