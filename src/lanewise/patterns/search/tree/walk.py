"""The walk of a far field: what is far away is met as a node, what is near as pairs.

    parallel for i: load target; box = of the targets of its group
        node = 0
        while node < nodes:
            far? radius of the node < theta * distance of its centre from the box
            far:  add M2P of the node; node + 2 leaves - 1, behind its subtree
            leaf: for its sources: add the function;     else: node + 1, its left child
Thirty-two neighbouring targets, or sixty-four, are a group and take one way, for the test asks for
their box and not for one of them. A warp of a GPU loads a node once and never parts; of sixty-four
targets its threads have two each. On a CPU the group lies in the lanes of SIMD registers, one
target each, and the walk itself is a thread's. The test does not divide, and what is not a number
is not far: it is met as pairs.

A function with branches on the distance has an expansion only where all pairs of a node and a
group take the same side; a node where they may not is opened.

One class writes all of a walk, as its parts share the variables of one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from lanewise.analysis import simd_operations
from lanewise.derivatives.expansions.operators import Operators
from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.itself import find_itself, itself_uniforms
from lanewise.ir.names import count_of, identifier, index_name, own
from lanewise.ir.reductions import Place
from lanewise.ir.spreading import control, spread_in_lanes
from lanewise.ir.traverse import expressions, reads, statements
from lanewise.ir.values import record_array, uniform_leaves, value_array
from lanewise.language.types import BOOL, F32, I32, I64, Scalar
from lanewise.patterns.results import accumulators, check_results, result_arrays, stores
from lanewise.patterns.search.base import ORDER
from lanewise.patterns.search.tree.acceptance import FAR, Acceptance
from lanewise.patterns.search.tree.arguments import (
    ACCURACY,
    NODES,
    TARGET_ORDER,
    THETA,
    TreeArguments,
)
from lanewise.patterns.search.tree.dealt import COUNT as DEALT_COUNT
from lanewise.patterns.search.tree.dealt import dealt_counts, group_of
from lanewise.patterns.search.tree.estimates import (
    SIZES,
    STRENGTHS,
    factor_of,
    strength_of,
)
from lanewise.patterns.search.tree.group import GROUP, GROUP_SIZE, GroupBox, OwnPlace
from lanewise.patterns.search.tree.inlining import applied, straightened
from lanewise.patterns.search.tree.nodes import node_record, shape_arrays
from lanewise.patterns.search.tree.pairs import (
    LocalRecord,
    list_arrays,
    read_entry,
    read_list,
)
from lanewise.patterns.search.tree.proxies import PROXIES, SHARE, Proxies, boxed_record
from lanewise.patterns.search.tree.reading import read_whole
from lanewise.patterns.search.tree.shape import HEIGHTS, TREE
from lanewise.patterns.search.tree.thin import share_of_the_accuracy
from lanewise.patterns.search.tree.ways import GROUP_WALK, WALK
from lanewise.patterns.tables.arguments import table_arrays, table_lengths

THREAD = own("thread")
# rounds of the loop over near sources on a GPU, where pairs of groups left little else to a walk; a
# CPU's compiler decides
UNROLL = 32
WIDE = 0.8  # the opening angle of the walk that finds how large results are


def build_tree_walk(
    lowered: Lowered, operators: Operators | Proxies, arguments: TreeArguments, index: Scalar
) -> ir.Kernel:
    """The reference kernel: over targets, or on a CPU over groups of them in SIMD lanes, where the
    function has SIMD instructions.

    Raises `CompileError` for results that cannot be summed.
    """
    check_results(lowered)
    return _built(lowered, operators, arguments, index, sample=False)


def build_sample_walk(
    lowered: Lowered, operators: Operators, arguments: TreeArguments, index: Scalar
) -> ir.Kernel:
    """The same for the first target of each group, at a wide angle and without near sources: it
    fills `STRENGTHS`.
    """
    return _built(lowered, operators, arguments, index, sample=True)


def _built(
    lowered: Lowered,
    operators: Operators | Proxies,
    arguments: TreeArguments,
    index: Scalar,
    *,
    sample: bool,
) -> ir.Kernel:
    def builder(*, grouped: bool) -> _WalkBuilder:
        return _WalkBuilder(lowered, operators, arguments, index, grouped=grouped, sample=sample)

    together = builder(grouped=True)
    if together.within_leaves and together.fits():
        return together.kernel()
    return builder(grouped=False).kernel()


class _WalkBuilder:
    def __init__(
        self,
        lowered: Lowered,
        operators: Operators | Proxies,
        arguments: TreeArguments,
        index: Scalar,
        *,
        grouped: bool,
        sample: bool,
    ) -> None:
        self.lowered, self.f, self.a, self.index = lowered, lowered.function, arguments, index
        self.grouped, self.sample = grouped, sample
        self.lanes = grouped and index == I64
        self.step = GROUP_SIZE if sample else 1  # sorted places from one target to the next
        self.size = GROUP_SIZE if sample else arguments.group
        self.precision, self.leaf = arguments.precision, arguments.leaf
        self.operators = operators
        self.record = (
            boxed_record(arguments)
            if isinstance(operators, Proxies)
            else node_record(operators, arguments)
        )
        self.i = ir.Local(own("i"), index)
        self.group = ir.Local(GROUP, index)
        # of a part of a mesh: the number of the group among its own, and the place of the target
        self.own_group = ir.Local(own("own.group"), index) if arguments.dealt else self.group
        self.own_place = ir.Local(own("own.place"), index) if arguments.dealt else self.i
        place = tuple(
            ir.Local(f"{arguments.target.name}.{x.name}", x.type) for x in arguments.position
        )
        self.box = (
            GroupBox(self.group, self.size, arguments.position, place)
            if grouped
            else OwnPlace(self.i, place)
        )
        self.targets, self.sources = (
            ir.Local(count_of(s.name), index) for s in (arguments.target, arguments.source)
        )
        self.reduced = [a for group in accumulators(lowered) for a in group]
        self.parts = arguments.parts and lowered.uses_same and not sample
        self.find, self.itself = find_itself(self.i, self.sources)
        self.used = {p.name for p in self.f.parameters}
        self.place = build.multiply(self.i, self.step)
        self.count = build.ceil_divide(self.targets, self.step)
        self.estimated = arguments.estimated and not sample
        self.pairs = arguments.pairs and isinstance(operators, Operators)
        self.acceptance = Acceptance(
            operators,
            self.record,
            self.box,
            self.group,
            self.size,
            self.targets,
            WIDE if sample else None,
            estimated=self.estimated,
            lanes=self.lanes,
        )

    # ------------------------------------------------------------ the kernel

    def kernel(self) -> ir.Kernel:
        a = self.a
        arrays = [
            record_array(s.name, s.leaves, s.layout, written=False) for s in (a.target, a.source)
        ]
        outputs = [
            value_array(name, kind, written=True) for name, kind in result_arrays(self.lowered)
        ]
        if self.sample:
            outputs = [value_array(STRENGTHS, F32, written=True)]
        if self.estimated:
            outputs += [value_array(n, F32, written=False) for n in (STRENGTHS, SIZES)]
        names = dict.fromkeys((self.target_order, *((ORDER,) if self.parts else ())))
        orders = [value_array(n, I32, written=False) for n in names]
        table, heights = shape_arrays()
        groups = ()
        if self.pairs:
            groups = (heights, self.locals.array(written=False), *list_arrays(written=False))
        counts = [ir.Parameter(n, self.index) for n in self.numbers]
        counts += dealt_counts(self.index) if a.dealt else ()
        return ir.Kernel(
            identifier(f"{self.f.name}_{'sample_walk' if self.sample else 'walk'}"),
            GROUP_WALK if self.grouped else WALK,
            (
                *arrays,
                *table_arrays(dict(a.tables)),
                *outputs,
                *orders,
                table,
                *groups,
                self.record.array(written=False),
                *self.proxies(),
            ),
            tuple(self.uniforms()),
            tuple(counts),
            (self.loop(),),
            identical=a.identical,
            reductions=tuple(self.reduced),
            location=self.f.location,
        )

    def proxies(self) -> tuple[ir.ArrayArgument, ...]:
        if not isinstance(self.operators, Proxies):
            return ()
        return (self.operators.array(self.a, written=False),)

    def uniforms(self) -> Iterator[ir.Parameter]:
        yield from uniform_leaves(
            self.f, {**dict(self.a.uniforms), **table_lengths(dict(self.a.tables))}
        )
        if not self.sample:
            yield ir.Parameter(THETA, self.precision)
        if self.estimated:
            yield ir.Parameter(ACCURACY, self.precision)
        if self.parts:
            yield from itself_uniforms()

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.targets.name, self.sources.name, NODES

    def loop(self) -> ir.Parallel:
        dealt = self.a.dealt
        count = ir.Local(DEALT_COUNT, self.index) if dealt else self.count
        if isinstance(self.box, OwnPlace):
            body = (
                ir.Assign(self.own_group.name, build.divide(self.own_place, self.size)),
                *(self.of_all(build.remainder(self.own_place, self.size)) if dealt else ()),
                *self.load_target(),
                *self.opening(self.place),
                *self.walk(),
                *self.stores(),
            )
            return ir.Parallel(self.own_place.name, count, body)
        inside = build.less(self.i, self.count)
        thread = ir.Local(THREAD, self.index)
        own_place = build.add(build.multiply(self.own_group, self.size), thread)
        body = (
            ir.Assign(self.own_place.name, own_place),
            *(self.of_all(thread) if dealt else ()),
            *self.box.begin(self.a.target.name, self.step),
            *self.nothing(),
            ir.If(inside, self.load_target()),
            *self.box.measure(self.a.target.name, self.count, self.step),
            *self.opening(build.multiply(self.group, self.size)),
            *self.walk(),
            ir.If(inside, self.stores()),
        )
        lanes = ir.Parallel(THREAD, ir.Literal(self.size, self.index), body)
        return ir.Parallel(self.own_group.name, build.ceil_divide(count, self.size), (lanes,))

    def of_all(self, member: ir.Expression) -> ir.Block:
        """The group and the target among those of one device. member: of its group."""
        place = build.add(build.multiply(self.group, self.size), member)
        return (
            ir.Assign(self.group.name, group_of(self.own_group)),
            ir.Assign(self.i.name, place),
        )

    def opening(self, place: ir.Expression) -> ir.Block:
        """Once, before the walk. place: of a target of the group, in the sorted order."""
        if not self.pairs:
            return self.acceptance.opening()
        leaf, node = self.whole("own.leaf"), self.whole("own.node")
        return (
            ir.Assign(leaf.name, build.divide(place, self.leaf)),
            *read_whole(HEIGHTS, leaf, (("value", node),)),
            *self.acceptance.opening(),
        )

    @property
    def within_leaves(self) -> bool:
        """Whether all targets of a group are of one leaf, where the walk asks for leaves."""
        return not self.pairs or self.leaf % self.size == 0

    @property
    def locals(self) -> LocalRecord:
        assert isinstance(self.operators, Operators)
        return LocalRecord(self.operators)

    def nothing(self) -> ir.Block:
        """What threads after the last target have of one, besides a place."""
        kinds = {x.name: x.type for x in self.a.target.leaves}
        places = {x.name for x in self.a.position}
        rest = {
            variable: kinds.get(leaf, I32)
            for s in self.load_target()
            if isinstance(s, ir.LoadRecord)
            for leaf, variable in s.reads
            if leaf not in places
        }
        return tuple(ir.Assign(n, build.zero(kind)) for n, kind in rest.items())

    def fits(self) -> bool:
        """Whether all targets of a group take one way, and on a CPU can be the lanes of SIMD
        registers.
        """
        threads = self.loop().body[0]
        assert isinstance(threads, ir.Parallel)
        varying = spread_in_lanes(threads.body, {THREAD})
        ways = {n for s in statements(threads.body) if isinstance(s, ir.While) for n in control(s)}
        if ways & varying:
            return False
        if not self.lanes:
            return True
        truths = {x.name for x in self.a.target.leaves if x.type == BOOL}
        used = {n.partition(".")[2] for n in self.used if n.startswith(f"{self.a.target.name}.")}
        if straightened(self.f) is None or self.a.tables or truths & used:
            return False
        return not any(
            simd_operations.problem(e, varying)
            for s in statements(threads.body)
            for e in expressions(s)
            if not varying.isdisjoint(reads(e))
        )

    # ------------------------------------------------------------ targets

    def load_target(self) -> ir.Block:
        name = self.a.target.name
        places = {x.name for x in self.a.position}
        loaded = tuple(
            (x.name, f"{name}.{x.name}")
            for x in self.a.target.leaves
            if x.name in places or f"{name}.{x.name}" in self.used
        )
        number = index_name(name)
        asked = name in self.lowered.numbered
        return (
            ir.LoadRecord(name, self.place, loaded),
            ir.LoadRecord(self.target_order, self.place, (("value", own("target")),)),
            *((ir.Assign(number, self.number(I32)),) if asked else ()),
            *(self.find_itself() if self.parts else ()),
        )

    @property
    def target_order(self) -> str:
        return ORDER if self.a.identical else TARGET_ORDER

    def number(self, kind: Scalar) -> ir.Expression:
        """The caller's index of the target."""
        target = ir.Local(own("target"), I32)
        return build.cast(target, kind)

    def find_itself(self) -> ir.Block:
        find, _ = find_itself(self.number(self.index), self.sources)
        return find

    def stores(self) -> ir.Block:
        if not self.sample:
            home = self.own_place if self.a.dealt else self.number(self.index)
            return tuple(stores(self.lowered, home))
        assert isinstance(self.operators, Operators)
        factor = factor_of(self.operators)
        sums = [e for a in self.reduced for e in a.finish()]
        into = ir.Local(own("factor"), self.operators.kind)
        found = () if factor is None else self.applied(factor, {}, (into.name,), "factor")
        strength = strength_of(sums, None if factor is None else into)
        thin, share = share_of_the_accuracy(
            self.a.target.name, self.a.position, self.place, self.targets
        )
        strength = build.times(strength, build.cast(share, F32))
        return (*found, *thin, ir.StoreRecord(STRENGTHS, self.i, (("value", strength),)))

    # ------------------------------------------------------------ the walk

    def walk(self) -> ir.Block:
        node, following, leaves = (self.whole(n) for n in ("node", "following", "leaves"))
        beyond = build.add(node, build.subtract(build.multiply(leaves, 2), 1))
        near = () if self.sample else (ir.If(build.equal(leaves, 1), self.near()),)
        step = (
            self.record.load(node, (*self.record.centre, "radius")),
            *self.read_shape(node),
            ir.Assign(following.name, build.add(node, 1)),
            *self.acceptance.test(node),
            *self.worth(leaves),
            ir.If(
                FAR,
                (*self.far(node), ir.Assign(following.name, beyond)),
                near,
            ),
            ir.Assign(node.name, following),
        )
        starts = tuple(s for a in self.reduced for s in a.start())
        if self.pairs:
            return (*starts, *self.listed(node, leaves, step), *self.expanded())
        return (
            *starts,
            ir.Assign(node.name, ir.Literal(0, self.index)),
            ir.While(build.less(node, ir.Local(NODES, self.index)), step),
        )

    def listed(self, node: ir.Local, leaves: ir.Local, step: ir.Block) -> ir.Block:
        """The walk through what is below each node that the leaf of the group has left."""
        leaf, length, e = (self.whole(n) for n in ("own.node", "length", "e"))
        end = self.whole("subtree.end")
        below = build.subtract(build.multiply(leaves, 2), 1)
        each = (
            *read_entry(leaf, e, node),
            *self.read_shape(node),
            ir.Assign(end.name, build.add(node, below)),
            ir.While(build.less(node, end), step),
        )
        zero, one = ir.Literal(0, self.index), ir.Literal(1, self.index)
        return (*read_list(leaf, length), ir.For(e.name, zero, length, one, each))

    def expanded(self) -> ir.Block:
        """Add what the expansion around the leaf gives to each target."""
        assert isinstance(self.operators, Operators)
        node, l2p = self.whole("own.node"), self.operators.l2p()
        found = (
            self.record.load(node, (*self.record.centre, "scale")),
            self.locals.load(node),
            *self.applied(l2p, {}, self.results, "own"),
            *self.taken(),
        )
        return (ir.If(build.less(0, node), found),)  # the root has none

    def worth(self, leaves: ir.Local) -> ir.Block:
        """A group of few sources is met as pairs, where it has more proxies than sources."""
        if not isinstance(self.operators, Proxies) or self.operators.count <= self.leaf:
            return ()
        many = build.less(ir.Literal(self.operators.count // self.leaf, self.index), leaves)
        return (ir.Assign(FAR.name, ir.Logical("and", FAR, many)),)

    def far(self, node: ir.Local) -> ir.Block:
        """Add what the node gives to each target."""
        match self.operators:
            case Operators() as operators:
                m2p, names = operators.m2p(), ("scale", *self.record.moments)
                asked = {p.name for p in m2p.parameters}
                read = tuple(n for n in names if own(n) in asked)
                return (
                    self.record.load(node, read),
                    *self.applied(m2p, {}, self.results, "far"),
                    *self.taken(),
                )
            case Proxies() as proxies:
                return (self.met(node, proxies),)
            case _:
                assert_never(self.operators)

    def met(self, node: ir.Local, proxies: Proxies) -> ir.For:
        """Add what each proxy of the node gives; results that count sources, for as many."""
        k, name = self.whole("k"), self.a.source.name
        share = ir.Local(own("far.share"), self.precision)
        loaded = tuple(
            (x.name, share.name if x.name == SHARE else f"{name}.{x.name}")
            for x in proxies.leaves(self.a)
            if x.name == SHARE or f"{name}.{x.name}" in self.used
        )
        given = {self.f.parameters[-1].name: build.FALSE} if self.lowered.uses_same else {}
        counted = [
            ir.Assign(n, ir.Binary("*", ir.Local(n, r.type), build.cast(share, r.type), r.type))
            for n, r, counts in zip(
                self.results, self.f.results, proxies.proof.counting, strict=True
            )
            if counts
        ]
        body = (
            ir.LoadRecord(PROXIES, k, loaded),
            *self.applied(self.f, given, self.results, "far"),
            *counted,
            *self.taken(),
        )
        begin = build.multiply(node, proxies.count)
        end, one = build.add(begin, proxies.count), ir.Literal(1, self.index)
        return ir.For(k.name, begin, end, one, body)

    def near(self) -> ir.Block:
        """Add what each source of the leaf gives."""
        first, begin, end, j = (self.whole(n) for n in ("first", "begin", "end", "j"))
        one = ir.Literal(1, self.index)
        bounds = (
            ir.Assign(begin.name, build.multiply(first, self.leaf)),
            ir.Assign(end.name, build.minimum(build.add(begin, self.leaf), self.sources)),
        )

        def loop(same: ir.Expression | None) -> ir.For:
            unroll = UNROLL if self.pairs and self.index != I64 else 1
            return ir.For(j.name, begin, end, one, self.pair(j, same), unroll=unroll)

        if not self.lowered.uses_same:
            return (*bounds, loop(None))
        if self.parts:
            number = ir.Local(own("source"), I32)
            found = build.equal(self.itself, build.cast(number, self.index))
            return (*bounds, loop(found))
        if not self.a.identical:
            return (*bounds, loop(build.FALSE))
        head, tail = (build.multiply(m, self.step) for m in self.box.members)
        meets = build.all_of(build.less(begin, tail), build.less(head, end))
        itself = loop(build.equal(self.place, j))
        return (*bounds, ir.If(meets, (itself,), (loop(build.FALSE),)))

    def pair(self, j: ir.Local, same: ir.Expression | None) -> ir.Block:
        name = self.a.source.name
        loaded = tuple(
            (x.name, f"{name}.{x.name}")
            for x in self.a.source.leaves
            if f"{name}.{x.name}" in self.used
        )
        number = (ir.LoadRecord(ORDER, j, (("value", own("source")),)),) if self.parts else ()
        given = {} if same is None else {self.f.parameters[-1].name: same}
        way = "itself" if isinstance(same, ir.Compare) else "near"
        return (
            *((ir.LoadRecord(name, j, loaded),) if loaded else ()),
            *number,
            *self.applied(self.f, given, self.results, way),
            *self.taken(),
        )

    @property
    def results(self) -> tuple[str, ...]:
        return tuple(own(r.name) for r in self.f.results)

    def taken(self) -> ir.Block:
        nowhere = Place(ir.Literal(0, I32), in_order=False)  # sums do not ask for it
        return tuple(s for a in self.reduced for s in a.take(nowhere))

    def applied(
        self,
        f: ir.Function,
        given: Mapping[str, ir.Expression],
        results: tuple[str, ...],
        prefix: str,
    ) -> ir.Block:
        return applied(f, given, results, prefix, in_lanes=self.lanes)

    # ------------------------------------------------------------ words

    @property
    def centre(self) -> list[ir.Local]:
        return [self.record.local(n) for n in self.record.centre]

    def whole(self, name: str) -> ir.Local:
        return ir.Local(own(name), self.index)

    def read_shape(self, node: ir.Local) -> ir.Block:
        fields = (("first", self.whole("first")), ("leaves", self.whole("leaves")))
        return read_whole(TREE, node, fields)
