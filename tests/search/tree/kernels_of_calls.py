"""The kernels of a call over a tree, one after the other on the host, with an order made by NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, get_type_hints

import numpy as np

from lanewise.compiler.pipeline import build_program
from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.names import count_of, own
from lanewise.language import types as t
from lanewise.launch.arguments import bind_value_array, flatten_uniforms
from lanewise.launch.executable import build_executable
from lanewise.launch.task_list import BoundArray
from lanewise.layouts import Layout, SoA
from lanewise.patterns.results import result_arrays
from lanewise.patterns.search.build import Side
from lanewise.patterns.search.tree.arguments import (
    ACCURACY,
    ENTRIES,
    ENTRY_COUNT,
    HEIGHT_COUNT,
    HEIGHT_FIRST,
    LEAVES,
    NODES,
    TARGET_ORDER,
    THETA,
    TreeArguments,
)
from lanewise.patterns.search.tree.call import group_arrays, prove
from lanewise.patterns.search.tree.estimates import SIZES, STRENGTHS, build_sizes
from lanewise.patterns.search.tree.group import GROUP_SIZE
from lanewise.patterns.search.tree.moments import build_leaf_moments, build_parent_moments
from lanewise.patterns.search.tree.pairs import build_group_pairs
from lanewise.patterns.search.tree.proxies import Proxies, build_leaf_proxies, build_parent_proxies
from lanewise.patterns.search.tree.shape import HEIGHTS, PARENTS, TREE, TreeShape, tree_arrangement
from lanewise.patterns.search.tree.walk import build_sample_walk, build_tree_walk
from lanewise.planning.plan import NEUTRAL, CompletePlan
from tests.harness import run_kernel

Array = np.ndarray[Any, Any]


def kd_order(places: Array, shape: TreeShape) -> Array:
    """The elements by halves along the longest side, as a shape has them."""
    order = np.arange(len(places))
    for nodes, first, leaves in shape.levels():
        del nodes
        begin, end = shape.places(first, leaves)
        middle, _ = shape.places(first + (leaves + 1) // 2, leaves)
        for a, m, b, parent in zip(begin, middle, end, leaves > 1, strict=True):
            if not parent:
                continue
            inside = places[order[a:b]]
            axis = int(np.argmax(np.ptp(inside, axis=0)))
            order[a:b] = order[a:b][np.argpartition(inside[:, axis], m - a)]
    return order


@dataclass
class TreeCall:
    """One call of a pairwise kernel over a tree. fields: of the sources by name, as they lie in record arrays;
    targets: the same of the targets, None where both are one array.
    """

    kernel: Any
    fields: dict[str, Array]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    targets: dict[str, Array] | None = None
    order: int = 4
    theta: float = 0.6
    leaf: int = 32
    layout: Layout = field(default_factory=SoA)
    device: str = "cpu"
    accuracy: float | None = None
    pairs: bool = False
    group: int = GROUP_SIZE
    plan: CompletePlan = NEUTRAL

    @cached_property
    def names(self) -> list[str]:
        return list(self.kernel.signature.parameters)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        kinds = self.kernel.signature.parameters
        target, source = (Side(n, kinds[n].leaves, self.layout) for n in self.names[:2])
        return target, source

    @cached_property
    def arguments(self) -> TreeArguments:
        target, source = self.sides
        kinds = self.kernel.signature.parameters
        return TreeArguments(
            target,
            source,
            tuple((n, kinds[n]) for n in self.values),
            tuple(x for x in source.leaves if x.field == "position"),
            self.targets is None,
            self.order,
            self.leaf,
            self.group,
            estimated=self.accuracy is not None,
            pairs=self.pairs,
        )

    @property
    def index(self) -> t.Scalar:
        return t.I32 if self.device == "cuda" else t.I64

    @cached_property
    def reference(self) -> dict[str, ir.Kernel]:
        operators, lowered = self.operators, self.kernel.lowered
        if isinstance(operators, Proxies):
            records = (operators, self.arguments, self.index)
            made = {"leaves": build_leaf_proxies(*records), "parents": build_parent_proxies(*records)}
            return {**made, "walk": build_tree_walk(lowered, *records)}
        of = (operators, self.arguments, self.index)
        made = {"leaves": build_leaf_moments(*of), "parents": build_parent_moments(*of)}
        if self.accuracy is not None:
            made |= {"sizes": build_sizes(*of), "sample": build_sample_walk(lowered, *of)}
        if self.pairs:
            made["pairs"] = build_group_pairs(*of)
        return {**made, "walk": build_tree_walk(lowered, *of)}

    @cached_property
    def operators(self) -> Operators | Proxies:
        axes, position = len(self.arguments.position), self.arguments.position[0].field
        proof = prove(self.kernel.signature, self.kernel.lowered, position, axes)
        return Proxies(proof, self.order) if proof.tier == "P" else Operators(proof, self.order)

    @cached_property
    def shapes(self) -> tuple[TreeShape, TreeShape]:
        count = len(self.fields["position"])
        others = count if self.targets is None else len(self.targets["position"])
        return TreeShape(others, self.leaf), TreeShape(count, self.leaf)

    @cached_property
    def orders(self) -> tuple[Array, Array]:
        source = kd_order(self.fields["position"], self.shapes[1])
        if self.targets is None:
            return source, source
        return kd_order(self.targets["position"], self.shapes[0]), source

    @cached_property
    def arrays(self) -> dict[str, BoundArray]:
        records = get_type_hints(self.kernel.python)
        target, source = self.names[:2]
        (to, of), shape = self.orders, self.shapes[1]

        def sorted_copy(name: str, fields: dict[str, Array], order: Array) -> BoundArray:
            r = records[name].array(**{n: x[order] for n, x in fields.items()}, layout=self.layout, device="cpu")
            self._held.append(r)
            return BoundArray(r.data, r.arrangement, len(r))

        bound = {source: sorted_copy(source, self.fields, of)}
        bound[target] = bound[source] if self.targets is None else sorted_copy(target, self.targets, to)
        bound[own("order")] = bind_value_array(of.astype(np.int32), t.I32)
        bound[TARGET_ORDER] = bind_value_array(to.astype(np.int32), t.I32)
        table = np.ascontiguousarray(shape.table)
        bound[TREE] = BoundArray(table.view(np.uint8).reshape(-1), tree_arrangement(), shape.nodes)
        bound[HEIGHTS] = bind_value_array(shape.heights[0], t.I32)
        bound[PARENTS] = bind_value_array(shape.parents, t.I32)
        for name, (arrangement, count) in group_arrays(self.operators, self.arguments, self.index).items():
            number = evaluate(count, {NODES: shape.nodes, LEAVES: shape.leaves})
            size = arrangement.nbytes(number)
            data = np.zeros(size + 64, np.uint8)
            data = data[-data.ctypes.data % 64 :][:size]  # as a device gives it
            bound[name] = BoundArray(data, arrangement, number)
        for name, count in ((SIZES, ENTRIES), (STRENGTHS, -(-len(to) // GROUP_SIZE))):
            bound[name] = bind_value_array(np.full(count, 77, np.float32), t.F32)
        for name, kind in result_arrays(self.kernel.lowered):
            rows = (len(to), kind.length) if isinstance(kind, t.Vector) else (len(to),)
            self.results.append(np.full(rows, 77, t.scalar_of(kind).dtype))
            bound[name] = bind_value_array(self.results[-1], kind)
        return bound

    _held: list[Any] = field(default_factory=list[Any])
    results: list[Array] = field(default_factory=list[Array])

    @cached_property
    def numbers(self) -> dict[str, Any]:
        kinds = self.kernel.signature.parameters
        typed = {n: t.scalar_of(kinds[n]).dtype.type(v) for n, v in self.values.items()}
        env: dict[str, Any] = dict(flatten_uniforms(self.kernel.signature, typed))
        counts = {count_of(n): s.count for n, s in zip(self.names[:2], self.shapes, strict=True)}
        shape = self.shapes[1]
        theta = self.arguments.precision.dtype.type(self.theta)
        numbers = {LEAVES: shape.leaves, NODES: shape.nodes, THETA: theta}
        if self.accuracy is not None:
            numbers[ENTRY_COUNT] = ENTRIES
            numbers[ACCURACY] = self.arguments.precision.dtype.type(self.accuracy)
        return {**env, **counts, **numbers}

    def steps(self) -> list[tuple[str, dict[str, Any]]]:
        """The kernels in order, each with its numbers."""
        begin = self.shapes[1].heights[1]
        ups = [("parents", {**self.numbers, HEIGHT_FIRST: a, HEIGHT_COUNT: b - a}) for a, b in pairwise(begin[1:])]
        downs = [
            ("pairs", {**self.numbers, HEIGHT_FIRST: a, HEIGHT_COUNT: b - a})
            for a, b in reversed([*pairwise(begin[:-1])])
        ]
        between = downs if self.pairs else []
        names = ("walk",) if self.accuracy is None else ("sizes", "sample", "walk")
        return [("leaves", self.numbers), *ups, *between, *((n, self.numbers) for n in names)]

    @cached_property
    def launches(self) -> list[tuple[str, Any]]:
        """The kernels in order, compiled and bound."""
        made = {
            n: build_executable(build_program(k, self.plan, self.device), self.device)
            for n, k in self.reference.items()
        }
        return [(n, made[n].tasks.bound(self.arrays, env)) for n, env in self.steps()]

    def run(self) -> list[Array]:
        """The results, in the caller's order."""
        if self.device == "python":
            for name, env in self.steps():
                run_kernel(self.reference[name], dict(self.arrays), env)
            return self.results
        for _, launch in self.launches:
            launch()
        return self.results
