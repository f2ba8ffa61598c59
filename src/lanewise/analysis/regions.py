"""A kernel as regions: pieces that run equally often, each with its instructions, its memory accesses, and how often.

How often is found by following index arithmetic for a sample of threads (`sampling`); what it costs, by numbering values
(`instructions`). Both work for any kernel that has been lowered, whatever passes made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lanewise.analysis.instructions import Instructions, contracted, mix, node_cost
from lanewise.analysis.sampling import Known, Sample, middle, sample_range, sample_threads, value_of
from lanewise.analysis.sequences import latency_of
from lanewise.analysis.value_numbering import Table, Value, number_function
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, rewrite, statements, writes
from lanewise.types import Scalar

UNKNOWN_COUNT = 65_536  # elements of an array whose length is not known
UNKNOWN_TRIPS = 8  # of a loop whose bounds are data
COMPILER_UNROLL = 4  # what a compiler does with a loop by itself; up to 8 when the trips are a known constant
LOOP_OVERHEAD = {"integer": 1.0, "compare": 1.0, "branch": 1.0}
SIMD_SAMPLE = 16  # neighbours that are looked at on a CPU
SECTOR = 32  # bytes that memory moves at least
Pattern = Literal["streamed", "strided", "broadcast", "gathered"]


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: `bytes` of one thread, of which `useful` bytes are wanted.

    `sectors` are the 32-byte sectors that a warp touches with it, `wavefronts` the passes of 128 bytes through the L1
    cache or shared memory (on a CPU: the distance of neighbours in elements, 0 for no single one). `pattern`:
    neighbouring threads access neighbouring places ("streamed"), places with gaps ("strided"), one place ("broadcast"),
    or places that data tell ("gathered").
    """

    buffer: str
    space: str
    write: bool
    bytes: int
    useful: int
    pattern: Pattern
    sectors: float
    wavefronts: float
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class Region:
    """What runs together. `executions` are those of one warp (of one element on a CPU), on average over the launch."""

    role: str
    parent: Region | None
    executions: float
    trips: float = 1.0
    unroll: float = 1.0
    depth: int = 0  # loops around it
    instructions: Instructions = field(default_factory=Instructions)
    accesses: list[Access] = field(default_factory=list[Access])
    children: list[Region] = field(default_factory=list["Region"])
    barriers: int = 0
    sectors: dict[str, float] = field(default_factory=dict[str, float])  # "array/buffer/read": a sector counts once
    operations: dict[tuple[str, int], float] = field(
        default_factory=dict[tuple[str, int], float]
    )  # of floats, by bytes
    applications: int = 0  # of functions, directly in it
    latency: float = 0.0  # cycles of its longest chain of operations, one after the other
    words: int = 0  # 32-bit values that it holds from outside, or carries from one turn to the next

    def walk(self) -> list[Region]:
        """This region and all within it, outer ones first."""
        return [self, *(r for c in self.children for r in c.walk())]

    def inside(self, ancestor: Region) -> bool:
        return self is ancestor or (self.parent is not None and self.parent.inside(ancestor))


@dataclass(frozen=True, slots=True)
class KernelWork:
    """The regions of a kernel, and its launch: blocks of `threads` threads, or elements on a CPU (`threads` 1)."""

    kernel: ir.Kernel
    root: Region
    blocks: int
    threads: int

    @property
    def regions(self) -> list[Region]:
        return self.root.walk()

    @property
    def instructions(self) -> Instructions:
        """All instructions of one warp, on average."""
        total: Counter[str] = Counter()
        for r in self.regions:
            total.update({k: n * r.executions for k, n in r.instructions.counts.items()})
        return mix(total)

    @property
    def inner_loop(self) -> Region | None:
        """The loop that takes most instructions, with what is in it counted to it."""
        loops = [r for r in self.regions if r.role.startswith("loop")]
        innermost = [r for r in loops if not any(c.role.startswith("loop") for c in r.walk()[1:])]
        return max(innermost, key=lambda r: r.executions * r.instructions.slots, default=None)


def analyse(
    kernel: ir.Kernel, environment: Mapping[str, object] | None = None, *, fast_math: bool = False
) -> KernelWork:
    """The work of a lowered kernel for counts and values for all (`environment`, by their names in the IR).

    A count that is missing is taken as 65,536, and a loop whose bounds are not known runs 8 times.
    """
    known: Known = {p.name: np.asarray(UNKNOWN_COUNT) for p in kernel.counts}
    known |= {n: np.asarray(v) for n, v in (environment or {}).items() if isinstance(v, (int, float, np.generic))}
    body, grid = kernel.body, kernel.grid
    if grid is not None:
        extent = value_of(grid.extent, known)
        across = -(-int(extent if extent is not None else UNKNOWN_COUNT) // grid.lanes)
        known |= sample_threads(grid.threads, across, grid.parts)
        root = _Builder(kernel, known, fast_math).build(body)
        return KernelWork(kernel, root, max(across, 1) * grid.parts, grid.threads)
    count = 1
    if len(body) == 1 and isinstance(body[0], ir.Parallel):
        extent = value_of(body[0].extent, known)
        count = int(extent) if extent is not None else UNKNOWN_COUNT
        known[body[0].variable] = sample_range(count)
        return KernelWork(kernel, _Builder(kernel, known, fast_math, body[0].variable).build(body[0].body), count, 1)
    return KernelWork(kernel, _Builder(kernel, known, fast_math).build(body), count, 1)


class _Builder:
    def __init__(self, kernel: ir.Kernel, known: Known, fast_math: bool, simd: str = "") -> None:
        self.simd = simd  # the variable whose neighbours share a SIMD register, on a CPU
        self.kernel, self.known, self.fast_math = kernel, known, fast_math
        self.buffers = {b.name: b for b in kernel.buffers}
        self.table = Table()
        self.homes: dict[int, Region] = {}  # where a value is computed
        self.roots: list[int] = []
        self.addresses: dict[int, list[tuple[Region, str]]] = {}
        self.fresh = 0
        self.carried: set[int] = set()  # values that a loop hands from one turn to the next
        lanes = known.get("@thread")
        self.warps = max(1, max((np.shape(v)[0] for v in known.values() if np.ndim(v) == 2), default=1))  # type: ignore[arg-type]
        self.lanes = 1 if lanes is None else lanes.shape[1]
        self.active: Sample = np.ones((self.warps, self.lanes), bool)
        self.weight: Sample = np.ones(self.warps)
        self.touched: dict[int, list[tuple[str, Sample, int, Sample]]] = {}

    def build(self, body: ir.Block) -> Region:
        root = Region("kernel", None, 1.0)
        env: dict[str, Value] = {}
        for p in self.kernel.uniforms + self.kernel.counts:
            env[p.name] = self._leaf(p.name, p.type, root)
        self._block(body, env, root)
        self._settle(root)
        return root

    # ------------------------------------------------------------ values

    def _leaf(self, name: str, kind: Scalar, home: Region) -> Value:
        """A value that is there without an instruction of its own."""
        self.fresh += 1
        value = self.table.leaf(f"{name}@{self.fresh}", kind)
        self.homes[value.number] = home
        return value

    def _number(self, e: ir.Expression, env: dict[str, Value], here: Region) -> Value:
        """The value of an expression; new ones find their home, which is before a loop that does not change them."""

        def plain(x: ir.Expression) -> ir.Expression:
            match x:
                case ir.Builtin():
                    name = f"@{x.name}"
                    if name not in env:
                        env[name] = self.table.leaf(name, x.type)
                        self.homes.setdefault(env[name].number, self._top(here))
                    return ir.Local(name, x.type)
                case ir.Element():
                    self.fresh += 1
                    name = f"{x.array}[{self.fresh}]"
                    env[name] = self._leaf(name, x.type, here)
                    self._root(x.index, env, here)
                    here.instructions += mix({f"local load {x.type.size}": 1})
                    return ir.Local(name, x.type)
                case ir.Local() if x.name not in env:
                    env[x.name] = self._leaf(x.name, x.type, here)
                    return x
                case _:
                    return x

        before = len(self.table.nodes)
        expression = rewrite(e, plain)
        function = ir.Function("", (), (), (ir.Return((expression,)),))
        value = number_function(self.table, function, env)[0]
        for n in range(before, len(self.table.nodes)):
            if n not in self.homes:
                self.homes[n] = self._home(n, here)
        self._share(value.number, here)
        return value

    def _top(self, region: Region) -> Region:
        return region if region.parent is None else self._top(region.parent)

    def _home(self, number: int, here: Region) -> Region:
        """The region of the deepest loop that one of its operands changes in."""
        operands = [self.homes[o] for o in self.table.nodes[number].operands]
        depth = max((r.depth for r in operands), default=0)
        home = here
        while home.depth > depth and home.parent is not None:
            home = home.parent
        return home

    def _share(self, number: int, here: Region) -> None:
        """A value that was computed in another branch moves to where both see it, with what it is computed from."""
        waiting = [number]
        while waiting:
            n = waiting.pop()
            if here.inside(self.homes[n]):
                continue
            while not here.inside(self.homes[n]):
                parent = self.homes[n].parent
                assert parent is not None  # the kernel's own region is around every other
                self.homes[n] = parent
            waiting += self.table.nodes[n].operands

    def _root(self, e: ir.Expression, env: dict[str, Value], here: Region) -> Value:
        value = self._number(e, env, here)
        self.roots.append(value.number)
        return value

    # ------------------------------------------------------------ statements

    def _block(self, block: ir.Block, env: dict[str, Value], here: Region) -> list[Value] | None:
        """Walk statements; the values of the first return on the main path."""
        for s in block:
            match s:
                case ir.Assign():
                    env[s.name] = self._number(s.value, env, here)
                    self.known[s.name] = value_of(s.value, self.known)
                case ir.Load():
                    self._load(s, env, here)
                case ir.Store():
                    for v in s.values:
                        self._root(v, env, here)
                    self._access(s.buffer, s.index, tuple("x" for _ in s.values), env, here, write=True)
                case ir.For():
                    self._for(s, env, here)
                case ir.While():
                    self._while(s, env, here)
                case ir.If():
                    if (returned := self._if(s, env, here)) is not None:
                        return returned
                case ir.Apply():
                    self._apply(s, env, here)
                case ir.Return():
                    return [self._number(v, env, here) for v in s.values]
                case ir.Barrier():
                    here.barriers += 1
                    here.instructions += mix({"barrier": 1})
                case ir.CopyLanes():
                    self._copy(s, env, here)
                case ir.SetElement():
                    self._root(s.index, env, here)
                    value = self._root(s.value, env, here)
                    here.instructions += mix({f"local store {self.table.nodes[value.number].type.size}": 1})
                case ir.Rotate():
                    for v in s.values:
                        self._root(v, env, here)
                        env[v.name] = self._leaf(v.name, v.type, here)
                        here.instructions += mix({"shuffle": v.type.size // 4 or 1})
                case ir.Draw():
                    env[s.name] = self._leaf(s.name, s.total.type, here)
                    self.known[s.name] = self.known.get("@block")  # numbers go out in the order of blocks
                    here.instructions += mix({"global load 4": 1, "integer": 4, "branch": 2})
                case _:
                    self._other(s, env, here)
        return None

    def _other(self, s: ir.Statement, env: dict[str, Value], here: Region) -> None:
        """A statement that is nothing but its expressions, nested blocks and results."""
        for e in expressions(s):
            self._root(e, env, here)
        for inner in blocks(s):
            self._block(inner, env, here)
        for name in writes(s):
            self.known[name] = None
            env.pop(name, None)
        if not isinstance(s, (ir.DeclareArray, ir.Break, ir.Continue)):
            here.instructions += mix({"integer": 1})

    def _load(self, s: ir.Load, env: dict[str, Value], here: Region) -> None:
        self._access(s.buffer, s.index, s.names, env, here, write=False)
        for name in s.names:
            if name:
                env[name] = self._leaf(name, self.buffers[s.buffer].type, here)
                self.known[name] = None

    def _copy(self, s: ir.CopyLanes, env: dict[str, Value], here: Region) -> None:
        """One instruction moves from global into shared memory."""
        names = tuple("x" for _ in range(s.lanes))
        self._access(s.source, s.source_index, names, env, here, write=False)
        b = self.buffers[s.buffer]
        size = s.lanes * b.type.size
        pattern, sectors, wavefronts = self._pattern(value_of(s.index, self.known), size)
        here.accesses.append(Access(s.buffer, b.space, True, size, size, pattern, sectors, wavefronts, names))
        self._root(s.index, env, here)

    def _for(self, s: ir.For, env: dict[str, Value], here: Region) -> None:
        for e in (s.start, s.stop, s.step):
            self._root(e, env, here)
        start, stop, step = (value_of(e, self.known) for e in (s.start, s.stop, s.step))
        if start is None or stop is None or step is None:
            trips, at = np.asarray(UNKNOWN_TRIPS), None
        else:
            trips, at = middle(start, stop, step)
        constant = all(isinstance(e, ir.Literal) for e in (s.start, s.stop))
        self._loop(s, f"loop over {s.role}", trips, at, env, here, self._unroll(s, trips, constant))

    def _unroll(self, s: ir.For, trips: Sample, constant: bool) -> float:
        most = max(1.0, float(np.max(trips, initial=1)))
        if s.unroll == 0:
            return most
        return min(most, s.unroll if s.unroll > 1 else 2 * COMPILER_UNROLL if constant else COMPILER_UNROLL)

    def _while(self, s: ir.While, env: dict[str, Value], here: Region) -> None:
        region = self._loop(s, "loop over user", np.asarray(UNKNOWN_TRIPS), None, env, here, 1.0)
        del region

    def _loop(
        self, s: ir.For | ir.While, role: str, trips: Sample, at: Sample | None, env: dict[str, Value], here: Region,
        unroll: float,
    ) -> None:  # fmt: skip
        per_warp = np.broadcast_to(trips, self.active.shape).max(axis=1, initial=0).astype(float)
        outer_weight, outer_active = self.weight, self.active
        self.weight = self.weight * per_warp
        self.active = self.active & np.broadcast_to(trips > 0, self.active.shape)
        region = Region(role, here, float(self.weight.mean()), depth=here.depth + 1, unroll=unroll)
        entries = float(outer_weight.mean())
        region.trips = region.executions / entries if entries else 0.0
        here.children.append(region)
        changed = {n for x in statements(s.body) for n in writes(x)}
        entering = {n: env[n] for n in changed if n in env}
        for n, v in entering.items():
            self.roots.append(v.number)
            env[n] = self._leaf(n, self.table.nodes[v.number].type, region)
            self.carried.add(env[n].number)
            self.known[n] = None
        outer_simd = self.simd
        if isinstance(s, ir.For):
            env[s.variable] = self._leaf(s.variable, s.start.type, region)
            self.known[s.variable] = at
            self.simd = s.variable if self.simd and s.role == "sources" else self.simd
        else:
            self._root(s.condition, env, region)
        self._block(s.body, env, region)
        for n, v in entering.items():
            self.roots.append(env[n].number)
            env[n] = self._leaf(n, self.table.nodes[v.number].type, here)
            self.known[n] = None
        self.weight, self.active, self.simd = outer_weight, outer_active, outer_simd
        if region.trips > 0:
            region.instructions += mix(LOOP_OVERHEAD).times(1 / unroll)

    def _if(self, s: ir.If, env: dict[str, Value], here: Region) -> list[Value] | None:
        condition = value_of(s.condition, self.known)
        self._root(s.condition, env, here)
        sides: list[tuple[dict[str, Value], list[Value] | None]] = []
        kept = dict(self.known)
        for block, wanted in ((s.then, True), (s.otherwise, False)):
            inner = dict(env)
            self.known.update(kept)
            returned = self._side(block, condition, wanted, inner, here) if block else None
            sides.append((inner, returned))
        changed = {n for block in (s.then, s.otherwise) for x in statements(block) for n in writes(x)}
        for n in changed & env.keys():
            values = [side.get(n) for side, _ in sides]
            if values[0] != values[1]:
                self.roots += [v.number for v in values if v is not None]
                env[n] = self._merged(n, env[n], here)
            self.known[n] = None
        for n in changed - env.keys():
            self.known[n] = None
        first, second = sides[0][1], sides[1][1]
        if first is not None and second is not None:
            return self._merge_results(first, second, here)
        if first is not None or second is not None:  # one side leaves: the others' results are selected at the end
            for v in first or second or []:
                self.roots.append(v.number)
            here.instructions += mix({"select": len(first or second or [])})
        return None

    def _side(
        self, block: ir.Block, condition: Sample | None, wanted: bool, env: dict[str, Value], here: Region
    ) -> list[Value] | None:
        """One side of a branch: a region of its own, run by the warps of which a thread takes it."""
        weight, active = self.weight, self.active
        if condition is not None:
            taken = np.broadcast_to(np.equal(condition, wanted), active.shape) & active
            self.active, self.weight = taken, weight * taken.any(axis=1)
        region = Region("branch", here, float(self.weight.mean()), depth=here.depth)
        here.children.append(region)
        returned = self._block(block, env, region)
        self.weight, self.active = weight, active
        return returned

    def _merged(self, name: str, old: Value, here: Region) -> Value:
        here.instructions += mix({"select": 1})
        return self._leaf(name, self.table.nodes[old.number].type, here)

    def _merge_results(self, first: list[Value], second: list[Value], here: Region) -> list[Value]:
        merged: list[Value] = []
        for a, b in zip(first, second, strict=True):
            self.roots += [a.number, b.number]
            merged.append(a if a == b else self._merged("result", a, here))
        return merged

    def _apply(self, s: ir.Apply, env: dict[str, Value], here: Region) -> None:
        """A call is inlined; its mutable parameters come back changed."""
        here.applications += 1
        inner: dict[str, Value] = {}
        known: Known = {n: v for n, v in self.known.items() if n.startswith("@")}
        for p, a in zip(s.function.parameters, s.arguments, strict=True):
            inner[p.name] = self._number(a, env, here)
            known[p.name] = value_of(a, self.known)
        outer, self.known = self.known, known
        returned = self._block(s.function.body, inner, here)
        self.known = outer
        for p, a in zip(s.function.parameters, s.arguments, strict=True):
            if p.mutable and isinstance(a, ir.Local):
                env[a.name] = inner[p.name]
                self.known[a.name] = None
        values = returned if returned is not None else []
        for k, name in enumerate(s.results):
            kind = s.function.results[k].type
            env[name] = values[k] if k < len(values) else self._leaf(name, kind, here)
            self.known[name] = None

    # ------------------------------------------------------------ memory

    def _access(
        self,
        buffer: str,
        index: ir.Expression,
        names: tuple[str, ...],
        env: dict[str, Value],
        here: Region,
        *,
        write: bool,
    ) -> None:
        b = self.buffers[buffer]
        number = self._number(index, env, here).number
        self.addresses.setdefault(number, []).append((here, buffer))
        size = len(names) * b.type.size
        places = value_of(index, self.known)
        pattern, sectors, wavefronts = self._along_simd(index, size) if self.simd else self._pattern(places, size)
        useful = sum(b.type.size for n in names if n)
        here.accesses.append(Access(buffer, b.space, write, size, useful, pattern, sectors, wavefronts, names))
        kind = f"{b.space} {'store' if write else 'load'} {size}"
        here.instructions += mix({kind: 1})
        if b.space == "global":
            self._touch(here, b, places, size, sectors, write=write)

    def _along_simd(self, index: ir.Expression, size: int) -> tuple[Pattern, float, float]:
        """The same on a CPU, for elements or sources that neighbour each other in a SIMD register.

        Here the third figure is the distance of neighbours, 0 where it is not one number.
        """
        base = self.known.get(self.simd)
        if base is None:
            return "gathered", 1.0, 0.0
        places = value_of(index, {**self.known, self.simd: np.asarray(base) + np.arange(SIMD_SAMPLE)})
        if places is None:
            return "gathered", 1.0, 0.0
        steps = np.unique(np.diff(np.broadcast_to(places, (*np.shape(places)[:-1], SIMD_SAMPLE)), axis=-1))
        if len(steps) != 1:
            return "gathered", 1.0, 0.0
        distance = float(abs(steps[0]))
        kind: Pattern = "broadcast" if distance == 0 else "streamed" if distance == 1 else "strided"
        return kind, max(1.0, size / SECTOR), distance

    def _pattern(self, places: Sample | None, size: int) -> tuple[Pattern, float, float]:
        """How a warp's accesses lie: their kind, the sectors they touch and the passes that they take."""
        lanes = int(self.active.shape[1])
        if places is None:
            return "gathered", float(lanes * max(1, -(-size // SECTOR))), float(max(lanes * size // 128, lanes // 2, 1))
        at = np.broadcast_to(places, self.active.shape)
        rows = at[self.active.any(axis=1)]
        rows = rows if len(rows) else at
        spread = np.diff(rows, axis=1)
        sectors = float(np.mean([len(np.unique(r * size // SECTOR)) for r in rows]))
        sectors *= max(1, size // SECTOR)
        lines = float(np.mean([len(np.unique(r * size // 128)) for r in rows]))
        if not spread.any():
            return "broadcast", sectors, max(1.0, size / 8)
        return ("streamed" if (spread == 1).all() else "strided"), sectors, max(lines, 1.0)

    def _touch(
        self, here: Region, b: ir.BufferArgument, places: Sample | None, size: int, sectors: float, *, write: bool
    ) -> None:
        """Note the bytes of a warp in the array's own buffer, so that loads of one sector are seen as one."""
        key = f"{b.array}/{b.buffer}/{'write' if write else 'read'}"
        if places is None:
            here.sectors[key] = here.sectors.get(key, 0.0) + sectors
            return
        at = np.broadcast_to(places, self.active.shape)
        self.touched.setdefault(id(here), []).append((key, at, size, self.active))

    # ------------------------------------------------------------ the end

    def _settle(self, root: Region) -> None:
        """Give every live value to its home, and addresses to the loops that count them."""
        live = self.table.below({*self.roots, *self.addresses})
        homes = {n: id(self.homes[n]) for n in live}
        used_as_value = self.table.below(set(self.roots))
        gone = contracted(self.table, live, homes)
        costs: dict[int, Counter[str]] = {}
        regions = {id(r): r for r in root.walk()}
        for n in live:
            home = self.homes[n]
            cost = node_cost(self.table, n, gone, fast_math=self.fast_math)
            if n not in used_as_value and self.table.nodes[n].type.is_integer:
                cost = self._address_cost(n, home, cost)
            costs.setdefault(id(home), Counter()).update(cost)
            self._note_operation(n, home, gone)
        pointers: set[tuple[int, str, int]] = set()
        for number, uses in self.addresses.items():
            for region, buffer in uses:
                self._pointer(number, region, buffer, pointers, costs)
        for key, cost in costs.items():
            regions[key].instructions += mix(cost)
        for key, touched in self.touched.items():
            self._union(regions[key], touched)
        for region in regions.values():
            region.words = self._words(region, live)
            region.latency = self._latency(region, live, gone)

    def _note_operation(self, n: int, home: Region, gone: set[int]) -> None:
        """Operations of floats as they are written, for units that do them in one instruction."""
        node = self.table.nodes[n]
        if n in gone or not node.type.is_float or node.operation in ("leaf", "literal", "negate", "cast"):
            return
        fused = node.operation in ("+", "-") and any(o in gone for o in node.operands)
        key = ("fused" if fused else node.operation, node.type.size)
        home.operations[key] = home.operations.get(key, 0.0) + 1

    def _words(self, region: Region, live: set[int]) -> int:
        """Values of enclosing regions that an innermost loop reads, and those that it carries: registers while it runs."""
        if not region.role.startswith("loop") or any(r.role.startswith("loop") for r in region.walk()[1:]):
            return 0
        inside = {n for n in live if self.homes[n].inside(region)}
        read = {o for n in inside for o in self.table.nodes[n].operands}
        held = (self.table.nodes[n] for n in (read - inside) | (inside & self.carried))
        return sum(max(1, n.type.size // 4) for n in held if n.operation != "literal")

    def _latency(self, region: Region, live: set[int], gone: set[int]) -> float:
        """The longest chain of its own values.

        A slow path that a value may take (division, roots) keeps a compiler from interleaving: chains that share none of
        them follow each other.
        """
        ends: dict[int, tuple[float, float]] = {}  # cycles, and branches on the way
        branches = 0.0
        for n in sorted(x for x in live if self.homes[x] is region):
            cost = node_cost(self.table, n, gone, fast_math=self.fast_math)
            own = latency_of(cost)
            branches += cost.get("branch", 0.0)
            before = max((ends.get(o, (0.0, 0.0)) for o in self.table.nodes[n].operands), default=(0.0, 0.0))
            ends[n] = (before[0] + own, before[1] + cost.get("branch", 0.0))
        longest = max(ends.values(), default=(0.0, 0.0))
        return longest[0] * (max(1.0, branches / longest[1]) if longest[1] else 1.0)

    def _address_cost(self, n: int, home: Region, cost: dict[str, float]) -> dict[str, float]:
        """A constant distance is part of the access; what moves on with a loop is added once for each unrolled turn."""
        node = self.table.nodes[n]
        literal = any(self.table.nodes[o].operation == "literal" for o in node.operands)
        if node.operation in ("+", "-") and literal:
            return {}
        return {k: c / home.unroll for k, c in cost.items()} if home.role.startswith("loop") else cost

    def _pointer(
        self, number: int, region: Region, buffer: str, seen: set[tuple[int, str, int]],
        costs: dict[int, Counter[str]],
    ) -> None:  # fmt: skip
        """An address in global memory has 64 bits: made once for each buffer and base, moved on with the loop."""
        if self.buffers[buffer].space != "global":
            return
        base, node = number, self.table.nodes[number]
        while node.operation in ("+", "-") and self.table.nodes[node.operands[0]].operation == "literal":
            base, node = node.operands[1], self.table.nodes[node.operands[1]]
        while node.operation in ("+", "-") and self.table.nodes[node.operands[-1]].operation == "literal":
            base, node = node.operands[0], self.table.nodes[node.operands[0]]
        home = self.homes[base]
        key = (id(home), buffer, base)
        if key in seen:
            return
        seen.add(key)
        moved = {"integer": 2 / home.unroll} if home.role.startswith("loop over sources") else {"integer": 1.0}
        costs.setdefault(id(home), Counter()).update(moved)

    def _union(self, region: Region, touched: list[tuple[str, Sample, int, Sample]]) -> None:
        """Sectors of each array's buffer that a warp touches in one execution of a region, each counted once."""
        for key in {k for k, *_ in touched}:
            mine = [(at * size, size, active) for k, at, size, active in touched if k == key]
            counts: list[int] = []
            for row in range(mine[0][0].shape[0]):
                parts = [
                    (at[row] + d)[active[row]] // SECTOR for at, size, active in mine for d in range(0, size, SECTOR)
                ]
                counts.append(len(np.unique(np.concatenate(parts))) if parts else 0)
            wanted = [c for c in counts if c]
            region.sectors[key] = region.sectors.get(key, 0.0) + (float(np.mean(wanted)) if wanted else 0.0)
