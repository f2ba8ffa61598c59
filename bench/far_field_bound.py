"""What a call over lw.Tree meets, and the least time for that much.

The nodes are read where the call has left them, and walked through as its kernels do: a sample of
the groups of targets, and for pairs of groups every node. Near pairs are as quick as those of all
pairs can be; an expansion costs at least as many instructions as it has products, or sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.analysis.instructions import count_operations
from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import nodes as ir
from lanewise.loops.orders import searched_launches
from lanewise.models.devices import DeviceModel
from lanewise.patterns.search.tree.nodes import RECORDS, ROUNDING
from lanewise.patterns.search.tree.pairs import ROOM
from lanewise.patterns.search.tree.shape import TreeShape
from lanewise.patterns.search.tree.ways import group_size
from lanewise.sims.common.devices import to_host

GROUPS = 2000  # that are looked at

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Met:
    """What one target meets on average: sources one by one, groups by M2P, and groups of targets by
    M2L, counted a target.
    """

    pairs: float
    groups: float
    shared: float = 0.0

    def __str__(self) -> str:
        both = f", {self.shared:.2f} M2L" if self.shared else ""
        return f"{self.pairs:,.0f} pairs, {self.groups:,.0f} groups{both} a body"


def met(call: lw.Call, search: lw.Tree, position: Array) -> Met:
    """Of a bound call that has run, whose targets are its sources (positions float32)."""
    (searched,) = searched_launches(call)
    memory: Mapping[str, Any] = {n: d for p in searched.launches.pieces for n, d in p.kept}
    shape, size = TreeShape(len(position), search.leaf), group_size(call.compiled.reference)
    whole = to_host(memory[RECORDS]).view(np.float32).reshape(shape.nodes, -1)
    centre, radius = np.array(whole[:, :3]), np.array(whole[:, 3])
    order = to_host(searched.structure.order)
    places, leaves = position.astype(np.float32)[order], shape.table[:, 1].astype(np.int32)
    theta2 = np.float32(search.angle) ** 2 * np.float32(1 - ROUNDING[4])
    lists, lengths = np.zeros((1, ROOM), np.int32), np.ones(1, np.int32)
    shared, node_of = np.zeros(1, np.int64), np.zeros(shape.leaves, np.int32)
    if search.method == "dual":
        assert search.leaf == size  # a group of targets is a leaf
        lists, lengths = (np.zeros(s, np.int32) for s in ((shape.nodes, ROOM), shape.nodes))
        parents = np.asarray(shape.parents, np.int32)
        pairs_of_groups(centre, radius, leaves, parents, lists, lengths, shared, theta2, grid=1)
        node_of = np.flatnonzero(leaves == 1).astype(np.int32)
    groups = np.unique(np.linspace(0, -(-len(places) // size) - 1, GROUPS).astype(np.int32))
    found = np.zeros((len(groups), 2), np.int32)
    walked(
        places, centre, radius, leaves, groups, lists, lengths, node_of, found, theta2,
        search.leaf, size, search.method == "dual", grid=len(groups),
    )  # fmt: skip
    near, far = found.mean(axis=0)
    return Met(float(near), float(far), float(shared[0]) / len(places))


@lw.threadwise
def walked(
    g: lw.index, places: lw.Array2[lw.f32], centre: lw.Array2[lw.f32], radius: lw.Array1[lw.f32],
    leaves: lw.Array1[lw.i32], groups: lw.Array1[lw.i32], lists: lw.Array2[lw.i32],
    lengths: lw.Array1[lw.i32], node_of: lw.Array1[lw.i32], found: lw.Array2[lw.i32],
    theta2: lw.f32, leaf: lw.i32, size: lw.i32, paired: lw.bool,
):  # fmt: skip
    """What a group of so many targets meets: pairs of each, and groups."""
    group = groups[g]
    begin = group * size
    end = lw.min(begin + size, len(places))
    own = 0
    if paired:
        own = node_of[group]
    near = 0
    far = 0
    for e in range(lengths[own]):
        node = 0
        if paired:
            node = lists[own, e]
        stop = node + 2 * leaves[node] - 1
        while node < stop:
            least = lw.f32(3e38)
            for t in range(begin, end):
                x = places[t, 0] - centre[node, 0]
                y = places[t, 1] - centre[node, 1]
                z = places[t, 2] - centre[node, 2]
                least = lw.min(least, x * x + y * y + z * z)
            if radius[node] * radius[node] < theta2 * least:
                far += 1
                node += 2 * leaves[node] - 1
            else:
                if leaves[node] == 1:
                    near += leaf
                node += 1
    found[g, 0] = near
    found[g, 1] = far


@lw.threadwise
def pairs_of_groups(
    one: lw.index, centre: lw.Array2[lw.f32], radius: lw.Array1[lw.f32],
    leaves: lw.Array1[lw.i32], parents: lw.Array1[lw.i32], lists: lw.Array2[lw.i32],
    lengths: lw.Array1[lw.i32], found: lw.Array1[lw.i64], theta2: lw.f32,
):  # fmt: skip
    """The lists that every node leaves; how many pairs of groups meet. Parents come before their
    children, so it is one thread. Where several threads of a GPU share a node, a list is full a
    little earlier, and a few more meet.
    """
    if one == 0:
        met_by_now = lw.i64(0)
        for a in range(len(radius)):
            length = 0
            above = parents[a]
            entries = 1
            if above != 0:
                entries = lengths[above]
            for e in range(entries):
                node = 0
                if above != 0:
                    node = lists[above, e]
                stop = node + 2 * leaves[node] - 1
                opened = 1
                while node < stop:
                    x = centre[node, 0] - centre[a, 0]
                    y = centre[node, 1] - centre[a, 1]
                    z = centre[node, 2] - centre[a, 2]
                    reach = radius[node] + radius[a]
                    if reach * reach < theta2 * (x * x + y * y + z * z):
                        met_by_now += 1
                        opened -= 1
                        node += 2 * leaves[node] - 1
                    else:
                        full = length + opened + entries - (e + 1) > 127
                        smaller = leaves[a] > 1 and radius[node] < radius[a]
                        if leaves[node] == 1 or smaller or full:
                            lists[a, length] = node
                            length += 1
                            opened -= 1
                            node += 2 * leaves[node] - 1
                        else:
                            opened += 1
                            node += 1
            lengths[a] = length
        found[one] = met_by_now


def least_seconds(
    function: Any, search: lw.Tree, found: Met, count: int, pair: float, model: DeviceModel
) -> float:
    """The least time for so much of so many targets. pair: seconds of one at least."""
    operators = Operators(lw.far_field(function).proof, search.terms)
    instructions = found.groups * _least(operators.m2p()) + found.shared * _least(operators.m2l())
    return count * (found.pairs * pair + instructions / model.fp32_operations)


def _least(function: ir.Function) -> float:
    """Instructions: a fused one has a product and a sum."""
    counts = count_operations(function)
    return float(max(counts["*"], counts["+"] + counts["-"]))
