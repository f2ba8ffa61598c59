"""A kernel as regions: pieces that run equally often, each with its instructions, its memory
accesses, and how often.

How often is found by following index arithmetic for a sample of threads (`sampling`); what it
costs, by numbering values (`instructions`). Both work for any kernel that has been lowered,
whatever passes made it. One walk over the kernel does all of it: one class, as numbers, samples and
accesses of a statement are found together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import gcd

import numpy as np

from lanewise.analysis.instructions import mix
from lanewise.analysis.lanes_of_loops import has_lanes, keeps_elements_apart
from lanewise.analysis.leaving import leaves
from lanewise.analysis.region import (
    SECTOR,
    Environment,
    KernelWork,
    Pattern,
    Region,
    RegionAccess,
    Unknown,
    Values,
)
from lanewise.analysis.region_costs import (
    LINE,
    OF_LANES,
    Lie,
    Touch,
    lie_along_simd,
    lie_of_warp,
    meaning,
    note_sectors,
    rows_reached,
    settle,
)
from lanewise.analysis.sampling import (
    Known,
    Sample,
    middle,
    sample_range,
    sample_threads,
    sample_warps,
    value_of,
)
from lanewise.analysis.value_numbering import Value
from lanewise.ir import nodes as ir
from lanewise.ir.names import GATHER_STEP, WHILE, longest_of, original, own, turns_of
from lanewise.ir.traverse import blocks, expressions, reads, statements, subexpressions, writes
from lanewise.language.target import WARP

__all__ = [
    "SECTOR",
    "UNKNOWN_COUNT",
    "KernelWork",
    "Pattern",
    "Region",
    "RegionAccess",
    "Unknown",
    "analyse",
    "known_counts",
]

UNKNOWN_COUNT = 65_536  # elements of an array whose length is not known


def analyse(
    kernel: ir.Kernel,
    environment: Mapping[str, object] | None = None,
    *,
    fast_math: bool = False,
    least: bool = False,
) -> KernelWork:
    """The work of a lowered kernel for counts and uniform arguments (`environment`, by their names
    in the IR).

    A count that is missing is taken as 65,536. A loop whose ends are data runs as often as the
    environment tells (`ir.names.turns_of`), else 8 times. `least`: what may be left out counts as
    left out, whichever way data decide: such loops, sides of branches, and what follows where a
    function may return.
    """
    counts = known_counts(kernel, environment)
    if (grid := kernel.grid) is not None:
        across = -(-_whole(grid.extent, counts) // grid.lanes)
        rows = kernel.pattern.over_points
        counts |= sample_threads(grid.threads, across, grid.parts, in_rows=rows)
        launched = max(across, 1) * grid.parts
        walk = _Walk(kernel, counts, "", launched * -(-grid.threads // WARP), least=least)
        root = walk.run(kernel.body, fast_math=fast_math)
        return KernelWork(kernel, root, launched, grid.threads, walk.unknown, walk.reached())
    match kernel.body:
        case (ir.Parallel() as loop,):
            elements = _whole(loop.extent, counts)
            counts[loop.variable] = sample_range(elements)
            walk = _Walk(kernel, counts, loop.variable, elements, least=least)
            root = walk.run(loop.body, fast_math=fast_math)
            return KernelWork(kernel, root, elements, 1, walk.unknown)
        case body:
            walk = _Walk(kernel, counts, "", 1, least=least)
            root = walk.run(body, fast_math=fast_math)
            return KernelWork(kernel, root, 1, 1, walk.unknown)


def known_counts(kernel: ir.Kernel, environment: Mapping[str, object] | None) -> Known:
    """The counts and uniform arguments of a kernel, of which a missing count is taken as
    65,536.
    """
    counts: Known = {p.name: np.asarray(UNKNOWN_COUNT) for p in kernel.counts}
    for n, v in (environment or {}).items():
        if isinstance(v, (int, float, np.generic)):
            counts[n] = np.asarray(v)
    return counts


def _whole(e: ir.Expression, samples: Known) -> int:
    value = value_of(e, samples)
    return UNKNOWN_COUNT if value is None else int(value)


ITEMS = own("items")  # how many items a segment has, on average
SKIP = own("skip")  # rounds before a line of memory begins (passes/points/overlapping): 15 of 2048
UNKNOWN_TRIPS = 8  # of a loop whose bounds are data
# what a compiler does with a loop by itself; twice that when the trips are a known constant
COMPILER_UNROLL = 4
LOOP_OVERHEAD = {"integer": 1.0, "compare": 1.0, "branch": 1.0}
WORD, JOINED = 4, (4, 2)  # bytes; how many words one access reads
WANTED = "wanted"  # the name of a stored lane, which has none
Returned = list[Value] | None  # the values of a return on the main path, if there was one


class _Walk:
    """One way through a kernel, for threads whose coordinates stand in `samples`.

    `simd` is the variable whose neighbours share a SIMD register, on a CPU; `warps` are those of
    the launch. `meant`: what integers stand for in a loop of which LLVM makes lanes.
    """

    def __init__(
        self, kernel: ir.Kernel, samples: Known, simd: str, warps: int, *, least: bool
    ) -> None:
        self.kernel = kernel
        self.samples = samples
        self.simd = self.elements = simd
        self.of_lanes = False  # whether an element is a block of lanes, as a pass made them
        self.meant: dict[str, ir.Expression] | None = None
        # whether a loop keeps the lanes of elements from a CPU
        self.apart = kernel.grid is None and not kernel.pattern.inlined and not least
        self.all_warps = warps
        self.least = least
        self.given_turns = {
            n: float(np.mean(v))
            for n, v in samples.items()
            if v is not None and n.startswith(turns_of(""))
        }
        step = samples.get(GATHER_STEP)
        self.gather_step = None if step is None else float(np.mean(step))
        self.guessed, self.early = list[str](), list[str]()
        self.expected: dict[str, float] = {}
        # variables of loops that begin where data tell, and how often those turn
        self.wandering: dict[str, float] = {}
        # how often to unroll loops over sources: only a GPU's compiler is
        self.on_gpu = kernel.grid is not None
        self.buffers = {b.name: b for b in kernel.buffers}
        self.root = Region("kernel", None, 1.0)
        self.values = Values(self.root, least=least)
        self.addresses: dict[int, list[tuple[Region, str]]] = {}
        # what threads have put aside in shared memory, by where it lies
        self.aside: dict[tuple[str, ir.Expression], tuple[Sample | None, ...]] = {}
        self.touched: dict[int, list[Touch]] = {}
        # what was read from a place of a buffer, of so many lanes, and in which region
        self.read: dict[tuple[str, int, int], tuple[Region, list[Value | None]]] = {}
        self.lies: dict[tuple[tuple[int, ...], bytes, bytes, int], Lie] = {}
        # single words that were read from shared memory: where, and by which access
        self.words: dict[int, list[tuple[RegionAccess, Sample]]] = {}
        shapes = [v.shape for v in samples.values() if v is not None and v.ndim == 2]
        threads = samples.get("@thread")
        warps = max((s[0] for s in shapes), default=1)
        self.active: Sample = np.ones((warps, 1 if threads is None else threads.shape[1]), bool)
        self.weight: Sample = np.ones(warps)  # executions of where the walk is, by warp

    def run(self, body: ir.Block, *, fast_math: bool) -> Region:
        """The kernel's own region, with all that is in it."""
        given = self.kernel.uniforms + self.kernel.counts
        self.block(
            body, {p.name: self.values.leaf(p.name, p.type, self.root) for p in given}, self.root
        )
        settle(self.values, self.addresses, self.buffers, fast_math=fast_math, on_gpu=self.on_gpu)
        for region in self.root.walk():
            self.join_words(region)
            self.bring_together(region)
        grid = self.kernel.grid
        in_rows = self.kernel.pattern.over_points
        warps = 1 if grid is None else len(sample_warps(grid.threads, in_rows=in_rows))
        for region in self.root.walk():
            note_sectors(region, self.touched.get(id(region), []), warps)
        return self.root

    def reached(self) -> dict[str, float]:
        """See `KernelWork.reached`. Of a loop one round is looked at: nothing is said about what is
        accessed there, but for the points of a thread, which are not the only ones.
        """
        if self.kernel.grid is None or not self.kernel.pattern.over_points:
            return {}
        outside: dict[str, list[Touch]] = {}
        unclear: set[str] = set()
        for region in self.root.walk():
            mine = self.touched.get(id(region), [])
            for t in mine:
                outside.setdefault(t.key, []).append(t)
            if _is_in_rounds(region):
                unclear |= {t.key for t in mine}
            unclear |= region.sectors.keys() - {t.key for t in mine}
        found: dict[str, float] = {}
        for key in outside.keys() - unclear:
            name, _, _ = key.partition("/")
            array = self.kernel.array(name)
            lengths = [self.length(n) for n in array.shape]
            kinds = {b.type.size for b in self.kernel.buffers if b.array == name}
            if len(kinds) == 1 and all(n > 0 for n in lengths):
                found[key] = rows_reached(outside[key], kinds.pop(), lengths)
        return {key: share for key, share in found.items() if share < 1}

    def length(self, extent: int | str) -> int:
        """Of an axis; 0 where it is not known."""
        if isinstance(extent, int):
            return extent
        known = self.samples.get(extent)
        return 0 if known is None else int(np.max(known))

    def join_words(self, region: Region) -> None:
        """Words of shared memory that lie side by side are read at once, where the address tells
        the compiler so.
        """
        groups: dict[tuple[str, bytes], dict[int, tuple[RegionAccess, Sample]]] = {}
        for access, places in self.words.get(id(region), []):
            first = int(places.flat[0])
            alike = groups.setdefault((access.buffer, (places - first).tobytes()), {})
            alike.setdefault(first, (access, places))
        for alike in groups.values():
            for first in sorted(alike):
                lanes = next((n for n in JOINED if _lie_side_by_side(alike, first, n)), 1)
                if lanes > 1:
                    self.join(region, [alike.pop(first + k) for k in range(lanes)])

    def join(self, region: Region, parts: list[tuple[RegionAccess, Sample]]) -> None:
        """One access instead of these."""
        (one, places), lanes = parts[0], len(parts)
        size = one.bytes * lanes
        lie = lie_of_warp(places // lanes, self.active, size)
        whole = replace(
            one,
            bytes=size,
            useful=sum(a.useful for a, _ in parts),
            pattern=lie.pattern,
            sectors=lie.sectors,
            wavefronts=lie.wavefronts,
            names=tuple(n for a, _ in parts for n in a.names),
            lines=lie.lines,
        )
        gone = {id(a) for a, _ in parts}
        region.accesses[:] = [a for a in region.accesses if id(a) not in gone] + [whole]
        counts = Counter(region.instructions.counts)
        counts[f"shared load {one.bytes}"] -= lanes
        counts[f"shared load {size}"] += 1
        region.instructions = mix(counts)

    def bring_together(self, region: Region) -> None:
        """What branches of a loop over a thread's points read is counted with the loop: they are
        tests of edges, under which neighbours read the same sectors.
        """
        around = region
        while around.role != "loop over points" and around.parent is not None:
            around = around.parent
        if around is region or around.role != "loop over points":
            return
        touches = self.touched.pop(id(region), [])
        reads = [t for t in touches if t.key.endswith("/read")]
        self.touched.setdefault(id(around), []).extend(reads)
        self.touched[id(region)] = [t for t in touches if not t.key.endswith("/read")]

    @property
    def unknown(self) -> Unknown:
        return Unknown(
            tuple(dict.fromkeys(self.guessed)),
            tuple(self.expected.items()),
            tuple(dict.fromkeys(self.early)),
        )

    def block(self, block: ir.Block, env: Environment, here: Region) -> Returned:
        """Walk statements until the first return on the main path."""
        for n, s in enumerate(block):
            if (
                n
                and self.least
                and leaves(block[n - 1], lambda e: value_of(e, self.samples) is not None)
            ):
                return self.side(block[n:], np.asarray(False), True, env, here)
            self.forget((s,))
            match s:
                case ir.Assign():
                    env[s.name] = self.values.number(s.value, env, here)
                    self.samples[s.name] = value_of(s.value, self.samples)
                    if self.meant is not None and s.value.type.is_integer:
                        self.meant[s.name] = meaning(s.value, self.meant)
                case ir.Load() | ir.Store() | ir.Scatter() | ir.CopyLanes():
                    self.move(s, env, here)
                case ir.For() | ir.While():
                    self.loop(s, env, here)
                case ir.If():
                    if (returned := self.branch(s, env, here)) is not None:
                        return returned
                case ir.Apply():
                    self.apply(s, env, here)
                case ir.Return():
                    return [self.values.number(v, env, here) for v in s.values]
                case _:
                    self.other(s, env, here)
        return None

    def other(self, s: ir.Statement, env: Environment, here: Region) -> None:
        """Statements that are little more than their expressions, nested blocks and results."""
        values = [self.values.want(e, env, here) for e in expressions(s)]
        if isinstance(s, ir.Parallel):  # what the first lane does, the others do with it
            self.of_lanes, self.samples[s.variable] = True, np.asarray(0)
        for inner in blocks(s):
            self.block(inner, env, here)
        for name in writes(s):
            self.samples[name] = None
            if name in env:
                env[name] = self.values.leaf(name, self.values.type_of(env[name]), here)
        match s:
            case ir.Barrier():
                here.barriers += 1
                here.instructions += mix({"barrier": 1})
            case ir.SetElement():
                here.instructions += mix({f"local store {self.values.type_of(values[-1]).size}": 1})
            case ir.Rotate():
                here.instructions += mix(
                    {"shuffle": sum(max(1, v.type.size // 4) for v in s.values)}
                )
            case ir.Shuffle():
                here.instructions += mix({"shuffle": max(1, s.value.type.size // 4)})
            case ir.Least():
                here.instructions += mix({"shuffle": 5 * max(1, s.value.type.size // 4)})
            case ir.Draw():
                # numbers go out in the order of blocks
                self.samples[s.name] = self.samples.get("@block")
                here.instructions += mix({"global load 4": 1, "integer": 4, "branch": 2})
            case ir.DeclareArray() | ir.Break() | ir.Continue():
                pass
            case _:
                here.instructions += mix({"integer": 1})

    # ------------------------------------------------------------ control

    def loop(self, s: ir.For | ir.While, env: Environment, here: Region) -> None:
        trips, at = self.turns(s, env, here)
        if any(leaves(x, lambda e: value_of(e, self.samples) is not None) for x in s.body):
            self.early.append(_name(s))
            trips = np.zeros_like(trips) if self.least else trips
        unroll = self.unroll(s, trips) if isinstance(s, ir.For) else 1.0
        self.forget(tuple(statements(s.body)))
        weight, active, simd, meant = self.weight, self.active, self.simd, self.meant
        per_warp = np.broadcast_to(trips, active.shape)
        self.weight = weight * per_warp.max(axis=1, initial=0)
        self.active = active & (per_warp > 0)
        role = s.role if isinstance(s, ir.For) else "user"
        region = here.add(
            f"loop over {role}", float(self.weight.mean()), depth=here.depth + 1, unroll=unroll
        )
        if self.apart and role == "user" and keeps_elements_apart(s):
            region.alone = True
            region.data_end = isinstance(s, ir.While) or _name(s) in self.early
        entries = float(weight.mean())
        region.trips = region.executions / entries if entries else 0.0
        carried = {
            n: env[n]
            for n in dict.fromkeys(n for x in statements(s.body) for n in writes(x))
            if n in env
        }
        self.hand_over(carried, env, region)
        self.values.carried |= {env[n].number for n in carried}
        if isinstance(s, ir.For):
            env[s.variable] = self.values.leaf(s.variable, s.start.type, region)
            self.samples[s.variable] = at
            if simd and (role == "sources" or self.is_in_lanes(s)):
                self.simd = s.variable
                self.meant = {} if role != "sources" else meant
        else:
            self.values.want(s.condition, env, region)
        self.block(s.body, env, region)
        self.hand_over({n: env[n] for n in carried}, env, here)
        self.weight, self.active, self.simd, self.meant = weight, active, simd, meant
        if region.trips > 0:
            region.instructions += mix(LOOP_OVERHEAD).times(1 / unroll)

    def is_in_lanes(self, s: ir.For) -> bool:
        """Whether LLVM makes lanes of the rounds of a loop over points or over a point's values."""
        return self.simd == self.elements and self.kernel.pattern.over_points and has_lanes(s)

    def turns(
        self, s: ir.For | ir.While, env: Environment, here: Region
    ) -> tuple[Sample, Sample | None]:
        """How often each thread runs a loop, and its variable half way."""
        if isinstance(s, ir.While):
            return self.unknown_turns(s), None
        for e in (s.start, s.stop, s.step):
            self.values.want(e, env, here)
        known: Known = self.samples
        if not self.least and SKIP in known and known[SKIP] is None:
            known = {**known, SKIP: np.asarray(0)}
        start, stop, step = (value_of(e, known) for e in (s.start, s.stop, s.step))
        if start is None or stop is None or step is None:
            mean = self.samples.get(ITEMS) if s.role == "sources" else None
            if mean is None:
                return self.unknown_turns(s), None
            return np.maximum(mean // (1 if step is None else step), 1), None
        return middle(start, stop, step)

    def unknown_turns(self, s: ir.For | ir.While) -> Sample:
        """Of a loop whose ends are data: none for certain, else what was given, else a guess."""
        name = _name(s)
        given = self.given_turns.get(turns_of(name))
        if given is None:
            self.guessed.append(name)
        else:
            self.expected[name] = given
        turns = 0.0 if self.least else UNKNOWN_TRIPS if given is None else given
        self.wandering[name] = turns
        longest = self.given_turns.get(turns_of(longest_of(name)), 0.0)
        return np.asarray(turns) if self.least else self.in_warps(turns, longest)

    def in_warps(self, turns: float, longest: float) -> Sample:
        """Turns of the threads of a warp, of which one runs a loop so often and all together wait
        for it: in each turn as many take part as do so on average.
        """
        threads = self.active.shape[1]
        if not self.on_gpu or longest <= turns or turns <= 0:
            return np.asarray(turns)
        part = np.arange(1, threads + 1) * turns // longest
        return np.where(np.diff(part, prepend=0) > 0, longest, 0.0)[np.newaxis]

    def unroll(self, s: ir.For, trips: Sample) -> float:
        most = max(1.0, float(np.max(trips, initial=1)))
        if self.meant is not None:  # its rounds are written out, their places literals
            return float("inf")
        if s.unroll == 0:
            return most
        if self.on_gpu and s.role == "sources":
            return min(most, s.unroll)
        constant = isinstance(s.start, ir.Literal) and isinstance(s.stop, ir.Literal)
        return min(
            most, s.unroll if s.unroll > 1 else 2 * COMPILER_UNROLL if constant else COMPILER_UNROLL
        )

    def hand_over(self, carried: Environment, env: Environment, to: Region) -> None:
        """Variables that a loop changes enter it, and leave it, as values that nothing is known
        of.
        """
        for name, value in carried.items():
            self.values.roots.append(value.number)
            env[name] = self.values.leaf(name, self.values.type_of(value), to)
            self.samples[name] = None
            if self.meant is not None:
                self.meant.pop(name, None)

    def branch(self, s: ir.If, env: Environment, here: Region) -> Returned:
        condition = value_of(s.condition, self.samples)
        self.values.want(s.condition, env, here)
        kept, sides, returned = dict(self.samples), (dict(env), dict(env)), list[Returned]()
        for block, side, taken in ((s.then, sides[0], True), (s.otherwise, sides[1], False)):
            self.samples.update(kept)
            returned.append(self.side(block, condition, taken, side, here) if block else None)
        inner = [x for block in (s.then, s.otherwise) for x in statements(block)]
        selects = all(isinstance(x, (ir.Assign, ir.Apply, ir.If, ir.Return)) for x in inner)
        if not selects:  # too much to run both sides: the compiler jumps
            here.instructions += mix({"branch": 1})
        first, second = returned
        going_on = [side for side, left in zip(sides, returned, strict=True) if left is None]
        for n in dict.fromkeys(n for x in inner for n in writes(x)):
            self.samples[n] = None
            # on every way that continues, or of no use outside the branch
            bound = [side[n] for side in (sides if n in env else going_on) if n in side]
            if bound and not (n in env and sides[0].get(n) == sides[1].get(n)):
                env[n] = self.values.either(bound, here, selects=selects)
        if first is not None and second is not None:
            return [
                a if a == b else self.values.either([a, b], here, selects=selects)
                for a, b in zip(first, second, strict=True)
            ]
        # the results are selected at the end
        if (left := first if first is not None else second) is not None:
            self.values.roots += [v.number for v in left]
            here.instructions += mix({"select": len(left)})
        return None

    def side(
        self, block: ir.Block, condition: Sample | None, taken: bool, env: Environment, here: Region
    ) -> Returned:
        """One side of a branch: a separate region, run by the warps of which a thread takes
        it.
        """
        weight, active = self.weight, self.active
        if condition is None and self.least:
            self.weight = weight * 0
        elif condition is not None:
            self.active = np.broadcast_to(np.equal(condition, taken), active.shape) & active
            self.weight = weight * self.active.any(axis=1)
        region = here.add("branch", float(self.weight.mean()), depth=here.depth)
        returned = self.block(block, env, region)
        self.weight, self.active = weight, active
        return returned

    def apply(self, s: ir.Apply, env: Environment, here: Region) -> None:
        """A call is inlined; its mutable parameters come back changed."""
        here.applications += 1
        inner: Environment = {}
        constants: Known = {n: v for n, v in self.samples.items() if n.startswith("@")}
        passed = list(zip(s.function.parameters, s.arguments, strict=True))
        for p, a in passed:
            inner[p.name] = self.values.number(a, env, here)
            constants[p.name] = value_of(a, self.samples)
        outer, self.samples = self.samples, constants
        returned = self.block(s.function.body, inner, here) or []
        self.samples = outer
        for p, a in passed:
            if p.mutable and isinstance(a, ir.Local):
                env[a.name] = inner[p.name]
                self.samples[a.name] = None
        for k, (name, result) in enumerate(zip(s.results, s.function.results, strict=True)):
            env[name] = (
                returned[k] if k < len(returned) else self.values.leaf(name, result.type, here)
            )
            self.samples[name] = None

    # ------------------------------------------------------------ memory

    def move(
        self, s: ir.Load | ir.Store | ir.Scatter | ir.CopyLanes, env: Environment, here: Region
    ) -> None:
        match s:
            case ir.Load():
                place = self.values.number(s.index, env, here).number if self.on_gpu else None
                if place is not None and self.is_repeated(s, place, env, here):
                    return
                if not _stays(s.index, s.names):
                    place = None
                self.access(s.buffer, s.index, s.names, env, here, write=False, number=place)
                aside = self.aside.get((s.buffer, s.index), (None,) * len(s.names))
                for name, known in zip(s.names, aside, strict=True):
                    if not name:
                        continue
                    env[name] = self.values.leaf(name, self.buffers[s.buffer].type, here)
                    self.samples[name] = known
                    if self.buffers[s.buffer].space == "global":
                        self.values.loaded.add(env[name].number)
                if place is None:
                    place = self.values.number(s.index, env, here).number
                self.read[s.buffer, place, len(s.names)] = (
                    here,
                    [env[n] if n else None for n in s.names],
                )
            case ir.Store():
                stored = {self.values.want(v, env, here).number for v in s.values}
                if self.buffers[s.buffer].space == "shared":
                    if stored & self.values.loaded:
                        here.note_staging()
                    self.put_aside(s)
                self.access(s.buffer, s.index, (WANTED,) * len(s.values), env, here, write=True)
            case ir.Scatter():  # the memory computes: it counts as a store
                self.values.want(s.value, env, here)
                self.access(s.buffer, s.index, (WANTED,), env, here, write=True)
            case ir.CopyLanes():  # one instruction for both sides
                if s.there is not None:
                    self.values.want(s.there, env, here)
                self.access(s.source, s.source_index, (WANTED,) * s.lanes, env, here, write=False)
                self.values.want(s.index, env, here)
                places = value_of(s.index, self.samples)
                here.accesses.append(
                    self.describe(s.buffer, s.index, places, (WANTED,) * s.lanes, write=True)
                )

    def is_repeated(self, s: ir.Load, number: int, env: Environment, here: Region) -> bool:
        """Whether the same was read before on the way to here, from the place of this number, and
        nothing was written since: then a compiler does not read it again.
        """
        before = self.read.get((s.buffer, number, len(s.names)))
        if before is None or not here.inside(before[0]):
            return False
        again = {n: v for n, v in zip(s.names, before[1], strict=True) if n}
        there = {n: v for n, v in again.items() if v is not None}
        if len(there) < len(again):
            return False
        aside = self.aside.get((s.buffer, s.index), (None,) * len(s.names))
        env |= there
        self.samples |= {n: a for n, a in zip(s.names, aside, strict=True) if n}
        return True

    def forget(self, block: ir.Block) -> None:
        """What these statements may change, or others meanwhile, is read again."""
        for s in block:
            match s:
                case ir.Store() | ir.Scatter() | ir.CopyLanes():
                    array = self.buffers[s.buffer].array
                    gone = [p for p in self.read if self.buffers[p[0]].array == array]
                case ir.Barrier():
                    gone = [p for p in self.read if self.buffers[p[0]].space == "shared"]
                case _:
                    gone = []
            for p in gone:
                del self.read[p]

    def put_aside(self, s: ir.Store) -> None:
        """Remember what threads write where no other one does: they find it there again."""
        for place in [p for p in self.aside if p[0] == s.buffer]:
            del self.aside[place]
        places = value_of(s.index, self.samples)
        if places is not None and _are_distinct(np.atleast_2d(places)):
            self.aside[s.buffer, s.index] = tuple(value_of(v, self.samples) for v in s.values)

    def lie(self, places: Sample | None, size: int, step: float | None) -> Lie:
        """Of a warp's access. Accesses of a thread's points mostly are whole lines apart, and lie
        alike then.
        """
        if places is None:
            return lie_of_warp(None, self.active, size, step)
        line = LINE // gcd(LINE, size)
        first = int(places.flat[0])
        near = places - first // line * line
        key = near.shape, near.tobytes(), self.active.tobytes(), size
        if key not in self.lies:
            self.lies[key] = lie_of_warp(near, self.active, size, step)
        return self.lies[key]

    def describe(
        self,
        buffer: str,
        index: ir.Expression,
        places: Sample | None,
        names: tuple[str, ...],
        *,
        write: bool,
    ) -> RegionAccess:
        b = self.buffers[buffer]
        size, useful = len(names) * b.type.size, sum(b.type.size for n in names if n)
        simd, samples, step = self.simd, self.samples, None if self.least else self.gather_step
        lie = (
            lie_along_simd(meaning(index, self.meant or {}), size, samples, simd)
            if simd and not self.of_lanes
            else OF_LANES
            if simd
            else self.lie(places, size, step)
        )
        return RegionAccess(
            buffer,
            b.space,
            write,
            size,
            useful,
            lie.pattern,
            lie.sectors,
            lie.wavefronts,
            names,
            lie.lines,
        )

    def access(
        self,
        buffer: str,
        index: ir.Expression,
        names: tuple[str, ...],
        env: Environment,
        here: Region,
        *,
        write: bool,
        number: int | None = None,
    ) -> None:
        places = value_of(index, self.samples)
        b, access = self.buffers[buffer], self.describe(buffer, index, places, names, write=write)
        if number is None:
            number = self.values.number(index, env, here).number
        self.addresses.setdefault(number, []).append((here, buffer))
        here.accesses.append(access)
        here.instructions += mix({f"{b.space} {'store' if write else 'load'} {access.bytes}": 1})
        if b.space != "global":
            if self.on_gpu and not write and access.bytes == WORD and places is not None:
                there = np.broadcast_to(places, self.active.shape)
                self.words.setdefault(id(here), []).append((access, there))
            return
        key = f"{b.array}/{b.buffer}/{'write' if write else 'read'}"
        if places is None:
            if not self.least:  # else all threads may go to one place
                new = access.sectors * self.anew(index, b.lanes * b.type.size)
                here.sectors[key] = here.sectors.get(key, 0.0) + new
        elif self.least and places.ndim == 2 and not np.ptp(places, axis=0).any():
            # one warp brings it for all
            here.sectors[key] = here.sectors.get(key, 0.0) + access.sectors / self.all_warps
        else:
            touch = Touch(
                key, np.broadcast_to(places, self.active.shape), access.bytes, self.active
            )
            self.touched.setdefault(id(here), []).append(touch)

    def anew(self, index: ir.Expression, size: int) -> float:
        """The share of what a turn reads that turns before have not brought already, where elements
        have so many bytes: threads side by side move by one place a turn, others each along other
        sectors.
        """
        name = next((n for n in reads(index) if n in self.wandering), None)
        turns = 0.0 if name is None else self.wandering[name]
        if name is None or turns <= 1:
            return 1.0
        if self.gather_step is None:
            here, there = (value_of(index, {**self.samples, name: np.asarray(n)}) for n in (0, 1))
            if not self.on_gpu or here is None or there is None:
                return 1.0
            step = float(np.abs(there - here).max())
            return (1 + (turns - 1) * min(1.0, step * size / SECTOR)) / turns
        side_by_side = max(1.0, WARP * self.gather_step)
        return (side_by_side + turns - 1) / (side_by_side * turns)


def _lie_side_by_side(
    words: Mapping[int, tuple[RegionAccess, Sample]], first: int, lanes: int
) -> bool:
    """Whether so many words from one on are there, at multiples of their number for all threads."""
    if any(first + k not in words for k in range(lanes)):
        return False
    return not (words[first][1] % lanes).any()


def _is_in_rounds(region: Region) -> bool:
    """Whether it is in a loop that is not over the points of a thread."""
    while region.parent is not None:
        if region.is_loop and region.role != "loop over points":
            return True
        region = region.parent
    return False


def _are_distinct(rows: Sample) -> bool:
    """Whether no row has a place twice."""
    ordered = np.sort(rows, axis=1)
    return not (ordered[:, 1:] == ordered[:, :-1]).any()


def _stays(index: ir.Expression, names: tuple[str, ...]) -> bool:
    """Whether an index is the same value again after these variables are loaded from there."""
    return not any(
        isinstance(x, ir.Element) or (isinstance(x, ir.Local) and x.name in names)
        for x in subexpressions(index)
    )


def _name(s: ir.For | ir.While) -> str:
    return original(s.variable) if isinstance(s, ir.For) else WHILE
