"""Plans: every decision about a kernel that is not its meaning.

Each field is the option of exactly one pass.

`Plan` is what a caller requests, or what tuning keeps, and may leave fields open; of a
`CompletePlan` none is, which type checkers know. The fields are declared once: the type parameter
is what a field holds that is left open, None in general, and nothing at all in a complete plan.
What was decided, with the reasons, are `Decisions` (`planning/decisions.py`), which have such a
plan.

One dataclass, and long, because a field is explained where it is declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, Literal, Never

from lanewise.language.target import Target
from lanewise.planning import words
from lanewise.planning.decision import DECISION, Optimisation, choice, decision
from lanewise.planning.limits import check_limits
from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields, shown
from lanewise.support.errors import PlanError

# a default for the parameter, which typing has from Python 3.13 on: `Plan` is `Plan[None]`
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Open = TypeVar("Open", bound=NoneType, covariant=True, default=None)
else:
    from typing import TypeVar

    Open = TypeVar("Open", bound=NoneType, covariant=True)
P = TypeVar("P", bound="Plan")

SWITCH = (False, True)
ORDERS = ("free", "written")


@frozen
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan(Generic[Open]):
    """Decisions for one kernel on one device.

    Fields left at None are decided for the call; `kernel.compile(...).plan` shows the result.

    targets: elements that one thread (or SIMD loop) computes together (thread merging). Targets
    share every source that the thread reads; neighbouring sites of a lattice (1, 2 or 4, CUDA) are
    moved together; several elements (1, 2, 4 or 8, CUDA) keep more loads in flight. Points on a CPU
    whose lanes share iterations (`slices`) are neighbours. They run side by side, or, if these
    iterations write elements, one after the other: then the last loop of each point runs together
    with a loop of the next one.
    tile: sources in one tile; on CUDA the whole block stages a tile in shared memory, one source
    per thread. 0: no tiles.
    slices: groups of threads of one block that share the targets and divide every tile of the
    sources (CUDA); for points on a CPU, the lanes of SIMD registers that share the iterations of
    loops: 4, 8, 16, 32 or 64. Functions and quotients that several of these loops compute are kept
    for up to `tile` iterations.
    parts: blocks along the second axis of the grid that divide the sources; a second kernel adds
    their sums in order (CUDA). On a CPU, for a kernel that adds floats to elements in order
    (`lw.scatter_add(..., exact=False)`): parts of the threads or elements, each with its own sums,
    which are added in order.
    unroll: how many times the innermost source loop is unrolled; 0 means completely (CUDA). On a
    CPU LLVM decides, except for a loop around a tile of points, where `unroll` iterations run
    together.
    block: threads per block (CUDA). 1: one thread of the whole GPU computes everything, for
    comparison.
    min_blocks: blocks that must fit on one multiprocessor; caps the registers per thread (CUDA
    launch bounds). 0: no cap.
    accumulate: "native" adds in the precision of the result; "f64" adds the sums of tiles in
    float64.
    fast_math: allow the compiler every algebraic shortcut, also those that ignore NaN, infinity and
    rounding.
    registers: the most registers that a thread may take, at the price of spills (CUDA). 0: the
    compiler chooses.
    schedule: whether the assembler orders instructions freely ("free") or leaves them near the
    order of the source ("written"; CUDA).
    hoist: compute what does not depend on the source once per target, before the loop (invariant
    code motion).
    self_term: what happens to the pair of an element with itself: "test" keeps the test that you
    wrote in the loop, "loops" writes two loops that leave the pair out, "drop" removes the test,
    because the term is proved to be zero.
    rsqrt: "written" computes what you wrote; "hardware" also computes 1 / sqrt(x) by the
    approximate instruction; "exact" computes lw.rsqrt(x) by a rounded square root and a division.
    fma: reorder sums of products so that each product joins its sum in one fused multiply-add.
    uniforms: where uniform arguments lie: in "constant" memory, or in "global" memory (CUDA).
    prefetch: load the next tile while this one is computed: "none", into "registers", or "async"
    (CUDA). Threadwise kernels may have 3 or 4 tiles in shared memory: "async3", "async4".
    fission: one kernel for each independent group of results (loop splitting).
    branches: "together" in one kernel, or "apart" in one kernel for each side of the function's
    branch.
    reciprocity: compute each pair once for both sides: "off", "scratch" with partial sums in
    memory, "ordered" with blocks that add to the result in a fixed order, or "grouped", which the
    parts of a mesh share: the same sums on any number of GPUs (CUDA).
    across: threads of a block along the index of neighbouring threads (threadwise, CUDA, like the
    next six fields). 0: 16, or 32 in large blocks. On a CPU, the lanes of SIMD registers along the
    last index: 4, 8 or 16; `targets`, `rows` and `layers` are then points per lane, and what rows
    share in a loop is packed for up to `tile` iterations. A loop that runs down columns is
    interchanged with its points: it runs around `tile` neighbours, whose variables lie in the
    core's cache, and `unroll` iterations run together. If rows are another array's columns, a
    square has as many rows as lanes; squares go in tiles of `tile` points along the rows that are
    read, which are written row by row. 0: loops as written. For pairs on a CPU: neighbouring
    targets that a loop computes side by side, up to 4096.
    down: threads of a block along the next slower index; the remaining ones lie along the slowest
    of three. 0: all that remain.
    rows, layers: points per thread along the next slower index, and along the slowest of three;
    `targets` counts those along the index of neighbouring threads. Sites of a stencil also have
    these, and `across` and `down` (CUDA).
    adjacent: how many of these `targets` are neighbours. 0: four, or as many as divide them.
    neighbours: which index differs between neighbouring threads: the "last", or the "first" if
    writes run along that one.
    order: the order in which blocks of two indices run: "rows", "panels" of 8 rows of blocks, or
    along a "diagonal".
    panel: for a loop whose iterations read what earlier ones wrote (a triangular solve): this many
    iterations are a separate launch. Before it, another kernel gathers what they read of finished
    iterations, for all of them at once; the fields about points and tiles apply to that kernel.
    0: no panels.
    vector_bits: width of SIMD registers on a CPU: 256 or 512. 0: the compiler chooses.
    segments: for a kernel over lists with a dense axis: "apart" gives a block cells of one list,
    which share its items; "packed" fills blocks with the cells of consecutive lists (CUDA).
    """

    targets: int | Open = decision(
        "thread merging",
        words.targets,
        literature="register blocking",
        cuda=(1, 2, 4, 8, 16),
        cpu=(1, 2, 4, 8),
        items=(1, 2, 4, 8),
        items_cpu=(1, 16, 64, 256),
        sites=(1, 2, 4),
        points=(1, 2, 4, 8),
        points_cpu=(1, 2, 3, 4, 8, 16),
        limits=(0, 4_096),
        neutral=1,
        place=11,
        rank=1,
    )
    tile: int | Open = decision(
        "shared-memory blocking", words.tile,
        literature="tiling", cuda=(0, 64, 128, 256, 512, 1024), cpu=(0, 128, 512, 2048),
        points=(0, 8, 16, 32), points_cpu=(0, 128, 256, 512, 1024, 2048, 16_384),
        limits=(0, 1_048_576), neutral=0, place=10, rank=5,
    )  # fmt: skip
    slices: int | Open = decision(
        "slicing of tiles",
        words.slices,
        literature="several threads per body",
        cuda=(1, 2, 4, 8, 16),
        items=(1, 2, 4, 8, 32),
        points=(1, 4, 8, 16, 32, 64, 128, 256),
        points_cpu=(4, 8, 16, 32, 64),
        limits=(0, 1_024),
        neutral=1,
        place=12,
        rank=3,
    )
    parts: int | Open = decision(
        "splitting of sources",
        words.parts,
        literature="split-k",
        cuda=(1, 2, 4, 8, 16, 32, 64),
        points=(1, 2, 4, 8, 16, 64, 256, 1024),
        in_order=(1, 2, 4, 8, 16, 32),
        limits=(0, 65_535),
        neutral=1,
        place=13,
        rank=7,
    )
    unroll: int | Open = decision(
        "loop unrolling", words.unroll, literature="loop unrolling", cuda=(1, 2, 4, 8, 16, 32, 0),
        items=(1, 2, 4, 8), points=(1, 4, 8, 0),
        limits=(0, 1_024), neutral=1, place=15, rank=4,
    )  # fmt: skip
    block: int | Open = decision(
        "thread-block merging",
        lambda v, blocks: f"blocks of {v} threads" if v else "no blocks",
        literature="block size",
        cuda=(32, 64, 128, 256, 512, 1024),
        elementwise=(32, 64, 128, 256, 512, 1024),
        items=(32, 64, 128, 256, 512, 1024),
        points=(64, 128, 256, 512),
        limits=(0, 1_024),
        neutral=0,
        place=18,
        rank=2,
    )
    min_blocks: int | Open = decision(
        "launch bounds", words.min_blocks,
        literature="__launch_bounds__", cuda=(0, 1, 2, 3, 4, 6, 8), elementwise=(0, 1, 2, 4, 8),
        items=(0, 1, 2, 4, 8),
        limits=(0, 32), neutral=0, place=19, rank=12,
    )  # fmt: skip
    accumulate: Literal["native", "f64"] | Open = decision(
        "float64 accumulation",
        choice(
            native="sums in the precision of the result", f64="sums of tiles are added in float64"
        ),
        literature="mixed precision",
        cuda=("native", "f64"),
        cpu=("native", "f64"),
        on_request=True,
        neutral="native",
        place=4,
    )
    fast_math: bool | Open = decision(
        "fast-math",
        choice(
            off="IEEE arithmetic", on="algebraic shortcuts that ignore NaN, infinity and rounding"
        ),
        literature="-use_fast_math",
        cuda=SWITCH,
        cpu=SWITCH,
        elementwise=SWITCH,
        elementwise_cpu=SWITCH,
        on_request=True,
        items=SWITCH,
        items_cpu=SWITCH,
        neutral=False,
        place=3,
    )
    registers: int | Open = decision(
        "register cap",
        words.cap,
        literature="-maxrregcount",
        cuda=(0, 32, 40, 48, 64, 96, 128, 168),
        elementwise=(0, 32, 40, 64),
        items=(0, 32, 40, 64, 96),
        limits=(0, 255),
        neutral=0,
        place=20,
        rank=15,
    )
    schedule: Literal["free", "written"] | Open = decision(
        "instruction order", choice(free="the assembler orders instructions freely",
                                    written="instructions stay near the order of the source"),
        literature="instruction scheduling", cuda=ORDERS, elementwise=ORDERS, items=ORDERS,
        neutral="free", place=31, rank=26,
    )  # fmt: skip
    hoist: bool | Open = decision(
        "invariant code motion",
        choice(
            off="computed for every pair", on="computed once per target where no source changes it"
        ),
        literature="loop-invariant code motion",
        cuda=SWITCH,
        cpu=SWITCH,
        items=SWITCH,
        items_cpu=SWITCH,
        neutral=False,
        place=8,
        rank=10,
        apart=True,
    )
    self_term: Literal["test", "loops", "drop"] | Open = decision(
        "if-elimination", choice(test="tested for every pair, where the function does so",
                                 loops="two loops, before and after the element itself",
                drop="no test: the term is proved to be zero"),
        literature="if-elimination through softening; two loops instead of the if",
        cuda=("test", "loops", "drop"), cpu=("test", "loops", "drop"),
        neutral="test", place=7, rank=8, apart=True,
    )  # fmt: skip
    rsqrt: Literal["written", "hardware", "exact"] | Open = decision(
        "reciprocal square root",
        choice(
            written="computed as written",
            hardware="1 / sqrt(x) by the approximate instruction",
            exact="by a rounded square root and a division",
        ),
        literature="intrinsic functions",
        cuda=("written", "hardware", "exact"),
        cpu=("written", "hardware", "exact"),
        elementwise=("written", "hardware", "exact"),
        elementwise_cpu=("written", "hardware", "exact"),
        on_request=True,
        items=("written", "hardware", "exact"),
        items_cpu=("written", "hardware", "exact"),
        neutral="written",
        place=1,
    )
    fma: bool | Open = decision(
        "FMA rearrangement",
        choice(
            off="sums of products as written",
            on="each product joins its sum in one fused multiply-add",
        ),
        literature="fused multiply-add",
        cuda=SWITCH,
        cpu=SWITCH,
        elementwise=SWITCH,
        elementwise_cpu=SWITCH,
        items=SWITCH,
        items_cpu=SWITCH,
        neutral=False,
        place=2,
        rank=9,
        apart=True,
    )
    uniforms: Literal["constant", "global"] | Open = decision(
        "constant-memory parameters",
        lambda v, blocks: f"in {v} memory" if blocks else "arguments of the call",
        literature="constant memory",
        cuda=("global", "constant"),
        elementwise=("global", "constant"),
        items=("global", "constant"),
        neutral="constant",
        place=16,
        rank=16,
        apart=True,
    )
    prefetch: Literal["none", "registers", "async", "async3", "async4"] | Open = decision(
        "data prefetching", choice(none="a tile is loaded when it is needed",
                                    registers="the next tile is loaded into registers meanwhile",
                **{"async": "the next tile is copied asynchronously meanwhile",
                   "async3": "the next 2 tiles are copied asynchronously meanwhile",
                   "async4": "the next 3 tiles are copied asynchronously meanwhile"}),
        literature="double buffering", cuda=("none", "registers", "async"),
        points=("none", "registers", "async", "async3", "async4"),
        neutral="none", place=14, rank=11, apart=True,
    )  # fmt: skip
    fission: bool | Open = decision(
        "loop splitting",
        choice(
            off="all results in one kernel", on="a kernel for each independent group of results"
        ),
        literature="loop fission",
        cuda=SWITCH,
        cpu=SWITCH,
        elementwise=SWITCH,
        elementwise_cpu=SWITCH,
        neutral=False,
        place=5,
        rank=14,
        apart=True,
    )
    branches: Literal["together", "apart"] | Open = decision(
        "branch splitting",
        choice(
            together="both sides of a branch in one kernel",
            apart="a kernel for each side of the branch",
        ),
        literature="splitting of if-else",
        cuda=("together", "apart"),
        cpu=("together", "apart"),
        elementwise=("together", "apart"),
        elementwise_cpu=("together", "apart"),
        neutral="together",
        place=6,
        rank=13,
        apart=True,
    )
    reciprocity: Literal["off", "scratch", "ordered", "grouped"] | Open = decision(
        "reciprocity",
        choice(
            off="each pair is computed from both sides",
            scratch="partial sums in memory, added by a second kernel",
            ordered="blocks add to the result in a fixed order",
            grouped="groups of tasks have their own sums, as the parts of a mesh share them",
        ),
        literature="Newton's third law",
        cuda=("off", "scratch", "ordered"),
        needs=(("tile", 0), ("slices", 1), ("parts", 1), ("hoist", False), ("prefetch", "none")),
        shape=(
            ("block", 32),
            ("targets", 8),
            ("unroll", 1),
            ("self_term", "test"),
            ("accumulate", "native"),
        ),
        neutral="off",
        place=9,
    )
    across: int | Open = decision(
        "shape of blocks",
        words.across,
        literature="thread-block shape", points=(0, 4, 8, 16, 32, 64), points_cpu=(4, 8, 16),
        lanes=True, boxes=True, limits=(0, 4_096), neutral=0, place=24, rank=19,
    )  # fmt: skip
    down: int | Open = decision(
        "shape of blocks, rows",
        lambda v, blocks: (
            f"{v} threads of a block along the next slower index"
            if v
            else "the other threads of a block make rows"
        ),
        literature="thread-block shape",
        points=(0, 4, 8, 16),
        boxes=True,
        limits=(0, 1_024),
        neutral=0,
        place=25,
        rank=20,
    )
    rows: int | Open = decision(
        "thread merging, rows", lambda v, blocks: words.points(v, "the next slower index"),
        literature="register tiling", points=(1, 2, 4, 8), points_cpu=(1, 2, 4, 6, 8, 16),
        boxes=True, limits=(0, 64), neutral=1, place=26, rank=21,
    )  # fmt: skip
    layers: int | Open = decision(
        "thread merging, layers", lambda v, blocks: words.points(v, "the slowest of three indices"),
        literature="2.5-D blocking", points=(1, 2, 4, 8), points_cpu=(1, 2, 4),
        boxes=True, limits=(0, 64), neutral=1, place=27, rank=22,
    )  # fmt: skip
    adjacent: int | Open = decision(
        "wide accesses",
        lambda v, blocks: (
            ("no points" if v == 1 else f"{v} points") + " of a thread are neighbours"
            if v
            else "up to 4 points of a thread are neighbours"
        ),
        literature="vector loads",
        points=(0, 1, 2, 4, 8),
        limits=(0, 64),
        neutral=0,
        place=28,
        rank=23,
    )
    neighbours: Literal["last", "first"] | Open = decision(
        "neighbouring threads",
        choice(last="they differ in the last index", first="they differ in the first index"),
        literature="thread-index remapping",
        points=("last", "first"),
        neutral="last",
        place=23,
        rank=18,
    )
    order: Literal["rows", "panels", "diagonal"] | Open = decision(
        "order of blocks",
        choice(
            rows="row after row",
            panels="8 rows together, column after column",
            diagonal="along diagonals",
        ),
        literature="partition camping, L2 blocking",
        points=("rows", "panels", "diagonal"),
        neutral="rows",
        place=29,
        rank=24,
        apart=True,
    )
    panel: int | Open = decision(
        "blocking of recurrences",
        lambda v, blocks: (
            f"{v} rounds of the outer loop are a panel: what they gather of finished rounds is "
            "computed ahead, "
            "for all at once"
            if v
            else "every thread goes through all rounds"
        ),
        literature="blocked triangular solve",
        points=(0, 128, 256, 512, 1024),
        needs=(("slices", 1), ("parts", 1)),
        shape=(
            ("block", 128),
            ("across", 16),
            ("rows", 8),
            ("targets", 8),
            ("tile", 16),
            ("prefetch", "registers"),
            ("unroll", 0),
        ),
        limits=(0, 65_536),
        neutral=0,
        place=30,
        rank=25,
    )
    vector_bits: int | Open = decision(
        "SIMD width", words.vector_bits,
        literature="vectorisation", cpu=(0, 256, 512), elementwise_cpu=(0, 256, 512),
        items_cpu=(0, 256, 512),
        limits=(0, 512), neutral=0, place=21, rank=6,
    )  # fmt: skip
    segments: Literal["apart", "packed"] | Open = decision(
        "segment packing",
        choice(
            apart="a block has cells of one segment",
            packed="blocks are filled with cells of neighbouring segments",
        ),
        literature="compaction of ragged lengths",
        items=("apart", "packed"),
        neutral="apart",
        place=22,
        rank=17,
    )

    def __post_init__(self) -> None:
        check_fields(self, PlanError)
        check_limits(self, _LIMITS)

    @staticmethod
    def neutral() -> CompletePlan:
        """The plan with every optimisation switched off: what each of them is compared with."""
        return NEUTRAL

    def filled(self, defaults: P) -> P:
        """This plan, with the fields left at None taken from `defaults`."""
        # of fields that were checked: every call of a kernel fills a plan
        result = object.__new__(type(defaults))
        for name in FIELDS:
            own = getattr(self, name)
            object.__setattr__(result, name, getattr(defaults, name) if own is None else own)
        return result

    def __eq__(self, other: object) -> bool:
        """Plans are equal that say the same."""
        return _values(self) == _values(other) if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        """What is printed can be handed to a kernel."""
        return f"Plan({', '.join(f'{n}={v!r}' for n, v in self.as_dict().items())})"

    def __str__(self) -> str:
        return ", ".join(f"{n}={v!r}" for n, v in self.as_dict().items() if v is not None)

    def short(self) -> str:
        """What differs from the neutral plan: the decisions that shape the kernel."""
        kept = {
            n: v for n, v in self.as_dict().items() if v is not None and v != getattr(NEUTRAL, n)
        }
        return str(Plan(**kept)) or "neutral"

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(FIELDS, _values(self), strict=True))


CompletePlan = Plan[Never]
"""A plan with every field decided: what stages, models and reports work with.

`Plan.filled` with one makes others of them. With a field set to None it is one no more:
`dataclasses.replace(run.plan, tile=None)` leaves the tile to lanewise.
"""


def complete(plan: Plan) -> CompletePlan:
    """The same plan, of which every field is decided; raises `PlanError` where one is open."""
    if missing := [n for n, v in plan.as_dict().items() if v is None]:
        raise PlanError(f"a complete plan leaves nothing open, and {missing[0]} is not decided")
    return plan  # pyright: ignore[reportReturnType]


FIELDS = tuple(f.name for f in fields(Plan))
_LIMITS: Mapping[str, tuple[int, int]] = {
    f.name: f.metadata[DECISION].limits
    for f in fields(Plan)
    if f.metadata[DECISION].limits is not None
}
_values = attrgetter(*FIELDS)


def check_plan(place: str, plan: Any) -> Plan | None:
    """A plan or none; raises `PlanError` for anything else."""
    if plan is not None and not isinstance(plan, Plan):
        raise PlanError(f"{place}: plan takes lw.Plan(...), found {shown(plan)}")
    return plan


OPTIMISATIONS: tuple[Optimisation, ...] = tuple(
    sorted((f.metadata[DECISION].of(f.name) for f in fields(Plan)), key=lambda o: o.place)
)
"""What a plan decides, in the order of the compiler.

Arithmetic, division into kernels, loops, memory, threads.
"""

DECLARED: Mapping[str, Optimisation] = {o.field: o for o in OPTIMISATIONS}
"""What is declared of a field, by its name."""

NEUTRAL: CompletePlan = complete(Plan(**{o.field: o.neutral for o in OPTIMISATIONS}))
"""Every optimisation switched off.

What the ladders start from, and what an optimisation is compared with.
"""


def neutral_plan(target: Target, block: int) -> CompletePlan:
    """Every optimisation switched off, in blocks of so many threads where threads come in
    blocks.
    """
    return Plan(block=block).filled(NEUTRAL) if target.has_blocks else NEUTRAL
