"""What a call over a tree runs next to the order and the sorted copies: moments, and the walk."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lanewise.analysis.far_field import FarProof, prove_far_field
from lanewise.analysis.instructions import count_operations
from lanewise.compiler.default_plans import complete_plan
from lanewise.derivatives.expansions.operators import Operators
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.types import Scalar
from lanewise.launch.arguments import values_arrangement
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.support import index_type
from lanewise.launch.task_list import Part, Renamed
from lanewise.launch.tasks import Buffer, Role
from lanewise.layouts import Arrangement
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.results import result_arrays
from lanewise.patterns.search.tree.arguments import (
    HEIGHT_COUNT,
    HEIGHT_FIRST,
    LEAVES,
    NODES,
    TreeArguments,
)
from lanewise.patterns.search.tree.dealt import SAMPLE, dealt_height
from lanewise.patterns.search.tree.estimates import (
    build_sizes,
    cannot_estimate,
    estimate_buffers,
)
from lanewise.patterns.search.tree.group import GROUP_SIZE, LARGEST
from lanewise.patterns.search.tree.moments import build_leaf_moments, build_parent_moments
from lanewise.patterns.search.tree.nodes import RECORDS, node_record
from lanewise.patterns.search.tree.pairs import (
    HEIGHT_SLICES,
    LENGTHS,
    LISTS,
    LOCALS,
    QUEUES,
    ROOM,
    LocalRecord,
    build_collected,
    build_group_pairs,
    build_slices,
    queue_of,
    slices_of,
)
from lanewise.patterns.search.tree.proxies import (
    PROXIES,
    Proxies,
    boxed_record,
    build_leaf_proxies,
    build_parent_proxies,
)
from lanewise.patterns.search.tree.structure import TreeStructure, height_numbers, height_slices
from lanewise.patterns.search.tree.walk import build_sample_walk, build_tree_walk
from lanewise.patterns.search.tree.ways import WALK
from lanewise.support.errors import CompileError

if TYPE_CHECKING:
    from lanewise.patterns.search.tree.search import Tree


KernelBuilder = Callable[[Operators, TreeArguments, Scalar], ir.Kernel]
# operations of M2P on words of 32 bits up to which threads have two targets: with more they run out
# of registers (float64), or gain nothing (Stokeslets of order 4)
LIGHT = 1000
DEGREE = 2  # of the polynomials, where no order is requested: 27 records a group in three axes


class FarFields:
    """The kernels of a function's calls over a tree. search: with every number that was left open.

    Raises `CompileError` for a function of which no far field is derived, with the line.
    """

    operators: Operators | Proxies

    def __init__(self, signature: Signature, lowered: Lowered, search: Tree, axes: int) -> None:
        self.lowered, self.search = lowered, search
        proof = _proved(signature, lowered, search.position, axes)
        self.weights = _fields(signature, proof)
        if proof.tier == "P":
            _check_proxies(search, proof)
            if search.order is None:
                self.search = replace(search, order=DEGREE)
            self.operators = Proxies(proof, self.search.terms)
            return
        self.operators = Operators(proof, search.terms)
        if search.accuracy is not None:
            _check_estimates(self.operators, lowered)

    @property
    def takes_an_accuracy(self) -> bool:
        """Whether errors of this function are estimated, met in this way."""
        of = self.operators
        if not isinstance(of, Operators) or self.search.method == "dual":
            return False
        return cannot_estimate(of, len(result_arrays(self.lowered))) is None

    @property
    def takes_pairs(self) -> bool:
        """Whether groups of targets have expansions."""
        return isinstance(self.operators, Operators)

    def group(self, index: Scalar, precision: Scalar) -> int:
        """How many targets take one way together, of kernels that count in these: on a GPU two for
        each thread of a warp, where it has the registers for them. A node is then tested for twice
        as many, and a source loaded once for two. After pairs of groups little is left of either.
        """
        if index == t.I64 or self.search.method == "dual":
            return GROUP_SIZE
        words = precision.size // t.F32.size
        return LARGEST if self._operations * words <= LIGHT else GROUP_SIZE

    @cached_property
    def _operations(self) -> int:
        """Of what a group of sources is met by."""
        of = self.operators
        met = of.m2p() if isinstance(of, Operators) else self.lowered.function
        return count_operations(met).total()

    def walk(self, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
        """The kernel that meets near sources and far groups."""
        return build_tree_walk(self.lowered, self.operators, arguments, index)

    def moments(
        self,
        programs: Programs,
        arguments: TreeArguments,
        structure: TreeStructure,
        device: str,
        names: Mapping[str, str],
    ) -> list[Part]:
        """What fills the groups, from the leaves up. names: of a call, by those of the kernels."""
        index, dealt = index_type(device), arguments.dealt
        arguments = replace(arguments, dealt=False)  # groups of sources are those of one device
        plan = complete_plan(None, programs.machine(device), Work(ELEMENTWISE, 1))

        def of_leaves() -> ir.Kernel:
            if isinstance(self.operators, Proxies):
                return build_leaf_proxies(self.operators, arguments, index)
            return build_leaf_moments(self.operators, arguments, index)

        def of_parents() -> ir.Kernel:
            if isinstance(self.operators, Proxies):
                return build_parent_proxies(self.operators, arguments, index)
            return build_parent_moments(self.operators, arguments, index)

        leaves = programs.get((arguments, "leaf moments"), of_leaves, plan, device)
        parts: list[Part] = [Renamed(leaves, names)]
        if structure.shape.top:
            parents = programs.get((arguments, "parent moments"), of_parents, plan, device)
            parts += of_heights(parents, names, range(1, structure.shape.top + 1))
        if arguments.estimated:
            asked = replace(arguments, dealt=dealt)
            parts += self._estimates(programs, asked, device, names)
        if arguments.pairs:
            parts += self._pairs(programs, arguments, structure, device, names, dealt=dealt)
        return parts

    def _pairs(
        self,
        programs: Programs,
        arguments: TreeArguments,
        structure: TreeStructure,
        device: str,
        names: Mapping[str, str],
        *,
        dealt: bool,
    ) -> list[Part]:
        """What fills the expansions around targets, from the root down."""
        index, operators = index_type(device), self.operators
        assert isinstance(operators, Operators)
        plan = complete_plan(None, programs.machine(device), Work(ELEMENTWISE, 1))

        def compiled(word: str, made: KernelBuilder) -> Executable:
            return programs.get(
                (arguments, word), lambda: made(operators, arguments, index), plan, device
            )

        parts: list[Part] = []
        for height in reversed(range(structure.shape.top)):
            first, nodes, threads = (dealt_height if dealt else height_numbers)(height)
            if slices_of(height, structure.shape.top, index) == 1:
                kernels = [compiled("pairs of groups", build_group_pairs)]
                numbers = {HEIGHT_FIRST: first, HEIGHT_COUNT: nodes}
            else:
                kernels = [
                    compiled("slices of groups", build_slices),
                    compiled("collected groups", build_collected),
                ]
                numbers = {HEIGHT_FIRST: first, HEIGHT_COUNT: threads}
                numbers[HEIGHT_SLICES] = height_slices(height)
            parts += [Renamed(kernel, names, numbers) for kernel in kernels]
        return parts

    def _estimates(
        self,
        programs: Programs,
        arguments: TreeArguments,
        device: str,
        names: Mapping[str, str],
    ) -> list[Part]:
        """What a walk asks for that goes by the estimates of errors."""
        index, machine = index_type(device), programs.machine(device)
        operators = self.operators
        assert isinstance(operators, Operators)  # no error of proxies is estimated
        table = programs.get(
            (replace(arguments, dealt=False), "sizes"),
            lambda: build_sizes(operators, arguments, index),
            complete_plan(None, machine, Work(ELEMENTWISE, 1)),
            device,
        )
        walk = programs.get(
            (arguments, "sample walk"),
            lambda: build_sample_walk(self.lowered, operators, arguments, index),
            complete_plan(None, machine, Work(WALK, 1)),
            device,
        )
        return [Renamed(table, names), Renamed(walk, names, SAMPLE if arguments.dealt else {})]

    def buffers(self, arguments: TreeArguments, index: Scalar) -> dict[str, Buffer]:
        """The memory of the groups, for kernels that count in these."""
        estimates = estimate_buffers(arguments.target.name) if arguments.estimated else {}
        return estimates | {
            n: Buffer(n, Role.TEMPORARY, arrangement, count, what="the groups of a tree")
            for n, (arrangement, count) in group_arrays(self.operators, arguments, index).items()
        }


def of_heights(kernel: Executable, names: Mapping[str, str], heights: Iterable[int]) -> list[Part]:
    """A kernel over nodes, launched for one height after the other."""
    each = (height_numbers(h) for h in heights)
    return [
        Renamed(kernel, names, {HEIGHT_FIRST: first, HEIGHT_COUNT: count})
        for first, count, _ in each
    ]


def _fields(signature: Signature, proof: FarProof) -> tuple[str, ...]:
    """The fields of the source that are weights and floats."""
    name, record = proof.elements[1], signature.parameters[proof.elements[1]]
    assert isinstance(record, Record)
    weights = {p.name for p in proof.weights}
    used = (x for x in record.leaves if x.type.is_float and f"{name}.{x.name}" in weights)
    return tuple(dict.fromkeys(x.field for x in used))


def group_arrays(
    operators: Operators | Proxies, arguments: TreeArguments, index: Scalar
) -> dict[str, tuple[Arrangement, ir.Expression]]:
    """The arrays that say what groups are, each with its number of elements. index: of kernels."""
    nodes = ir.Local(NODES, t.I64)
    if isinstance(operators, Operators):
        arrays: dict[str, tuple[Arrangement, ir.Expression]] = {
            RECORDS: (node_record(operators, arguments).arrangement, nodes)
        }
        if arguments.pairs:
            numbers = values_arrangement(t.I32)
            arrays[LOCALS] = (LocalRecord(operators).arrangement, nodes)
            arrays[LISTS] = (numbers, build.multiply(nodes, ROOM))
            arrays[LENGTHS] = (numbers, nodes)
            leaves = ir.Local(LEAVES, t.I64)
            arrays[QUEUES] = (numbers, build.multiply(leaves, queue_of(index)))
        return arrays
    return {
        RECORDS: (boxed_record(arguments).arrangement, nodes),
        PROXIES: (operators.arrangement(arguments), build.multiply(nodes, operators.count)),
    }


def _check_proxies(search: Tree, proof: FarProof) -> None:
    """Raise `CompileError` for what records at chosen points do not stand for."""
    why = proof.not_radial
    assert why is not None
    if search.method == "dual":
        raise CompileError(
            f"pairs of groups need expansions around targets, and this function has none: it is "
            f"not radial ({why.text})",
            proof.function.location,
            found="lw.Tree(method='dual')",
            wanted="a radial function",
            hint="lw.far_field(...) shows what is proved; choose method='walk'",
        )
    if proof.branch is not None:
        raise CompileError(
            "the place of the source decides a branch, and the function is not radial "
            f"({why.text}): no few points of a group say where it goes one way and where the other",
            proof.branch,
            found="a comparison, min, max, clamp, abs, or a rounding of places",
            wanted="a smooth function of places, or one that is radial",
            hint="lw.far_field(...) shows what is proved; use lw.AllPairs(), which meets every "
            "source",
        )
    if search.accuracy is not None:
        raise CompileError(
            f"no error of this function is estimated: it is not radial ({why.text})",
            proof.function.location,
            found="lw.Tree(accuracy=...)",
            wanted="a radial function, whose derivatives are known",
            hint="choose theta= and order= instead, and compare a sample of the results with "
            "lw.AllPairs()",
        )


def _check_estimates(operators: Operators, lowered: Lowered) -> None:
    """Raise `CompileError` for a function whose errors are not estimated."""
    if reason := cannot_estimate(operators, len(result_arrays(lowered))):
        raise CompileError(
            f"no error of this function is estimated: {reason}",
            lowered.function.location,
            found="lw.Tree(accuracy=...)",
            wanted="one result, and the same value of the target in all of its terms",
            hint="choose theta= and order= instead, and compare a sample of the results with "
            "lw.AllPairs()",
        )


def prove(signature: Signature, lowered: Lowered, position: str, axes: int) -> FarProof:
    """What is proved of a pairwise function. position: a field of so many axes."""
    target, source = list(signature.parameters)[:2]
    proof = prove_far_field(
        lowered.function,
        (target, source),
        position,
        axes,
        reductions=lowered.reductions,
        tables={n: kind.element for n, kind in signature.tables.items()},
    )
    if proof.refusal is not None and proof.refusal.location == lowered.function.location:
        # about its results
        returns = signature.source.tree.returns
        if isinstance(returns, ast.expr):
            where = signature.source.location(returns)
            proof = replace(proof, refusal=replace(proof.refusal, location=where))
    return proof


def _proved(signature: Signature, lowered: Lowered, position: str, axes: int) -> FarProof:
    """A proof of a function that has expansions."""
    proof = prove(signature, lowered, position, axes)
    if proof.refusal is not None:
        raise proof.refusal.error()
    if signature.arrays:
        name = next(iter(signature.arrays))
        raise signature.source.error(
            f"a function over lw.Tree reads no tables, and this one reads {name!r}",
            signature.source.tree,
            found=f"{name}: {signature.arrays[name]}",
            wanted="records and values",
            hint="keep what it reads in a field of the record, or use lw.AllPairs(), which meets "
            "every source",
        )
    return proof
